#include "support/bpe/train.h"

#include "gestalt/error.hpp"
#include "support/bpe/test_data.h"
#include "support/bpe/tokenizer.h"

namespace gestalt::support::bpe {

TEST_CASE("The most frequent pair is learned first, of equals the one with the smallest ids") {
  Trainer trainer{Pattern("gpt2")};
  trainer.add("xcd xab xab xcd xcd");
  const Vocabulary v = trainer.train(260);
  CHECK(v.token(256) == " x");    // 4 times
  CHECK(v.token(257) == "cd");    // 3
  CHECK(v.token(258) == "ab");    // 2, and bytes come before tokens
  CHECK(v.token(259) == " xcd");  // 2, as " xab", whose second id is larger
}

TEST_CASE("Training twice gives the same tokens, and saved tokens encode the same") {
  const auto train = [] {
    Trainer trainer{Pattern("gpt2")};
    std::mt19937_64 random(5);
    for (int i = 0; i < 3000; ++i) trainer.add(" word" + std::to_string(random() % 97) + (random() % 2 ? "ing" : "ed"));
    return trainer.train(340);
  };
  const Vocabulary a = train(), b = train();
  for (int32_t id = 0; id < 340; ++id) REQUIRE(a.token(id) == b.token(id));
  const std::string path = scratch("trained.tiktoken");
  save_trained(path, a, Pattern("gpt2").regex(), {{"<|endoftext|>", 340}}, "<|endoftext|>");
  const Tokenizer tokenizer(load_tiktoken(path), "");
  CHECK(tokenizer.vocab_size() == 341);
  CHECK(tokenizer.special("eos") == 340);
  CHECK(tokenizer.pattern().kind() == PatternKind::kGpt2);
  auto scratch = tokenizer.make_scratch();
  std::vector<int32_t> ids;
  tokenizer.encode(" wording worded", Specials::kAsText, &scratch, &ids);
  CHECK(ids.size() <= 4);
}

TEST_CASE("Text that is too poor for the wanted vocabulary is refused with the number it gives") {
  Trainer trainer{Pattern("gpt2")};
  trainer.add("abab abab");
  try {
    trainer.train(1000);
    FAIL("not refused");
  } catch (const Error& e) {
    CHECK(e.message().find("got 1000") != std::string::npos);
  }
  CHECK_THROWS_AS(trainer.train(255), Error);
}

}  // namespace gestalt::support::bpe

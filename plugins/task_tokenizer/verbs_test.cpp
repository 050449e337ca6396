#include "gestalt/error.hpp"
#include "plugins/task_tokenizer/golden.h"
#include "plugins/task_tokenizer/training.h"
#include "support/bpe/tokenizer.h"
#include "support/file.h"
#include "support/sha256.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::task_tokenizer {
namespace {

TrainOptions options(const support::TestFolder& folder) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "the word " + std::to_string(i % 89) + " and the words\n";
  TrainOptions o;
  o.inputs = {folder.write("text.txt", text)};
  o.output = folder.file("small.tiktoken");
  o.vocab_size = 300;
  return o;
}

}  // namespace

TEST_CASE("Training writes the same files twice, and they hold what was asked for") {
  const support::TestFolder folder;
  TrainOptions o = options(folder);
  const support::Json first = train_tokenizer(o);
  CHECK(first.i64("vocabulary") == 300);
  CHECK(first.i64("eos") == 299);
  const std::string bytes = support::ReadFile(o.output).read_all();
  CHECK(train_tokenizer(o).str("fingerprint") == first.str("fingerprint"));
  CHECK(support::ReadFile(o.output).read_all() == bytes);
  o.vocab_size = 256;
  CHECK(support::contains(support::error_of([&] { train_tokenizer(o); }), "expected at least 257"));
  o.vocab_size = 100'000;
  CHECK(support::contains(support::error_of([&] { train_tokenizer(o); }), "give more text"));
}

TEST_CASE("Golden lines are reproduced, differ, or belong to others") {
  const support::TestFolder folder;
  const TrainOptions o = options(folder);
  train_tokenizer(o);
  const support::bpe::Tokenizer tokenizer(support::bpe::load_tiktoken(o.output), "");
  auto scratch = tokenizer.make_scratch();
  std::vector<int32_t> ids;
  tokenizer.encode("the word", support::bpe::Specials::kAsText, &scratch, &ids);
  std::string list;
  for (const int32_t id : ids) list += (list.empty() ? "" : ", ") + std::to_string(id);
  const std::string good = "{\"tokenizer\": \"small\", \"text\": \"the word\", \"ids\": [" + list + "]}\n";
  const std::string golden =
      folder.write("golden.jsonl", good + "{\"tokenizer\": \"other\", \"text\": \"\", \"ids\": []}\n");
  const GoldenCounts fine = check_golden(golden, folder.file(""));
  CHECK(fine.equal == 1);
  CHECK(fine.different.empty());
  CHECK(fine.not_ours == std::vector<std::string>{"other"});
  folder.write("golden.jsonl", good + "{\"tokenizer\": \"small\", \"text\": \"the word\", \"ids\": [1]}\n");
  const GoldenCounts wrong = check_golden(golden, folder.file(""));
  REQUIRE(wrong.different.size() == 1);
  CHECK(support::contains(wrong.different[0], "golden.jsonl:2"));
  folder.write("golden.jsonl", "{\"tokenizer\": \"small\", \"file\": \"none.txt\", \"count\": 1}\n");
  CHECK_FALSE(support::error_of([&] { check_golden(golden, folder.file("")); }).empty());
}

}  // namespace gestalt::task_tokenizer

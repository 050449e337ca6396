// The ids that other people's programs give, for strings and whole files. Skips where the reference files are absent.
#include "support/bpe/test_data.h"
#include "support/bpe/tokenizer.h"
#include "support/file.h"
#include "support/json.h"
#include "support/sha256.h"

namespace gestalt::support::bpe {
namespace {

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text, Specials mode = Specials::kAsText) {
  auto scratch = tokenizer.make_scratch();
  std::vector<int32_t> ids;
  tokenizer.encode(text, mode, &scratch, &ids);
  return ids;
}

void check_golden(const Tokenizer& tokenizer, std::string_view name) {
  const std::string path = reference("golden/tokenizer_golden.jsonl");
  if (path.empty()) return;
  std::ifstream lines(path);
  int num = 0;
  for (std::string line; std::getline(lines, line);) {
    const support::Json golden = support::parse_json(line, path);
    if (golden.str("tokenizer") != name) continue;
    ++num;
    if (golden.has("text")) {
      const std::vector<int32_t> ids = encode(tokenizer, golden.str("text"));
      CHECK(std::vector<int64_t>(ids.begin(), ids.end()) == golden.i64_list("ids"));
      continue;
    }
    const std::string file = reference("data/text/" + golden.str("file"));
    if (file.empty()) continue;
    const std::string text = support::ReadFile(file).read_all();
    const std::vector<int32_t> ids = encode(tokenizer, text);
    CHECK(static_cast<int64_t>(ids.size()) == golden.i64("count"));
    CHECK(support::hex(support::sha256({reinterpret_cast<const char*>(ids.data()), ids.size() * 4})) ==
          golden.str("sha256_of_uint32le_ids"));
    std::string back;
    tokenizer.decode(ids, &back);
    CHECK(back == text);
  }
  CHECK(num > 0);
}

}  // namespace

TEST_CASE("A tiktoken rank file reproduces the golden GPT-2 ids") {
  const std::string ranks = reference("data/tokenizers/r50k_base.tiktoken");
  if (ranks.empty()) return;
  const Tokenizer tokenizer(load_tiktoken(ranks), "gpt2");
  CHECK(tokenizer.vocab_size() == 50257);
  CHECK(tokenizer.special("eos") == 50256);
  check_golden(tokenizer, "gpt2");
}

TEST_CASE("vocab.json with merges.txt reproduces the golden GPT-2 ids") {
  const std::string vocab = reference("data/tokenizers/gpt2_encoder.json");
  const std::string merges = reference("data/tokenizers/gpt2_vocab.bpe");
  if (vocab.empty() || merges.empty()) return;
  const Tokenizer tokenizer(load_gpt2(vocab, merges), "");
  CHECK(tokenizer.vocab_size() == 50257);
  CHECK(tokenizer.special("<|endoftext|>") == 50256);
  check_golden(tokenizer, "gpt2");
}

TEST_CASE("The cl100k rank file reproduces the golden ids") {
  const std::string ranks = reference("data/tokenizers/cl100k_base.tiktoken");
  if (ranks.empty()) return;
  const Tokenizer tokenizer(load_tiktoken(ranks), "cl100k_base");
  CHECK(tokenizer.vocab_size() == 100277);
  check_golden(tokenizer, "cl100k_base");
}

}  // namespace gestalt::support::bpe

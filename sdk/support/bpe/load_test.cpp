#include "support/bpe/load.h"

#include "gestalt/error.hpp"
#include "support/bpe/base64.h"
#include "support/bpe/test_data.h"
#include "support/bpe/tokenizer.h"

namespace gestalt::support::bpe {
namespace {

std::string byte_ranks() {
  std::string lines;
  for (int b = 0; b < 256; ++b)
    lines += encode_base64(std::string(1, static_cast<char>(b))) + " " + std::to_string(b) + "\n";
  return lines;
}

// The message of the refusal; empty when the file was taken.
template <class F>
std::string refusal(F&& load) {
  try {
    load();
  } catch (const Error& e) {
    CHECK((e.code == GESTALT_DATA_ERROR || e.code == GESTALT_NOT_FOUND));
    return e.message();
  }
  return {};
}

std::string rank_refusal(const std::string& bytes) {
  const std::string path = write_file("bad.tiktoken", bytes);
  const std::string message = refusal([&] { load_tiktoken(path); });
  if (!message.empty()) CHECK(message.find(path) != std::string::npos);
  return message;
}

std::string small_vocab() {
  std::string json = "{";
  int id = 0, next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    const int code = printable ? b : next++;
    std::string c;
    if (code < 0x80) {
      if (code == '"' || code == '\\') c += '\\';
      c += static_cast<char>(code);
    } else {
      c += static_cast<char>(0xC0 | code >> 6);
      c += static_cast<char>(0x80 | (code & 63));
    }
    json += "\"" + c + "\": " + std::to_string(id++) + ", ";
  }
  return json + "\"ab\": 256, \"abc\": 257, \"<end>\": 258}";
}

}  // namespace

TEST_CASE("Base64 is read strictly") {
  std::string bytes;
  CHECK(decode_base64("aGk=", &bytes));
  CHECK(bytes == "hi");
  for (const char* wrong : {"aGk", "aGl=", "a===", "aG=k", "aG k", "!!!!"}) CHECK_FALSE(decode_base64(wrong, &bytes));
}

TEST_CASE("Wrong rank files are refused with file and byte") {
  CHECK(rank_refusal(byte_ranks()).empty());
  CHECK(rank_refusal(byte_ranks() + "YWI= 256").empty());
  const std::string end = std::to_string(byte_ranks().size());
  CHECK(rank_refusal(byte_ranks() + "nospace\n").find("at byte " + end) != std::string::npos);
  CHECK(rank_refusal(byte_ranks() + "Y!I= 256\n").find("wrong base64 at byte " + end) != std::string::npos);
  CHECK(rank_refusal(byte_ranks() + "YWI= 2x\n").find("rank is \"2x\"") != std::string::npos);
  CHECK(rank_refusal(byte_ranks() + "YWI= -1\n").find("rank is \"-1\"") != std::string::npos);
  CHECK(rank_refusal(byte_ranks() + "YWI= 4000000000\n").find("at byte") != std::string::npos);
  CHECK(rank_refusal(byte_ranks() + "YWI= 2000000000\n").find("out of range") != std::string::npos);
  CHECK(rank_refusal(byte_ranks() + "YWI= 7\n").find("id 7 appears twice") != std::string::npos);
  CHECK(rank_refusal(byte_ranks() + "YQ== 256\n").find("same bytes") != std::string::npos);
  CHECK(rank_refusal(byte_ranks() + " 256\n").find("is empty") != std::string::npos);
  CHECK(rank_refusal(byte_ranks().substr(7)).find("0x00") != std::string::npos);
  CHECK(refusal([] { load_tiktoken("/nowhere/ranks"); }).find("/nowhere/ranks") != std::string::npos);
}

TEST_CASE("Listed merges decide, and entries made by none are special") {
  const std::string vocab = write_file("vocab.json", small_vocab());
  const std::string merges = write_file("merges.txt", "#version: 0.2\na b\nab c\n");
  const Tokenizer tokenizer(load_gpt2(vocab, merges), "");
  CHECK(tokenizer.special("<end>") == 258);
  auto scratch = tokenizer.make_scratch();
  std::vector<int32_t> ids;
  tokenizer.encode("abc", Specials::kAsText, &scratch, &ids);
  CHECK(ids == std::vector<int32_t>{257});
}

TEST_CASE("Wrong merges and vocabularies are refused with file and byte") {
  const std::string vocab = write_file("vocab.json", small_vocab());
  const auto merges = [&](const std::string& text) {
    const std::string path = write_file("merges.txt", text);
    return refusal([&] { load_gpt2(vocab, path); });
  };
  CHECK(merges("a b\nab c\n").empty());
  CHECK(merges("a b\nab\n").find("at byte 4") != std::string::npos);
  CHECK(merges("a b\nab  c\n").find("at byte 4") != std::string::npos);
  CHECK(merges("a b\nx y\n").find("merge at byte 4 uses a token") != std::string::npos);
  CHECK(merges("a b\na b\n").find("merge at byte 4 appears twice") != std::string::npos);
  const std::string good = write_file("merges.txt", "a b\n");
  CHECK_FALSE(refusal([&] { load_gpt2(write_file("v.json", "{\"a\": 1"), good); }).empty());
  CHECK_FALSE(refusal([&] { load_gpt2(write_file("v.json", "{\"a\": -1}"), good); }).empty());
  CHECK_FALSE(refusal([&] { load_gpt2(write_file("v.json", "[]"), good); }).empty());
}

TEST_CASE("Mutated rank files and merges are taken or refused, never worse") {
  std::mt19937_64 random(11);
  const std::string vocab = write_file("vocab.json", small_vocab());
  const int64_t runs = num_fuzz(2000, 100);
  for (int64_t i = 0; i < runs; ++i) {
    std::string ranks = byte_ranks() + "YWI= 256\n", merges = "#version: 0.2\na b\nab c\n", json = small_vocab();
    for (std::string* text : {&ranks, &merges, &json}) {
      const size_t at = random() % text->size();
      if (random() % 2)
        (*text)[at] = static_cast<char>(random());
      else
        text->erase(at, 1 + random() % 5);
    }
    rank_refusal(ranks);
    const std::string m = write_file("m.txt", merges);
    refusal([&] { load_gpt2(vocab, m); });
    refusal([&] { load_gpt2(write_file("mutated.json", json), m); });
  }
}

}  // namespace gestalt::support::bpe

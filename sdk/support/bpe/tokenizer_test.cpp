#include "support/bpe/tokenizer.h"

#include "gestalt/error.hpp"
#include "support/bpe/test_data.h"
#include "support/bpe/train.h"
#include "support/utf8.h"

namespace gestalt::support::bpe {
namespace {

constexpr char kText[] =
    "In the beginning God created the heaven and the earth. And the earth was without form, and void; and darkness was "
    "upon the face of the deep. And the Spirit of God moved upon the face of the waters.\n";

Tokenizer small_tokenizer(const std::vector<Special>& specials = {{"<|endoftext|>", 300}}) {
  const Pattern pattern("gpt2");
  Trainer trainer(pattern);
  for (int i = 0; i < 3; ++i) trainer.add(kText);
  Loaded loaded;
  loaded.vocabulary = trainer.train(300);
  loaded.specials = specials;
  return Tokenizer(std::move(loaded), "gpt2");
}

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text, Specials mode = Specials::kAsText) {
  auto scratch = tokenizer.make_scratch();
  std::vector<int32_t> ids;
  tokenizer.encode(text, mode, &scratch, &ids);
  return ids;
}

}  // namespace

TEST_CASE("Decoding what was encoded gives any bytes back") {
  const std::string ranks = reference("data/tokenizers/r50k_base.tiktoken");
  const Tokenizer tokenizer = ranks.empty() ? small_tokenizer() : Tokenizer(load_tiktoken(ranks), "gpt2");
  std::mt19937_64 random(7);
  auto scratch = tokenizer.make_scratch();
  std::vector<int32_t> ids;
  std::string back;
  const int64_t runs = num_fuzz(1'000'000, 50'000);
  for (int64_t i = 0; i < runs; ++i) {
    const std::string text = i % 2 ? random_bytes(random) : random_text(random, [](uint32_t) { return true; });
    ids.clear();
    back.clear();
    tokenizer.encode(text, Specials::kAsText, &scratch, &ids);
    tokenizer.decode(ids, &back);
    if (back != text) FAIL("run " << i << " lost bytes");
  }
}

TEST_CASE("Every byte value, NUL and long runs come back") {
  const Tokenizer tokenizer = small_tokenizer();
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  for (const std::string& text : {std::string(), std::string(1, '\0'), all, std::string(100'000, 'e'), all + all}) {
    std::string back;
    tokenizer.decode(encode(tokenizer, text), &back);
    CHECK(back == text);
  }
}

TEST_CASE("Long pieces merge as short ones do") {
  const Tokenizer tokenizer = small_tokenizer();
  const Vocabulary& v = tokenizer.vocabulary();
  std::mt19937_64 random(3);
  const std::string letters = "thegoda ";
  for (int round = 0; round < 200; ++round) {
    std::string piece;
    for (int i = 0; i < 150; ++i) piece += letters[random() % letters.size()];
    MergeScratch scratch;
    std::vector<int32_t> ids;
    merge_piece(v, piece.data(), piece.size(), &scratch, &ids);
    // The plain rule, applied one merge at a time.
    std::vector<int32_t> plain;
    for (const char c : piece) plain.push_back(v.byte_id(static_cast<uint8_t>(c)));
    for (;;) {
      size_t best = 0;
      Merge merge{kNoRank, -1};
      for (size_t i = 0; i + 1 < plain.size(); ++i) {
        const Merge m = v.pair(plain[i], plain[i + 1]);
        if (m.rank < merge.rank) merge = m, best = i;
      }
      if (merge.rank == kNoRank) break;
      plain[best] = merge.id;
      plain.erase(plain.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
    CHECK(ids == plain);
  }
}

TEST_CASE("Ranks in any order merge by the lowest rank of what two neighbours make") {
  // Vocabularies that no training made: random tokens of three letters in random order.
  std::mt19937_64 random(17);
  for (int round = 0; round < 300; ++round) {
    Vocabulary v;
    for (int b = 0; b < 256; ++b) {
      const char c = static_cast<char>(b);
      v.add({&c, 1}, b);
    }
    for (int32_t id = 256; id < 290;) {
      std::string token;
      for (uint64_t n = 2 + random() % 5; n > 0; --n) token += static_cast<char>('a' + random() % 3);
      if (v.find(token.data(), token.size()) < 0) v.add(token, id++);
    }
    v.merges_by_rank();
    MergeScratch scratch;
    for (int i = 0; i < 20; ++i) {
      std::string piece;
      for (uint64_t n = random() % 90; n > 0; --n) piece += static_cast<char>('a' + random() % 3);
      std::vector<int32_t> ids, plain;
      merge_piece(v, piece.data(), piece.size(), &scratch, &ids);
      std::vector<std::string> parts;
      for (const char c : piece) parts.emplace_back(1, c);
      for (;;) {
        int32_t lowest = INT32_MAX;
        size_t best = 0;
        for (size_t k = 0; k + 1 < parts.size(); ++k) {
          const std::string both = parts[k] + parts[k + 1];
          const int32_t id = v.find(both.data(), both.size());
          if (id >= 0 && id < lowest) lowest = id, best = k;
        }
        if (lowest == INT32_MAX) break;
        parts[best] += parts[best + 1];
        parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
      }
      for (const std::string& part : parts) plain.push_back(v.find(part.data(), part.size()));
      REQUIRE(ids == plain);
    }
  }
}

TEST_CASE("Text streamed token by token equals text decoded at once, and splits no code point") {
  const Tokenizer tokenizer = small_tokenizer();
  std::mt19937_64 random(23);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = round % 2 ? random_bytes(random) : random_text(random, [](uint32_t) { return true; });
    const std::vector<int32_t> ids = encode(tokenizer, text);
    support::Utf8Splitter stream, whole;
    std::string streamed, buffered, bytes;
    for (const int32_t id : ids) {
      bytes.clear();
      tokenizer.decode({&id, 1}, &bytes);
      std::string out;
      stream.push(bytes, &out);
      REQUIRE(support::valid_utf8(out));
      streamed += out;
    }
    stream.finish(&streamed);
    whole.push(text, &buffered);
    whole.finish(&buffered);
    REQUIRE(streamed == buffered);
  }
}

TEST_CASE("Special tokens in the text are text, ids or refused") {
  const Tokenizer tokenizer = small_tokenizer({{"<|a|>", 300}, {"<|a|>b", 301}, {"\xC3\x96", 302}});
  CHECK(encode(tokenizer, "<|a|>").size() > 1);
  CHECK(encode(tokenizer, "<|a|>", Specials::kAllow) == std::vector<int32_t>{300});
  CHECK(encode(tokenizer, "<|a|>b<|a|>", Specials::kAllow) == std::vector<int32_t>{301, 300});
  CHECK(encode(tokenizer, "\xC3\x96", Specials::kAllow) == std::vector<int32_t>{302});
  std::string back;
  tokenizer.decode(encode(tokenizer, "x\xC3\x96<|a|>y", Specials::kAllow), &back);
  CHECK(back == "x\xC3\x96<|a|>y");
  try {
    encode(tokenizer, "four<|a|>", Specials::kRefuse);
    FAIL("not refused");
  } catch (const Error& e) {
    CHECK(e.code == GESTALT_DATA_ERROR);
    CHECK(std::string(e.what()).find("\"<|a|>\" at byte 4") != std::string::npos);
  }
}

TEST_CASE("Ids that are no tokens are refused when decoding") {
  const Tokenizer tokenizer = small_tokenizer();
  std::string back;
  for (const int32_t id : {-1, 301, 1 << 30}) {
    const int32_t ids[] = {id};
    CHECK_THROWS_AS(tokenizer.decode(ids, &back), Error);
  }
}

TEST_CASE("The fingerprint changes with tokens, pattern and special tokens") {
  const Tokenizer a = small_tokenizer(), b = small_tokenizer({{"<|x|>", 300}});
  CHECK(a.fingerprint() == small_tokenizer().fingerprint());
  CHECK(a.fingerprint() != b.fingerprint());
}

}  // namespace gestalt::support::bpe

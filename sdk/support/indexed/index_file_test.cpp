#include "support/indexed/index_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <random>

#include "gestalt/error.hpp"
#include "support/indexed/gpt_index.h"
#include "support/indexed/index_writer.h"
#include "support/indexed/test_corpus.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support::indexed {
namespace {

std::string refusal(const std::string& prefix) {
  try {
    const IndexFile file(prefix);
  } catch (const Error& e) {
    CHECK((e.code == GESTALT_DATA_ERROR || e.code == GESTALT_NOT_FOUND));
    CHECK(e.message().find(prefix) != std::string::npos);
    return e.message();
  }
  return {};
}

// The refusal of a good index after `change`.
template <class F>
std::string changed(F&& change) {
  const std::string prefix = write_corpus("bad", {5, 3, 7});
  std::string bytes = read_bytes(prefix + ".idx");
  change(bytes);
  write_bytes(prefix + ".idx", bytes);
  return refusal(prefix);
}

template <class T>
void put(std::string& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

bool has(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("What is written is read back, document by document") {
  const std::string prefix = scratch("two");
  IndexWriter writer(prefix, TokenType::kU16, 60000);
  writer.add(std::vector<int32_t>{1, 2, 3});
  writer.add(std::vector<int32_t>{59999});
  writer.end_document();
  writer.end_document();  // a document without sequences
  writer.add(std::vector<int32_t>{});
  writer.end_document();
  writer.finish();
  const IndexFile file(prefix);
  CHECK(file.type() == TokenType::kU16);
  CHECK(file.num_sequences() == 3);
  CHECK(file.num_documents() == 3);
  CHECK(file.num_tokens() == 4);
  CHECK(file.boundary(1) == 2);
  CHECK(file.boundary(2) == 2);
  CHECK(file.bin_bytes() == 8);
  int32_t id = 0;
  file.read(1, 0, 1, &id);
  CHECK(id == 59999);
  CHECK_THROWS_AS(file.read(1, 0, 2, &id), Error);
  CHECK_THROWS_AS(file.read(3, 0, 0, &id), Error);
}

TEST_CASE("The width follows the vocabulary, and ids beyond it are refused when written") {
  CHECK(type_for_vocabulary(65499) == TokenType::kU16);
  for (const int64_t wide : {0, 65500, 65535, 65536, 65537, 100000})
    CHECK(type_for_vocabulary(wide) == TokenType::kI32);
  for (const int64_t vocabulary : {65499, 65500, 65535, 65536, 65537, 70001}) {
    const std::string prefix = scratch("wide");
    IndexWriter writer(prefix, type_for_vocabulary(vocabulary), vocabulary);
    const auto last = static_cast<int32_t>(vocabulary - 1);
    writer.add(std::vector<int32_t>{0, last});
    const int32_t beyond = last + 1;
    CHECK_THROWS_AS(writer.add({&beyond, 1}), Error);
    writer.end_document();
    writer.finish();
    int32_t back[2];
    IndexFile(prefix).read(0, 0, 2, back);
    CHECK(back[1] == last);
  }
  CHECK_THROWS_AS(IndexWriter(scratch("narrow"), TokenType::kU16, 65537), Error);
  IndexWriter unknown(scratch("narrow"), TokenType::kU16, 0);
  const int32_t wrap = 65536;
  CHECK_THROWS_AS(unknown.add({&wrap, 1}), Error);
}

TEST_CASE("Nothing appears under its name before the end") {
  const std::string prefix = scratch("unfinished");
  {
    IndexWriter writer(prefix, TokenType::kI32, 0);
    writer.add(std::vector<int32_t>{1});
    CHECK_THROWS_AS(writer.finish(), Error);
  }
  CHECK_FALSE(std::filesystem::exists(prefix + ".bin"));
  CHECK_FALSE(std::filesystem::exists(prefix + ".idx"));
}

TEST_CASE("Offsets past three thousand million bytes and tokens are exact") {
  // A sparse file: 3 sequences of 900 million i32 tokens, 10.8 GB of holes with a mark in the last sequence.
  const std::string prefix = scratch("sparse");
  constexpr int32_t kLength = 900'000'000;
  const int fd = open((prefix + ".bin").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  REQUIRE(fd >= 0);
  const off_t end = static_cast<off_t>(3) * kLength * 4;
  const int32_t mark = 77;
  if (ftruncate(fd, end) != 0 || pwrite(fd, &mark, 4, end - 4) != 4) {
    close(fd);
    WARN("SKIP: this file system has no sparse files of 10.8 GB");
    return;
  }
  close(fd);
  std::string index(kIndexMagic, sizeof kIndexMagic);
  const auto append = [&](auto value) { index.append(reinterpret_cast<const char*>(&value), sizeof value); };
  append(uint64_t{1});
  append(uint8_t{4});
  append(uint64_t{3});
  append(uint64_t{4});
  for (int i = 0; i < 3; ++i) append(kLength);
  for (int64_t i = 0; i < 3; ++i) append(i * kLength * 4);
  for (int64_t i = 0; i < 4; ++i) append(i);
  write_bytes(prefix + ".idx", index);
  {
    const IndexFile file(prefix);
    CHECK(file.num_tokens() == 2'700'000'000);
    int32_t back[2];
    file.read(2, kLength - 2, 2, back);
    CHECK(back[0] == 0);
    CHECK(back[1] == mark);
    GptIndexRequest request;
    request.end = 3;
    request.seq_len = 1 << 20;
    const GptIndex built = build_gpt_index(file, request);
    CHECK(built.num_samples() == (2'700'000'000 - 1) / (1 << 20));
    request.num_samples = 4'000'000'000 / (1 << 20);
    CHECK(plan_gpt_index(file, request).num_epochs == 2);
    request.num_samples = 5'000'000'000;
    request.seq_len = 1;
    CHECK(plan_gpt_index(file, request).wide_shuffle);
  }
  std::filesystem::remove(prefix + ".bin");
}

TEST_CASE("Damaged indices are refused with file and byte") {
  CHECK(changed([](std::string&) {}).empty());
  CHECK(has(changed([](std::string& b) { b[0] = 'X'; }), "magic is not MMIDIDX at byte 0"));
  CHECK(has(changed([](std::string& b) { put<uint64_t>(b, 9, 2); }), "version is 2, expected 1 at byte 9"));
  CHECK(has(changed([](std::string& b) { b[17] = 9; }), "type code is 9, expected 1 to 8 at byte 17"));
  CHECK(has(changed([](std::string& b) { b[17] = 0; }), "at byte 17"));
  CHECK(has(changed([](std::string& b) { put<uint64_t>(b, 18, 4); }), "at byte"));
  CHECK(has(changed([](std::string& b) { put<uint64_t>(b, 18, UINT64_MAX / 4); }), "at byte 18"));
  CHECK(has(changed([](std::string& b) { put<uint64_t>(b, 26, UINT64_MAX / 2); }), "at byte 26"));
  CHECK(has(changed([](std::string& b) { put<uint64_t>(b, 26, 0); }), "at byte 26"));
  CHECK(has(changed([](std::string& b) { put<int32_t>(b, 38, -1); }),
            "sequence 1 has length -1, expected 0 or more at byte 38"));
  CHECK(has(changed([](std::string& b) { put<int32_t>(b, 34, 1000); }), "sequence 0 is at 0 with 4000 bytes"));
  CHECK(has(changed([](std::string& b) { put<int64_t>(b, 34 + 12 + 8, 1 << 20); }), "at byte 54"));
  CHECK(has(changed([](std::string& b) { put<int64_t>(b, 34 + 12, -4); }), "at byte 46"));
  CHECK(has(changed([](std::string& b) { put<int64_t>(b, 34 + 36, 1); }), "document boundary 0 is 1"));
  CHECK(has(changed([](std::string& b) { put<int64_t>(b, 34 + 36 + 16, 0); }), "document boundary 2 is 0"));
  CHECK(has(changed([](std::string& b) { put<int64_t>(b, 34 + 36 + 24, 2); }), "document boundary 3 is 2"));
  CHECK(has(changed([](std::string& b) { b.resize(20); }), "the file ends"));
  CHECK(has(changed([](std::string& b) { b += "xx"; }), "2 bytes are left"));
  CHECK_FALSE(changed([](std::string& b) { b.pop_back(); }).empty());
  CHECK(has(refusal(scratch("absent")), "cannot be opened"));
  const std::string prefix = write_corpus("cut", {5, 3, 7});
  std::filesystem::resize_file(prefix + ".bin", 59);
  CHECK(has(refusal(prefix), "outside the 59 bytes"));
}

TEST_CASE("Modes are read where a multimodal index has them") {
  const std::string prefix = write_corpus("modes", {5, 3, 7});
  write_bytes(prefix + ".idx", read_bytes(prefix + ".idx") + std::string("\x00\x01\x02", 3));
  const IndexFile file(prefix);
  REQUIRE(file.has_modes());
  CHECK(file.mode(2) == 2);
}

TEST_CASE("Negative ids in the tokens are refused with file and byte") {
  const std::string prefix = write_corpus("negative", {5});
  std::string bytes = read_bytes(prefix + ".bin");
  put<int32_t>(bytes, 8, -5);
  write_bytes(prefix + ".bin", bytes);
  int32_t ids[5];
  try {
    IndexFile(prefix).read(0, 0, 5, ids);
    FAIL("not refused");
  } catch (const Error& e) {
    CHECK(has(e.message(), "token id -5 at byte 8"));
  }
}

TEST_CASE("Mutated indices are taken or refused, never worse") {
  std::mt19937_64 random(9);
  const char* runs = std::getenv("GESTALT_FUZZ_RUNS");
  const char* ci = std::getenv("CI");
  const int64_t num = runs ? std::atoll(runs) : ci && std::string(ci) == "1" ? 100'000 : 5000;
  const std::string prefix = write_corpus("fuzz", {5, 3, 7});
  const std::string good = read_bytes(prefix + ".idx");
  std::vector<int32_t> ids(64);
  for (int64_t i = 0; i < num; ++i) {
    std::string bytes = good;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      const size_t at = random() % bytes.size();
      if (random() % 8 == 0)
        bytes.resize(at + 1);
      else
        bytes[at] = static_cast<char>(random() % 3 ? random() : 0xFF * (random() % 2));
    }
    write_bytes(prefix + ".idx", bytes);
    try {
      const IndexFile file(prefix);
      for (int64_t s = 0; s < file.num_sequences(); ++s)
        file.read(s, 0, std::min<int64_t>(file.length(s), 64), ids.data());
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace gestalt::support::indexed

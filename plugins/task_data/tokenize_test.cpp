#include "plugins/task_data/tokenize.h"

#include <cstdlib>
#include <random>

#include "gestalt/error.hpp"
#include "support/file.h"
#include "support/indexed/index_file.h"
#include "support/json.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::task_data {
namespace {

support::bpe::Tokenizer bytes_tokenizer() {
  support::bpe::Loaded loaded;
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    loaded.vocabulary.add({&c, 1}, b);
  }
  loaded.vocabulary.merges_by_rank();
  loaded.specials = {{"<|endoftext|>", 256}};
  return {std::move(loaded), "gpt2"};
}

std::string bytes_of(const std::string& path) { return support::ReadFile(path).read_all(); }

std::string document(const std::string& prefix, int64_t i) {
  const support::indexed::IndexFile file(prefix);
  std::vector<int32_t> ids(static_cast<size_t>(file.length(i)));
  file.read(i, 0, file.length(i), ids.data());
  std::string text;
  for (const int32_t id : ids) text += id == 256 ? '$' : static_cast<char>(id);
  return text;
}

std::string jsonl(int num) {
  std::string lines;
  for (int i = 0; i < num; ++i)
    lines += "{\"id\": " + std::to_string(i) + ", \"text\": \"document " + std::to_string(i * 7919) + "\\n\"}\n";
  return lines;
}

}  // namespace

TEST_CASE("Any number of workers writes the same bytes") {
  const support::TestFolder folder;
  const auto tokenizer = bytes_tokenizer();
  TokenizeOptions options;
  options.inputs = {folder.write("a.jsonl", jsonl(3000)), folder.write("b.jsonl", jsonl(17))};
  std::string idx, bin;
  for (const int64_t workers : {1, 2, 5}) {
    options.num_workers = workers;
    options.output = folder.file("out" + std::to_string(workers));
    const TokenizeCounts counts = tokenize(tokenizer, options, {});
    CHECK(counts.documents == 3017);
    if (workers == 1) {
      idx = bytes_of(options.output + ".idx");
      bin = bytes_of(options.output + ".bin");
    }
    CHECK(bytes_of(options.output + ".idx") == idx);
    CHECK(bytes_of(options.output + ".bin") == bin);
  }
  CHECK(document(options.output, 1) == "document 7919\n$");
}

TEST_CASE("Packed files and text give the documents of the plain file") {
  const support::TestFolder folder;
  const auto tokenizer = bytes_tokenizer();
  const std::string plain = folder.write("a.jsonl", jsonl(100));
  TokenizeOptions options;
  options.output = folder.file("out");
  options.inputs = {plain};
  tokenize(tokenizer, options, {});
  const std::string bin = bytes_of(folder.file("out.bin"));
  for (const char* tool : {"gzip -c", "zstd -q -c"}) {
    const std::string packed = folder.file(tool[0] == 'g' ? "a.jsonl.gz" : "a.jsonl.zst");
    if (std::system((std::string(tool) + " '" + plain + "' > '" + packed + "' 2>/dev/null").c_str()) != 0) {
      WARN("SKIP: cannot run " << tool);
      continue;
    }
    options.inputs = {packed};
    const std::string lacks = support::error_of([&] { tokenize(tokenizer, options, {}); });
    if (!lacks.empty()) {  // a build without the library says so
      CHECK(support::contains(lacks, "which this build cannot read"));
      continue;
    }
    CHECK(bytes_of(folder.file("out.bin")) == bin);
  }
}

TEST_CASE("Text is cut into files, paragraphs or lines") {
  const support::TestFolder folder;
  const auto tokenizer = bytes_tokenizer();
  TokenizeOptions options;
  options.inputs = {folder.write("a.txt", "\xEF\xBB\xBFone\ntwo\n\n\nthree\n")};
  options.output = folder.file("out");
  CHECK(tokenize(tokenizer, options, {}).documents == 1);
  CHECK(document(options.output, 0) == "one\ntwo\n\n\nthree\n$");
  options.unit = Unit::kParagraph;
  CHECK(tokenize(tokenizer, options, {}).documents == 2);
  CHECK(document(options.output, 0) == "one\ntwo\n$");
  options.unit = Unit::kLine;
  options.append_eod = false;
  CHECK(tokenize(tokenizer, options, {}).documents == 3);
  CHECK(document(options.output, 2) == "three");
}

TEST_CASE("Bad lines are counted with file and line, or end the work") {
  const support::TestFolder folder;
  const auto tokenizer = bytes_tokenizer();
  TokenizeOptions options;
  const std::string path = folder.write("a.jsonl",
                                        "{\"text\": \"good\"}\n{\"text\": \n\n[1]\n{\"txt\": \"x\"}\n{\"text\": "
                                        "5}\n{\"text\": \"\"}\n{\"text\": \"a\xFF\"}\n");
  options.inputs = {path};
  options.output = folder.file("out");
  const TokenizeCounts counts = tokenize(tokenizer, options, {});
  CHECK(counts.documents == 1);
  CHECK(counts.bad == 5);
  CHECK(counts.empty == 1);
  REQUIRE(counts.first_bad.size() == 5);
  CHECK(support::contains(counts.first_bad[0], path + ":2"));
  CHECK(support::contains(counts.first_bad[1], path + ":4"));
  CHECK(support::contains(counts.first_bad[2], "\"text\" is missing"));
  CHECK(support::contains(counts.first_bad[3], "\"text\" is integer"));
  options.fail_on_bad = true;
  CHECK(support::contains(support::error_of([&] { tokenize(tokenizer, options, {}); }), path + ":2"));
  options.inputs = {folder.write("none.jsonl", "{\"text\": \"\"}\n")};
  CHECK(support::contains(support::error_of([&] { tokenize(tokenizer, options, {}); }), "no document"));
}

TEST_CASE("Mutated JSONL is taken or counted as bad, never worse") {
  const support::TestFolder folder;
  const auto tokenizer = bytes_tokenizer();
  const char* runs = std::getenv("GESTALT_FUZZ_RUNS");
  const char* ci = std::getenv("CI");
  const int64_t num = runs ? std::atoll(runs) : ci && std::string(ci) == "1" ? 200'000 : 20'000;
  std::mt19937_64 random(31);
  std::string lines;
  for (int64_t i = 0; i < num; ++i) {
    std::string line = "{\"id\": 7, \"text\": \"caf\\u00e9 \\ud83d\\ude00 \\n\", \"more\": [1, {\"a\": null}]}";
    for (uint64_t n = 1 + random() % 2; n > 0; --n) {
      const size_t at = random() % line.size();
      if (random() % 3 == 0)
        line.erase(at, 1 + random() % 4);
      else
        line[at] = static_cast<char>(random());
    }
    lines += line + "\n";
  }
  TokenizeOptions options;
  options.inputs = {folder.write("a.jsonl", "{\"text\": \"good\"}\n" + lines)};
  options.output = folder.file("out");
  options.num_workers = 2;
  const TokenizeCounts counts = tokenize(tokenizer, options, {});
  CHECK(counts.bad > num / 4);
  CHECK(counts.documents > num / 20);
  CHECK(counts.first_bad.size() == 10);
}

TEST_CASE("A tokenizer without eos needs to be told so") {
  const support::TestFolder folder;
  support::bpe::Loaded loaded;
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    loaded.vocabulary.add({&c, 1}, b);
  }
  loaded.vocabulary.merges_by_rank();
  loaded.pattern = "gpt2";
  const support::bpe::Tokenizer tokenizer(std::move(loaded), "");
  TokenizeOptions options;
  options.inputs = {folder.write("a.txt", "a")};
  options.output = folder.file("out");
  CHECK(support::contains(support::error_of([&] { tokenize(tokenizer, options, {}); }), "--no-eod"));
}

}  // namespace gestalt::task_data

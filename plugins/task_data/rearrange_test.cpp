#include "plugins/task_data/rearrange.h"

#include "gestalt/error.hpp"
#include "support/indexed/corpus.h"
#include "support/indexed/index_writer.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::task_data {
namespace {

using support::indexed::IndexFile;
using support::indexed::IndexWriter;
using support::indexed::TokenType;
using Documents = std::vector<std::vector<std::vector<int32_t>>>;  // documents of sequences

std::string write(const std::string& prefix, const Documents& documents, TokenType type) {
  IndexWriter writer(prefix, type, 0);
  for (const auto& document : documents) {
    for (const auto& sequence : document) writer.add(sequence);
    writer.end_document();
  }
  writer.finish();
  return prefix;
}

Documents read(const std::string& prefix) {
  const IndexFile file(prefix);
  Documents out;
  for (int64_t d = 0; d < file.num_documents(); ++d) {
    out.emplace_back();
    for (int64_t s = file.boundary(d); s < file.boundary(d + 1); ++s) {
      out.back().emplace_back(static_cast<size_t>(file.length(s)));
      file.read(s, 0, file.length(s), out.back().back().data());
    }
  }
  return out;
}

const Documents kDocuments = {{{1, 2}, {3}}, {}, {{4}}, {{5, 6, 7}}, {{}}, {{8}, {9}, {10, 11}}};

}  // namespace

TEST_CASE("Merging keeps every document, widens the type, and undoes a cut") {
  const support::TestFolder folder;
  const std::string small = write(folder.file("small"), kDocuments, TokenType::kU16);
  const std::string wide = write(folder.file("wide"), {{{70000}}}, TokenType::kI32);
  CHECK(merge_corpora({small, wide, small}, folder.file("all")).str("type") == "i32");
  Documents all = kDocuments;
  all.push_back({{70000}});
  all.insert(all.end(), kDocuments.begin(), kDocuments.end());
  CHECK(read(folder.file("all")) == all);

  CHECK(cut_corpus(small, folder.file("cut"), 4).items().size() == 2);
  CHECK(read(folder.file("cut_00000")).size() == 4);
  CHECK(merge_corpora({folder.file("cut_00000"), folder.file("cut_00001")}, folder.file("again")).i64("tokens") == 11);
  CHECK(support::ReadFile(folder.file("again.idx")).read_all() == support::ReadFile(small + ".idx").read_all());
  CHECK(support::ReadFile(folder.file("again.bin")).read_all() == support::ReadFile(small + ".bin").read_all());
}

TEST_CASE("A split holds the sequences that training would take") {
  const support::TestFolder folder;
  Documents many;
  for (int i = 0; i < 103; ++i) many.push_back({{i, i + 1}});
  const std::string prefix = write(folder.file("many"), many, TokenType::kU16);
  CHECK(split_corpus(prefix, folder.file("s"), "90,10").items().size() == 2);
  const Documents train = read(folder.file("s_train")), valid = read(folder.file("s_valid"));
  support::indexed::CorpusConfig config;
  config.paths = {prefix};
  config.split = "90,10";
  config.seq_len = 1;
  const support::indexed::Corpus corpus(config);
  CHECK(static_cast<int64_t>(train.size()) == corpus.split("train")->parts[0].request.end);
  Documents back = train;
  back.insert(back.end(), valid.begin(), valid.end());
  CHECK(back == many);
}

TEST_CASE("A border inside a document makes two of it") {
  const support::TestFolder folder;
  const std::string prefix = write(folder.file("c"), {{{1}, {2}, {3}, {4}}, {}}, TokenType::kU8);
  split_corpus(prefix, folder.file("s"), "1,1");
  CHECK(read(folder.file("s_train")) == Documents{{{1}, {2}}});
  CHECK(read(folder.file("s_valid")) == Documents{{{3}, {4}}, {}});
  CHECK_FALSE(support::error_of([&] { cut_corpus(prefix, folder.file("s"), 0); }).empty());
  CHECK_FALSE(support::error_of([&] { merge_corpora({}, folder.file("s")); }).empty());
}

}  // namespace gestalt::task_data

#include "plugins/task_data/corpus_verbs.h"

#include "gestalt/error.hpp"
#include "support/indexed/index_writer.h"
#include "support/npy.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::task_data {
namespace {

std::string write_corpus(const std::string& prefix, std::initializer_list<int> lengths) {
  support::indexed::IndexWriter writer(prefix, support::indexed::TokenType::kU16, 0);
  for (const int n : lengths) {
    writer.add(std::vector<int32_t>(static_cast<size_t>(n), 7));
    writer.end_document();
  }
  writer.finish();
  return prefix;
}

}  // namespace

TEST_CASE("Inspection and verification state sizes, width and the largest id") {
  const support::TestFolder folder;
  const std::string prefix = write_corpus(folder.file("c"), {5, 3, 7, 2, 6});
  const support::Json seen = inspect_corpus(prefix);
  CHECK(seen.str("type") == "u16");
  CHECK(seen.i64("tokens") == 23);
  CHECK(seen.i64("longest") == 7);
  CHECK(seen.i64("shortest") == 2);
  CHECK(verify_corpus(prefix, 8).i64("largest_id") == 7);
  CHECK(support::contains(support::error_of([&] { verify_corpus(prefix, 7); }), "id 7 at byte 0"));
  std::ofstream(prefix + ".bin", std::ios::binary | std::ios::app) << "xx";
  CHECK(support::contains(support::error_of([&] { verify_corpus(prefix, 0); }), "has 48 bytes, expected the 46"));
}

TEST_CASE("Samples, epochs and left-over tokens are counted") {
  const support::TestFolder folder;
  const std::string prefix = write_corpus(folder.file("c"), {5, 3, 7, 2, 6});
  const support::Json one = count_samples(prefix, 4, -1);
  CHECK(one.i64("samples") == 5);
  CHECK(one.i64("epochs") == 1);
  CHECK(one.i64("leftover_tokens") == 2);
  const support::Json two = count_samples(prefix, 4, 7);
  CHECK(two.i64("epochs") == 2);
  CHECK(two.i64("samples") == 11);
  CHECK(two.boolean("last_epoch_shuffled_alone"));
  CHECK_FALSE(support::error_of([&] { count_samples(prefix, 100, -1); }).empty());
}

TEST_CASE("Indices are exported as arrays of their own types") {
  const support::TestFolder folder;
  support::indexed::CorpusConfig config;
  config.paths = {"0.5", write_corpus(folder.file("a"), {50, 30}), "0.5", write_corpus(folder.file("b"), {70})};
  config.split = "1,0,0";
  config.num_samples = {12, 0, 0};
  config.seq_len = 4;
  export_indices(config, folder.file("out"));
  const support::NpyArray rows = support::read_npy(folder.file("out/train.sub1.sample_index.npy"));
  CHECK(rows.type == support::NpyType::kI4);
  CHECK(rows.shape.size() == 2);
  CHECK(support::read_npy(folder.file("out/train.sub0.shuffle_index.npy")).type == support::NpyType::kU4);
  CHECK(support::read_npy(folder.file("out/train.dataset_index.npy")).shape == std::vector<int64_t>{12});
}

}  // namespace gestalt::task_data

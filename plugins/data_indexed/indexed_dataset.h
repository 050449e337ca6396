// The component "gestalt.indexed".
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "gestalt/dataset.hpp"
#include "support/indexed/corpus.h"

namespace gestalt::data_indexed {

using support::indexed::Corpus;
using support::indexed::CorpusConfig;
using support::indexed::kNumSplits;
using support::indexed::Split;

class IndexedDataset : public Dataset {
 public:
  static constexpr std::string_view name = "gestalt.indexed";
  static constexpr ConfigKey keys[] = {
      {.name = "paths",
       .type = "str[]",
       .default_value = "[]",
       .doc = "prefixes of .bin/.idx pairs, or weight and prefix in turns: [\"0.7\", \"a\", \"0.3\", \"b\"]"},
      {.name = "train_paths",
       .type = "str[]",
       .default_value = "[]",
       .doc = "as paths, for one split; instead of paths"},
      {.name = "valid_paths",
       .type = "str[]",
       .default_value = "[]",
       .doc = "as paths, for one split; instead of paths"},
      {.name = "test_paths",
       .type = "str[]",
       .default_value = "[]",
       .doc = "as paths, for one split; instead of paths"},
      {.name = "split",
       .type = "str",
       .default_value = "\"969,30,1\"",
       .doc = "shares of train, valid and test among the sequences of paths"},
      {.name = "train_samples",
       .type = "i64",
       .default_value = "-1",
       .min = "-1",
       .doc = "samples to draw, over as many epochs as that takes; -1: one epoch; 0: no such split"},
      {.name = "valid_samples", .type = "i64", .default_value = "-1", .min = "-1", .doc = "as train_samples"},
      {.name = "test_samples", .type = "i64", .default_value = "-1", .min = "-1", .doc = "as train_samples"},
      {.name = "seed",
       .type = "i64",
       .default_value = "-1",
       .min = "-1",
       .max = "4294967295",
       .doc = "of the order of samples; -1: the run's"},
      {.name = "eod",
       .type = "i64",
       .default_value = "-1",
       .min = "-1",
       .doc = "id that ends a document; -1: the tokenizer's eos"},
      {.name = "pad",
       .type = "i64",
       .default_value = "-1",
       .min = "-1",
       .doc = "id that fills a sample that is too short; -1: the tokenizer's pad, if any"},
      {.name = "reset_position_ids", .type = "bool", .default_value = "false", .doc = "positions restart after eod"},
      {.name = "reset_attention_mask", .type = "bool", .default_value = "false", .doc = "attention is cut after eod"},
      {.name = "eod_mask_loss", .type = "bool", .default_value = "false", .doc = "what follows eod is not trained on"},
      {.name = "inter_document_masking",
       .type = "bool",
       .default_value = "false",
       .doc = "positions restart and attention is cut where a document begins"},
      {.name = "keep_partial_valid",
       .type = "bool",
       .default_value = "false",
       .doc = "the validation split keeps its last, shorter sample, padded"},
      {.name = "surplus",
       .type = "f64",
       .default_value = "0.005",
       .min = "0",
       .doc = "share of samples that corpora of a weighted mixture are built with beyond their part"},
      {.name = "cache_dir",
       .type = "str",
       .default_value = "\"\"",
       .doc = "folder that keeps the built indices by content; empty: build at every start"}};

  IndexedDataset(Host host, Attrs config);

  void open(TokenizerRef tokenizer, int64_t seq_len, int64_t seed) override;

  void info(std::string_view split, gestalt_dataset_info& out) override;

  BatchSizes read(std::string_view split, std::span<const int64_t> samples,
                  std::span<gestalt_view* const> out) override;

 private:
  const Split& need(std::string_view name) const;

  // Bytes that the trained labels of one pass stand for; -1 for a split that is absent or too long to walk through.
  int64_t measure(std::string_view name, const TokenizerRef& tokenizer);

  CorpusConfig config_;
  std::unique_ptr<Corpus> corpus_;
  std::array<uint8_t, 32> digest_{};
  std::array<int64_t, kNumSplits> bytes_of_text_{-1, -1, -1};
  std::vector<int32_t> labels_, starts_, token_bytes_;
  std::vector<float> weights_;
};

}  // namespace gestalt::data_indexed

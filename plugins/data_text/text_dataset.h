#pragma once

#include <string>
#include <vector>

#include "gestalt/dataset.hpp"
#include "plugins/data_text/text_split.h"
#include "plugins/data_text/token_windows.h"
#include "support/sha256.h"

namespace gestalt::data_text {

class TextDataset : public Dataset {
 public:
  static constexpr std::string_view name = "gestalt.text";
  static constexpr ConfigKey keys[] = {
      {.name = "path", .type = "file", .doc = "the text, one document a line", .required = true},
      {.name = "holdout",
       .type = "str",
       .default_value = "\"lines\"",
       .choices = "none|lines",
       .doc = "what the validation split is made of"},
      {.name = "holdout_block",
       .type = "i64",
       .default_value = "31",
       .min = "1",
       .when = "holdout=lines",
       .doc = "lines that are held out or trained on together"},
      {.name = "holdout_period",
       .type = "i64",
       .default_value = "20",
       .min = "2",
       .when = "holdout=lines",
       .doc = "one block of so many is held out"},
      {.name = "holdout_index",
       .type = "i64",
       .default_value = "7",
       .min = "0",
       .when = "holdout=lines",
       .doc = "which block of a period, from 0"},
      {.name = "context",
       .type = "i64",
       .default_value = "0",
       .min = "0",
       .when = "holdout=lines",
       .doc = "tokens on the left that a validation window repeats with weight 0"}};

  TextDataset(Host host, Attrs config);

  void open(TokenizerRef tokenizer, int64_t seq_len, int64_t seed) override;
  void info(std::string_view split, gestalt_dataset_info& out) override;
  BatchSizes read(std::string_view split, std::span<const int64_t> samples,
                  std::span<gestalt_view* const> out) override;

 private:
  bool is_valid(std::string_view split) const;  // NOT_FOUND for a split that is neither train nor an existing valid
  std::vector<int32_t> encode(const TokenizerRef& tokenizer, std::string_view text, std::string_view split) const;

  Host host_;
  std::string path_;
  HoldOut hold_out_;
  int64_t context_;
  int64_t seq_len_ = 0;
  std::vector<int32_t> train_, valid_;  // [tokens]
  TrainWindows train_windows_;
  ValidWindows valid_windows_;
  int64_t valid_bytes_ = 0;
  support::Digest256 digest_{};
};

}  // namespace gestalt::data_text

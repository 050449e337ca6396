// One corpus or a mixture of them, cut into splits and samples: sample n of a split is a pure function of the files and
// of this configuration.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/indexed/blend.h"
#include "support/indexed/gpt_index.h"
#include "support/indexed/index_file.h"

namespace gestalt::support::indexed {

constexpr int kNumSplits = 3;
constexpr std::string_view kSplitNames[kNumSplits] = {"train", "valid", "test"};

struct CorpusConfig {
  std::vector<std::string> paths;  // prefixes, or weight and prefix in turns; cut by `split`
  std::array<std::vector<std::string>, kNumSplits> split_paths;  // instead of paths: each split its own corpora
  std::string split = "969,30,1";
  std::array<int64_t, kNumSplits> num_samples{-1, -1, -1};  // -1: one epoch; 0: no such split
  int64_t seq_len = 0;
  int64_t seed = 0;
  int64_t eod = -1, pad = -1;  // ids; -1: none
  int64_t vocab_size = 0;      // 0: ids are not checked
  bool reset_position_ids = false, reset_attention_mask = false, eod_mask_loss = false;
  bool inter_document_masking = false;
  bool keep_partial_valid = false;
  double surplus = 0.005;  // what corpora of a weighted mixture are built with beyond their share
  std::string cache_dir;
};

// One corpus in one split.
struct Part {
  std::shared_ptr<const IndexFile> file;
  GptIndexRequest request;
  GptIndex index;
};

struct Split {
  std::vector<Part> parts;
  bool blended = false;
  Blend blend;
  int64_t num_samples = 0;
};

// Where one sample goes: seq_len elements each; NULL is left out.
struct SampleOut {
  int32_t* tokens = nullptr;
  int32_t* labels = nullptr;
  float* weights = nullptr;
  int32_t* positions = nullptr;
};

class Corpus {
 public:
  // CONFIG_ERROR, NOT_FOUND or DATA_ERROR with what is wrong.
  explicit Corpus(CorpusConfig config);

  const CorpusConfig& config() const { return config_; }
  // NULL when the split is absent.
  const Split* split(std::string_view name) const;
  // Reads sample n; appends the starts of its attention segments in [0, seq_len), the first of them 0. One thread.
  void read(const Split& split, int64_t n, const SampleOut& out, std::vector<int32_t>* starts);
  bool has_segments() const { return config_.reset_attention_mask || config_.inter_document_masking; }
  // Of the corpora and of everything that decides the order and content of samples.
  std::array<uint8_t, 32> digest() const;

 private:
  void build_split(int index, const std::vector<std::string>& paths, double from, double to);
  std::shared_ptr<const IndexFile> open(const std::string& prefix);
  Part make_part(const std::string& prefix, int split, double from, double to, int64_t num_samples);
  int64_t draw_text(const Part& part, int64_t sample);

  CorpusConfig config_;
  int64_t pad_ = -1;
  std::array<std::unique_ptr<Split>, kNumSplits> splits_;
  struct Opened {
    std::shared_ptr<const IndexFile> file;
    std::array<uint8_t, 32> digest;
  };
  std::vector<Opened> files_;
  std::vector<int32_t> text_;             // seq_len + 1
  std::vector<int32_t> document_starts_;  // places in text_ where another document begins
};

// "969,30,1" as fractions of one; as Megatron reads it: every stretch of digits and dots is a number.
std::array<double, kNumSplits> parse_split(std::string_view text);

// Sequences [begin, end) of `num_sequences` that lie between the fractions `from` and `to`, rounded as Megatron does.
struct Range {
  int64_t begin, end;
};
Range split_range(int64_t num_sequences, double from, double to);

}  // namespace gestalt::support::indexed

#include "plugins/data_text/text_dataset.h"

#include <algorithm>
#include <cstring>

#include "gestalt/view.hpp"
#include "support/file.h"

namespace gestalt::data_text {

namespace {

[[noreturn]] void refuse(int32_t code, const std::string& message) { throw Error(code, message); }

// The data of an output that must hold `count` elements at least.
template <class T>
T* room(const gestalt_view& view, DType dtype, int64_t count, std::string_view field) {
  if (view.dtype != dtype || View(&view).numel() < count || !View(&view).contiguous()) {
    refuse(GESTALT_INVALID_ARGUMENT, "[" + std::string(field) + "] got room for " + describe(View(&view)) +
                                         ", expected a contiguous " + std::string(name_of(dtype)) +
                                         " view of at least " + std::to_string(count) + " elements");
  }
  return static_cast<T*>(view.data);
}

}  // namespace

TextDataset::TextDataset(Host host, Attrs config)
    : host_(host), path_(config.str("path")), context_(config.i64("context", 0)) {
  if (config.str("holdout", "lines") == "none") return;
  hold_out_ = {config.i64("holdout_block", 31), config.i64("holdout_period", 20), config.i64("holdout_index", 7)};
  if (hold_out_.index >= hold_out_.period) {
    refuse(GESTALT_CONFIG_ERROR, "[data.holdout_index] got " + std::to_string(hold_out_.index) +
                                     ", expected less than holdout_period, " + std::to_string(hold_out_.period));
  }
}

std::vector<int32_t> TextDataset::encode(const TokenizerRef& tokenizer, std::string_view text,
                                         std::string_view split) const {
  std::vector<int32_t> ids = tokenizer.encode(text);
  const int64_t vocab = tokenizer.vocab_size();
  const auto bad = std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id < 0 || id >= vocab; });
  if (bad != ids.end()) {
    refuse(GESTALT_INTERNAL, "[tokenizer] gave an id outside its vocabulary, got " + std::to_string(*bad) +
                                 ", expected 0 to " + std::to_string(vocab - 1));
  }
  ids.shrink_to_fit();
  host_.info("[data] " + std::string(split) + ": " + std::to_string(text.size()) + " bytes, " +
             std::to_string(ids.size()) + " tokens");
  return ids;
}

void TextDataset::open(TokenizerRef tokenizer, int64_t seq_len, int64_t seed) {
  if (!tokenizer) refuse(GESTALT_CONFIG_ERROR, "[tokenizer] is missing, expected one; gestalt.text reads text");
  if (seq_len < 1 || context_ >= seq_len) {
    refuse(GESTALT_CONFIG_ERROR, "[data.context] got " + std::to_string(context_) + ", expected less than seq_len, " +
                                     std::to_string(seq_len));
  }
  const std::string text = support::ReadFile(path_).read_all();
  const TextSplit split = split_lines(text, hold_out_);
  if (hold_out_.block > 0 && split.num_valid_lines == 0) {
    refuse(GESTALT_DATA_ERROR, "[data.path] " + path_ + ": no line is held out, got " +
                                   std::to_string(split.num_lines) + " lines, expected more than " +
                                   std::to_string(hold_out_.index * hold_out_.block) +
                                   "; set a smaller holdout_block or holdout = \"none\"");
  }
  seq_len_ = seq_len;
  train_ = encode(tokenizer, split.train, "train");
  if (static_cast<int64_t>(train_.size()) <= seq_len) {
    refuse(GESTALT_DATA_ERROR,
           "[data.path] " + path_ + ": too short, got " + std::to_string(train_.size()) +
               " tokens to train on, expected at least seq_len + 1 = " + std::to_string(seq_len + 1));
  }
  train_windows_ = TrainWindows(static_cast<int64_t>(train_.size()), seq_len, seed);
  if (hold_out_.block > 0) {
    valid_ = encode(tokenizer, split.valid, "valid");
    if (valid_.size() < 2) {
      refuse(GESTALT_DATA_ERROR, "[data.path] " + path_ + ": too little is held out, got " +
                                     std::to_string(valid_.size()) + " tokens, expected at least 2");
    }
    valid_windows_ = ValidWindows(static_cast<int64_t>(valid_.size()), seq_len, context_);
    // The first token is given, never predicted, so its bytes do not count.
    valid_bytes_ = static_cast<int64_t>(split.valid.size() - tokenizer.decode({valid_.data(), 1}).size());
  }

  support::Sha256 hash;
  hash.update_field("gestalt.text 1");
  hash.update_field(text);
  const auto fingerprint = tokenizer.fingerprint();
  hash.update(fingerprint.data(), fingerprint.size());
  for (int64_t number : {hold_out_.block, hold_out_.period, hold_out_.index, context_, seq_len, seed}) {
    hash.update_u64(static_cast<uint64_t>(number));
  }
  digest_ = hash.finish();
}

bool TextDataset::is_valid(std::string_view split) const {
  if (split == "train") return false;
  if (split == "valid" && hold_out_.block > 0) return true;
  refuse(GESTALT_NOT_FOUND, "[data] no such split, got \"" + std::string(split) + "\", expected train" +
                                (hold_out_.block > 0 ? " or valid" : "; set holdout = \"lines\" to have valid"));
}

void TextDataset::info(std::string_view split, gestalt_dataset_info& out) {
  const bool valid = is_valid(split);
  out.fields = kTextFields;
  out.num_fields = std::size(kTextFields);
  out.num_samples = valid ? valid_windows_.num_samples() : -1;
  out.max_tokens_per_sample = seq_len_;
  out.max_sequences_per_sample = 1;
  out.bytes_of_text = valid ? valid_bytes_ : -1;
  std::copy(digest_.begin(), digest_.end(), out.digest);
}

BatchSizes TextDataset::read(std::string_view split, std::span<const int64_t> samples,
                             std::span<gestalt_view* const> out) {
  const bool valid = is_valid(split);
  const std::vector<int32_t>& stream = valid ? valid_ : train_;
  const auto num_samples = static_cast<int64_t>(samples.size());
  const int64_t num_tokens = num_samples * seq_len_;
  if (out.size() != std::size(kTextFields)) {
    refuse(GESTALT_INVALID_ARGUMENT, "[data] got " + std::to_string(out.size()) + " outputs, expected 6");
  }
  int32_t* tokens = room<int32_t>(*out[0], kI32, num_tokens, "tokens");
  int32_t* labels = room<int32_t>(*out[1], kI32, num_tokens, "labels");
  float* weights = room<float>(*out[2], kF32, num_tokens, "weights");
  int32_t* positions = room<int32_t>(*out[3], kI32, num_tokens, "positions");
  int32_t* seq_starts = room<int32_t>(*out[4], kI32, num_samples + 1, "seq_starts");
  int32_t* keys = room<int32_t>(*out[5], kI32, 2 * num_tokens, "keys");

  const auto num_labels = static_cast<int64_t>(stream.size()) - 1;
  for (int64_t i = 0; i < num_samples; ++i) {
    const int64_t sample = samples[static_cast<size_t>(i)];
    if (sample < 0 || (valid && sample >= valid_windows_.num_samples())) {
      refuse(GESTALT_INVALID_ARGUMENT,
             "[data] sample out of range, got " + std::to_string(sample) + " of split " + std::string(split));
    }
    const Window window = valid ? valid_windows_(sample) : train_windows_(sample);
    const int64_t count = std::min(seq_len_, num_labels - window.start);  // less than seq_len_ only in the last window
    const int32_t* from = stream.data() + window.start;
    std::copy(from, from + count, tokens);
    std::copy(from + 1, from + count + 1, labels);
    std::fill(tokens + count, tokens + seq_len_, 0);
    std::fill(labels + count, labels + seq_len_, 0);
    const auto key = static_cast<int32_t>(sample & 0x7FFFFFFF);
    for (int64_t position = 0; position < seq_len_; ++position) {
      weights[position] = position >= window.first_trained && position < count ? 1.0f : 0.0f;
      positions[position] = static_cast<int32_t>(position);
      keys[2 * position] = key;
      keys[2 * position + 1] = static_cast<int32_t>(position);
    }
    seq_starts[i] = static_cast<int32_t>(i * seq_len_);
    tokens += seq_len_;
    labels += seq_len_;
    weights += seq_len_;
    positions += seq_len_;
    keys += 2 * seq_len_;
  }
  seq_starts[num_samples] = static_cast<int32_t>(num_tokens);
  return {num_tokens, num_samples};
}

GESTALT_COMPONENT(TextDataset)

}  // namespace gestalt::data_text

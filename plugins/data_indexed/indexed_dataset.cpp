#include "plugins/data_indexed/indexed_dataset.h"

#include <fmt/format.h>

#include "gestalt/plugin.hpp"

namespace gestalt::data_indexed {
namespace {

using support::indexed::kSplitNames;
using support::indexed::SampleOut;

std::vector<std::string> strings(const Attrs& config, std::string_view key) {
  std::vector<std::string> out;
  for (const gestalt_str item : config.str_list(key)) out.emplace_back(view_of(item));
  return out;
}

CorpusConfig config_of(const Attrs& c) {
  CorpusConfig config;
  config.paths = strings(c, "paths");
  config.split_paths = {strings(c, "train_paths"), strings(c, "valid_paths"), strings(c, "test_paths")};
  config.split = std::string(c.str("split"));
  config.num_samples = {c.i64("train_samples"), c.i64("valid_samples"), c.i64("test_samples")};
  config.seed = c.i64("seed");
  config.eod = c.i64("eod");
  config.pad = c.i64("pad");
  config.reset_position_ids = c.boolean("reset_position_ids");
  config.reset_attention_mask = c.boolean("reset_attention_mask");
  config.eod_mask_loss = c.boolean("eod_mask_loss");
  config.inter_document_masking = c.boolean("inter_document_masking");
  config.keep_partial_valid = c.boolean("keep_partial_valid");
  config.surplus = c.f64("surplus");
  config.cache_dir = std::string(c.str("cache_dir"));
  return config;
}

// Above this many tokens a split's text is not measured when it is opened.
constexpr int64_t kMostMeasured = int64_t{1} << 26;

template <class T>
T* room(gestalt_view* view, uint32_t dtype, const char* name) {
  if (!view) return nullptr;
  if (view->dtype != dtype)
    throw InvalidArgument(
        fmt::format("[data] the view of {} has the element type {:#x}, expected {:#x}", name, view->dtype, dtype));
  return static_cast<T*>(view->data);
}

}  // namespace

IndexedDataset::IndexedDataset(Host, Attrs config) : config_(config_of(config)) {}

void IndexedDataset::open(TokenizerRef tokenizer, int64_t seq_len, int64_t seed) {
  CorpusConfig config = config_;
  config.seq_len = seq_len;
  if (config.seed < 0) config.seed = seed;
  if (tokenizer) {
    config.vocab_size = tokenizer.vocab_size();
    if (config.eod < 0) config.eod = tokenizer.special("eos");
    if (config.pad < 0) config.pad = tokenizer.special("pad");
  }
  corpus_ = std::make_unique<Corpus>(std::move(config));
  labels_.resize(static_cast<size_t>(seq_len));
  weights_.resize(static_cast<size_t>(seq_len));
  starts_.reserve(static_cast<size_t>(seq_len) + 1);
  digest_ = corpus_->digest();
  for (size_t s = 0; s < kNumSplits; ++s) bytes_of_text_[s] = tokenizer ? measure(kSplitNames[s], tokenizer) : -1;
}

void IndexedDataset::info(std::string_view split, gestalt_dataset_info& out) {
  const Split& found = need(split);
  out.fields = kTextFields;
  out.num_fields = std::size(kTextFields);
  out.num_samples = found.num_samples;
  out.max_tokens_per_sample = corpus_->config().seq_len;
  out.max_sequences_per_sample = corpus_->has_segments() ? corpus_->config().seq_len : 1;
  for (size_t s = 0; s < kNumSplits; ++s)
    if (kSplitNames[s] == split) out.bytes_of_text = bytes_of_text_[s];
  std::copy(digest_.begin(), digest_.end(), out.digest);
}

BatchSizes IndexedDataset::read(std::string_view split, std::span<const int64_t> samples,
                                std::span<gestalt_view* const> out) {
  const Split& found = need(split);
  if (out.size() != std::size(kTextFields))
    throw InvalidArgument(fmt::format("[data] got {} views, expected {}", out.size(), std::size(kTextFields)));
  const int64_t length = corpus_->config().seq_len;
  SampleOut place{room<int32_t>(out[0], kI32, "tokens"), room<int32_t>(out[1], kI32, "labels"),
                  room<float>(out[2], kF32, "weights"), room<int32_t>(out[3], kI32, "positions")};
  auto* seq_starts = room<int32_t>(out[4], kI32, "seq_starts");
  auto* keys_out = room<int32_t>(out[5], kI32, "keys");
  BatchSizes sizes;
  for (const int64_t n : samples) {
    starts_.clear();
    corpus_->read(found, n, place, &starts_);
    for (const int32_t start : starts_) {
      if (seq_starts) seq_starts[sizes.num_sequences] = static_cast<int32_t>(sizes.num_tokens + start);
      ++sizes.num_sequences;
    }
    for (int64_t i = 0; keys_out && i < length; ++i) {
      keys_out[2 * (sizes.num_tokens + i)] = static_cast<int32_t>(n & 0x7FFFFFFF);
      keys_out[2 * (sizes.num_tokens + i) + 1] = static_cast<int32_t>(i);
    }
    sizes.num_tokens += length;
    place = {place.tokens ? place.tokens + length : nullptr, place.labels ? place.labels + length : nullptr,
             place.weights ? place.weights + length : nullptr, place.positions ? place.positions + length : nullptr};
  }
  if (seq_starts) seq_starts[sizes.num_sequences] = static_cast<int32_t>(sizes.num_tokens);
  return sizes;
}

const Split& IndexedDataset::need(std::string_view name) const {
  const Split* split = corpus_ ? corpus_->split(name) : nullptr;
  if (!split) throw Error(GESTALT_NOT_FOUND, fmt::format("[data] there is no split \"{}\"", name));
  return *split;
}

int64_t IndexedDataset::measure(std::string_view name, const TokenizerRef& tokenizer) {
  const Split* split = corpus_->split(name);
  const int64_t length = corpus_->config().seq_len;
  if (!split || split->num_samples > kMostMeasured / length) return -1;
  if (token_bytes_.empty()) {
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      int32_t bytes = 0;
      try {
        bytes = static_cast<int32_t>(tokenizer.decode({&id, 1}).size());
      } catch (const Error&) {
        bytes = 0;  // an id without a token
      }
      token_bytes_.push_back(id == corpus_->config().eod ? 0 : bytes);
    }
  }
  int64_t total = 0;
  for (int64_t n = 0; n < split->num_samples; ++n) {
    starts_.clear();
    corpus_->read(*split, n, {nullptr, labels_.data(), weights_.data(), nullptr}, &starts_);
    for (int64_t i = 0; i < length; ++i)
      if (weights_[static_cast<size_t>(i)] != 0)
        total += token_bytes_[static_cast<size_t>(labels_[static_cast<size_t>(i)])];
  }
  return total;
}

GESTALT_COMPONENT(IndexedDataset)

}  // namespace gestalt::data_indexed

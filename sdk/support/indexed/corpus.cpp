#include "support/indexed/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "gestalt/error.hpp"
#include "support/indexed/index_cache.h"
#include "support/sha256.h"

namespace gestalt::support::indexed {
namespace {

struct Listed {
  std::vector<std::string> prefixes;
  std::vector<double> weights;  // empty: none were given
};

bool parse_number(std::string_view text, double* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// An odd count: prefixes. An even count: weight and prefix in turns, unless none of the weights is a number.
Listed parse_paths(const std::vector<std::string>& paths) {
  Listed out;
  size_t numbers = 0;
  double weight = 0;
  if (paths.size() % 2 == 0)
    for (size_t i = 0; i < paths.size(); i += 2) numbers += parse_number(paths[i], &weight);
  if (numbers == 0) return {paths, {}};
  for (size_t i = 0; i < paths.size(); i += 2) {
    if (!parse_number(paths[i], &weight))
      throw Error(GESTALT_CONFIG_ERROR,
                  fmt::format("[data.paths] got \"{}\" as a weight, expected a number", paths[i]));
    out.weights.push_back(weight);
    out.prefixes.push_back(paths[i + 1]);
  }
  return out;
}

}  // namespace

std::array<double, kNumSplits> parse_split(std::string_view text) {
  std::array<double, kNumSplits> out{};
  int num = 0;
  double sum = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    while (i < text.size() && (text[i] == '.' || (text[i] >= '0' && text[i] <= '9'))) ++i;
    if (i == begin) {
      ++i;
      continue;
    }
    double value = 0;
    if (num == kNumSplits || !parse_number(text.substr(begin, i - begin), &value))
      throw Error(GESTALT_CONFIG_ERROR, fmt::format("[data.split] got \"{}\", expected up to three numbers", text));
    out[static_cast<size_t>(num++)] = value;
    sum += value;
  }
  if (!(sum > 0))
    throw Error(GESTALT_CONFIG_ERROR, fmt::format("[data.split] got \"{}\", expected a sum above 0", text));
  for (double& v : out) v /= sum;
  return out;
}

Range split_range(int64_t num_sequences, double from, double to) {
  const auto num = static_cast<double>(num_sequences);
  return {static_cast<int64_t>(std::nearbyint(from * num)), static_cast<int64_t>(std::nearbyint(to * num))};
}

Corpus::Corpus(CorpusConfig config) : config_(std::move(config)) {
  const CorpusConfig& c = config_;
  if (c.seq_len < 1 || c.seq_len > std::numeric_limits<int32_t>::max() - 1)
    throw InvalidArgument(fmt::format("[data] sequence length is {}, expected 1 or more", c.seq_len));
  if (c.seed < 0 || c.seed > std::numeric_limits<uint32_t>::max())
    throw Error(GESTALT_CONFIG_ERROR,
                fmt::format("[data.seed] got {}, expected 0 to {}", c.seed, std::numeric_limits<uint32_t>::max()));
  if (c.inter_document_masking && (c.reset_attention_mask || c.reset_position_ids))
    throw Error(GESTALT_CONFIG_ERROR,
                "[data.inter_document_masking] already restarts positions and attention at every document; "
                "reset_position_ids and reset_attention_mask would have no effect");
  if (c.eod < 0 && (c.reset_position_ids || c.reset_attention_mask || c.eod_mask_loss))
    throw Error(
        GESTALT_CONFIG_ERROR,
        fmt::format("[data.eod] got {}, expected an id: reset_position_ids, reset_attention_mask and eod_mask_loss "
                    "look for the end of a document",
                    c.eod));
  // A padding id that means something else too cannot be told from text.
  pad_ = c.pad == c.eod ? -1 : c.pad;
  text_.resize(static_cast<size_t>(c.seq_len) + 1);
  document_starts_.reserve(static_cast<size_t>(c.seq_len) + 1);

  const bool apart = std::any_of(c.split_paths.begin(), c.split_paths.end(), [](const auto& p) { return !p.empty(); });
  if (apart == !c.paths.empty())
    throw Error(GESTALT_CONFIG_ERROR,
                apart ? "[data.paths] got both paths and paths of single splits, expected one of them"
                      : "[data.paths] is empty, expected at least one prefix");
  const std::array<double, kNumSplits> shares = parse_split(c.split);
  double from = 0;
  for (int s = 0; s < kNumSplits; ++s) {
    const auto i = static_cast<size_t>(s);
    const double to = from + shares[i];
    if (c.num_samples[i] != 0) {
      if (apart && !c.split_paths[i].empty()) build_split(s, c.split_paths[i], 0, 1);
      if (!apart && to > from) build_split(s, c.paths, from, to);
    }
    from = to;
  }
}

std::shared_ptr<const IndexFile> Corpus::open(const std::string& prefix) {
  for (const Opened& o : files_)
    if (o.file->prefix() == prefix) return o.file;
  auto file = std::make_shared<const IndexFile>(prefix);
  files_.push_back({file, file->digest()});
  return file;
}

Part Corpus::make_part(const std::string& prefix, int split, double from, double to, int64_t num_samples) {
  Part part;
  part.file = open(prefix);
  GptIndexRequest& r = part.request;
  const Range range = split_range(part.file->num_sequences(), from, to);
  r.begin = range.begin;
  r.end = range.end;
  r.num_samples = num_samples;
  r.seq_len = config_.seq_len;
  r.seed = static_cast<uint32_t>(config_.seed);
  r.keep_partial = split == 1 && config_.keep_partial_valid;
  if (r.begin >= r.end)
    throw Error(GESTALT_DATA_ERROR,
                fmt::format("[data.split] {} gets none of the {} sequences of {}; give it a larger share or 0",
                            kSplitNames[split], part.file->num_sequences(), prefix));
  const auto opened = std::find_if(files_.begin(), files_.end(), [&](const Opened& o) { return o.file == part.file; });
  part.index = load_or_build_gpt_index(*part.file, opened->digest, r, config_.cache_dir);
  return part;
}

void Corpus::build_split(int index, const std::vector<std::string>& paths, double from, double to) {
  const int64_t wanted = config_.num_samples[static_cast<size_t>(index)];
  const Listed listed = parse_paths(paths);
  auto split = std::make_unique<Split>();
  split->blended = listed.prefixes.size() > 1 || !listed.weights.empty();
  if (!split->blended) {
    split->parts.push_back(make_part(listed.prefixes[0], index, from, to, wanted));
    split->num_samples = split->parts[0].index.num_samples();
  } else if (listed.weights.empty()) {
    std::vector<int64_t> sizes;
    for (const std::string& prefix : listed.prefixes) {
      split->parts.push_back(make_part(prefix, index, from, to, -1));
      sizes.push_back(split->parts.back().index.num_samples());
    }
    int64_t sum = 0;
    for (const int64_t s : sizes) sum += s;
    split->blend = wanted < 0 ? blend_exhaustive(sizes)
                              : blend_by_weight(normalized({sizes.begin(), sizes.end()}), std::min(wanted, sum));
  } else {
    if (wanted < 0)
      throw Error(GESTALT_CONFIG_ERROR,
                  fmt::format("[data.{}_samples] is not set, but a mixture with weights has no size of its own",
                              kSplitNames[index]));
    const std::vector<double> weights = normalized(listed.weights);
    const std::vector<int64_t> targets = target_sizes(weights, wanted);
    int64_t sum = 0;
    for (size_t d = 0; d < targets.size(); ++d) {
      split->parts.push_back(make_part(listed.prefixes[d], index, from, to, with_surplus(targets[d], config_.surplus)));
      sum += targets[d];
    }
    split->blend = blend_by_weight(normalized(weights), sum);
  }
  if (split->blended) {
    split->num_samples = split->blend.size();
    for (int64_t k = 0; k < split->num_samples; ++k) {
      const Part& part = split->parts[static_cast<size_t>(split->blend.dataset[k])];
      if (split->blend.sample[k] < part.index.num_samples()) continue;
      throw Error(GESTALT_CONFIG_ERROR,
                  fmt::format("[data.surplus] got {}: the mixture asks {} for its sample {}, but it has {}; raise it",
                              config_.surplus, part.file->prefix(), split->blend.sample[k], part.index.num_samples()));
    }
  }
  splits_[static_cast<size_t>(index)] = std::move(split);
}

const Split* Corpus::split(std::string_view name) const {
  for (size_t s = 0; s < kNumSplits; ++s)
    if (kSplitNames[s] == name) return splits_[s].get();
  return nullptr;
}

// Fills text_ with one sample and returns its number of tokens, padded up to seq_len + 1.
int64_t Corpus::draw_text(const Part& part, int64_t sample) {
  const GptIndex& index = part.index;
  const int64_t j = index.shuffle[sample];
  int64_t document = index.samples[2 * j], offset = index.samples[2 * j + 1];
  const int64_t last = index.samples[2 * j + 2], last_offset = index.samples[2 * j + 3];
  int64_t num = 0;
  document_starts_.clear();
  for (; document <= last; ++document, offset = 0) {
    const int64_t sequence = index.documents[document];
    const int64_t end = document == last ? last_offset + part.request.extra : part.file->length(sequence);
    if (end > offset && (num > 0 || offset == 0)) document_starts_.push_back(static_cast<int32_t>(num));
    part.file->read(sequence, offset, end - offset, text_.data() + num);
    num += end - offset;
  }
  for (int64_t i = num; i <= config_.seq_len; ++i) text_[static_cast<size_t>(i)] = static_cast<int32_t>(pad_);
  return num;
}

void Corpus::read(const Split& split, int64_t n, const SampleOut& out, std::vector<int32_t>* starts) {
  if (n < 0 || n >= split.num_samples)
    throw InvalidArgument(fmt::format("[data] got sample {}, expected 0 to {}", n, split.num_samples - 1));
  const Part& part = split.parts[split.blended ? static_cast<size_t>(split.blend.dataset[n]) : 0];
  const int64_t drawn = draw_text(part, split.blended ? split.blend.sample[n] : n);
  const int64_t length = config_.seq_len;
  if (config_.vocab_size > 0) {
    for (int64_t i = 0; i < drawn; ++i)
      if (text_[static_cast<size_t>(i)] >= config_.vocab_size)
        throw Error(GESTALT_DATA_ERROR,
                    fmt::format("[data] sample {} of {} holds the id {}, expected ids below {}; was it "
                                "made with another tokenizer?",
                                n, part.file->prefix(), text_[static_cast<size_t>(i)], config_.vocab_size));
  }
  starts->push_back(0);
  size_t next_document = 0;
  int32_t position = 0;
  for (int64_t i = 0; i < length; ++i, ++position) {
    const int32_t token = text_[static_cast<size_t>(i)], label = text_[static_cast<size_t>(i) + 1];
    if (config_.inter_document_masking) {
      while (next_document < document_starts_.size() && document_starts_[next_document] < i) ++next_document;
      if (i > 0 && next_document < document_starts_.size() && document_starts_[next_document] == i) {
        starts->push_back(static_cast<int32_t>(i));
        position = 0;
      }
    }
    // Padding is -1 or the padding id, and is never trained on.
    const bool masked = label == pad_ || label < 0 || (config_.eod_mask_loss && token == config_.eod);
    if (out.tokens) out.tokens[i] = token == pad_ ? 0 : token;
    if (out.labels) out.labels[i] = label == pad_ ? 0 : label;
    if (out.weights) out.weights[i] = masked ? 0.0f : 1.0f;
    if (out.positions) out.positions[i] = position;
    if (config_.eod >= 0 && token == config_.eod && i + 1 < length) {
      if (config_.reset_attention_mask) starts->push_back(static_cast<int32_t>(i) + 1);
      if (config_.reset_position_ids) position = -1;
    }
  }
}

std::array<uint8_t, 32> Corpus::digest() const {
  support::Sha256 hash;
  hash.update_field("gestalt.indexed/1");
  for (const Opened& o : files_) hash.update(o.digest.data(), o.digest.size());
  for (const auto& split : splits_) {
    hash.update_u64(split ? split->parts.size() : 0);
    if (!split) continue;
    hash.update_u64(static_cast<uint64_t>(split->num_samples));
    for (const Part& p : split->parts) {
      hash.update_field(cache_name({}, p.request));
      const auto at = std::find_if(files_.begin(), files_.end(), [&](const Opened& o) { return o.file == p.file; });
      hash.update_u64(static_cast<uint64_t>(at - files_.begin()));
    }
    if (!split->blended) continue;
    hash.update(split->blend.dataset.data(), static_cast<uint64_t>(split->num_samples) * sizeof(int16_t));
  }
  for (const int64_t v :
       {config_.eod, config_.pad, static_cast<int64_t>(config_.reset_position_ids),
        static_cast<int64_t>(config_.reset_attention_mask), static_cast<int64_t>(config_.eod_mask_loss),
        static_cast<int64_t>(config_.inter_document_masking)})
    hash.update_u64(static_cast<uint64_t>(v));
  return hash.finish();
}

}  // namespace gestalt::support::indexed

#include "plugins/task_data/corpus_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "gestalt/error.hpp"
#include "support/npy.h"
#include "support/sha256.h"

namespace gestalt::task_data {

using support::Json;
using support::indexed::IndexArray;
using support::indexed::IndexFile;

Json inspect_corpus(const std::string& prefix) {
  const IndexFile file(prefix);
  int64_t shortest = file.num_sequences() ? file.length(0) : 0, empty = 0;
  for (int64_t i = 0; i < file.num_sequences(); ++i) {
    shortest = std::min(shortest, file.length(i));
    empty += file.length(i) == 0;
  }
  Json out = Json::object();
  out.set("prefix", prefix);
  out.set("type", support::indexed::name_of(file.type()));
  out.set("sequences", file.num_sequences());
  out.set("documents", file.num_documents());
  out.set("tokens", file.num_tokens());
  out.set("shortest", shortest);
  out.set("longest", file.max_length());
  out.set("mean", file.num_sequences()
                      ? static_cast<double>(file.num_tokens()) / static_cast<double>(file.num_sequences())
                      : 0.0);
  out.set("empty_sequences", empty);
  out.set("modes", file.has_modes());
  out.set("bin_bytes", file.bin_bytes());
  out.set("idx_bytes", file.index_bytes());
  out.set("digest", support::hex(file.digest()));
  return out;
}

Json verify_corpus(const std::string& prefix, int64_t vocab_size) {
  const IndexFile file(prefix);
  const auto item = static_cast<int64_t>(support::indexed::size_of(file.type()));
  int64_t at = 0;
  int32_t largest = -1;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < file.num_sequences(); ++i) {
    if (file.pointer(i) != at)
      throw Error(GESTALT_DATA_ERROR,
                  fmt::format("[{}.idx] sequence {} is at {}, expected {} right after the one before", prefix, i,
                              file.pointer(i), at));
    constexpr int64_t kChunk = 1 << 16;
    for (int64_t offset = 0; offset < file.length(i); offset += kChunk) {
      const int64_t n = std::min(kChunk, file.length(i) - offset);
      ids.resize(static_cast<size_t>(n));
      file.read(i, offset, n, ids.data());
      for (int64_t k = 0; k < n; ++k) {
        const int32_t id = ids[static_cast<size_t>(k)];
        largest = std::max(largest, id);
        if (vocab_size > 0 && id >= vocab_size)
          throw Error(GESTALT_DATA_ERROR, fmt::format("[{}.bin] id {} at byte {}, expected ids below {}", prefix, id,
                                                      at + (offset + k) * item, vocab_size));
      }
    }
    at += file.length(i) * item;
  }
  if (at != static_cast<int64_t>(file.bin_bytes()))
    throw Error(GESTALT_DATA_ERROR,
                fmt::format("[{}.bin] has {} bytes, expected the {} of its sequences", prefix, file.bin_bytes(), at));
  Json out = Json::object();
  out.set("prefix", prefix);
  out.set("sequences", file.num_sequences());
  out.set("documents", file.num_documents());
  out.set("tokens", file.num_tokens());
  out.set("largest_id", static_cast<int64_t>(largest));
  return out;
}

Json count_samples(const std::string& prefix, int64_t seq_len, int64_t num_samples) {
  const IndexFile file(prefix);
  support::indexed::GptIndexRequest request;
  request.end = file.num_sequences();
  request.seq_len = seq_len;
  request.num_samples = num_samples;
  const support::indexed::GptPlan plan = plan_gpt_index(file, request);
  Json out = Json::object();
  out.set("prefix", prefix);
  out.set("documents", file.num_documents());
  out.set("tokens", file.num_tokens());
  out.set("sequence_length", seq_len);
  out.set("epochs", plan.num_epochs);
  out.set("samples", plan.num_samples);
  out.set("leftover_tokens", plan.num_epochs * plan.tokens_per_epoch - request.extra - plan.num_samples * seq_len);
  out.set("last_epoch_shuffled_alone", plan.separate_last_epoch);
  return out;
}

Json export_indices(const support::indexed::CorpusConfig& config, const std::string& out) {
  const support::indexed::Corpus corpus(config);
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) throw Error(GESTALT_IO_ERROR, fmt::format("[--out] {} cannot be made: {}", out, error.message()));
  Json sizes = Json::object();
  const auto write = [&](const std::string& name, const IndexArray& array, bool rows) {
    std::vector<int64_t> shape{array.size()};
    if (rows) shape = {array.size() / 2, 2};
    support::write_npy(out + "/" + name + ".npy", array.type(), shape, array.data());
    sizes.set(name, array.size());
  };
  for (const std::string_view name : support::indexed::kSplitNames) {
    const support::indexed::Split* split = corpus.split(name);
    if (!split) continue;
    sizes.set(fmt::format("{}.samples", name), split->num_samples);
    for (size_t d = 0; d < split->parts.size(); ++d) {
      const support::indexed::GptIndex& index = split->parts[d].index;
      write(fmt::format("{}.sub{}.document_index", name, d), index.documents, false);
      write(fmt::format("{}.sub{}.sample_index", name, d), index.samples, true);
      write(fmt::format("{}.sub{}.shuffle_index", name, d), index.shuffle, false);
    }
    if (!split->blended) continue;
    write(fmt::format("{}.dataset_index", name), split->blend.dataset, false);
    write(fmt::format("{}.dataset_sample_index", name), split->blend.sample, false);
  }
  return sizes;
}

}  // namespace gestalt::task_data

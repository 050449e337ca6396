#include "support/indexed/parity.h"

#include <fmt/format.h>

#include <cstring>

#include "gestalt/error.hpp"
#include "support/indexed/corpus.h"
#include "support/json.h"
#include "support/npy.h"

namespace gestalt::support::indexed {
namespace {

CorpusConfig config_of(const support::Json& one, const std::string& folder) {
  CorpusConfig config;
  const auto& prefixes = one.at("prefixes").items();
  const support::Json* weights = one.find("weights");
  for (size_t i = 0; i < prefixes.size(); ++i) {
    if (weights && !weights->is_null()) config.paths.push_back(fmt::format("{}", weights->items().at(i).f64()));
    config.paths.push_back(folder + "/" + prefixes[i].str());
  }
  config.split = one.str("split");
  const std::vector<int64_t> sizes = one.i64_list("sizes");
  for (size_t s = 0; s < kNumSplits && s < sizes.size(); ++s) config.num_samples[s] = sizes[s];
  config.seq_len = one.i64("seq_length");
  config.seed = one.i64("seed");
  config.eod = one.i64("eod");
  config.vocab_size = one.i64("vocab");
  const support::Json& flags = one.at("flags");
  config.reset_position_ids = flags.boolean("rp", false);
  config.reset_attention_mask = flags.boolean("ra", false);
  config.eod_mask_loss = flags.boolean("em", false);
  return config;
}

class Comparison {
 public:
  Comparison(const support::NpzReader& archive, ParityCase* result) : archive_(archive), result_(result) {}

  void check(const std::string& name, const IndexArray& ours) {
    const support::NpyArray theirs = take(name);
    if (theirs.type != ours.type()) {
      differ(name, fmt::format("type {} here, {} there", name_of(ours.type()), name_of(theirs.type)));
    } else if (static_cast<int64_t>(theirs.size()) != ours.size()) {
      differ(name, fmt::format("{} elements here, {} there", ours.size(), theirs.size()));
    } else if (theirs.size() && std::memcmp(theirs.data.data(), ours.data(), theirs.data.size()) != 0) {
      differ(name, "values differ");
    }
  }
  // Samples: they keep i64 ids where a batch has i32.
  void check_values(const std::string& name, const std::vector<int32_t>& ours) {
    if (take(name).to_i64() != std::vector<int64_t>(ours.begin(), ours.end())) differ(name, "values differ");
  }
  void check_floats(const std::string& name, const std::vector<float>& ours) {
    const support::NpyArray theirs = take(name);
    const auto values = theirs.as<float>();
    if (std::vector<float>(values.begin(), values.end()) != ours) differ(name, "values differ");
  }
  void differ(const std::string& name, const std::string& how) { result_->differences.push_back(name + ": " + how); }
  // What the archive holds and nothing asked for.
  void finish() {
    const auto names = archive_.names();
    if (static_cast<int64_t>(names.size()) != result_->num_arrays)
      differ("archive", fmt::format("{} arrays there, {} compared", names.size(), result_->num_arrays));
  }

 private:
  support::NpyArray take(const std::string& name) {
    ++result_->num_arrays;
    return archive_.read(name);
  }

  const support::NpzReader& archive_;
  ParityCase* result_;
};

void compare_split(const std::string& name, const Split& split, Corpus* corpus, const support::NpzReader& archive,
                   Comparison* compare) {
  for (size_t d = 0; d < split.parts.size(); ++d) {
    const std::string sub = fmt::format("{}.sub{}.", name, d);
    compare->check(sub + "document_index", split.parts[d].index.documents);
    compare->check(sub + "sample_index", split.parts[d].index.samples);
    compare->check(sub + "shuffle_index", split.parts[d].index.shuffle);
  }
  if (split.blended) {
    compare->check(name + ".dataset_index", split.blend.dataset);
    compare->check(name + ".dataset_sample_index", split.blend.sample);
  }
  const auto length = static_cast<size_t>(corpus->config().seq_len);
  std::vector<int32_t> tokens(length), labels(length), positions(length), starts;
  std::vector<float> weights(length);
  for (int64_t k = 0; archive.has(fmt::format("{}.{}.tokens", name, k)); ++k) {
    starts.clear();
    corpus->read(split, k, {tokens.data(), labels.data(), weights.data(), positions.data()}, &starts);
    const std::string sample = fmt::format("{}.{}.", name, k);
    compare->check_values(sample + "tokens", tokens);
    compare->check_values(sample + "labels", labels);
    compare->check_floats(sample + "loss_mask", weights);
    compare->check_values(sample + "position_ids", positions);
  }
}

}  // namespace

std::vector<ParityCase> compare_data_cases(const std::string& folder) {
  std::vector<ParityCase> results;
  const support::Json cases = support::read_json_file(folder + "/cases.json");
  for (const support::Json& one : cases.items()) {
    ParityCase& result = results.emplace_back();
    result.tag = one.str("tag");
    const support::NpzReader archive(folder + "/" + result.tag + ".npz");
    Corpus corpus(config_of(one, folder));
    Comparison compare(archive, &result);
    for (const std::string_view name : kSplitNames) {
      const Split* split = corpus.split(name);
      const support::Json* expected = one.at("splits").find(name);
      if ((split != nullptr) != (expected != nullptr)) {
        compare.differ(std::string(name), split ? "absent there" : "absent here");
        continue;
      }
      if (!split) continue;
      if (split->num_samples != expected->i64("length"))
        compare.differ(std::string(name),
                       fmt::format("{} samples here, {} there", split->num_samples, expected->i64("length")));
      compare_split(std::string(name), *split, &corpus, archive, &compare);
    }
    compare.finish();
  }
  return results;
}

}  // namespace gestalt::support::indexed

// A model against one JSON file of values (--golden FILE): logits after the begin token, greedy runs, summed losses.
#include <fmt/format.h>

#include <cmath>

#include "plugins/task_parity/checks.h"
#include "plugins/task_parity/greedy.h"
#include "plugins/task_parity/token_batch.h"

namespace gestalt::task_parity {
namespace {

using support::Json;

// The values are stored with six digits; a summed loss grows with its length.
constexpr double kLogits = 2e-3, kLossOfToken = 1e-4;

bool applies(const std::string&, const support::Flags& flags) { return flags.has("golden"); }

std::vector<int32_t> ids_of(const Json& json, std::string_view key) {
  std::vector<int32_t> ids;
  for (int64_t id : json.i64_list(key)) ids.push_back(static_cast<int32_t>(id));
  return ids;
}

Outcome run(Session& s, const std::string& path, const support::Flags& flags) {
  if (!s.has("model.type"))
    throw Error(GESTALT_NOT_FOUND, fmt::format("[parity] {} is no model that a format plugin knows", path));
  const Json golden = support::read_json_file(flags.str("golden"));
  Checks checks;
  s.open_model();
  const int32_t begin[] = {static_cast<int32_t>(golden.at("model").i64("bos"))};
  const std::vector<float> logits = s.logits(begin);
  const auto& wanted = golden.at("logits_after_bos").items();
  if (wanted.size() != logits.size())
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] has {} logits, expected {}", flags.str("golden"), wanted.size(),
                                                logits.size()));
  double worst = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(logits[i]) - wanted[i].f64());
    if (!(difference <= worst)) worst = difference;
  }
  checks.add("logits", worst, kLogits, fmt::format("largest difference of {}", logits.size()));
  for (const Json& g : golden.at("greedy").items()) {
    const std::vector<int32_t> expected = ids_of(g, "ids_after_bos");
    const std::vector<int32_t> got = greedy(s, ids_of(g, "prompt_ids_with_bos"), expected.size());
    checks.add("greedy", static_cast<double>(num_unequal(got, expected)), 0,
               fmt::format("ids that differ of {}", expected.size()));
  }
  for (const Json& n : golden.at("nll").items()) {
    const std::vector<int32_t> ids = ids_of(n, "ids_with_bos");
    TokenBatch batch(ids, ids, 1);
    const double sum = s.run_batch(batch.fields(), 0).sum;
    checks.add("loss sum", std::fabs(sum - n.f64("sum_nll_nats")), kLossOfToken * static_cast<double>(ids.size()),
               fmt::format("{:.5f}, expected {:.5f}", sum, n.f64("sum_nll_nats")));
  }
  return checks.outcome();
}

constexpr Comparison kComparison = {"a model with --golden FILE", applies, run};
GESTALT_COMPARISON(kComparison)

}  // namespace
}  // namespace gestalt::task_parity

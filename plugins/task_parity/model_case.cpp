// A model of another program with what that program computed: io.safetensors (a batch, its logits and gradients),
// expect.json (loss, greedy continuation, a training curve) and train.safetensors (its batches).
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "plugins/task_parity/checks.h"
#include "plugins/task_parity/greedy.h"
#include "plugins/task_parity/token_batch.h"

namespace gestalt::task_parity {
namespace {

using support::Json;

// In f32, against a program that sums in another order.
constexpr double kLogits = 2e-4, kLoss = 1e-5, kGradient = 1e-3, kSmallGradient = 1e-6, kTrainLoss = 2e-3;
// In 16 bits every activation is rounded: logits and gradients as a whole, relative in the 2-norm, and no greedy run, which
// a near tie sends elsewhere.
constexpr double kHalfLogits = 3e-2, kHalfLoss = 5e-3, kHalfGradient = 5e-2, kHalfTrainLoss = 3e-2;

// Of trainings of at least twice as many steps.
constexpr size_t kLateLosses = 100;
constexpr double kLateLoss = 5e-3;

bool in_16_bits(Session& s) {
  const std::string_view dtype = s.str("run.dtype", "f32");
  return dtype == "bf16" || dtype == "f16";
}

bool applies(const std::string& path, const support::Flags&) { return std::filesystem::exists(path + "/expect.json"); }

std::vector<int32_t> ids_of(const Json& json, std::string_view key) {
  std::vector<int32_t> ids;
  for (int64_t id : json.i64_list(key)) ids.push_back(static_cast<int32_t>(id));
  return ids;
}

void compare_logits(Session& s, TokenBatch& batch, const support::SafetensorsReader& io, Checks& checks) {
  const std::vector<float> wanted = read_floats(io, "logits"), got = s.batch_logits(batch.fields());
  if (got.size() != wanted.size())
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] 'logits' has {} elements, expected {}", io.path(), wanted.size(), got.size()));
  double worst = 0, squares = 0, wanted_squares = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = static_cast<double>(wanted[i]), difference = std::fabs(static_cast<double>(got[i]) - want);
    if (!(difference <= worst)) worst = difference;
    squares += difference * difference;
    wanted_squares += want * want;
  }
  if (in_16_bits(s))
    checks.add("logits", std::sqrt(squares / wanted_squares), kHalfLogits, fmt::format("relative, of {}", got.size()));
  else
    checks.add("logits", worst, kLogits, fmt::format("largest difference of {}", got.size()));
}

double norm(const std::vector<double>& v) { return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0)); }

// Gradients of the mean loss; relative in the 2-norm, absolute where the reference is next to nothing.
void compare_gradients(Session& s, double weight, Checks& checks) {
  double worst = 0, worst_small = 0, squares = 0, wanted_squares = 0, off_squares = 0;
  std::string worst_name, small_name;
  int64_t num = 0;
  for (const Session::TensorInfo& p : s.parameters()) {
    std::vector<double> got = s.read_tensor(GESTALT_TENSOR_GRADIENT, p);
    const std::vector<double> wanted = s.read_tensor(GESTALT_TENSOR_REFERENCE, p);
    for (double& g : got) g /= weight;
    squares += std::inner_product(got.begin(), got.end(), got.begin(), 0.0);
    const double size = norm(wanted);
    for (size_t i = 0; i < got.size(); ++i) got[i] -= wanted[i];
    off_squares += std::inner_product(got.begin(), got.end(), got.begin(), 0.0);
    wanted_squares += size * size;
    const bool small = size < kSmallGradient;
    const double difference = small ? norm(got) : norm(got) / size;
    double& largest = small ? worst_small : worst;
    if (!(difference <= largest)) {
      largest = difference;
      (small ? small_name : worst_name) = p.name;
    }
    ++num;
  }
  if (in_16_bits(s))
    return checks.add("gradients", std::sqrt(off_squares / wanted_squares), kHalfGradient,
                      fmt::format("relative, of {} together; norm {:.6g}", num, std::sqrt(squares)));
  checks.add("gradients", worst, kGradient, fmt::format("relative, worst of {}: {}; norm {:.6g}", num, worst_name,
                                                        std::sqrt(squares)));
  if (!small_name.empty())
    checks.add("gradients~0", worst_small, kSmallGradient, fmt::format("of those next to nothing: {}", small_name));
}

void compare_training(Session& s, const std::string& folder, const Json& expect, const support::Flags& flags, Checks& checks) {
  const Json& train = expect.at("train");
  const support::SafetensorsReader file(folder + "/train.safetensors");
  std::vector<TokenBatch> batches;
  while (file.find(fmt::format("batch{}.input_ids", batches.size())))
    batches.push_back(TokenBatch::read(file, fmt::format("batch{}.", batches.size())));
  if (batches.empty())
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] tensor 'batch0.input_ids' is missing", file.path()));
  const auto& losses = train.at("losses").items();
  double worst = 0, last = 0, late = 0;
  std::string list;
  for (size_t step = 0; step < losses.size(); ++step) {
    s.run_batch(batches[step % batches.size()].fields(), GESTALT_BATCH_GRADIENTS);
    last = s.update().loss;
    const double difference = std::fabs(last - losses[step].f64());
    if (!(difference <= worst)) worst = difference;
    if (step + kLateLosses >= losses.size()) late += difference / static_cast<double>(kLateLosses);
    list += fmt::format("{:.6f}\n", last);
  }
  if (flags.has("losses")) {
    const std::string file_name = flags.str("losses", "");
    std::ofstream out(file_name);
    if (!(out << list).flush()) throw Error(GESTALT_IO_ERROR, fmt::format("[--losses] {} cannot be written", file_name));
  }
  // A long training leaves the reference's path one step at a time; where it ends is what counts.
  if (losses.size() >= 2 * kLateLosses)
    return checks.add("training", late, kLateLoss,
                      fmt::format("mean difference of the last {} of {} losses, the last {:.6f}", kLateLosses, losses.size(), last));
  checks.add("training", worst, in_16_bits(s) ? kHalfTrainLoss : kTrainLoss, fmt::format("largest difference of {} losses, the last {:.6f}", losses.size(), last));
}

Outcome run(Session& s, const std::string& path, const support::Flags& flags) {
  if (!s.has("model.type"))
    throw Error(GESTALT_NOT_FOUND, fmt::format("[parity] {} is no model that a format plugin knows", path));
  const Json expect = support::read_json_file(path + "/expect.json");
  const support::SafetensorsReader io(path + "/io.safetensors");
  TokenBatch batch = TokenBatch::read(io, "");
  Checks checks;
  s.open_model();
  s.open_reference(path + "/io.safetensors", "grad.");
  compare_logits(s, batch, io, checks);
  const Session::BatchLoss loss = s.run_batch(batch.fields(), GESTALT_BATCH_GRADIENTS);
  const double mean = loss.sum / loss.weight;
  checks.add("loss", std::fabs(mean - expect.f64("loss")), in_16_bits(s) ? kHalfLoss : kLoss, fmt::format("{:.6f}, expected {:.6f}", mean, expect.f64("loss")));
  compare_gradients(s, loss.weight, checks);
  if (expect.has("greedy_prompt") && !in_16_bits(s)) {
    const std::vector<int32_t> wanted = ids_of(expect, "greedy_continuation");
    const std::vector<int32_t> got = greedy(s, ids_of(expect, "greedy_prompt"), wanted.size());
    checks.add("greedy", static_cast<double>(num_unequal(got, wanted)), 0,
               fmt::format("ids that differ of {}", wanted.size()));
  }
  if (expect.has("train")) compare_training(s, path, expect, flags, checks);
  return checks.outcome();
}

constexpr Comparison kComparison = {"a model with expect.json", applies, run};
GESTALT_COMPARISON(kComparison)

}  // namespace
}  // namespace gestalt::task_parity

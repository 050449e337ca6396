#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/session/data_source.h"
#include "core/session/learning_rate.h"
#include "core/session/loss_scale.h"
#include "core/session/parameter_store.h"
#include "core/session/run.h"
#include "gestalt/abi/session.h"

namespace gestalt::core {

// Sums that programs accumulate on the device, by name ("lm.sum", "lm.weight").
class MetricSums {
 public:
  explicit MetricSums(Device& device) : device_(device) {}
  void* address(const std::string& name);
  // Waits for the device. The sums of a run that accumulated since its first micro-batch.
  std::map<std::string, double> read();

 private:
  Device& device_;
  std::map<std::string, Buffer> sums_;
};

// What one pass over micro-batches of a model is made of: a program with the losses (and gradients), its batch memory and
// sums.
class LossProgram {
 public:
  LossProgram(const Run& run, Machine& machine, const ModelTree& tree, ParameterStore& store, const BatchSpec& batches,
              bool train, void* step_scalars, void* step_seed);

  // Fills a batch and runs forward (and backward). Returns the sum of token weights.
  double run(const FillBatch& fill, bool accumulate, bool capture);
  // Node by node with finite checks.
  double run_eager(const FillBatch& fill, bool accumulate);
  double run_timed(const FillBatch& fill, bool accumulate, std::vector<Executable::NodeTime>& times);
  // Whether batches of this size fit.
  bool fits(int64_t num_tokens, int64_t num_sequences) const {
    return num_tokens <= batch_->max_tokens() && num_sequences <= batch_->max_sequences();
  }
  std::map<std::string, double> sums() { return sums_.read(); }
  const Compiled& compiled() const { return *compiled_; }
  int64_t num_tokens() const { return num_tokens_; }   // of the last run
  double data_seconds() const { return data_seconds_; }
  const std::vector<std::string>& unused_parameters() const { return unused_; }
  const std::string& loss_name() const { return loss_name_; }

 private:
  double load(const FillBatch& fill);

  Machine& machine_;
  std::unique_ptr<BatchBuffers> batch_;
  MetricSums sums_;
  std::unique_ptr<Compiled> compiled_;
  std::vector<std::string> unused_;
  std::string loss_name_;
  int64_t num_tokens_ = 0;
  double data_seconds_ = 0;
};

// Training: micro-batches, norm, clip and update. The state after n updates is a function of the configuration and n.
class Trainer {
 public:
  // data: NULL when every batch comes from run_batch.
  Trainer(const Run& run, Machine& machine, const ModelTree& tree, ParameterStore& store, DataSource* data);

  gestalt_step_result step() { return step(nullptr); }
  // The same node by node; put gets each node's time.
  using PutTime = std::function<void(const Program&, const Executable::NodeTime&)>;
  gestalt_step_result timed_step(const PutTime& put) { return step(&put); }
  // Looks at the parameters and runs the batches of the last step again with finite checks. Throws VALIDATION with the
  // first tensor that is not finite.
  void find_not_finite();
  // Operations of one global batch like the last one.
  double step_flops() const;
  // Loss and gradients of one batch, added to those of the last one or in their place. Returns the sum of token weights.
  double run_batch(const BatchSpec& size, const FillBatch& fill, bool accumulate);
  // One update with the gradients of run_batch; a negative rate is the schedule's.
  gestalt_step_result update(double rate);
  int64_t steps_done() const { return steps_done_; }
  void set_steps_done(int64_t steps) { steps_done_ = steps; }
  // Where a decaying schedule ends, when the configuration leaves it open.
  void set_length(int64_t steps) {
    if (schedule_.decay_steps == 0) schedule_.decay_steps = steps;
  }
  const std::vector<gestalt_optimizer_state>& optimizer_states() const { return states_; }
  LossProgram& loss_program() { return *loss_; }
  // Gradient buffers hold the gradient times this.
  LossScale& loss_scale() { return scale_; }
  const Compiled& update_program() const { return *update_; }
  // Gradients of samples of the train split without an update, for gradient checks. Returns the loss sum.
  double accumulate_gradients(const std::vector<int64_t>& samples);

 private:
  gestalt_step_result step(const PutTime* put);
  void set_samples(int64_t step, int64_t first);
  void make_loss(const BatchSpec& batches);
  void use_data();
  double accumulate(const FillBatch& fill, bool more);
  void finish(gestalt_step_result& r, double rate, const PutTime* put = nullptr);
  void upload_seed();
  void upload_scalars(double rate, double inv_tokens);
  std::unique_ptr<Compiled> make_update();

  const Run& run_;
  const ModelTree& tree_;
  Machine& machine_;
  ParameterStore& store_;
  DataSource* data_;
  Instance optimizer_;
  std::vector<gestalt_optimizer_state> states_;
  LearningRate schedule_;
  LossScale scale_;
  uint64_t seed_;
  int64_t global_batch_, micro_batch_;
  double clip_;
  bool capture_, eager_;
  Buffer step_scalars_, step_seed_;
  std::array<float, GESTALT_NUM_SCALARS> host_scalars_{};
  std::array<int32_t, 4> host_seed_{};
  std::unique_ptr<LossProgram> loss_;
  std::unique_ptr<Compiled> update_;
  const std::string split_ = "train";
  std::vector<int64_t> samples_;
  double batch_weight_ = 0;  // of run_batch since the last update
  int64_t steps_done_ = 0;
  bool host_batches_ = false;  // loss_ takes batches of run_batch, whose fields have an order of their own
};

// Binds every input of a program to its storage. Names that `batch` and `metric` do not know are parameters and
// gradients.
void bind_inputs(Compiled& compiled, const ModelTree& tree, const ParameterStore& store, const BatchBuffers* batch,
                 MetricSums* sums, void* step_scalars, void* step_seed);

}  // namespace gestalt::core

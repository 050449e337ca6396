#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config/attr_list.h"
#include "core/session/checkpoints.h"
#include "core/session/generation.h"
#include "core/session/trainer.h"
#include "gestalt/abi/session.h"

namespace gestalt::core {

// Logits of sequences through an `infer` program.
class Predictor {
 public:
  Predictor(const Run& run, Machine& machine, const ModelTree& tree, ParameterStore& store, int64_t max_tokens,
            int64_t max_sequences = 1);
  int64_t vocabulary() const { return vocabulary_; }
  bool fits(int64_t num_tokens, int64_t num_sequences) const {
    return num_tokens <= batch_->max_tokens() && num_sequences <= batch_->max_sequences();
  }
  // Of one sequence: f32, row major [ids, vocabulary].
  void logits(const int32_t* ids, int64_t num, float* out);
  // Of a batch whose fields `fill` writes: f32, row major [tokens, vocabulary].
  void logits(int64_t num_tokens, int64_t num_sequences, const std::function<void(std::vector<Tensor>&)>& fill, float* out);
  const Compiled& compiled() const { return *compiled_; }

 private:
  Machine& machine_;
  std::unique_ptr<BatchBuffers> batch_;
  std::unique_ptr<Compiled> compiled_;
  int64_t vocabulary_ = 0;
  Buffer seed_, scalars_;
};

// What the command line says about checkpoints.
struct SessionOptions {
  std::string resume;          // "auto", "none", a folder, or empty: not said
  bool allow_older = false;    // go back where the newest checkpoint is damaged
  std::string saver_command{};  // the program that serves as saver process; empty: saves happen in this process
};

// What a task works with: opened piece by piece, on first use. The host's side of gestalt_session_api.
class Session {
 public:
  // arguments: those of the command line that belong to the task.
  Session(Run& run, std::vector<std::string> arguments, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;

  gestalt_session* abi() { return &abi_.session; }
  Run& run() { return run_; }
  Machine& machine();
  DataSource& data();
  const ModelTree& tree();
  ParameterStore& store();
  Trainer& trainer();
  Predictor& predictor();
  Generation& open_generation(const gestalt_generation& sizes);
  Generation& generation();

  void open_model(const std::string& load_from);
  void open_data() { data().open(seq_len(), static_cast<int64_t>(run_.seed())); }
  void open_optimizer();
  void set_steps(int64_t steps);
  gestalt_step_result evaluate(const std::string& split, int64_t first, int64_t num);
  // Loss sum and weight of one batch in host memory; see gestalt_session_api.run_batch.
  std::pair<double, double> run_batch(std::span<const gestalt_batch_view> fields, uint64_t flags);
  // Logits f32 [tokens, vocabulary] of one batch in host memory.
  void batch_logits(std::span<const gestalt_batch_view> fields, float* out, uint64_t room, int64_t* vocabulary);
  gestalt_step_result update(double rate) { return trainer_for_batches().update(rate); }
  void open_reference(const std::string& tensors_file, const std::string& prefix);
  void read_tensor(int32_t kind, const std::string& name, gestalt_view& out);
  // A snapshot of the state after the last update, committed while the training goes on; returns where it will be.
  std::filesystem::path save();
  void wait_saved();  // IO_ERROR when the last save failed
  void collect_saves() {
    if (checkpoints_) checkpoints_->collect(false);
  }
  void metrics(int64_t step, const gestalt_metric* metrics, uint64_t num);
  void text(int64_t step, const std::string& name, const std::string& text);
  gestalt_run_info info();
  const std::filesystem::path& output_folder();
  int64_t seq_len() const { return run_.config().i64("model.seq_len"); }
  const std::vector<gestalt_str>& arguments() const { return argument_strs_; }
  // A value of the configuration as an attribute whose storage lives as long as the session.
  gestalt_attr config_value(std::string_view key);
  static Session& of(gestalt_session* s);
  std::string saved_path;  // what the last save returned, for the ABI

 private:
  struct Abi {
    gestalt_session session;
    Session* self;
  };
  struct Tracker {
    Instance instance;
  };
  void open_trackers();
  void check_rules();
  void resume_training();
  void lock_checkpoints();
  Checkpoints& checkpoints();
  ModelState model_state();
  Trainer& trainer_for_batches();
  // Gives the parameters the values of another program's model; false when no format knows the path.
  bool begin_as_foreign(const std::filesystem::path& path);

  Run& run_;
  Abi abi_;
  std::vector<std::string> arguments_;
  std::vector<gestalt_str> argument_strs_;
  SessionOptions options_;
  std::filesystem::path output_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<DataSource> data_;
  std::unique_ptr<ModelTree> tree_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<Trainer> trainer_;
  std::map<std::string, std::unique_ptr<LossProgram>> evaluators_;
  std::unique_ptr<LossProgram> batch_evaluator_;
  std::unique_ptr<ForeignTensors> reference_;
  std::unique_ptr<Predictor> predictor_, batch_predictor_;
  bool resumes_auto_ = false;
  std::unique_ptr<CheckpointReader> reader_;  // from open_model to open_optimizer
  std::unique_ptr<Generation> generation_;
  std::filesystem::path loaded_from_;
  TrainingState loaded_;
  std::unique_ptr<Checkpoints> checkpoints_;
  std::vector<Instance> trackers_;
  bool trackers_open_ = false;
  std::deque<AttrList> config_values_;
};

// Asks the running task to stop at the next step border: SIGTERM and SIGINT stop, SIGUSR1 saves. A second SIGTERM ends
// the process at once.
void install_signal_handlers();
int32_t stop_requested();  // 0, 1: stop, 2: save (given back once)

}  // namespace gestalt::core

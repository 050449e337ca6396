#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/program/memory_plan.h"
#include "core/tensor/tensor.h"

namespace gestalt::core {

// A program with kernels, memory plan and call frames: what a step runs. Running is a loop over prepared frames; no name
// is looked up, nothing is allocated.
class Executable {
 public:
  Executable(std::unique_ptr<Program> program, const Registry& registry, Device& device, const KernelPolicy& policy);
  Executable(const Executable&) = delete;

  const Program& program() const { return *program_; }
  const Binding& binding() const { return binding_; }
  const Schedule& schedule() const { return schedule_; }
  const MemoryPlan& plan() const { return plan_; }

  // [setup] Where the arenas of the plan and the storage of an input begin. All must be given before the first run; given
  // again, the new addresses hold from the next run on.
  void attach(const std::vector<void*>& arenas);
  void bind_input(const std::string& name, void* data);

  // Real sizes of the named dimensions; kernels without ANY_SHAPE are prepared again where their sizes changed. Only
  // allowed while the device is idle.
  void set_dims(const std::vector<std::pair<std::string, int64_t>>& sizes);

  // [run] Issues everything. `accumulate`: gradients and metrics are added to what their buffers hold, else written.
  void run(const std::vector<Stream>& streams, bool accumulate) {
    const Issue& issue = issues_[accumulate ? 1 : 0];
    if (streams_bound_ != &streams) bind_streams(streams);
    for (const Step& s : issue.steps) {
      gestalt_status* status = s.call ? launch(s) : s.run(s.state, nullptr);
      if (status) [[unlikely]] raise(status, s);
    }
  }
  // Node by node, waiting after each; floating-point results are checked to be finite where `check_finite`. The message
  // of any error names op and module path.
  void run_eager(const std::vector<Stream>& streams, bool accumulate, bool check_finite);
  struct NodeTime {
    const BoundNode* node;
    int64_t begin_ns, duration_ns;
  };
  // Node by node, waiting after each; appends what each took.
  void run_timed(const std::vector<Stream>& streams, bool accumulate, std::vector<NodeTime>& times);

  bool has_output(const std::string& name) const { return program_->outputs.contains(name); }
  const Tensor& output(const std::string& name) const;
  int num_streams() const { return schedule_.num_streams; }
  bool capturable(std::string* why_not) const;

 private:
  using RunFn = gestalt_status* (*)(void*, const gestalt_call*);
  struct Step {
    RunFn run;
    void* state;
    const gestalt_call* call;  // NULL: an event
    uint32_t num_in, num_out;
    uint64_t workspace_bytes;
    uint32_t node;
  };
  struct Issue {
    std::deque<gestalt_call> calls;
    std::vector<Step> steps;
  };
  struct EventStep {
    Device* device;
    const Event* event;
    const Stream* stream;
    bool record;
    int stream_index;
  };
  struct State {  // a kernel prepared for other sizes than the maxima
    void* state;
    const gestalt_kernel* kernel;
  };

  gestalt_status* launch(const Step& s) {
    if (inline_) return s.run(s.state, s.call);
    return device_.launch(s.run, s.state, s.call, s.num_in, s.num_out, s.workspace_bytes);
  }
  static gestalt_status* run_event(void* state, const gestalt_call*);
  [[noreturn]] void raise(gestalt_status* status, const Step& s) const;
  Tensor& tensor(const Value* v);
  void make_frames();
  void update_pointers();
  void update_shapes();
  void prepare_for_sizes();
  void bind_streams(const std::vector<Stream>& streams);
  void check_finite(const Node& node);

  std::unique_ptr<Program> program_;
  Device& device_;
  uint64_t require_;
  Binding binding_;
  Schedule schedule_;
  MemoryPlan plan_;
  bool inline_;

  std::unordered_map<const Value*, Tensor*> tensor_of_;
  std::deque<Tensor> tensors_;
  std::vector<const Value*> values_;  // parallel to tensors_
  std::vector<const gestalt_view*> frame_;
  std::vector<Event> events_;
  std::deque<EventStep> event_steps_;
  Issue issues_[2];
  const std::vector<Stream>* streams_bound_ = nullptr;
  std::vector<void*> arenas_;
  std::map<const Value*, void*> inputs_;
  std::map<std::pair<uint32_t, std::vector<int64_t>>, State> other_sizes_;
  struct Cleanup {
    std::map<std::pair<uint32_t, std::vector<int64_t>>, State>* states;
    ~Cleanup();
  } cleanup_{&other_sizes_};
};

}  // namespace gestalt::core

// Component kind "task/1": a verb of the launcher. A class gives its one line of help:
//   static constexpr std::string_view usage = "gestalt train CONFIG";
// and may say what it needs (GESTALT_TASK_; default: a run and its data), and settings that the run file need not have:
//   static constexpr uint64_t flags = GESTALT_TASK_TAKES_RUN;
//   static constexpr std::string_view defaults = "[train]\nglobal_batch = 1";
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gestalt/abi/session.h"
#include "gestalt/attrs.hpp"
#include "gestalt/component.hpp"
#include "gestalt/dtype.hpp"
#include "gestalt/tokenizer.hpp"

namespace gestalt {

// What a task does its work with; see gestalt_session_api for each function. One thread.
class Session {
 public:
  Session(gestalt_session* session, const gestalt_host* host) : session_(session), host_(host) {}

  // The final value of a configuration key; throws NOT_FOUND when there is none.
  gestalt_attr config(std::string_view key) const {
    gestalt_attr value{};
    check(host_, api().config(session_, str_of(key), &value));
    return value;
  }
  bool has(std::string_view key) const {
    gestalt_attr value{};
    gestalt_status* status = api().config(session_, str_of(key), &value);
    if (status) host_->status_free(host_->self, status);
    return !status;
  }
  int64_t i64(std::string_view key) const { return Value(config(key), key).attrs().i64(key); }
  double f64(std::string_view key) const { return Value(config(key), key).attrs().f64(key); }
  bool boolean(std::string_view key) const { return Value(config(key), key).attrs().boolean(key); }
  std::string_view str(std::string_view key) const { return Value(config(key), key).attrs().str(key); }
  int64_t i64(std::string_view key, int64_t otherwise) const { return has(key) ? i64(key) : otherwise; }
  double f64(std::string_view key, double otherwise) const { return has(key) ? f64(key) : otherwise; }
  bool boolean(std::string_view key, bool otherwise) const { return has(key) ? boolean(key) : otherwise; }
  std::string_view str(std::string_view key, std::string_view otherwise) const {
    return has(key) ? str(key) : otherwise;
  }

  void open_model(std::string_view load_from = {}) { check(host_, api().open_model(session_, str_of(load_from))); }
  void open_data() { check(host_, api().open_data(session_)); }
  void open_optimizer() { check(host_, api().open_optimizer(session_)); }
  int64_t num_parameters() const { return api().num_parameters(session_); }
  int64_t num_samples(std::string_view split) const { return api().num_samples(session_, str_of(split)); }
  int64_t bytes_of_text(std::string_view split) const { return api().bytes_of_text(session_, str_of(split)); }

  gestalt_step_result train_step() {
    gestalt_step_result result{};
    result.struct_size = sizeof result;
    check(host_, api().train_step(session_, &result));
    return result;
  }
  // Where the configuration leaves the length of the run open (train.minutes).
  void set_steps(int64_t steps) { check(host_, api().set_steps(session_, steps)); }
  int64_t steps_done() const { return api().steps_done(session_); }
  // num -1: all samples.
  gestalt_step_result evaluate(std::string_view split, int64_t first = 0, int64_t num = -1) {
    gestalt_step_result result{};
    result.struct_size = sizeof result;
    check(host_, api().evaluate(session_, str_of(split), first, num, &result));
    return result;
  }
  int64_t vocabulary() {
    int64_t size = 0;
    check(host_, api().logits(session_, nullptr, 0, nullptr, 0, &size));
    return size;
  }
  // f32 [ids, vocabulary], row major; *vocabulary gets the width when it is given.
  std::vector<float> logits(std::span<const int32_t> ids, int64_t* vocabulary = nullptr) {
    int64_t width = 0;
    check(host_, api().logits(session_, ids.data(), ids.size(), nullptr, 0, &width));
    std::vector<float> values(ids.size() * static_cast<size_t>(width));
    check(host_, api().logits(session_, ids.data(), ids.size(), values.data(), values.size(), &width));
    if (vocabulary) *vocabulary = width;
    return values;
  }
  TokenizerRef tokenizer() {
    const gestalt_tokenizer_1* table = nullptr;
    void* self = nullptr;
    check(host_, api().tokenizer(session_, &table, &self));
    return {host_, table, self};
  }
  // A snapshot, committed while the training goes on; the path, where it will be, is valid until the next save.
  std::string_view save() {
    gestalt_str path{};
    check(host_, api().save(session_, &path));
    return view_of(path);
  }
  // Until nothing is being saved; throws when the last save failed.
  void wait_saved() { check(host_, api().wait_saved(session_)); }
  void metrics(int64_t step, std::span<const gestalt_metric> metrics) {
    check(host_, api().metrics(session_, step, metrics.data(), metrics.size()));
  }
  void print(std::string_view text) { api().print(session_, str_of(text)); }
  // Arguments of the command line that belong to the task.
  std::span<const gestalt_str> arguments() const {
    const gestalt_str* list = nullptr;
    const uint64_t num = api().arguments(session_, &list);
    return {list, static_cast<size_t>(num)};
  }
  int32_t stop_requested() const { return api().stop_requested(session_); }
  std::string_view output_folder() const {
    gestalt_str folder{};
    api().output_folder(session_, &folder);
    return view_of(folder);
  }

  struct TensorInfo {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
  };
  // Every parameter and buffer of the model.
  std::vector<TensorInfo> parameters() const {
    std::vector<TensorInfo> list;
    const gestalt_shard_sink sink = {
        sizeof(gestalt_shard_sink), &list, [](void* self, const gestalt_shard* s) noexcept {
          static_cast<std::vector<TensorInfo>*>(self)->push_back(
              {std::string(view_of(s->name)), s->view.dtype, {s->global, s->global + s->view.ndim}});
        }};
    check(host_, api().parameters(session_, &sink));
    return list;
  }
  void open_reference(std::string_view tensors_file, std::string_view prefix) {
    check(host_, api().open_reference(session_, str_of(tensors_file), str_of(prefix)));
  }
  // kind: GESTALT_TENSOR_. In C order. Throws NOT_FOUND for a gradient or reference that is not there.
  std::vector<double> read_tensor(int32_t kind, const TensorInfo& tensor) const {
    std::vector<int64_t> shape = tensor.shape, strides(shape.size(), 1);
    int64_t count = 1;
    for (size_t i = shape.size(); i-- > 0; count *= shape[i]) strides[i] = count;
    std::vector<double> values(static_cast<size_t>(count));
    gestalt_view out = {values.data(), GESTALT_DEVICE_CPU, 0, static_cast<int32_t>(shape.size()),
                        kF64,          shape.data(),       strides.data(), 0};
    check(host_, api().read_tensor(session_, kind, str_of(tensor.name), &out));
    return values;
  }
  struct BatchLoss {
    double sum = 0, weight = 0;
  };
  // flags: GESTALT_BATCH_.
  BatchLoss run_batch(std::span<const gestalt_batch_view> fields, uint64_t flags) {
    BatchLoss loss;
    check(host_, api().run_batch(session_, fields.data(), fields.size(), flags, &loss.sum, &loss.weight));
    return loss;
  }
  // Of a batch as run_batch takes it: f32 [tokens, vocabulary], row major.
  std::vector<float> batch_logits(std::span<const gestalt_batch_view> fields) {
    int64_t width = 0, tokens = 0;
    for (const gestalt_batch_view& f : fields)
      if (view_of(f.name) == "tokens") tokens = f.view.shape[0];
    check(host_, api().batch_logits(session_, fields.data(), fields.size(), nullptr, 0, &width));
    std::vector<float> values(static_cast<size_t>(tokens * width));
    check(host_, api().batch_logits(session_, fields.data(), fields.size(), values.data(), values.size(), &width));
    return values;
  }
  // A negative rate: the schedule's.
  gestalt_step_result update(double lr = -1) {
    gestalt_step_result result{};
    result.struct_size = sizeof result;
    check(host_, api().update(session_, lr, &result));
    return result;
  }
  gestalt_run_info info() const {
    gestalt_run_info info{};
    info.struct_size = sizeof info;
    check(host_, api().info(session_, &info));
    return info;
  }
  // For the trackers: "sample".
  void text(int64_t step, std::string_view name, std::string_view text) {
    check(host_, api().text(session_, step, str_of(name), str_of(text)));
  }
  // put(const gestalt_profile_event&) must not throw.
  template <class F>
  gestalt_step_result profiled_step(F put) {
    const gestalt_profile_sink sink = {sizeof sink, &put, [](void* self, const gestalt_profile_event* e) noexcept {
                                         (*static_cast<F*>(self))(*e);
                                       }};
    gestalt_step_result result{};
    result.struct_size = sizeof result;
    check(host_, api().profiled_step(session_, &sink, &result));
    return result;
  }
  // Throws VALIDATION with the first tensor that is not finite.
  void find_not_finite() { check(host_, api().find_not_finite(session_)); }
  // Columns of logits. Throws UNSUPPORTED when a module keeps no state.
  int64_t open_generation(const gestalt_generation& sizes) {
    int64_t vocab = 0;
    check(host_, api().open_generation(session_, &sizes, &vocab));
    return vocab;
  }
  void generate(const gestalt_generation_pass& pass) { check(host_, api().generate(session_, &pass)); }
  void copy_block(int64_t from, int64_t to) { check(host_, api().copy_block(session_, from, to)); }
  gestalt_session* raw() const { return session_; }
  const gestalt_host* host() const { return host_; }

 private:
  const gestalt_session_api& api() const { return *session_->api; }
  // One value under the name that was asked for, so that a wrong type names it.
  struct Value {
    Value(gestalt_attr a, std::string_view key) : attr(a) { attr.name = str_of(key); }
    Attrs attrs() const { return {&attr, 1}; }
    gestalt_attr attr;
  };

  gestalt_session* session_;
  const gestalt_host* host_;
};

class Task : public detail::ComponentOf<Task> {
 public:
  // Throws Error(GESTALT_INTERRUPTED, ...) after a clean stop.
  virtual void run(Session& session) = 0;

  static constexpr std::string_view kKind = "task/1";
  template <class C>
  static constexpr const void* table();
};

namespace detail {

template <class C>
constexpr uint64_t task_flags() {
  if constexpr (requires { C::flags; })
    return C::flags;
  else
    return GESTALT_TASK_TAKES_RUN | GESTALT_TASK_USES_DATA;
}

template <class C>
constexpr gestalt_str task_defaults() {
  if constexpr (requires { C::defaults; })
    return str_of(C::defaults);
  else
    return {nullptr, 0};
}

template <class C>
inline constexpr gestalt_task_1 task_table = {sizeof(gestalt_task_1), str_of(C::usage), task_flags<C>(),
                                              [](void* self, gestalt_session* session) noexcept {
                                                return with<Task>(self, [&](Task& t) {
                                                  Session s(session, held<Task>(self).host);
                                                  t.run(s);
                                                });
                                              },
                                              task_defaults<C>()};

}  // namespace detail

template <class C>
constexpr const void* Task::table() {
  return &detail::task_table<C>;
}

}  // namespace gestalt

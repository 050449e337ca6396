// The C functions of gestalt_session_api over Session. Exceptions end here.

#include <cstdio>

#include "core/base/host.h"
#include "core/program/flops.h"
#include "core/session/session.h"

namespace gestalt::core {

namespace {

template <class F>
gestalt_status* guarded(F f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return status_of_current_exception();
  }
}

// For functions that return a number: -1 when there is none.
template <class F>
int64_t number(F f) noexcept {
  try {
    return f();
  } catch (...) {
    return -1;
  }
}

gestalt_status* config(gestalt_session* s, gestalt_str key, gestalt_attr* out) noexcept {
  return guarded([&] { *out = Session::of(s).config_value(view_of(key)); });
}
gestalt_status* open_model(gestalt_session* s, gestalt_str load_from) noexcept {
  return guarded([&] { Session::of(s).open_model(std::string(view_of(load_from))); });
}
gestalt_status* open_data(gestalt_session* s) noexcept {
  return guarded([&] { Session::of(s).open_data(); });
}
gestalt_status* open_optimizer(gestalt_session* s) noexcept {
  return guarded([&] { Session::of(s).open_optimizer(); });
}
int64_t num_parameters(gestalt_session* s) noexcept {
  return number([&] { return Session::of(s).tree().num_parameters(); });
}
int64_t num_samples(gestalt_session* s, gestalt_str split) noexcept {
  return number([&]() -> int64_t {
    const DataSource::Split* info = Session::of(s).data().split(std::string(view_of(split)));
    return info ? info->num_samples : 0;
  });
}
gestalt_status* train_step(gestalt_session* s, gestalt_step_result* out) noexcept {
  return guarded([&] {
    Session::of(s).collect_saves();
    *out = Session::of(s).trainer().step();
  });
}
gestalt_status* evaluate(gestalt_session* s, gestalt_str split, int64_t first, int64_t num,
                         gestalt_step_result* out) noexcept {
  return guarded([&] { *out = Session::of(s).evaluate(std::string(view_of(split)), first, num); });
}
int64_t bytes_of_text(gestalt_session* s, gestalt_str split) noexcept {
  return number([&]() -> int64_t {
    const DataSource::Split* info = Session::of(s).data().split(std::string(view_of(split)));
    return info ? info->bytes_of_text : -1;
  });
}
gestalt_status* logits(gestalt_session* s, const int32_t* ids, uint64_t num_ids, float* out, uint64_t room,
                       int64_t* vocab) noexcept {
  return guarded([&] {
    Predictor& p = Session::of(s).predictor();
    *vocab = p.vocabulary();
    if (room == 0) return;
    if (room / static_cast<uint64_t>(p.vocabulary()) < num_ids)
      fail(GESTALT_INVALID_ARGUMENT, "[logits] room for {} floats, expected {}", room,
           num_ids * static_cast<uint64_t>(p.vocabulary()));
    p.logits(ids, static_cast<int64_t>(num_ids), out);
  });
}
gestalt_status* tokenizer(gestalt_session* s, const gestalt_tokenizer_1** table, void** self) noexcept {
  return guarded([&] {
    DataSource& d = Session::of(s).data();
    if (!d.has_tokenizer()) fail(GESTALT_CONFIG_ERROR, "[tokenizer] is missing, expected a section with 'type'");
    *table = d.tokenizer();
    *self = d.tokenizer_self();
  });
}
gestalt_status* save(gestalt_session* s, gestalt_str* path) noexcept {
  return guarded([&] {
    Session& session = Session::of(s);
    session.saved_path = session.save().native();
    *path = str_of(session.saved_path);
  });
}
gestalt_status* metrics(gestalt_session* s, int64_t step, const gestalt_metric* m, uint64_t num) noexcept {
  return guarded([&] { Session::of(s).metrics(step, m, num); });
}
void print(gestalt_session*, gestalt_str text) noexcept {
  std::fwrite(text.data, 1, text.size, stdout);
  std::fflush(stdout);
}
uint64_t arguments(gestalt_session* s, const gestalt_str** out) noexcept {
  *out = Session::of(s).arguments().data();
  return Session::of(s).arguments().size();
}
int32_t stop(gestalt_session*) noexcept { return stop_requested(); }
gestalt_status* set_steps(gestalt_session* s, int64_t steps) noexcept {
  return guarded([&] { Session::of(s).set_steps(steps); });
}
int64_t steps_done(gestalt_session* s) noexcept {
  return number([&] { return Session::of(s).trainer().steps_done(); });
}
void output_folder(gestalt_session* s, gestalt_str* out) noexcept {
  try {
    *out = str_of(Session::of(s).output_folder().native());
  } catch (...) {
    *out = {nullptr, 0};
  }
}
gestalt_status* parameters(gestalt_session* s, const gestalt_shard_sink* sink) noexcept {
  return guarded([&] {
    for (const Parameter* p : Session::of(s).tree().parameters()) {
      Tensor t(p->type.dtype, p->global_shape);
      const std::vector<int64_t> offset(p->global_shape.size(), 0);
      gestalt_shard shard{};
      shard.struct_size = sizeof(shard);
      shard.name = str_of(p->path);
      shard.global = p->global_shape.data();
      shard.offset = offset.data();
      shard.parts = p->parts.data();
      shard.num_parts = p->parts.size();
      shard.view = t.view;
      sink->put(sink->self, &shard);
    }
  });
}
gestalt_status* open_reference(gestalt_session* s, gestalt_str tensors_file, gestalt_str prefix) noexcept {
  return guarded([&] { Session::of(s).open_reference(std::string(view_of(tensors_file)), std::string(view_of(prefix))); });
}
gestalt_status* read_tensor(gestalt_session* s, int32_t kind, gestalt_str name, gestalt_view* out) noexcept {
  return guarded([&] { Session::of(s).read_tensor(kind, std::string(view_of(name)), *out); });
}
gestalt_status* run_batch(gestalt_session* s, const gestalt_batch_view* fields, uint64_t num, uint64_t flags,
                          double* loss_sum, double* weight) noexcept {
  return guarded([&] {
    const auto [sum, w] = Session::of(s).run_batch({fields, num}, flags);
    *loss_sum = sum;
    *weight = w;
  });
}
gestalt_status* wait_saved(gestalt_session* s) noexcept {
  return guarded([&] { Session::of(s).wait_saved(); });
}
gestalt_status* batch_logits(gestalt_session* s, const gestalt_batch_view* fields, uint64_t num, float* out,
                             uint64_t room, int64_t* vocab) noexcept {
  return guarded([&] { Session::of(s).batch_logits({fields, num}, out, room, vocab); });
}
gestalt_status* update(gestalt_session* s, double lr, gestalt_step_result* out) noexcept {
  return guarded([&] { *out = Session::of(s).update(lr); });
}
gestalt_status* info(gestalt_session* s, gestalt_run_info* out) noexcept {
  return guarded([&] { *out = Session::of(s).info(); });
}
gestalt_status* text(gestalt_session* s, int64_t step, gestalt_str name, gestalt_str content) noexcept {
  return guarded([&] { Session::of(s).text(step, std::string(view_of(name)), std::string(view_of(content))); });
}
gestalt_status* profiled_step(gestalt_session* s, const gestalt_profile_sink* sink, gestalt_step_result* out) noexcept {
  return guarded([&] {
    Session::of(s).collect_saves();
    *out = Session::of(s).trainer().timed_step([&](const Program& program, const Executable::NodeTime& t) {
      const Node& n = *t.node->node;
      gestalt_profile_event e{};
      e.struct_size = sizeof(e);
      e.op = str_of(n.op->name());
      e.group = str_of(n.op->group);
      e.path = str_of(n.path);
      const std::string region = region_name(n.region);
      e.region = str_of(region);
      e.backend = t.node->kernel->backend;
      e.begin_ns = t.begin_ns;
      e.duration_ns = t.duration_ns;
      e.flops = node_flops(n, program.dims(), segment_length(program));
      e.bytes = node_bytes(n, program.dims());
      sink->put(sink->self, &e);
    });
  });
}
gestalt_status* find_not_finite(gestalt_session* s) noexcept {
  return guarded([&] { Session::of(s).trainer().find_not_finite(); });
}
gestalt_status* open_generation(gestalt_session* s, const gestalt_generation* sizes, int64_t* vocab) noexcept {
  return guarded([&] { *vocab = Session::of(s).open_generation(*sizes).vocabulary(); });
}
gestalt_status* generate(gestalt_session* s, const gestalt_generation_pass* pass) noexcept {
  return guarded([&] { Session::of(s).generation().pass(*pass); });
}
gestalt_status* copy_block(gestalt_session* s, int64_t from, int64_t to) noexcept {
  return guarded([&] { Session::of(s).generation().copy_block(from, to); });
}

}  // namespace

extern const gestalt_session_api kSessionApi;
const gestalt_session_api kSessionApi = {sizeof(gestalt_session_api),
                                         config,
                                         open_model,
                                         open_data,
                                         open_optimizer,
                                         num_parameters,
                                         num_samples,
                                         train_step,
                                         evaluate,
                                         bytes_of_text,
                                         logits,
                                         tokenizer,
                                         save,
                                         metrics,
                                         print,
                                         arguments,
                                         stop,
                                         set_steps,
                                         steps_done,
                                         output_folder,
                                         parameters,
                                         open_reference,
                                         read_tensor,
                                         run_batch,
                                         update,
                                         wait_saved,
                                         batch_logits,
                                         info,
                                         text,
                                         profiled_step,
                                         find_not_finite,
                                         open_generation,
                                         generate,
                                         copy_block};

}  // namespace gestalt::core

#include "core/program/collectives.h"

#include <numeric>

#include "core/base/host.h"
#include "core/tensor/tensor.h"

namespace gestalt::core {

namespace {

struct State {
  const gestalt_comm_1* comm;
  void* self;
  void* group;
  int64_t size, index;
  int64_t root = 0, shift = 0;
  int32_t reduction = GESTALT_REDUCE_SUM;
  std::vector<int64_t> counts{};  // of all_to_all

  gestalt_status* all_reduce(const gestalt_call* c) {
    return comm->all_reduce(self, group, c->in[0], c->out[0], reduction, c->stream);
  }
  gestalt_status* all_gather(const gestalt_call* c) {
    return comm->all_gather(self, group, c->in[0], c->out[0], c->stream);
  }
  gestalt_status* reduce_scatter(const gestalt_call* c) {
    return comm->reduce_scatter(self, group, c->in[0], c->out[0], GESTALT_REDUCE_SUM, c->stream);
  }
  gestalt_status* broadcast(const gestalt_call* c) {
    return comm->broadcast(self, group, c->in[0], c->out[0], root, c->stream);
  }
  // Every rank gets an equal part of dimension 0.
  gestalt_status* all_to_all(const gestalt_call* c) {
    int64_t n = 1;
    for (int i = 0; i < c->in[0]->ndim; ++i) n *= c->in[0]->shape[i];
    counts.assign(counts.size(), n / size);
    return comm->all_to_all(self, group, c->in[0], counts.data(), c->out[0], counts.data(), c->stream);
  }
  gestalt_status* ring_shift(const gestalt_call* c) {
    if (gestalt_status* s = comm->batch(self, 1)) return s;
    gestalt_status* s = comm->send(self, group, c->in[0], (index + shift + size) % size, c->stream);
    if (!s) s = comm->recv(self, group, c->out[0], (index - shift + size) % size, c->stream);
    gestalt_status* closed = comm->batch(self, 0);
    if (!s) return closed;
    if (closed) take(closed);
    return s;
  }
};

template <gestalt_status* (State::*Call)(const gestalt_call*)>
gestalt_status* run(void* state, const gestalt_call* call) noexcept {
  try {
    return (static_cast<State*>(state)->*Call)(call);
  } catch (...) {
    return status_of_current_exception();
  }
}

void destroy(void* state) noexcept { delete static_cast<State*>(state); }

gestalt_kernel kernel(const char* op, gestalt_status* (*run)(void*, const gestalt_call*) noexcept) {
  return {sizeof(gestalt_kernel),
          str_of(op),
          {},
          str_of("communicator"),
          GESTALT_KERNEL_DETERMINISTIC | GESTALT_KERNEL_ANY_SHAPE,
          nullptr,
          run,
          destroy};
}

const gestalt_kernel kKernels[] = {kernel("core.all_reduce", run<&State::all_reduce>),
                                   kernel("core.all_gather", run<&State::all_gather>),
                                   kernel("core.reduce_scatter", run<&State::reduce_scatter>),
                                   kernel("core.broadcast_rank", run<&State::broadcast>),
                                   kernel("core.all_to_all", run<&State::all_to_all>),
                                   kernel("core.ring_shift", run<&State::ring_shift>)};

}  // namespace

CollectiveKernel collective_kernel(const Node& node, const Groups* groups) {
  if (node.op->group != "collective" || node.attrs.i64("ranks") == 1) return {};
  // Only along dimension 0 do the ranks' parts lie one behind the other.
  if (node.attrs.find("dim") && node.attrs.i64("dim") % node.in[0]->type.ndim != 0) return {};
  for (const gestalt_kernel& k : kKernels) {
    if (node.op->name() != view_of(k.op)) continue;
    const std::string axis = node.attrs.str("axis");
    const Groups::Group* group = groups ? groups->find(axis) : nullptr;
    if (!group || group->size != node.attrs.i64("ranks"))
      fail(GESTALT_INVALID_ARGUMENT, "[{} at {}] is for {} ranks along '{}', but the mesh has {}", node.op->name(), node.path,
           node.attrs.i64("ranks"), axis, group ? group->size : 1);
    auto state = std::make_unique<State>(
        State{&groups->comm(), groups->self(), group->handle, group->size, group->index, 0, 0, GESTALT_REDUCE_SUM, {}});
    if (node.attrs.find("reduce") && node.attrs.str("reduce") == "max") state->reduction = GESTALT_REDUCE_MAX;
    if (node.attrs.find("root")) state->root = node.attrs.i64("root");
    if (node.attrs.find("shift")) state->shift = node.attrs.i64("shift") % group->size;
    state->counts.resize(static_cast<size_t>(group->size));
    return {&k, state.release()};
  }
  return {};
}

}  // namespace gestalt::core

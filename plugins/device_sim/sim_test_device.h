// A simulated device and a few kernels for the tests of this folder.
#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <vector>

#include "core/runtime/device.h"
#include "core/tensor/tensor.h"
#include "gestalt/attrs.hpp"
#include "plugins/device_sim/sim_component.h"

namespace gestalt::device_sim {

struct SimUnderTest {
  explicit SimUnderTest(std::initializer_list<Attr> keys = {}) {
    const std::vector<gestalt_attr> config(keys.begin(), keys.end());
    void* self = nullptr;
    core::check(host, sim_component().create(host, config.data(), config.size(), &self));
    device =
        std::make_unique<core::Device>(host, &sim_table(), self, std::shared_ptr<void>(self, sim_component().destroy));
  }
  const gestalt_host* host = core::make_host("test.device_sim");
  std::unique_ptr<core::Device> device;
};

// One bound call of one stream: tensors, frame and the kernel to run.
struct Launch {
  using Run = gestalt_status* (*)(void*, const gestalt_call*);
  Launch(Run run, std::vector<core::Tensor> in, std::vector<core::Tensor> out, void* state = nullptr)
      : ins(std::move(in)), outs(std::move(out)), kernel(run), kernel_state(state) {
    for (core::Tensor& t : ins) in_views.push_back(&t.view);
    for (core::Tensor& t : outs) out_views.push_back(&t.view);
  }
  Launch(const Launch&) = delete;
  void operator()(SimUnderTest& sim, const core::Stream& stream) {
    // What is enqueued must not change before a sync, so a second launch on the same stream leaves the call alone.
    if (call.stream != stream.get())
      call = {sizeof call, in_views.data(), out_views.data(), 0, stream.get(), workspace, sim.host};
    core::check(sim.host, sim.device->launch(kernel, kernel_state, &call, ins.size(), outs.size(), workspace_bytes));
  }
  std::vector<core::Tensor> ins, outs;
  std::vector<const gestalt_view*> in_views, out_views;
  Run kernel;
  void* kernel_state;
  void* workspace = nullptr;
  uint64_t workspace_bytes = 0;
  gestalt_call call{};
};

inline core::Tensor floats(const core::Buffer& buffer, int64_t n, int64_t offset = 0) {
  return core::Tensor(GESTALT_F32, {n}, static_cast<float*>(buffer.data()) + offset).on(GESTALT_DEVICE_SIM, 0);
}

// out = in + 1. Atomic, because the tests of missing events race on purpose.
inline gestalt_status* add_one(void*, const gestalt_call* call) {
  auto* x = static_cast<float*>(call->in[0]->data);
  auto* y = static_cast<float*>(call->out[0]->data);
  for (int64_t i = 0; i < call->in[0]->shape[0]; ++i)
    std::atomic_ref(y[i]).store(std::atomic_ref(x[i]).load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return nullptr;
}

// out = *state
inline gestalt_status* write_value(void* state, const gestalt_call* call) {
  auto* y = static_cast<float*>(call->out[0]->data);
  for (int64_t i = 0; i < call->out[0]->shape[0]; ++i)
    std::atomic_ref(y[i]).store(*static_cast<float*>(state), std::memory_order_relaxed);
  return nullptr;
}

inline std::vector<float> read(SimUnderTest& sim, const core::Buffer& buffer) {
  std::vector<float> host(buffer.bytes() / sizeof(float));
  sim.device->copy_to_host(host.data(), buffer.data(), host.size() * sizeof(float));
  return host;
}

}  // namespace gestalt::device_sim

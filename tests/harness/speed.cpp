#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>

#include "core/base/host.h"
#include "core/runtime/parallel.h"
#include "tests/harness/checks.h"
#include "tests/harness/device_copies.h"
#include "tests/harness/kernel_run.h"

namespace gestalt::harness {

using namespace core;

namespace {

// Seconds of one call: the lowest of several.
double time_of(const OpenDevice& d, const PreparedKernel& k, const std::vector<const gestalt_view*>& in,
               const std::vector<const gestalt_view*>& out, void* workspace) {
  // Where calls only enqueue, many between two waits.
  const int calls = d.device->host_visible() ? 1 : 50;
  double best = 1e30, total = 0;
  for (int i = 0; i < 9 && total < 2; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) k.run(in, out, 0, workspace, d.streams[0].get());
    d.device->sync();
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
    best = std::min(best, s);
    total += s;
  }
  return best;
}

}  // namespace

void print_speed(const CheckContext& c) {
  if (!c.d.speed) return;
  set_num_threads(2);
  for (uint32_t dtype : c.d.dtypes) {
    double reference = 0;
    std::vector<KernelRef> kernels = c.kernels();
    std::stable_sort(kernels.begin(), kernels.end(), [](const KernelRef& a, const KernelRef& b) {
      return view_of(a.kernel->backend).ends_with("_ref") > view_of(b.kernel->backend).ends_with("_ref");
    });
    for (const KernelRef& ref : kernels) {
      std::string reason;
      if (!accepts(c.e, ref, c.op, *c.d.speed, dtype, &reason)) continue;
      Random random(c.seed);
      const Inputs inputs = make_inputs(c.op, *c.d.speed, dtype, random);
      Device& device = *c.e.tested().device;
      DeviceCopies copies(device);
      std::deque<Tensor> tensors;
      std::deque<std::vector<unsigned char>> storage;
      std::vector<const gestalt_view*> in, out;
      uint64_t bytes = 0;
      auto make = [&](uint32_t type, const Shape& shape, std::vector<unsigned char> data) {
        bytes += data.size();
        storage.push_back(std::move(data));
        void* at = storage.back().data();
        if (!device.host_visible() && at) at = copies.put(storage.back(), at);
        return &tensors.emplace_back(type, std::span<const int64_t>(shape), at).view;
      };
      for (size_t i = 0; i < c.d.speed->in.size(); ++i) {
        const Arg& a = c.d.speed->in[i];
        const uint32_t type = dtype_of(a, dtype);
        in.push_back(a.present ? make(type, a.shape, encode(type, inputs.in[i])) : nullptr);
      }
      for (const OutType& t : infer_outputs(c.e, c.op, *c.d.speed, dtype))
        out.push_back(make(t.dtype, t.shape,
                           std::vector<unsigned char>(static_cast<size_t>(count_of(t.shape)) * dtype_size(t.dtype))));
      const PreparedKernel kernel(c.e, ref, c.op, inputs.attrs, in, out, 0);
      GuardedBytes workspace(kernel.workspace_bytes(), kernel.workspace_align(), 0);
      void* scratch = workspace.data();
      if (!device.host_visible() && scratch) scratch = copies.put(workspace.memory(), scratch);
      const double s = time_of(c.e.tested(), kernel, in, out, scratch);
      const std::string_view backend = view_of(ref.kernel->backend);
      if (backend.ends_with("_ref")) reference = s;
      const std::string rate = c.d.flops > 0 ? fmt::format("{:8.1f} GFLOP/s", c.d.flops / s * 1e-9)
                                             : fmt::format("{:8.1f} GB/s   ", static_cast<double>(bytes) / s * 1e-9);
      const std::string times = reference > 0 ? fmt::format("  {:.1f} times the reference", reference / s) : "";
      std::printf("%-26s %-16s %-5s %10.1f us %s%s\n", c.d.op.c_str(), std::string(backend).c_str(),
                  std::string(dtype_name(dtype)).c_str(), s * 1e6, rate.c_str(), times.c_str());
    }
  }
}

}  // namespace gestalt::harness

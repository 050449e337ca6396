#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>

#include "core/base/host.h"
#include "tests/harness/checks.h"
#include "tests/harness/device_copies.h"
#include "tests/harness/kernel_run.h"

// Speeds at the sizes of a training step: bytes that must move, or operations that must happen, by the time of one call
// among many.
namespace gestalt::harness {

using namespace core;

namespace {

struct Large {
  std::string op;
  Case c;
  uint32_t dtype = GESTALT_BF16;
  bool sinks = false;     // gradient outputs in f32
  double flops = 0;       // 0: bandwidth counts
  double more_bytes = 0;  // written without being outputs, or read only in part (negative)
};

Arg plain(Shape shape) { return real(std::move(shape), -2, 2); }
Arg f32(Shape shape, double low = -1, double high = 1) { return real(std::move(shape), low, high).as(GESTALT_F32); }
Arg ones(Shape shape) { return f32(std::move(shape), 1, 1); }

Large adamw() {
  const int64_t n = 124475904;
  const auto count = static_cast<double>(n);
  return {"core.adamw_update",
          {"124M, bf16 and f32 master",
           {real({n}), f32({n}), f32({n}), f32({n}), f32({n}, 0.01, 1),
            listed({2, 2}, {0, 38633472, 38633472, count - 38633472}, GESTALT_I64),
            listed({2, 2}, {0.1, 1, 0, 1}, GESTALT_F32), listed({8}, {0.01, 10, 0.125, 1, 0, 0, 0, 0}, GESTALT_F32),
            listed({}, {0.5}, GESTALT_F32)},
           {}},
          GESTALT_BF16,
          false,
          0,
          12 * count};
}

Arg keys(int64_t t) { return index({t, 2}, 1024); }
Arg seed() { return listed({4}, {5, 7, 12, 1}, GESTALT_I32); }
core::Attrs attention_attrs() {
  return {{"causal", true}, {"scale", 0.0},      {"window", int64_t{0}}, {"softcap", 0.0},
          {"p", 0.0},       {"use", int64_t{0}}, {"head0", int64_t{0}}};
}
Large attention(int64_t sequences, int64_t length, int64_t n, int64_t g, int64_t d, uint32_t dtype, bool backward) {
  const int64_t t = sequences * length;
  std::vector<double> starts;
  for (int64_t i = 0; i <= sequences; ++i) starts.push_back(static_cast<double>(i * length));
  const auto count = static_cast<int64_t>(starts.size());
  Large l{backward ? "core.attention_bwd" : "core.attention",
          {fmt::format("{} x {}, {}/{} heads of {}", sequences, length, n, g, d),
           {plain({t, n, d}), plain({t, g, d}), plain({t, g, d}), listed({count}, starts, GESTALT_I32)},
           attention_attrs()},
          dtype};
  if (backward) {
    l.c.in.push_back(plain({t, n, d}));
    l.c.in.push_back(wide({t, n}, 6, 7));
    l.c.in.push_back(plain({t, n, d}));
  }
  l.flops = (backward ? 5.0 : 2.0) * static_cast<double>(sequences * length * length * n * d);
  return l;
}

std::vector<Large> cases() {
  const int64_t t = 32768, h = 768;
  auto labels = [](int64_t tokens, int64_t v) { return index({tokens}, v); };
  std::vector<Large> all = {
      {"core.copy", {"32768 x 4096", {plain({t, 4096})}, {}}},
      {"core.residual_add", {"32768 x 4096", {plain({t, 4096}), plain({t, 4096})}, {}}},
      {"core.cast", {"to f32, 32768 x 4096", {plain({t, 4096})}, {{"dtype", std::string("f32")}}}},
      {"core.gelu", {"32768 x 3072", {plain({t, 3072})}, {}}},
      {"core.gelu_bwd", {"32768 x 3072", {plain({t, 3072}), plain({t, 3072})}, {}}},
      {"core.swiglu", {"16384 x 2 x 8192", {plain({16384, 16384})}, {}}},
      {"core.swiglu_bwd", {"16384 x 2 x 8192", {plain({16384, 16384}), plain({16384, 8192})}, {}}},
      {"core.layer_norm", {"32768 x 768", {plain({t, h}), plain({h}), plain({h})}, {}}},
      {"core.layer_norm_bwd",
       {"32768 x 768", {plain({t, h}), plain({h}), f32({t}), f32({t}, 0.9, 1.1), plain({t, h})}, {}},
       GESTALT_BF16,
       true},
      {"core.rms_norm", {"16384 x 4096", {plain({16384, 4096}), plain({4096})}, {}}},
      {"core.rms_norm_bwd",
       {"16384 x 4096", {plain({16384, 4096}), plain({4096}), f32({16384}, 0.9, 1.1), plain({16384, 4096})}, {}},
       GESTALT_BF16,
       true},
      {"core.cross_entropy", {"16384 x 50304", {plain({16384, 50304}), labels(16384, 50304), ones({16384})}, {}}},
      {"core.cross_entropy_bwd",
       {"16384 x 50304",
        {plain({16384, 50304}), labels(16384, 50304), ones({16384}), f32({16384}, 11, 12), ones({})},
        {}}},
      {"core.cross_entropy", {"8192 x 128256", {plain({8192, 128256}), labels(8192, 128256), ones({8192})}, {}}},
      adamw(),
      {"core.sum_squares", {"124M f32", {f32({124475904})}, {}}},
      {"core.sum", {"32768 x 3072, down", {plain({t, 3072})}, {{"dims", std::vector<int64_t>{0}}}}, GESTALT_BF16, true},
      {"core.embedding",
       {"32768 of 50304 x 768", {labels(t, 50304), plain({50304, h})}, {}},
       GESTALT_BF16,
       false,
       0,
       2.0 * h * (t - 50304.0)},
      {"core.embedding_bwd",
       {"32768 of 50304 x 768", {labels(t, 50304), plain({t, h})}, {{"vocab", int64_t{50304}}}},
       GESTALT_BF16,
       true},
      {"core.rotary", {"32768 x 32 x 128", {plain({t, 32, 128}), index({t}, 4096)}, {}}},
      {"core.dropout", {"32768 x 768", {plain({t, h}), keys(t), seed()}, {{"p", 0.1}, {"use", int64_t{1}}}}},
      {"core.softmax", {"32768 x 1024", {plain({t, 1024})}, {}}},
      {"core.topk", {"32768 x 64, 8", {plain({t, 64})}, {{"k", int64_t{8}}}}}};
  for (const bool backward : {false, true}) {
    all.push_back(attention(8, 1024, 12, 12, 64, GESTALT_F32, backward));
    all.push_back(attention(32, 1024, 12, 12, 64, GESTALT_BF16, backward));
    all.push_back(attention(4, 4096, 32, 8, 128, GESTALT_BF16, backward));
  }
  return all;
}

// A pattern of the argument's numbers, repeated.
std::vector<unsigned char> filled(const Arg& a, uint32_t dtype) {
  const auto size = static_cast<int64_t>(dtype_size(dtype)), n = count_of(a.shape);
  std::vector<unsigned char> bytes(static_cast<size_t>(n * size));
  Random random(7);
  const int64_t own = std::min<int64_t>(n, 100003);
  for (int64_t i = 0; i < own; ++i) encode(dtype, a.fill(random, i), bytes.data() + i * size);
  for (int64_t at = own; at < n; at += own)
    std::memcpy(bytes.data() + at * size, bytes.data(), static_cast<size_t>(std::min(own, n - at) * size));
  return bytes;
}

void print_one(const Environment& e, const Large& l, const KernelRef& ref) {
  const OpDef& op = e.ops.get(l.op);
  Device& device = *e.tested().device;
  DeviceCopies copies(device);
  std::deque<Tensor> tensors;
  std::deque<std::vector<unsigned char>> storage;
  std::vector<const gestalt_view*> in, out;
  double bytes = l.more_bytes;
  auto make = [&](uint32_t type, const Shape& shape, std::vector<unsigned char> data) {
    bytes += static_cast<double>(data.size());
    storage.push_back(std::move(data));
    void* at = copies.put(storage.back(), storage.back().data());
    return &tensors.emplace_back(type, std::span<const int64_t>(shape), at).view;
  };
  for (const Arg& a : l.c.in) {
    const uint32_t type = dtype_of(a, l.dtype);
    in.push_back(make(type, a.shape, filled(a, type)));
  }
  uint64_t sinks = 0;
  const std::vector<OutType> types = infer_outputs(e, op, l.c, l.dtype);
  for (size_t i = 0; i < types.size(); ++i) {
    const bool sink = l.sinks && op.schema.output(i).accumulates;
    if (sink) sinks |= 1ull << i;
    const uint32_t type = sink ? accumulation_dtype(types[i].dtype) : types[i].dtype;
    out.push_back(make(type, types[i].shape,
                       std::vector<unsigned char>(static_cast<size_t>(count_of(types[i].shape)) * dtype_size(type))));
  }
  const PreparedKernel kernel(e, ref, op, op.schema.complete(l.c.attrs), in, out, sinks);
  std::vector<unsigned char> scratch(kernel.workspace_bytes() + 256);
  const uintptr_t past = reinterpret_cast<uintptr_t>(scratch.data()) % 256;
  void* workspace = copies.put(scratch, scratch.data() + (256 - past) % 256);
  auto run = [&](int calls) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) kernel.run(in, out, 0, workspace, e.tested().streams[0].get());
    device.sync();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
  };
  const double once = std::max(run(1), run(1));
  const int calls = std::clamp(static_cast<int>(0.03 / once), 2, 200);
  double best = 1e30;
  for (int i = 0; i < 3; ++i) best = std::min(best, run(calls));
  const std::string rate = l.flops > 0 ? fmt::format("{:8.1f} TFLOP/s", l.flops / best * 1e-12)
                                       : fmt::format("{:8.2f} TB/s", bytes / best * 1e-12);
  std::printf("%-24s %-34s %-14s %-5s %10.1f us %s\n", l.op.c_str(), l.c.name.c_str(),
              std::string(view_of(ref.kernel->backend)).c_str(), std::string(dtype_name(l.dtype)).c_str(), best * 1e6,
              rate.c_str());
}

}  // namespace

void print_large_speeds(const Environment& e, const std::set<std::string>& only) {
  for (const Large& l : cases()) {
    if (!only.empty() && !only.contains(l.op)) continue;
    for (const KernelRef& ref : e.registry.find_kernels(l.op, e.tested().device->kernels_of())) {
      try {
        print_one(e, l, ref);
      } catch (const Error& error) {
        std::printf("%-24s %-34s %s\n", l.op.c_str(), l.c.name.c_str(), error.message().c_str());
      }
    }
  }
}

}  // namespace gestalt::harness

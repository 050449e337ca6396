// gestalt bench abi: a call across the plugin border beside a direct and a virtual call, the replay of a recorded node,
// and the recording of an op. The kernel is a real one, from the plugin gestalt.bench_null.
#include <unordered_map>

#include "core/base/host.h"
#include "core/program/builder.h"
#include "core/program/executable.h"
#include "core/session/run.h"
#include "core/tensor/tensor.h"
#include "launcher/benchmark.h"

namespace gestalt::launcher {
namespace {

using namespace core;

constexpr int64_t kCalls = 400'000;
constexpr int kNodes = 512;  // of the replayed program: about what a training step has
constexpr int kReplays = 400;
constexpr int64_t kRecorded = 2'000;
constexpr const char* kOp = "gestalt.bench_null";

void add_first(const gestalt_view* const* in, const gestalt_view* const* out) {
  auto first = [](const gestalt_view* v) { return *static_cast<const float*>(v->data); };
  *static_cast<float*>(out[0]->data) = first(in[0]) + first(in[1]) + first(in[2]) + first(in[3]);
}

[[gnu::noinline]] void direct(const gestalt_call* call) { add_first(call->in, call->out); }

struct Virtual {
  virtual ~Virtual() = default;
  virtual void run(const gestalt_call* call) const = 0;
};
struct Called final : Virtual {
  [[gnu::noinline]] void run(const gestalt_call* call) const override { add_first(call->in, call->out); }
};

// Makes the compiler forget what it knows of a pointer's target, so that calls are neither inlined nor hoisted.
template <class T>
T* opaque(T* p) {
  asm volatile("" : "+r"(p) : : "memory");
  return p;
}

// The plugins, a device, and `nodes` null nodes over four inputs.
class Recorded {
 public:
  Recorded() {
    publish_interfaces();
    registry.discover(plugin_search({}, Trust::kNamed));
    registry.load({"gestalt.device_cpu", "gestalt.bench_null"});
    for (const OpRef& op : registry.ops()) ops.add_plugin_op(op.op, op.host, std::string(op.plugin));
    const ComponentRef component = registry.component("device/1", "cpu");
    auto instance = std::make_shared<Instance>(component, nullptr, 0);
    device = std::make_unique<Device>(component.host, instance->table<gestalt_device_1>(), instance->self(), instance);
    streams.push_back(device->open_stream());
    auto program = std::make_unique<Program>(ops, dims);
    Builder builder(*program, {}, GESTALT_PHASE_TRAIN);
    std::vector<Value*> in;
    for (int i = 0; i < 4; ++i) in.push_back(program->input("batch:" + std::to_string(i), TensorType(GESTALT_F32, {4})));
    for (int i = 0; i < kNodes; ++i) {
      Value* y = builder.op(kOp, in);
      program->outputs["y" + std::to_string(i)] = y;
      in[static_cast<size_t>(i % 4)] = y;
    }
    executable = std::make_unique<Executable>(std::move(program), registry, *device, KernelPolicy{});
    arena = device->alloc(executable->plan().arena_bytes.at(0), Category::kActivations);
    memory = device->alloc(64, Category::kOther);
    device->fill(arena.data(), 0, arena.bytes());
    device->fill(memory.data(), 0, memory.bytes());
    executable->attach({arena.data()});
    for (int i = 0; i < 4; ++i)
      executable->bind_input("batch:" + std::to_string(i), static_cast<float*>(memory.data()) + 4 * i);
  }
  ~Recorded() {
    executable.reset();
    streams.clear();
    arena = Buffer();
    memory = Buffer();
    device.reset();
    registry.shutdown();
  }

  Registry registry;
  OpRegistry ops;
  DimTable dims;
  std::unique_ptr<Device> device;
  std::vector<Stream> streams;
  std::unique_ptr<Executable> executable;
  Buffer arena, memory;
};

template <class F>
double per_call(F f) {
  return lowest_ns(kCalls, [] {}, [&] {
    for (int64_t i = 0; i < kCalls; ++i) f();
  });
}

void expect_success(gestalt_status* status) { check(nullptr, status, kOp); }

double per_recorded(const Recorded& r, std::string_view op, size_t num_in, const Attrs& attrs, const TensorType& type,
                    const TensorType& last) {
  std::unique_ptr<DimTable> dims;
  std::unique_ptr<Program> program;
  std::unique_ptr<Builder> builder;
  std::vector<gestalt_tensor*> in;
  const AttrArray array(attrs);
  const gestalt_str name = str_of(op);
  auto before = [&] {
    builder.reset();
    program.reset();
    dims = std::make_unique<DimTable>();
    program = std::make_unique<Program>(r.ops, *dims);
    builder = std::make_unique<Builder>(*program, std::vector<BatchField>{}, GESTALT_PHASE_TRAIN);
    builder->path = "model.layers.0.mlp";
    in.clear();
    for (size_t i = 0; i < num_in; ++i)
      in.push_back(program->input("batch:" + std::to_string(i), i + 1 == num_in ? last : type));
  };
  return lowest_ns(kRecorded, before, [&] {
    gestalt_build* build = builder->abi();
    for (int64_t i = 0; i < kRecorded; ++i) {
      gestalt_tensor* out[4];
      uint64_t num_out = 4;
      expect_success(build->api->apply(build, name, in.data(), in.size(), array.data(), array.size(), out, &num_out));
      in[0] = out[0];
    }
  });
}

std::vector<Measured> run() {
  Recorded r;
  const BoundNode& bound = r.executable->binding().nodes().at(0);
  float numbers[5] = {1, 2, 3, 4, 0};
  Tensor tensors[5];
  const gestalt_view *in[4], *out[1];
  for (int i = 0; i < 5; ++i) {
    tensors[i] = Tensor(GESTALT_F32, {1}, &numbers[i]);
    (i < 4 ? in[i] : out[0]) = &tensors[i].view;
  }
  gestalt_call frame{};
  frame.struct_size = sizeof(frame);
  frame.in = in;
  frame.out = out;
  frame.host = bound.host;
  auto* call = opaque(&frame);
  auto run_kernel = *opaque(&bound.kernel->run);
  void* state = opaque(bound.state);
  expect_success(run_kernel(state, call));
  if (numbers[4] != 10) fail(GESTALT_INTERNAL, "[{}] made {}, expected 10", kOp, numbers[4]);

  std::vector<Measured> lines;
  lines.push_back({"direct call", per_call([&] { direct(opaque(call)); }), 0, 0});
  const Called called;
  const Virtual* object = opaque(static_cast<const Virtual*>(&called));
  lines.push_back({"virtual call", per_call([&] { opaque(object)->run(call); }), 0, 0});
  lines.push_back({"kernel call with five views, frame reused", per_call([&] {
                     if (gestalt_status* s = run_kernel(state, opaque(call))) [[unlikely]]
                       expect_success(s);
                   }),
                   25, 100});

  // What the host avoids: views and frames made for every call, kernels looked up by name.
  auto fresh = [&](gestalt_status* (*run)(void*, const gestalt_call*), void* kernel_state) {
    int64_t shapes[5], strides[5];
    gestalt_view made[5];
    const gestalt_view *made_in[4], *made_out[1];
    for (int i = 0; i < 5; ++i) {
      shapes[i] = strides[i] = 1;
      made[i] = {&numbers[i], GESTALT_DEVICE_CPU, 0, 1, GESTALT_F32, &shapes[i], &strides[i], 0};
      (i < 4 ? made_in[i] : made_out[0]) = &made[i];
    }
    gestalt_call c{};
    c.struct_size = sizeof(c);
    c.in = made_in;
    c.out = made_out;
    c.host = bound.host;
    if (gestalt_status* s = run(kernel_state, opaque(&c))) [[unlikely]]
      expect_success(s);
  };
  lines.push_back({"... frame and views built in each call", per_call([&] { fresh(run_kernel, state); }), 0, 0});
  std::unordered_map<std::string, const BoundNode*> by_name;
  by_name.emplace(std::string(kOp) + "|cpu|gestalt.cpu", &bound);
  lines.push_back({"... and the kernel found by string hash", per_call([&] {
                     const BoundNode& found = *by_name.find(std::string(opaque(kOp)) + "|cpu|gestalt.cpu")->second;
                     fresh(found.kernel->run, found.state);
                   }),
                   0, 0});

  r.executable->run(r.streams, false);
  lines.push_back({"replay of a bound node", lowest_ns(int64_t{kNodes} * kReplays, [] {}, [&] {
                     for (int i = 0; i < kReplays; ++i) r.executable->run(r.streams, false);
                   }),
                   40, 100});

  const TensorType matrix(GESTALT_F32, {64, 64}), vector(GESTALT_F32, {64});
  lines.push_back({"recording core.add through the build API", per_recorded(r, "core.add", 2, {}, matrix, matrix), 2000,
                   8000});
  lines.push_back({"recording core.rms_norm, one attribute given",
                   per_recorded(r, "core.rms_norm", 2, {{"eps", 1e-6}}, matrix, vector), 2000, 8000});
  lines.push_back({"recording core.reshape, a view", per_recorded(r, "core.reshape", 1,
                                                                  {{"shape", std::vector<int64_t>{64, 64}}}, matrix, matrix),
                   2000, 8000});
  lines.push_back({"recording a plugin's op", per_recorded(r, kOp, 4, {}, vector, vector), 2000, 8000});
  return lines;
}

const Benchmark kAbi("abi", "calls across the plugin border, replay and recording", run);

}  // namespace
}  // namespace gestalt::launcher

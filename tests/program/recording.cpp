#include "tests/program/recording.h"

#include <cmath>

#include "core/tensor/tensor.h"
#include "plugins/device_cpu/cpu_device.h"

namespace gestalt::core::test {

namespace {

std::unique_ptr<Device> open_cpu() {
  static const gestalt_host* host = make_host("test.device_cpu");
  void* self = nullptr;
  check(host, device_cpu::cpu_component().create(host, nullptr, 0, &self));
  return std::make_unique<Device>(host, &device_cpu::cpu_table(), self,
                                  std::shared_ptr<void>(self, device_cpu::cpu_component().destroy));
}

}  // namespace

Recording::Recording(std::vector<FakeKernel> kernels, uint32_t dtype) : device(open_cpu()), dtype_(dtype) {
  add_kernels(std::move(kernels), "gestalt.test_kernels");
  program = std::make_unique<Program>(ops, dims);
  recorded = program.get();
  b = std::make_unique<Builder>(*program, std::vector<BatchField>{}, GESTALT_PHASE_TRAIN);
  b->path = "model.test";
  for (int i = 0; i < 3; ++i) streams.push_back(device->open_stream());
}

// Kernels go after the states that they destroy.
Recording::~Recording() { executable.reset(); }

void Recording::add_kernels(std::vector<FakeKernel> kernels, const std::string& id) {
  plugins_.emplace_back(id, std::move(kernels));
  registry.add_static(plugins_.back().descriptor());
}

FakeKernel& Recording::kernel(const std::string& op) {
  for (size_t i = 0;; ++i)
    if (FakeKernel& k = plugins_.front().kernel(i); k.op == op) return k;
}

void Recording::define(const std::string& schema, InferFn infer, ComposeFn vjp, ComposeFn decompose, uint64_t flags) {
  OpDef def;
  def.schema = parse_schema(schema);
  def.text = schema;
  def.owner = "test";
  def.group = "plugin";
  def.flags = flags;
  def.infer = std::move(infer);
  def.vjp = std::move(vjp);
  def.decompose = std::move(decompose);
  ops.add(std::move(def));
}

Value* Recording::input(const std::string& name, std::initializer_list<int64_t> shape) {
  return program->input("batch:" + name, TensorType(dtype_, shape));
}

Value* Recording::param(const std::string& name, std::initializer_list<int64_t> shape) {
  Parameter& p = parameters_.emplace_back();
  p.path = name;
  p.type = TensorType(dtype_, shape);
  return b->param(p);
}

void Recording::loss(Value* x, const std::string& name) {
  Value* one = op("core.fill", {}, {{"shape", std::vector<int64_t>{}}, {"dtype", std::string("f32")}, {"value", 1.0}});
  b->loss(name, x->type.ndim ? sum(x) : x, one);
}

std::vector<std::string> Recording::gradients() {
  std::vector<const Parameter*> all;
  for (const Parameter& p : parameters_) all.push_back(&p);
  return add_gradients(*b, all);
}

size_t Recording::count(const std::string& name) const {
  size_t n = 0;
  for (const Node* node : recorded->nodes) n += node->op->name() == name;
  return n;
}

void Recording::compile(const KernelPolicy& policy, int num_streams) {
  remove_dead_nodes(*program);
  assign_streams(*program, num_streams);
  executable = std::make_unique<Executable>(std::move(program), registry, *device, policy);
  std::vector<void*> addresses;
  for (uint64_t bytes : executable->plan().arena_bytes) {
    arenas_.push_back(device->alloc(bytes, Category::kActivations));
    addresses.push_back(arenas_.back().data());
    if (bytes) device->fill(addresses.back(), 0xff, bytes);  // what is read before it is written is NaN
  }
  executable->attach(addresses);
  for (const auto& [name, v] : recorded->inputs()) {
    const uint64_t bytes = recorded->max_bytes(v);
    Buffer buffer = device->alloc(bytes, Category::kOther);
    if (bytes) device->fill(buffer.data(), 0, bytes);
    executable->bind_input(name, buffer.data());
    inputs_.emplace(name, std::move(buffer));
  }
}

void Recording::set(const std::string& name, const std::vector<double>& values) {
  Tensor t(recorded->find_input(name)->type.dtype, {static_cast<int64_t>(values.size())}, inputs_.at(name).data());
  write_view(t.view, values, false);
}

std::vector<double> Recording::get(const std::string& name) {
  if (executable->has_output(name)) return read_view(executable->output(name).view);
  const uint32_t dtype = recorded->find_input(name)->type.dtype;
  const Buffer& buffer = inputs_.at(name);
  return read_view(Tensor(dtype, {static_cast<int64_t>(buffer.bytes() / dtype_size(dtype))}, buffer.data()).view);
}

void Recording::run(bool accumulate) { executable->run(streams, accumulate); }

std::string Recording::check_gradients() {
  if (!executable) compile();
  double seed = 0;
  for (const auto& [name, buffer] : inputs_) {
    if (name.starts_with("grad:") || name.starts_with("metric:")) continue;
    std::vector<double> values = get(name);
    for (double& x : values) x = std::sin(seed += 1.7) + 0.1;
    set(name, values);
  }
  auto total = [&] {
    run();
    double sum = 0;
    for (const Program::Loss& l : recorded->losses) sum += get("metric:" + l.name + ".sum")[0];
    return sum;
  };
  total();
  std::map<std::string, std::vector<double>> wanted;
  for (const auto& [name, buffer] : inputs_)
    if (name.starts_with("grad:")) wanted[name] = get(name);
  for (const auto& [grad, values] : wanted) {
    const std::string name = "param:" + grad.substr(5);
    const std::vector<double> at = get(name);
    for (size_t i = 0; i < at.size(); ++i) {
      auto moved = [&](double by) {
        std::vector<double> v = at;
        v[i] += by;
        set(name, v);
        return total();
      };
      const double expected = (moved(1e-4) - moved(-1e-4)) / 2e-4;
      if (!(std::abs(expected - values[i]) <= 1e-6 * (1 + std::abs(expected))))
        return fmt::format("{}[{}] is {}, differences say {}", grad, i, values[i], expected);
    }
    set(name, at);
  }
  return wanted.empty() ? "no gradient was written" : "";
}

InferFn like_first(size_t num_out) {
  return [num_out](InferContext& c) {
    for (size_t i = 0; i < num_out; ++i) c.out(c.in(0));
  };
}

}  // namespace gestalt::core::test

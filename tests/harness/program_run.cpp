#include "tests/harness/program_run.h"

#include "core/program/passes.h"

namespace gestalt::harness {

using namespace core;

ProgramRun::ProgramRun(const Environment& e, const OpenDevice& device, const std::string& op, const std::string& pin,
                       int num_streams, const std::function<void(Builder&)>& record)
    : device_(*device.device), streams_(device.streams) {
  auto program = std::make_unique<Program>(e.ops, dims_);
  {
    Builder builder(*program, {}, GESTALT_PHASE_TRAIN);
    builder.path = "harness";
    record(builder);
  }
  remove_dead_nodes(*program);
  assign_streams(*program, num_streams);
  KernelPolicy policy;
  if (!pin.empty()) policy.pins[op] = pin;
  executable_ = std::make_unique<Executable>(std::move(program), e.registry, device_, policy);
  std::vector<void*> addresses;
  for (uint64_t bytes : executable_->plan().arena_bytes) {
    arenas_.push_back(device_.alloc(bytes, Category::kActivations));
    addresses.push_back(arenas_.back().data());
    if (bytes) device_.fill(addresses.back(), 0xFF, bytes);  // poison: what is read before it is written is NaN
  }
  executable_->attach(addresses);
  for (const auto& [name, v] : executable_->program().inputs()) {
    const uint64_t bytes = executable_->program().max_bytes(v);
    Buffer buffer = device_.alloc(bytes, Category::kOther);
    if (bytes) device_.fill(buffer.data(), 0, bytes);
    executable_->bind_input(name, buffer.data());
    inputs_.emplace(name, std::move(buffer));
  }
}

ProgramRun::~ProgramRun() {
  try {
    device_.sync();
  } catch (const Error&) {
    // Reported by the call that failed; memory must not go before the work that reads it.
  }
}

void ProgramRun::write(const std::string& input, const Bytes& bytes) {
  auto it = inputs_.find(input);
  if (it == inputs_.end()) return;  // nothing reads it
  if (it->second.bytes() != bytes.size())
    fail(GESTALT_INTERNAL, "[{}] got {} bytes, expected {}", input, bytes.size(), it->second.bytes());
  if (!bytes.empty()) device_.copy_to_device(it->second.data(), bytes.data(), bytes.size());
}

void ProgramRun::run(bool accumulate) {
  executable_->run(streams_, accumulate);
  device_.sync();
}

void ProgramRun::replay() {
  if (!graph_) {
    device_.capture_begin(streams_[0]);
    executable_->run(streams_, false);
    graph_ = device_.capture_end(streams_[0]);
  }
  device_.replay(graph_, streams_[0]);
  device_.sync();
}

bool ProgramRun::capturable() const {
  std::string why;
  return executable_->capturable(&why);
}

Bytes ProgramRun::read_input(const std::string& name) {
  const Buffer& b = inputs_.at(name);
  Bytes bytes(b.bytes());
  if (!bytes.empty()) device_.copy_to_host(bytes.data(), b.data(), bytes.size());
  return bytes;
}

Bytes ProgramRun::read_output(const std::string& name) {
  const Tensor& t = executable_->output(name);
  Bytes bytes(num_bytes(t.view));
  if (!bytes.empty()) device_.copy_to_host(bytes.data(), t.view.data, bytes.size());
  return bytes;
}

}  // namespace gestalt::harness

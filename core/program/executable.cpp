#include "core/program/executable.h"

#include <chrono>

#include "core/base/host.h"
#include "core/tensor/finite.h"

namespace gestalt::core {

Executable::Executable(std::unique_ptr<Program> program, const Registry& registry, Device& device,
                       const KernelPolicy& policy)
    : program_(std::move(program)),
      device_(device),
      require_(policy.require),
      binding_(*program_, registry, device, policy),
      schedule_(make_schedule(binding_)),
      plan_(plan_memory(*program_, binding_, schedule_, device.alignment())),
      inline_(device.runs_inline()) {
  for (uint32_t i = 0; i < schedule_.num_events; ++i) events_.push_back(device_.open_event());
  arenas_.assign(static_cast<size_t>(schedule_.num_streams), nullptr);
  make_frames();
  update_shapes();
}

Executable::Cleanup::~Cleanup() {
  for (auto& [key, s] : *states)
    if (s.kernel->destroy && s.state) s.kernel->destroy(s.state);
}

Tensor& Executable::tensor(const Value* v) {
  auto it = tensor_of_.find(v);
  if (it != tensor_of_.end()) return *it->second;
  Tensor& t = tensors_.emplace_back();
  t.on(device_.type(), device_.id());
  t.view.dtype = v->type.dtype;
  t.view.ndim = v->type.ndim;
  values_.push_back(v);
  tensor_of_.emplace(v, &t);
  return t;
}

// Frames hold pointers to views inside tensors, so a step never touches a shape.
void Executable::make_frames() {
  size_t total = 0;
  for (const BoundNode& b : binding_.nodes()) total += b.node->in.size() + b.node->out.size();
  frame_.reserve(total);
  struct Range {
    size_t in, out;
  };
  std::vector<Range> ranges;
  for (const BoundNode& b : binding_.nodes()) {
    Range r{frame_.size(), 0};
    for (const Value* v : b.node->in) frame_.push_back(v ? &tensor(v).view : nullptr);
    r.out = frame_.size();
    for (const Value* v : b.node->out) frame_.push_back(&tensor(v).view);
    ranges.push_back(r);
  }
  for (const auto& [name, v] : program_->outputs) tensor(v);

  for (const Schedule::Item& item : schedule_.items) {
    if (item.kind != Schedule::Kind::kNode) {
      event_steps_.push_back({&device_, &events_[item.event], nullptr, item.kind == Schedule::Kind::kRecord, item.stream});
      for (Issue& issue : issues_) issue.steps.push_back({run_event, &event_steps_.back(), nullptr, 0, 0, 0, 0});
      continue;
    }
    const BoundNode& b = binding_.nodes()[item.node];
    const Range& r = ranges[item.node];
    uint64_t sinks = 0;
    for (size_t i = 0; i < b.node->out.size(); ++i)
      if (b.node->out[i]->sink) sinks |= 1ull << i;
    for (int k = 0; k < 2; ++k) {
      gestalt_call call{};
      call.struct_size = sizeof(call);
      call.in = frame_.data() + r.in;
      call.out = frame_.data() + r.out;
      call.accumulate = k == 1 ? sinks : 0;
      call.host = b.host;
      issues_[k].calls.push_back(call);
      issues_[k].steps.push_back({b.kernel->run, b.state, &issues_[k].calls.back(),
                                  static_cast<uint32_t>(b.node->in.size()), static_cast<uint32_t>(b.node->out.size()),
                                  b.workspace_bytes, item.node});
    }
  }
  // In one run the first node that reaches a sink writes it, later ones add.
  std::unordered_map<const Value*, bool> written;
  size_t call = 0;
  for (const Schedule::Item& item : schedule_.items) {
    if (item.kind != Schedule::Kind::kNode) continue;
    const Node& n = *binding_.nodes()[item.node].node;
    for (size_t i = 0; i < n.out.size(); ++i) {
      if (!n.out[i]->sink) continue;
      if (std::exchange(written[n.out[i]->sink], true)) issues_[0].calls[call].accumulate |= 1ull << i;
    }
    ++call;
  }
}

void Executable::attach(const std::vector<void*>& arenas) {
  if (arenas.size() < arenas_.size())
    fail(GESTALT_INTERNAL, "[arenas] got {}, expected one for each of {} streams", arenas.size(), arenas_.size());
  arenas_.assign(arenas.begin(), arenas.begin() + static_cast<std::ptrdiff_t>(arenas_.size()));
  update_pointers();
}

void Executable::bind_input(const std::string& name, void* data) {
  const Value* v = program_->find_input(name);
  if (!v) return;
  inputs_[v] = data;
  update_pointers();
}

void Executable::update_pointers() {
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value* v = values_[i];
    const Value* root = v->sink ? v->sink : v->base ? v->base : v;
    char* data = nullptr;
    if (auto in = inputs_.find(root); in != inputs_.end()) {
      data = static_cast<char*>(in->second);
    } else if (auto place = plan_.places.find(root); place != plan_.places.end()) {
      char* arena = static_cast<char*>(arenas_[static_cast<size_t>(place->second.stream)]);
      data = arena ? arena + place->second.offset : nullptr;
    }
    if (data) data += program_->dims().value(v->offset) * static_cast<int64_t>(dtype_size(v->type.dtype));
    tensors_[i].view.data = data;
  }
  size_t call = 0;
  for (const Schedule::Item& item : schedule_.items) {
    if (item.kind != Schedule::Kind::kNode) continue;
    const MemoryPlan::Place& w = plan_.workspaces[item.node];
    if (w.bytes > 0 && arenas_[static_cast<size_t>(w.stream)]) {
      auto at = reinterpret_cast<uintptr_t>(arenas_[static_cast<size_t>(w.stream)]) + w.offset;
      const uint64_t align = binding_.nodes()[item.node].workspace_align;
      at = (at + align - 1) / align * align;
      for (Issue& issue : issues_) issue.calls[call].workspace = reinterpret_cast<void*>(at);
    }
    ++call;
  }
}

void Executable::update_shapes() {
  const DimTable& dims = program_->dims();
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value* v = values_[i];
    for (int k = 0; k < v->type.ndim; ++k) {
      tensors_[i].shape[k] = dims.value(v->type.shape[static_cast<size_t>(k)]);
      tensors_[i].strides[k] = dims.value(v->strides[static_cast<size_t>(k)]);
    }
  }
}

void Executable::set_dims(const std::vector<std::pair<std::string, int64_t>>& sizes) {
  for (const auto& [name, size] : sizes) program_->dims().set(name, size);
  update_shapes();
  update_pointers();
  prepare_for_sizes();
}

void Executable::prepare_for_sizes() {
  for (Issue& issue : issues_) {
    for (Step& s : issue.steps) {
      if (!s.call) continue;
      const BoundNode& b = binding_.nodes()[s.node];
      if (b.kernel->flags & GESTALT_KERNEL_ANY_SHAPE) continue;
      std::vector<int64_t> key;
      bool at_max = true;
      auto see = [&](const Value* v) {
        for (int k = 0; v && k < v->type.ndim; ++k) {
          const int64_t d = v->type.shape[static_cast<size_t>(k)];
          if (d >= 0) continue;
          key.push_back(program_->dims().value(d));
          at_max &= key.back() == program_->dims().max(d);
        }
      };
      for (const Value* v : b.node->in) see(v);
      for (const Value* v : b.node->out) see(v);
      if (at_max) {
        s.state = b.state;
        continue;
      }
      auto it = other_sizes_.find({s.node, key});
      if (it == other_sizes_.end()) {
        uint64_t bytes = 0, align = 1;
        void* state = prepare_kernel(*program_, b, device_, require_, false, &bytes, &align);
        if (bytes > b.workspace_bytes || align > b.workspace_align) {
          if (b.kernel->destroy && state) b.kernel->destroy(state);
          fail(GESTALT_INTERNAL, "[{} at {}] needs a workspace of {} bytes aligned to {} for a smaller size than planned, "
               "expected at most {} and {}", b.node->op->name(), b.node->path, bytes, align, b.workspace_bytes,
               b.workspace_align);
        }
        it = other_sizes_.emplace(std::pair(s.node, key), State{state, b.kernel}).first;
      }
      s.state = it->second.state;
    }
  }
}

void Executable::bind_streams(const std::vector<Stream>& streams) {
  if (streams.size() < static_cast<size_t>(schedule_.num_streams))
    fail(GESTALT_INTERNAL, "[streams] got {}, expected {}", streams.size(), schedule_.num_streams);
  for (EventStep& e : event_steps_) e.stream = &streams[static_cast<size_t>(e.stream_index)];
  size_t call = 0;
  for (const Schedule::Item& item : schedule_.items) {
    if (item.kind != Schedule::Kind::kNode) continue;
    for (Issue& issue : issues_) issue.calls[call].stream = streams[static_cast<size_t>(item.stream)].get();
    ++call;
  }
  streams_bound_ = &streams;
}

gestalt_status* Executable::run_event(void* state, const gestalt_call*) {
  auto* e = static_cast<EventStep*>(state);
  if (e->record)
    e->device->record(*e->event, *e->stream);
  else
    e->device->wait(*e->event, *e->stream);
  return nullptr;
}

void Executable::raise(gestalt_status* status, const Step& s) const {
  const Node& n = *binding_.nodes()[s.node].node;
  check(nullptr, status, fmt::format("{} at {}", n.op->name(), n.path));
  fail(GESTALT_INTERNAL, "[{}] a status without an error", n.op->name());
}

void Executable::run_eager(const std::vector<Stream>& streams, bool accumulate, bool finite) {
  bind_streams(streams);
  for (const Step& s : issues_[accumulate ? 1 : 0].steps) {
    gestalt_status* status = s.call ? launch(s) : s.run(s.state, nullptr);
    if (status) raise(status, s);
    if (!s.call) continue;
    const Node& n = *binding_.nodes()[s.node].node;
    try {
      device_.sync();
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("[{} at {}] {}", n.op->name(), n.path, e.message()));
    }
    if (finite) check_finite(n);
  }
}

void Executable::run_timed(const std::vector<Stream>& streams, bool accumulate, std::vector<NodeTime>& times) {
  using Clock = std::chrono::steady_clock;
  auto ns = [](Clock::duration d) { return std::chrono::duration_cast<std::chrono::nanoseconds>(d).count(); };
  bind_streams(streams);
  device_.sync();
  for (const Step& s : issues_[accumulate ? 1 : 0].steps) {
    const Clock::time_point begin = Clock::now();
    gestalt_status* status = s.call ? launch(s) : s.run(s.state, nullptr);
    if (status) raise(status, s);
    if (!s.call) continue;
    device_.sync();
    times.push_back({&binding_.nodes()[s.node], ns(begin.time_since_epoch()), ns(Clock::now() - begin)});
  }
}

void Executable::check_finite(const Node& n) {
  for (const Value* v : n.out) {
    if (!is_float(v->type.dtype)) continue;
    const Tensor& t = tensor(v);
    const int64_t count = num_elements(t.view);
    if (count == 0) continue;
    std::vector<char> host(num_bytes(t.view));
    device_.copy_to_host(host.data(), t.view.data, host.size());
    if (const int64_t i = first_not_finite(host.data(), t.dtype(), host.size()); i >= 0)
      fail(GESTALT_VALIDATION, "[{} at {}] output '{}' element {} is {}, expected a finite number ({})", n.op->name(),
           n.path, n.op->schema.output(v->output).name, i, float_at(host.data(), t.dtype(), i), region_name(n.region));
  }
}

const Tensor& Executable::output(const std::string& name) const {
  auto it = program_->outputs.find(name);
  if (it == program_->outputs.end()) fail(GESTALT_INTERNAL, "[{}] is not an output of the program", name);
  return *tensor_of_.at(it->second);
}

bool Executable::capturable(std::string* why_not) const {
  if (!device_.can_capture()) {
    *why_not = "the device cannot capture";
    return false;
  }
  for (const BoundNode& b : binding_.nodes()) {
    if (b.kernel->flags & GESTALT_KERNEL_CAPTURABLE && !(b.node->op->flags & GESTALT_OP_HOST_READ)) continue;
    *why_not = fmt::format("{} at {} cannot be captured", b.node->op->name(), b.node->path);
    return false;
  }
  return true;
}

}  // namespace gestalt::core

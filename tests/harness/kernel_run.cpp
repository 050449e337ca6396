#include "tests/harness/kernel_run.h"

#include <deque>

#include "core/base/host.h"
#include "core/runtime/parallel.h"
#include "tests/harness/allocations.h"
#include "tests/harness/device_copies.h"

namespace gestalt::harness {

using namespace core;

PreparedKernel::PreparedKernel(const Environment& e, const KernelRef& ref, const OpDef& op, const Attrs& attrs,
                               const std::vector<const gestalt_view*>& in, const std::vector<const gestalt_view*>& out,
                               uint64_t accumulate)
    : ref_(ref), op_(op.name()) {
  std::deque<Tensor> tensors;  // as in a real plan: no data
  std::vector<const gestalt_view*> plan_in;
  std::vector<gestalt_view*> plan_out;
  auto without_data = [&](const gestalt_view* v) -> gestalt_view* {
    if (!v) return nullptr;
    Tensor& t = tensors.emplace_back(*v);
    t.view.data = nullptr;
    return &t.view;
  };
  for (const gestalt_view* v : in) plan_in.push_back(without_data(v));
  for (const gestalt_view* v : out) plan_out.push_back(without_data(v));
  const AttrArray array(attrs);
  gestalt_plan plan{};
  plan.struct_size = sizeof plan;
  plan.op = str_of(op_);
  plan.path = str_of("harness");
  plan.in = plan_in.data();
  plan.num_in = plan_in.size();
  plan.out = plan_out.data();
  plan.num_out = plan_out.size();
  plan.attrs = array.data();
  plan.num_attrs = array.size();
  plan.device_type = e.tested().device->type();
  plan.device_id = e.tested().device->id();
  plan.accumulate = accumulate;
  plan.workspace_align = 1;
  if (gestalt_status* status = ref.kernel->prepare(ref.host, &plan)) throw take(status);
  state_ = plan.state;
  workspace_bytes_ = plan.workspace_size;
  workspace_align_ = std::max<uint64_t>(plan.workspace_align, 1);
}

PreparedKernel::~PreparedKernel() {
  if (ref_.kernel->destroy && state_) ref_.kernel->destroy(state_);
}

void PreparedKernel::run(const std::vector<const gestalt_view*>& in, const std::vector<const gestalt_view*>& out,
                         uint64_t accumulate, void* workspace, void* stream) const {
  gestalt_call call{};
  call.struct_size = sizeof call;
  call.in = in.data();
  call.out = out.data();
  call.accumulate = accumulate;
  call.workspace = workspace;
  call.stream = stream;
  call.host = ref_.host;
  if (gestalt_status* status = ref_.kernel->run(state_, &call)) throw take(status);
}

RunResult run_kernel(const Environment& e, const KernelRef& ref, const OpDef& op, const Case& c, const Inputs& inputs,
                     const RunOptions& options) {
  set_num_threads(options.threads);
  std::vector<OutType> types = infer_outputs(e, op, c, inputs.dtype);
  uint64_t sinks = 0;
  for (size_t i = 0; options.into_sinks && i < types.size(); ++i) {
    if (!op.schema.output(i).accumulates) continue;
    types[i].dtype = accumulation_dtype(types[i].dtype);
    sinks |= 1ull << i;
  }

  std::deque<GuardedTensor> tensors;
  std::vector<GuardedTensor*> in_tensors, out_tensors;
  std::vector<const gestalt_view*> in, out;
  auto make = [&](uint32_t dtype, const Shape& shape, Layout layout, const Values* values) {
    if (!layout_fits(layout, shape)) layout = Layout::kContiguous;
    return &tensors.emplace_back(dtype, shape, layout, values);
  };
  for (size_t i = 0; i < c.in.size(); ++i) {
    const Arg& a = c.in[i];
    Layout layout = options.in;
    if (layout == Layout::kBroadcast && (a.plain || op.schema.input(i).mutated)) layout = Layout::kContiguous;
    in_tensors.push_back(a.present ? make(dtype_of(a, inputs.dtype), a.shape, layout, &inputs.in[i]) : nullptr);
    in.push_back(a.present ? &in_tensors.back()->tensor().view : nullptr);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (i == 0 && options.overlay) {
      out_tensors.push_back(in_tensors[*options.overlay]);
    } else {
      const Values* start = options.add_to && (sinks >> i & 1) ? &(*options.add_to)[i] : nullptr;
      out_tensors.push_back(make(types[i].dtype, types[i].shape, options.out, start));
    }
    out.push_back(&out_tensors.back()->tensor().view);
  }
  const uint64_t accumulate = options.add_to ? sinks : 0;

  std::optional<PreparedKernel> kernel;
  if (options.planned) {
    std::deque<Tensor> planned;
    std::vector<const gestalt_view*> plan_in, plan_out;
    for (const Arg& a : options.planned->in)
      plan_in.push_back(a.present
                            ? &planned.emplace_back(dtype_of(a, inputs.dtype), std::span<const int64_t>(a.shape)).view
                            : nullptr);
    for (const OutType& t : infer_outputs(e, op, *options.planned, inputs.dtype))
      plan_out.push_back(&planned.emplace_back(t.dtype, std::span<const int64_t>(t.shape)).view);
    kernel.emplace(e, ref, op, inputs.attrs, plan_in, plan_out, 0);
  } else {
    kernel.emplace(e, ref, op, inputs.attrs, in, out, sinks);
  }
  GuardedBytes workspace(kernel->workspace_bytes(), kernel->workspace_align(), options.workspace_fill);
  Device& device = *e.tested().device;
  DeviceCopies copies(device);
  std::deque<Tensor> there;
  void* scratch = workspace.data();
  if (!device.host_visible()) {
    auto move = [&](const std::vector<GuardedTensor*>& from, std::vector<const gestalt_view*>& views) {
      for (size_t i = 0; i < from.size(); ++i) {
        if (!from[i]) continue;
        Tensor& t = there.emplace_back(from[i]->tensor());
        t.on(device.type(), device.id());
        t.view.data = copies.put(from[i]->memory(), t.view.data);
        views[i] = &t.view;
      }
    };
    move(in_tensors, in);
    move(out_tensors, out);
    if (scratch) scratch = copies.put(workspace.memory(), scratch);
  }
  const uint64_t before = allocations();
  kernel->run(in, out, accumulate, scratch, e.tested().streams[0].get());
  const uint64_t allocated = allocations() - before;
  if (!device.host_visible()) copies.take_back();

  RunResult r;
  auto broken = [&](const std::string& what) {
    if (!what.empty()) r.broken += (r.broken.empty() ? "" : "; ") + what;
  };
  auto read = [&](const GuardedTensor& t) {
    r.out.push_back(t.values());
    r.dtypes.push_back(t.tensor().dtype());
    const auto bytes = t.elements();
    r.bits.insert(r.bits.end(), bytes.begin(), bytes.end());
  };
  if (allocated) broken(fmt::format("allocated {} times in run", allocated));
  if (!workspace.guards_intact()) broken("wrote outside its workspace");
  for (size_t i = 0; i < out_tensors.size(); ++i) {
    read(*out_tensors[i]);
    if (const std::string g = out_tensors[i]->guards(); !g.empty())
      broken(fmt::format("output {} {}", op.schema.output(i).name, g));
  }
  for (size_t i = 0; i < in_tensors.size(); ++i) {
    if (!in_tensors[i]) continue;
    const std::string& name = op.schema.input(i).name;
    if (const std::string g = in_tensors[i]->guards(); !g.empty()) broken(fmt::format("input {} {}", name, g));
    if (op.schema.input(i).mutated)
      read(*in_tensors[i]);
    else if (!in_tensors[i]->unchanged() && !(options.overlay && *options.overlay == i))
      broken(fmt::format("changed its input {}", name));
  }
  return r;
}

}  // namespace gestalt::harness

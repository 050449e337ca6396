// Ops that come from plugins: their C callbacks behind the same OpDef as the core ops.

#include "core/base/host.h"
#include "core/ops/op.h"

namespace gestalt::core {

namespace {

// Borrowed views over symbolic types; shapes may hold dimension handles.
struct PlanViews {
  std::vector<std::array<int64_t, GESTALT_MAX_NDIM>> shapes, strides;
  std::vector<gestalt_view> views;
  std::vector<const gestalt_view*> in;
  std::vector<gestalt_view*> out;
};

void infer_by_plugin(InferContext& c, const gestalt_op* op, const gestalt_host* host) {
  // A variadic output cannot be sized by the callback in this version of the ABI.
  const size_t num_in = c.num_in(), num_out = c.op().schema.outputs.size();
  PlanViews p;
  p.shapes.resize(num_in + num_out);
  p.strides.resize(num_in + num_out);
  p.views.resize(num_in + num_out);
  for (size_t i = 0; i < num_in + num_out; ++i) {
    gestalt_view& v = p.views[i];
    v = {nullptr, GESTALT_DEVICE_CPU, 0, 0, 0, p.shapes[i].data(), p.strides[i].data(), 0};
    if (i >= num_in) {
      p.out.push_back(&v);
    } else if (!c.has(i)) {
      p.in.push_back(nullptr);
    } else {
      p.shapes[i] = c.in(i).shape;
      p.strides[i] = contiguous_strides(c.in(i), c.dims());
      v.ndim = c.in(i).ndim;
      v.dtype = c.in(i).dtype;
      p.in.push_back(&v);
    }
  }
  const AttrArray attrs(c.attrs());
  gestalt_plan plan{};
  plan.struct_size = sizeof(plan);
  plan.op = str_of(c.op().name());
  plan.path = str_of(c.path());
  plan.in = p.in.data();
  plan.num_in = num_in;
  plan.out = p.out.data();
  plan.num_out = num_out;
  plan.attrs = attrs.data();
  plan.num_attrs = attrs.size();
  plan.device_type = GESTALT_DEVICE_CPU;
  plan.dims = c.dims().abi();
  check(host, op->infer(host, &plan), fmt::format("{}{}{}", c.op().name(), c.path().empty() ? "" : " at ", c.path()));
  for (size_t i = 0; i < num_out; ++i) {
    const gestalt_view& v = p.views[num_in + i];
    if (v.ndim < 0 || v.ndim > GESTALT_MAX_NDIM || !is_dtype(v.dtype))
      c.error(fmt::format("infer left output {} with {} dimensions and dtype {:#x}, expected 0 to {} and a known dtype", i,
                          v.ndim, v.dtype, GESTALT_MAX_NDIM));
    TensorType t;
    t.dtype = v.dtype;
    t.ndim = v.ndim;
    for (int k = 0; k < v.ndim; ++k) {
      t.shape[static_cast<size_t>(k)] = p.shapes[num_in + i][static_cast<size_t>(k)];
      c.dims().max(t.dim(k));  // throws where a negative size is no handle
    }
    c.out(t);
  }
}

using ComposeCallback = decltype(gestalt_op::vjp);

void compose_by_plugin(ComposeContext& c, const gestalt_op* op, ComposeCallback callback, const gestalt_host* host,
                       bool is_vjp, size_t num_outputs) {
  const AttrArray attrs(c.attrs());
  std::vector<Value*> result(is_vjp ? c.inputs().size() : num_outputs);
  gestalt_compose_call call{};
  call.struct_size = sizeof(call);
  call.build = c.recorder().abi();
  call.in = c.inputs().data();
  call.num_in = c.inputs().size();
  call.out = is_vjp ? c.outputs().data() : nullptr;
  call.grad_out = is_vjp ? c.grads().data() : nullptr;
  call.num_out = is_vjp ? c.outputs().size() : num_outputs;
  call.needs = c.needs_mask();
  call.result = result.data();
  call.attrs = attrs.data();
  call.num_attrs = attrs.size();
  call.host = host;
  check(host, callback(op->self, &call), view_of(op->schema).substr(0, view_of(op->schema).find('(')));
  c.result = std::move(result);
}

}  // namespace

void OpRegistry::add_plugin_op(const gestalt_op* op, const gestalt_host* host, const std::string& owner) {
  OpDef def;
  def.text = std::string(view_of(op->schema));
  try {
    def.schema = parse_schema(def.text);
  } catch (const Error& e) {
    throw Error(GESTALT_CONFIG_ERROR, fmt::format("plugin '{}': {}", owner, e.message()));
  }
  def.owner = owner;
  def.group = "plugin";
  def.flags = op->flags;
  if (!op->infer) fail(GESTALT_CONFIG_ERROR, "plugin '{}': op '{}' has no infer function", owner, def.name());
  def.infer = [op, host](InferContext& c) { infer_by_plugin(c, op, host); };
  const size_t num_outputs = def.schema.outputs.size();
  if (op->vjp)
    def.vjp = [op, host, num_outputs](ComposeContext& c) {
      compose_by_plugin(c, op, op->vjp, host, true, num_outputs);
    };
  if (op->decompose)
    def.decompose = [op, host, num_outputs](ComposeContext& c) {
      compose_by_plugin(c, op, op->decompose, host, false, num_outputs);
    };
  add(std::move(def));
}

}  // namespace gestalt::core

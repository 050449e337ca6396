#include "core/program/builder.h"

#include "core/base/host.h"
#include "core/base/text.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

extern const gestalt_build_api kBuildApi;  // build_abi.cpp

TensorType StateLayout::type_of(const StateDecl& state) const {
  TensorType t(state.type.dtype, {});
  if (state.scope == GESTALT_STATE_PER_TOKEN)
    t = TensorType(state.type.dtype, {num_blocks, block_tokens});
  else
    t = TensorType(state.type.dtype, {num_slots});
  for (int i = 0; i < state.type.ndim; ++i) t.shape[static_cast<size_t>(t.ndim++)] = state.type.dim(i);
  return t;
}

Builder::Builder(Program& program, const std::vector<BatchField>& fields, int phase, const StateLayout& states)
    : target(&program.nodes), program_(program), phase_(phase), states_(states), abi_{{&kBuildApi}, this} {
  for (const BatchField& f : fields) fields_.emplace(f.name, f.type);
  fields_.emplace("step_scalars", TensorType(GESTALT_F32, {8}));
  fields_.emplace("step_seed", TensorType(GESTALT_I32, {4}));
}

Builder& Builder::of(gestalt_build* b) { return *reinterpret_cast<Abi*>(b)->self; }

std::vector<Value*> Builder::apply(std::string_view name, const std::vector<Value*>& in, const Attrs& given) {
  const OpDef& op = program_.ops().get(name);
  std::vector<Value*> inputs = in;
  const bool variadic = op.schema.max_inputs() == SIZE_MAX;
  while (!variadic && inputs.size() > op.schema.min_inputs() && !inputs.back()) inputs.pop_back();
  if (inputs.size() < op.schema.min_inputs() || inputs.size() > op.schema.max_inputs())
    fail(GESTALT_INVALID_ARGUMENT, "[{} at {}] got {} inputs, expected '{}'", name, path, inputs.size(), op.text);
  if (!variadic) inputs.resize(op.schema.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i] && !op.schema.input(i).optional)
      fail(GESTALT_INVALID_ARGUMENT, "[{} at {}] input '{}' is absent, expected '{}'", name, path,
           op.schema.input(i).name, op.text);
  Attrs attrs = op.schema.complete(given);
  if (op.group == "collective") {
    auto axis = program_.axis_sizes.find(attrs.str("axis"));
    attrs.set("ranks", axis == program_.axis_sizes.end() ? int64_t{1} : axis->second);
  }
  if (op.view) return apply_view(op, inputs[0], attrs);

  InferContext infer(op, path, inputs, attrs, program_.dims());
  op.infer(infer);
  const size_t declared = op.schema.outputs.size();
  if (infer.outputs.size() != declared && !(declared > 0 && op.schema.outputs.back().variadic))
    fail(GESTALT_INTERNAL, "[{}] infer made {} outputs, expected '{}'", name, infer.outputs.size(), op.text);
  Node* node = program_.new_node(op);
  node->in = std::move(inputs);
  node->attrs = std::move(attrs);
  node->path = path;
  node->region = region;
  for (size_t i = 0; i < infer.outputs.size(); ++i) {
    Value* v = program_.new_value(infer.outputs[i]);
    v->producer = node;
    v->output = i;
    node->out.push_back(v);
  }
  target->push_back(node);
  return node->out;
}

std::vector<Value*> Builder::apply_view(const OpDef& op, Value* x, const Attrs& attrs) {
  std::vector<Value*> in = {x};
  std::vector<ViewType> views;
  InferContext infer(op, path, in, attrs, program_.dims());
  if (!op.view(infer, views)) {
    in[0] = this->op("core.copy", {x});
    views.clear();
    if (!op.view(infer, views)) fail(GESTALT_INTERNAL, "[{}] no view of a contiguous tensor", op.name());
  }
  Node* node = program_.new_node(op);
  node->in = in;
  node->attrs = attrs;
  node->path = path;
  node->region = region;
  for (size_t i = 0; i < views.size(); ++i) {
    Value* v = program_.new_value(views[i].type);
    v->strides = views[i].strides;
    v->offset = views[i].offset;
    v->base = in[0]->root();
    v->producer = node;
    v->output = i;
    node->out.push_back(v);
  }
  target->push_back(node);
  return node->out;
}

Value* Builder::batch(std::string_view name, bool required) {
  if (states_.num_blocks > 0 && name == "seq_starts" && current() && current()->states.empty() && without_state_.empty())
    without_state_ = path;
  auto it = fields_.find(name);
  if (it != fields_.end()) return program_.input("batch:" + it->first, it->second);
  if (!required) return nullptr;
  std::vector<std::string> names;
  std::string list;
  for (const auto& [n, t] : fields_) {
    names.push_back(n);
    list += (list.empty() ? "" : ", ") + n;
  }
  const std::string near = nearest(name, names);
  fail(GESTALT_CONFIG_ERROR, "[{}] needs the batch field '{}', which the data set does not make; it makes: {}{}", path,
       name, list, near.empty() ? "" : "; nearest: " + near);
}

Value* Builder::param(const Parameter& p) { return program_.input("param:" + p.path, p.type); }

Value* Builder::state(const StateDecl& s) {
  return states_.num_blocks > 0 ? program_.input("state:" + s.path, states_.type_of(s)) : nullptr;
}

std::vector<Value*> Builder::emit(const ModuleInstance& module, const std::vector<Value*>& in) {
  std::string outer = std::exchange(path, module.path);
  modules_.push_back(&module);
  std::vector<Value*> out(64);
  uint64_t num_out = out.size();
  gestalt_status* status = module.table->emit(module.self, abi(), in.data(), in.size(), out.data(), &num_out);
  modules_.pop_back();
  path = std::move(outer);
  check(module.host, status);
  if (num_out > out.size()) fail(GESTALT_INVALID_ARGUMENT, "[{}] emit made {} outputs, expected at most 64", module.path, num_out);
  out.resize(num_out);
  for (Value* v : out)
    if (!v) fail(GESTALT_INVALID_ARGUMENT, "[{}] emit returned an empty tensor", module.path);
  return out;
}

void Builder::loss(const std::string& name, Value* sum, Value* weight) {
  metric(name, sum, weight);
  program_.losses.push_back({name, sum, weight});
}

void Builder::metric(const std::string& name, Value* sum, Value* weight) {
  if (!sum || !weight || sum->type.ndim != 0 || weight->type.ndim != 0)
    fail(GESTALT_INVALID_ARGUMENT, "[{}] loss or metric '{}': sum is {} and weight is {}, expected scalars", path, name,
         program_.value_text(sum), program_.value_text(weight));
  for (const char* part : {"sum", "weight"}) {
    const std::string input = "metric:" + name + "." + part;
    if (program_.find_input(input)) fail(GESTALT_INVALID_ARGUMENT, "[{}] metric '{}' is reported twice", path, name);
    sink_by_cast(part[0] == 's' ? sum : weight, program_.input(input, TensorType(GESTALT_F64, {})));
  }
}

void Builder::sink_by_cast(Value* v, Value* sink) {
  Value* y = op("core.cast", {v}, {{"dtype", std::string(dtype_name(sink->type.dtype))}});
  y->sink = sink;
}

}  // namespace gestalt::core

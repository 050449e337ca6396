#include "core/program/program.h"

#include "core/tensor/dtype.h"

namespace gestalt::core {

const char* region_name(Region region) {
  switch (region) {
    case Region::kForward: return "forward";
    case Region::kBackward: return "backward";
    case Region::kRecompute: return "recompute";
    case Region::kUpdate: return "update";
  }
  return "?";
}

Value* Program::new_value(const TensorType& type) {
  Value& v = values_.emplace_back();
  v.id = static_cast<uint32_t>(values_.size() - 1);
  v.type = type;
  v.strides = contiguous_strides(type, *dims_);
  return &v;
}

Value* Program::input(const std::string& name, const TensorType& type) {
  auto it = inputs_.find(name);
  if (it != inputs_.end()) {
    if (!(it->second->type == type))
      fail(GESTALT_INTERNAL, "[{}] used as {} and as another type", name, value_text(it->second));
    return it->second;
  }
  Value* v = new_value(type);
  v->name = name;
  inputs_.emplace(name, v);
  return v;
}

Value* Program::find_input(const std::string& name) const {
  auto it = inputs_.find(name);
  return it == inputs_.end() ? nullptr : it->second;
}

Node* Program::new_node(const OpDef& op) {
  Node& n = node_storage_.emplace_back();
  n.id = static_cast<uint32_t>(node_storage_.size() - 1);
  n.op = &op;
  return &n;
}

std::string Program::value_text(const Value* v) const {
  if (!v) return "-";
  std::string s = v->name.empty() ? "%" + std::to_string(v->id) : v->name;
  s += ":" + std::string(dtype_name(v->type.dtype)) + "[";
  for (int i = 0; i < v->type.ndim; ++i) s += (i ? "," : "") + dims_->text(v->type.dim(i));
  s += "]";
  if (v->sink) s += "=>" + v->sink->name;
  return s;
}

std::string Program::text() const {
  std::string out;
  for (const Node* n : nodes) {
    std::string line;
    for (const Value* v : n->out) line += (line.empty() ? "" : ", ") + value_text(v);
    if (!line.empty()) line += " = ";
    line += n->op->name() + "(";
    for (size_t i = 0; i < n->in.size(); ++i) line += (i ? ", " : "") + value_text(n->in[i]);
    const std::string attrs = n->attrs.text();
    if (!attrs.empty()) line += (n->in.empty() ? "" : "; ") + attrs;
    out += fmt::format("{}  # {} {}\n", line + ")", region_name(n->region), n->path);
  }
  return out;
}

uint64_t Program::max_bytes(const Value* v) const {
  uint64_t bytes = dtype_size(v->type.dtype);
  for (int i = 0; i < v->type.ndim; ++i)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dims_->max(v->type.dim(i))), &bytes))
      fail(GESTALT_INVALID_ARGUMENT, "[{}] size overflows 64 bits", value_text(v));
  return bytes;
}

std::vector<uint32_t> count_uses(const Program& program) {
  uint32_t top = 0;
  auto see = [&](const Value* v) { top = std::max(top, v ? v->id + 1 : 0); };
  for (const Node* n : program.nodes) {
    for (const Value* v : n->in) see(v);
    for (const Value* v : n->out) see(v);
  }
  for (const auto& [name, v] : program.outputs) see(v);
  std::vector<uint32_t> uses(top, 0);
  for (const Node* n : program.nodes)
    for (const Value* v : n->in)
      if (v) ++uses[v->id];
  for (const auto& [name, v] : program.outputs) ++uses[v->id];
  return uses;
}

}  // namespace gestalt::core

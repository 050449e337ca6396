#include "core/ops/op.h"

#include "core/base/host.h"
#include "core/base/text.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

void InferContext::error(std::string_view message) const {
  fail(GESTALT_INVALID_ARGUMENT, "[{}{}{}] {}", op_.name(), path_.empty() ? "" : " at ", path_, message);
}

std::string InferContext::shape_text(const TensorType& t) const {
  std::string s = std::string(dtype_name(t.dtype)) + "[";
  for (int i = 0; i < t.ndim; ++i) s += (i ? ", " : "") + dims_.text(t.dim(i));
  return s + "]";
}

void InferContext::expect_ndim(size_t i, int ndim) const {
  if (in(i).ndim != ndim)
    error(fmt::format("{} has shape {}, expected {} dimensions", op_.schema.input(i).name, shape_text(in(i)), ndim));
}

void InferContext::expect_float(size_t i) const {
  if (!is_float(in(i).dtype))
    error(fmt::format("{} has dtype {}, expected f64, f32, bf16 or f16", op_.schema.input(i).name,
                      dtype_name(in(i).dtype)));
}

void InferContext::expect_integer(size_t i) const {
  if (in(i).dtype != GESTALT_I32 && in(i).dtype != GESTALT_I64)
    error(fmt::format("{} has dtype {}, expected i32 or i64", op_.schema.input(i).name, dtype_name(in(i).dtype)));
}

void InferContext::expect_dtype(size_t i, uint32_t dtype) const {
  if (in(i).dtype != dtype)
    error(fmt::format("{} has dtype {}, expected {}", op_.schema.input(i).name, dtype_name(in(i).dtype),
                      dtype_name(dtype)));
}

void InferContext::expect_dim(size_t i, int dim, int64_t size) const {
  if (in(i).dim(dim) != size)
    error(fmt::format("{} has shape {}, expected {} in dimension {}", op_.schema.input(i).name, shape_text(in(i)),
                      dims_.text(size), dim));
}

void InferContext::expect_same(size_t i, size_t j) const {
  if (!(in(i) == in(j)))
    error(fmt::format("{} is {} and {} is {}, expected equal types", op_.schema.input(i).name, shape_text(in(i)),
                      op_.schema.input(j).name, shape_text(in(j))));
}

OpRegistry::OpRegistry() {
  add_view_ops(*this);
  add_movement_ops(*this);
  add_element_ops(*this);
  add_activation_ops(*this);
  add_reduce_ops(*this);
  add_norm_ops(*this);
  add_matrix_ops(*this);
  add_embedding_ops(*this);
  add_attention_ops(*this);
  add_generation_ops(*this);
  add_random_ops(*this);
  add_index_ops(*this);
  add_position_ops(*this);
  add_collective_ops(*this);
  add_composite_ops(*this);
  add_update_ops(*this);
}

void OpRegistry::add(OpDef def) {
  auto it = ops_.find(def.name());
  if (it != ops_.end())
    fail(GESTALT_CONFIG_ERROR, "[{}] defined twice, by '{}' and by '{}'; only the owner of a namespace defines ops in it",
         def.name(), it->second->owner, def.owner);
  std::string name = def.name();
  ops_.emplace(std::move(name), std::make_unique<OpDef>(std::move(def)));
}

const OpDef* OpRegistry::find(std::string_view name) const {
  auto it = ops_.find(name);
  return it == ops_.end() ? nullptr : it->second.get();
}

const OpDef& OpRegistry::get(std::string_view name) const {
  if (const OpDef* op = find(name)) return *op;
  std::vector<std::string> names;
  for (const auto& [n, def] : ops_) names.push_back(n);
  const std::string near = nearest(name, names);
  fail(GESTALT_INVALID_ARGUMENT, "[{}] no such op{}; is its plugin named in [plugins] use?", name,
       near.empty() ? "" : "; nearest: " + near);
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> v;
  for (const auto& [n, def] : ops_) v.push_back(def.get());
  return v;
}

void add_core_ops(OpRegistry& registry, std::vector<CoreOp> ops) {
  for (CoreOp& o : ops) {
    OpDef def;
    def.schema = parse_schema(o.schema);
    def.text = o.schema;
    def.owner = "core";
    def.group = o.group;
    def.flags = o.flags;
    def.infer = std::move(o.infer);
    def.vjp = std::move(o.vjp);
    def.decompose = std::move(o.decompose);
    def.view = std::move(o.view);
    registry.add(std::move(def));
  }
}

std::array<int64_t, GESTALT_MAX_NDIM> contiguous_strides(const TensorType& type, DimTable& dims) {
  std::array<int64_t, GESTALT_MAX_NDIM> s{};
  int64_t stride = 1;
  for (int i = type.ndim - 1; i >= 0; --i) {
    s[static_cast<size_t>(i)] = stride;
    stride = dims.mul(stride, type.dim(i));
  }
  return s;
}

bool is_contiguous(const TensorType& type, const std::array<int64_t, GESTALT_MAX_NDIM>& strides, DimTable& dims) {
  int64_t stride = 1;
  for (int i = type.ndim - 1; i >= 0; --i) {
    if (type.dim(i) != 1 && strides[static_cast<size_t>(i)] != stride) return false;
    stride = dims.mul(stride, type.dim(i));
  }
  return true;
}

int64_t numel(const TensorType& type, DimTable& dims) {
  int64_t n = 1;
  for (int i = 0; i < type.ndim; ++i) n = dims.mul(n, type.dim(i));
  return n;
}

}  // namespace gestalt::core

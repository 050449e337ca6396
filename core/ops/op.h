#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/ops/attrs.h"
#include "core/ops/dims.h"
#include "core/ops/schema.h"
#include "core/ops/value.h"
#include "core/tensor/dtype.h"
#include "gestalt/abi/build.h"

namespace gestalt::core {

// Records ops. Rules of ops (gradients, decompositions) are written against this; the program's builder implements it.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual std::vector<Value*> apply(std::string_view op, const std::vector<Value*>& in, const Attrs& attrs) = 0;
  virtual DimTable& dims() = 0;
  virtual gestalt_build* abi() = 0;
  Value* op(std::string_view name, const std::vector<Value*>& in, const Attrs& attrs = {}) {
    return apply(name, in, attrs).at(0);
  }
};

struct OpDef;

// What infer works on. Absent optional inputs are NULL.
class InferContext {
 public:
  InferContext(const OpDef& op, std::string_view path, const std::vector<Value*>& in, const Attrs& attrs, DimTable& dims)
      : op_(op), path_(path), in_(in), attrs_(attrs), dims_(dims) {}

  const OpDef& op() const { return op_; }
  std::string_view path() const { return path_; }
  size_t num_in() const { return in_.size(); }
  bool has(size_t i) const { return i < in_.size() && in_[i]; }
  const TensorType& in(size_t i) const { return in_[i]->type; }
  const std::vector<Value*>& inputs() const { return in_; }
  const Attrs& attrs() const { return attrs_; }
  DimTable& dims() const { return dims_; }
  void out(const TensorType& type) { outputs.push_back(type); }

  // Checks that name the input, its shape and what was expected.
  void expect_ndim(size_t i, int ndim) const;
  void expect_float(size_t i) const;
  void expect_integer(size_t i) const;
  void expect_dim(size_t i, int dim, int64_t size) const;
  void expect_dtype(size_t i, uint32_t dtype) const;
  void expect_same(size_t i, size_t j) const;  // dtype and shape
  [[noreturn]] void error(std::string_view message) const;
  std::string shape_text(const TensorType& t) const;

  std::vector<TensorType> outputs;

 private:
  const OpDef& op_;
  std::string_view path_;
  const std::vector<Value*>& in_;
  const Attrs& attrs_;
  DimTable& dims_;
};

// What vjp and decompose work on.
class ComposeContext {
 public:
  ComposeContext(Recorder& recorder, const std::vector<Value*>& in, const std::vector<Value*>& out,
                 const std::vector<Value*>& grad_out, uint64_t needs, const Attrs& attrs)
      : result(in.size()), recorder_(recorder), in_(in), out_(out), grad_out_(grad_out), needs_(needs), attrs_(attrs) {}

  Recorder& recorder() { return recorder_; }
  DimTable& dims() { return recorder_.dims(); }
  Value* in(size_t i) const { return i < in_.size() ? in_[i] : nullptr; }
  Value* out(size_t i) const { return out_[i]; }
  Value* grad(size_t i) const { return grad_out_[i]; }  // NULL where no gradient flows
  bool needs(size_t i) const { return i < in_.size() && in_[i] && (needs_ >> i & 1); }
  const std::vector<Value*>& inputs() const { return in_; }
  const std::vector<Value*>& outputs() const { return out_; }
  const std::vector<Value*>& grads() const { return grad_out_; }
  uint64_t needs_mask() const { return needs_; }
  const Attrs& attrs() const { return attrs_; }
  Value* op(std::string_view name, const std::vector<Value*>& in, const Attrs& attrs = {}) {
    return recorder_.op(name, in, attrs);
  }
  std::vector<Value*> ops(std::string_view name, const std::vector<Value*>& in, const Attrs& attrs = {}) {
    return recorder_.apply(name, in, attrs);
  }

  std::vector<Value*> result;  // vjp: gradients of the inputs; decompose: the outputs

 private:
  Recorder& recorder_;
  const std::vector<Value*>& in_;
  const std::vector<Value*>& out_;
  const std::vector<Value*>& grad_out_;
  uint64_t needs_;
  const Attrs& attrs_;
};

// The layout of one result of a view op.
struct ViewType {
  TensorType type;
  std::array<int64_t, GESTALT_MAX_NDIM> strides{};
  int64_t offset = 0;
};

using InferFn = std::function<void(InferContext&)>;
using ComposeFn = std::function<void(ComposeContext&)>;
// Returns false when the input's strides do not allow a view: the host copies it first.
using ViewFn = std::function<bool(InferContext&, std::vector<ViewType>&)>;

struct OpDef {
  Schema schema;
  std::string text;   // the schema as written
  std::string owner;  // plugin id; "core"
  std::string group;  // class for recomputation and reports: "norm", "activation", "attention", ...
  uint64_t flags = 0;
  InferFn infer;
  ComposeFn vjp, decompose;
  ViewFn view;  // set for view ops, which have no kernel
  const std::string& name() const { return schema.name; }
};

class OpRegistry {
 public:
  OpRegistry();  // with the core ops
  OpRegistry(const OpRegistry&) = delete;

  // A second definition of a name is an error naming both owners.
  void add(OpDef def);
  void add_plugin_op(const gestalt_op* op, const gestalt_host* host, const std::string& owner);
  const OpDef* find(std::string_view name) const;
  const OpDef& get(std::string_view name) const;  // an error with the nearest name
  std::vector<const OpDef*> all() const;

 private:
  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> ops_;
};

// Adds a core op. `group` as in OpDef.
struct CoreOp {
  const char* schema;
  const char* group;
  InferFn infer;
  ComposeFn vjp = nullptr;
  ComposeFn decompose = nullptr;
  ViewFn view = nullptr;
  uint64_t flags = GESTALT_OP_PURE;
};
void add_core_ops(OpRegistry& registry, std::vector<CoreOp> ops);

// The families of core ops, one file each.
void add_view_ops(OpRegistry&);
void add_movement_ops(OpRegistry&);
void add_element_ops(OpRegistry&);
void add_activation_ops(OpRegistry&);
void add_reduce_ops(OpRegistry&);
void add_norm_ops(OpRegistry&);
void add_matrix_ops(OpRegistry&);
void add_embedding_ops(OpRegistry&);
void add_attention_ops(OpRegistry&);
void add_generation_ops(OpRegistry&);
void add_random_ops(OpRegistry&);
void add_index_ops(OpRegistry&);
void add_position_ops(OpRegistry&);
void add_collective_ops(OpRegistry&);
void add_composite_ops(OpRegistry&);
void add_update_ops(OpRegistry&);

// Strides of a contiguous tensor; whether strides are those.
std::array<int64_t, GESTALT_MAX_NDIM> contiguous_strides(const TensorType& type, DimTable& dims);
bool is_contiguous(const TensorType& type, const std::array<int64_t, GESTALT_MAX_NDIM>& strides, DimTable& dims);
int64_t numel(const TensorType& type, DimTable& dims);

}  // namespace gestalt::core

// Rules and decompositions over a number of tokens that is only known when a step runs: every gradient has the type of
// its input, every decomposition the types of the op's outputs.
#include "core/program/builder.h"
#include "tests/catch_compat.hpp"

using namespace gestalt::core;
using List = std::vector<int64_t>;

namespace {

struct Recording {
  OpRegistry ops;
  DimTable dims;
  Program program{ops, dims};
  Builder b{program, {}, GESTALT_PHASE_TRAIN};
  int64_t t = dims.named("tokens", 64);

  Value* in(const TensorType& type) { return program.input("batch:" + std::to_string(program.inputs().size()), type); }
  Value* x(std::initializer_list<int64_t> shape) { return in(TensorType(GESTALT_BF16, shape)); }
  Value* wide(std::initializer_list<int64_t> shape) { return in(TensorType(GESTALT_F32, shape)); }
  Value* ids(std::initializer_list<int64_t> shape) { return in(TensorType(GESTALT_I32, shape)); }

  void check(const std::string& name, const std::vector<Value*>& inputs, const Attrs& attrs = {}) {
    INFO(name);
    const OpDef& op = ops.get(name);
    const Attrs full = op.schema.complete(attrs);
    const std::vector<Value*> out = b.apply(name, inputs, attrs), none;
    std::vector<Value*> grads;
    for (Value* y : out) grads.push_back(in(y->type));
    uint64_t needs = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] && is_float(inputs[i]->type.dtype)) needs |= uint64_t{1} << i;
    if (op.vjp) {
      ComposeContext c(b, inputs, out, grads, needs, full);
      op.vjp(c);
      for (size_t i = 0; i < c.result.size(); ++i)
        if (c.result[i]) CHECK(c.result[i]->type == inputs[i]->type);
    } else {
      REQUIRE(op.decompose);
      ComposeContext c(b, inputs, none, none, 0, full);
      op.decompose(c);
      REQUIRE(c.result.size() >= out.size());
      for (size_t i = 0; i < out.size(); ++i) CHECK(c.result[i]->type == out[i]->type);
    }
  }
};

}  // namespace

TEST_CASE("elementwise and row ops take a varying number of tokens") {
  Recording r;
  for (const char* op : {"abs", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "clamp", "relu2", "softplus",
                         "softmax", "cumsum", "logsumexp", "max"})
    r.check(std::string("core.") + op, {r.x({r.t, 8})});
  for (const char* op : {"swiglu", "geglu", "reglu"}) r.check(std::string("core.") + op, {r.x({r.t, 8})});
  r.check("core.softcap", {r.x({r.t, 8})}, {{"cap", 30.0}});
  r.check("core.bias_add", {r.x({r.t, 8}), r.x({8})});
  r.check("core.where", {r.in(TensorType(GESTALT_BOOL, {r.t, 8})), r.x({8}), r.x({r.t, 8})});
  r.check("core.topk", {r.x({r.t, 8})}, {{"k", int64_t{2}}});
  r.check("core.max", {r.x({8, r.t})});
}

TEST_CASE("a mean over a varying number of tokens has a gradient") {
  Recording r;
  for (const List& dims : {List{}, List{0}, List{1}}) r.check("core.mean", {r.x({r.t, 8})}, {{"dims", dims}});
}

TEST_CASE("rows by number take and make a varying number of rows") {
  Recording r;
  r.check("core.gather_rows", {r.x({r.t, 8}), r.ids({5})});
  r.check("core.scatter_add_rows", {r.x({5, 8}), r.ids({5})}, {{"rows", r.t}});
  r.check("core.index_select", {r.x({3, r.t, 8}), r.ids({5})}, {{"dim", int64_t{1}}});
}

TEST_CASE("attention and its positions take a varying number of tokens") {
  Recording r;
  Value *q = r.x({r.t, 4, 6}), *k = r.x({r.t, 2, 6}), *v = r.x({r.t, 2, 3}), *starts = r.ids({3});
  r.check("core.attention", {q, k, v, starts});
  r.check("core.attention", {q, k, v, starts, r.x({4}), r.x({4, 9}), r.ids({r.t, 2}), r.ids({4})},
          {{"p", 0.1}, {"window", int64_t{5}}, {"softcap", 50.0}});
  r.check("core.rotary", {q, nullptr, r.wide({r.t, 4})});
  r.check("core.relative_bias", {r.x({8, 4})}, {{"reach", int64_t{10}}});
}

TEST_CASE("composite ops are made of ops for a varying number of tokens") {
  Recording r;
  Value *x = r.x({r.t, 8}), *w = r.x({8}), *m = r.x({6, 8});
  r.check("core.residual_rms_norm", {x, x, w});
  r.check("core.residual_layer_norm", {x, x, w, w});
  r.check("core.gated_rms_norm", {x, x, w}, {{"groups", int64_t{2}}});
  r.check("core.linear_gelu", {x, m, r.x({6})});
  r.check("core.linear_swiglu", {x, m});
  r.check("core.linear_cross_entropy", {x, m, r.ids({r.t}), r.wide({r.t})},
          {{"softcap", 30.0}, {"label_smoothing", 0.1}});
  r.check("core.newton_schulz", {m});
}

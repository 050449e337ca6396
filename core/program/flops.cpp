#include "core/program/flops.h"

#include <algorithm>

#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

struct Sizes {
  const Node& node;
  const DimTable& dims;
  double segment;

  double in(size_t i, int dim) const { return static_cast<double>(dims.value(node.in[i]->type.dim(dim))); }
  double elements(const Value* v) const {
    double n = 1;
    for (int k = 0; k < v->type.ndim; ++k) n *= static_cast<double>(dims.value(v->type.shape[static_cast<size_t>(k)]));
    return n;
  }
};

// x [t, i], w [o, i]
double linear(const Sizes& s) { return 2 * s.elements(s.node.in[0]) * s.in(1, 0); }

double matmul(const Sizes& s) {
  return 2 * s.elements(s.node.out[0]) * s.in(0, s.node.attrs.boolean("trans_a") ? -2 : -1);
}

// Keys that one query sees, on average.
double keys_seen(const Sizes& s) {
  double keys = s.segment;
  if (const double window = static_cast<double>(s.node.attrs.i64("window")); window > 0) keys = std::min(keys, window);
  return s.node.attrs.boolean("causal") ? keys / 2 : keys;
}

// q [t, n, d], v [t, g, e]: scores and weighted values.
double attention(const Sizes& s) { return 2 * s.in(0, 0) * s.in(0, 1) * keys_seen(s) * (s.in(0, 2) + s.in(2, 2)); }

// Scores again, and the gradients of four products.
double attention_bwd(const Sizes& s) {
  return 2 * s.in(0, 0) * s.in(0, 1) * keys_seen(s) * (3 * s.in(0, 2) + 2 * s.in(2, 2));
}

struct Rule {
  std::string_view op;
  double (*count)(const Sizes&);
};
constexpr Rule kRules[] = {{"core.linear", linear},
                           {"core.linear_gelu", linear},
                           {"core.linear_swiglu", linear},
                           {"core.linear_cross_entropy", linear},
                           {"core.matmul", matmul},
                           {"core.attention", attention},
                           {"core.attention_bwd", attention_bwd}};

}  // namespace

double node_flops(const Node& node, const DimTable& dims, double segment) {
  for (const Rule& r : kRules)
    if (r.op == node.op->name()) return r.count({node, dims, segment});
  return 0;
}

double segment_length(const Program& program) {
  const DimTable& dims = program.dims();
  const Value* tokens = program.find_input("batch:tokens");
  const Value* starts = program.find_input("batch:seq_starts");
  if (!tokens || !starts) return 0;
  const int64_t sequences = std::max<int64_t>(dims.value(starts->type.dim(0)) - 1, 1);
  return static_cast<double>(dims.value(tokens->type.dim(0))) / static_cast<double>(sequences);
}

double training_flops(const Program& program) {
  const DimTable& dims = program.dims();
  const double segment = segment_length(program);
  double sum = 0;
  for (const Node* n : program.nodes)
    if (n->region == Region::kForward) sum += node_flops(*n, dims, segment);
  return 3 * sum;
}

double node_bytes(const Node& node, const DimTable& dims) {
  double bytes = 0;
  const Sizes s{node, dims, 0};
  for (const Value* v : node.in)
    if (v) bytes += s.elements(v) * static_cast<double>(dtype_size(v->type.dtype));
  for (const Value* v : node.out) bytes += s.elements(v) * static_cast<double>(dtype_size(v->type.dtype));
  return bytes;
}

}  // namespace gestalt::core

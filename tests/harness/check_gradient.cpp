#include <algorithm>
#include <cmath>

#include "core/base/host.h"
#include "core/program/passes.h"
#include "tests/harness/checks.h"
#include "tests/harness/program_run.h"

// loss = sum over outputs of sum(y r) with fixed random r. Its gradient by the op's rule, through the passes and
// kernels that training uses, against central differences of the reference.
namespace gestalt::harness {

using namespace core;

namespace {

constexpr double kStep = 1e-5;

// How far a gradient in this dtype may be off, relative to the largest element: roundings inside the rule's own steps.
double tolerance(uint32_t dtype) {
  switch (dtype) {
    case GESTALT_F64:
      return 2e-8;
    case GESTALT_F32:
      return 2e-4;
    case GESTALT_F16:
      return 1e-2;
    default:
      return 6e-2;
  }
}

class GradientCheck {
 public:
  GradientCheck(const CheckContext& c, const std::string& backend, uint32_t dtype, const Case& one)
      : c_(c), backend_(backend), dtype_(dtype), one_(one) {
    Random random(c.seed ^ std::hash<std::string>()(c.d.op + one.name));
    inputs_ = make_inputs(c.op, one, dtype, random);
    const std::vector<OutType> types = infer_outputs(c.e, c.op, one, dtype);
    for (size_t i = 0; i < types.size(); ++i) {
      Values r(types[i].shape);
      for (double& x : r.v) x = random.uniform(-1, 1);
      round_to(types[i].dtype, r);
      weights_.push_back(std::move(r));
      counts_.push_back(!c.op.schema.output(i).nograd && is_float(types[i].dtype));
    }
    for (size_t i = 0; i < one.in.size(); ++i)
      smooth_.push_back(one.in[i].present && one.in[i].smooth && is_float(dtype_of(one.in[i], dtype)));
  }

  // An op whose result in this case is made of integers, or that has no smooth input here, has nothing to check.
  bool applies() const {
    return std::find(counts_.begin(), counts_.end(), true) != counts_.end() &&
           std::find(smooth_.begin(), smooth_.end(), true) != smooth_.end();
  }

  void run(bool transposed) {
    ProgramRun p(c_.e, c_.e.tested(), c_.d.op, backend_, 2, [&](Builder& b) { record(b, transposed); });
    for (size_t i = 0; i < one_.in.size(); ++i) {
      if (!one_.in[i].present) continue;
      const bool turned = transposed && turns(i);
      p.write(name(i), encode(dtype_of(one_.in[i], dtype_), turned ? swapped(inputs_.in[i]) : inputs_.in[i]));
    }
    for (size_t i = 0; i < weights_.size(); ++i)
      if (counts_[i]) p.write(fmt::format("batch:r{}", i), encode(weight_types_[i], weights_[i]));
    p.run(false);
    expect(p, transposed, 1);
    p.run(true);
    expect(p, transposed, 2);
  }

 private:
  std::string name(size_t i) const { return fmt::format("{}:{}", smooth_[i] ? "param" : "batch", i); }
  bool turns(size_t i) const { return smooth_[i] && one_.in[i].shape.size() >= 2; }

  void record(Builder& b, bool transposed) {
    std::vector<Value*> in;
    parameters_.clear();
    parameters_.reserve(one_.in.size());
    for (size_t i = 0; i < one_.in.size(); ++i) {
      const Arg& a = one_.in[i];
      if (!a.present) {
        in.push_back(nullptr);
        continue;
      }
      Shape shape = a.shape;
      const bool turned = transposed && turns(i);
      if (turned) std::swap(shape[0], shape[1]);
      const TensorType type = type_of(dtype_of(a, dtype_), shape);
      Value* v = b.program().input(name(i), type);
      if (smooth_[i]) {
        Parameter p;
        p.path = std::to_string(i);
        p.type = type;
        parameters_.push_back(p);
      }
      if (turned) v = b.op("core.transpose", {v}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}});
      in.push_back(v);
    }
    const std::vector<Value*> out = b.apply(c_.d.op, in, one_.attrs);
    Value* loss = nullptr;
    weight_types_.assign(out.size(), 0);
    for (size_t i = 0; i < out.size(); ++i) {
      if (!counts_[i]) continue;
      weight_types_[i] = out[i]->type.dtype;
      Value* r = b.program().input(fmt::format("batch:r{}", i), out[i]->type);
      Value* part = b.op("core.sum", {b.op("core.mul", {out[i], r})});
      loss = loss ? b.op("core.add", {loss, part}) : part;
    }
    Value* one =
        b.op("core.fill", {}, {{"shape", std::vector<int64_t>{}}, {"dtype", std::string("f32")}, {"value", 1.0}});
    b.loss("check", loss, one);
    std::vector<const Parameter*> list;
    for (const Parameter& p : parameters_) list.push_back(&p);
    add_gradients(b, list);
  }

  double loss_of(const Inputs& inputs) const {
    const std::vector<Values> out = c_.d.reference(inputs);
    double sum = 0;
    for (size_t k = 0; k < weights_.size(); ++k)
      for (int64_t i = 0; counts_[k] && i < out[k].size(); ++i) sum += out[k][i] * weights_[k][i];
    return sum;
  }

  const Values& differences(size_t input) {
    auto [it, fresh] = differences_.try_emplace(input, one_.in[input].shape);
    Values& d = it->second;
    if (!fresh) return d;
    Inputs moved = inputs_;
    for (int64_t i = 0; i < d.size(); ++i) {
      double& x = moved.in[input][i];
      const double at = x;
      x = at + kStep;
      const double above = loss_of(moved);
      x = at - kStep;
      d[i] = (above - loss_of(moved)) / (2 * kStep);
      x = at;
    }
    return d;
  }

  void expect(ProgramRun& p, bool transposed, int times) {
    for (size_t i = 0; i < one_.in.size(); ++i) {
      if (!smooth_[i]) continue;
      const std::string how = fmt::format("of {}{}{}", c_.op.schema.input(i).name, transposed ? ", transposed" : "",
                                          times == 2 ? ", accumulated" : "");
      c_.begin("gradient", backend_, dtype_, one_, how);
      const Values& want = differences(i);
      const std::string grad = fmt::format("grad:{}", i);
      if (!p.has_input(grad)) {
        c_.report.fail("no gradient reaches it");
        continue;
      }
      Shape shape = one_.in[i].shape;
      const bool turned = transposed && turns(i);
      if (turned) std::swap(shape[0], shape[1]);
      Values got = decode(accumulation_dtype(dtype_of(one_.in[i], dtype_)), shape, p.read_input(grad));
      if (turned) got = swapped(got);
      double largest = 0, worst = 0;
      for (double x : want.v) largest = std::max(largest, std::abs(x));
      int64_t at = -1;
      for (int64_t k = 0; k < got.size(); ++k) {
        const double off = std::abs(got[k] / times - want[k]);
        if (std::isfinite(off) && off <= worst) continue;
        worst = std::isfinite(off) ? off : INFINITY;
        at = k;
      }
      // Sums that cancel keep the error of their terms, which are near 1.
      const double allowed = tolerance(dtype_) * std::max(largest, dtype_size(dtype_) == 2 ? 1.0 : 0.1);
      c_.report.expect(worst <= allowed
                           ? ""
                           : fmt::format("element {} is {:.9g}, central differences say {:.9g} (allowed {:.2g} off)",
                                         at, got[at] / times, want[at], allowed));
    }
  }

  const CheckContext& c_;
  std::string backend_;
  uint32_t dtype_;
  const Case& one_;
  Inputs inputs_;
  std::vector<Values> weights_;
  std::map<size_t, Values> differences_;
  std::vector<uint32_t> weight_types_;
  std::vector<bool> counts_, smooth_;
  std::vector<Parameter> parameters_;
};

}  // namespace

void check_gradient(const CheckContext& c) {
  const bool has = c.op.vjp || c.op.decompose;
  c.begin("gradient", "rule", GESTALT_F64, c.d.cases.at(0));
  c.report.expect(has == c.d.gradient ? ""
                  : has               ? "the op has a gradient, the description says it has none"
                                      : "the op has no gradient, the description says it has one");
  if (!has) return;
  std::vector<const KernelRef*> served_by;
  const std::vector<KernelRef> kernels = c.kernels();
  for (const KernelRef& k : kernels) served_by.push_back(&k);
  if (kernels.empty()) served_by = {nullptr};  // view ops and those made of others
  for (const KernelRef* kernel : served_by) {
    const std::string backend(kernel ? view_of(kernel->kernel->backend) : "");
    for (uint32_t dtype : c.d.dtypes) {
      if (!is_float(dtype)) continue;
      for (const Case& one : c.d.cases) {
        std::string reason;
        if (one.large || (kernel && !accepts(c.e, *kernel, c.op, one, dtype, &reason))) continue;
        c.begin("gradient", backend, dtype, one);
        try {
          GradientCheck check(c, backend, dtype, one);
          if (!check.applies()) continue;
          check.run(false);
          check.run(true);
        } catch (const Error& e) {
          c.report.fail(e.message());
        }
      }
    }
  }
}

}  // namespace gestalt::harness

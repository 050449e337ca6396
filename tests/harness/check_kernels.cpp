#include <algorithm>

#include "core/base/host.h"
#include "core/base/text.h"
#include "tests/harness/checks.h"
#include "tests/harness/kernel_run.h"

namespace gestalt::harness {

using namespace core;

std::vector<KernelRef> CheckContext::kernels() const {
  std::vector<KernelRef> list;
  for (const KernelRef& k : e.registry.find_kernels(d.op, e.tested().device->kernels_of()))
    if (backend.empty() || view_of(k.kernel->backend) == backend) list.push_back(k);
  return list;
}

void CheckContext::begin(std::string_view check, const std::string& backend_name, uint32_t dtype, const Case& c,
                         std::string_view detail) const {
  report.begin(fmt::format("{} {} {} {} '{}'{}{} (seed {})", check, d.op, backend_name, dtype_name(dtype), c.name,
                           detail.empty() ? "" : " ", detail, seed));
}

bool accepts(const Environment& e, const KernelRef& kernel, const OpDef& op, const Case& c, uint32_t dtype,
             std::string* reason) {
  try {
    std::vector<const gestalt_view*> in, out;
    std::deque<Tensor> tensors;
    for (const Arg& a : c.in)
      in.push_back(a.present ? &tensors.emplace_back(dtype_of(a, dtype), std::span<const int64_t>(a.shape)).view
                             : nullptr);
    for (const OutType& t : infer_outputs(e, op, c, dtype))
      out.push_back(&tensors.emplace_back(t.dtype, std::span<const int64_t>(t.shape)).view);
    PreparedKernel(e, kernel, op, op.schema.complete(c.attrs), in, out, 0);
    return true;
  } catch (const Error& error) {
    *reason = error.message();
    return false;
  }
}

namespace {

class KernelCheck {
 public:
  KernelCheck(const CheckContext& c, const KernelRef& kernel, uint32_t dtype)
      : c_(c),
        kernel_(kernel),
        backend_(view_of(kernel.kernel->backend)),
        dtype_(dtype),
        inner_(c.d.inner_roundings.contains(backend_) && core::dtype_size(dtype) == 2 ? c.d.inner_roundings.at(backend_)
                                                                                       : 0) {}

  void one(const Case& one_case) {
    Random random(c_.seed ^ std::hash<std::string>()(c_.d.op + one_case.name));
    const Inputs inputs = make_inputs(c_.op, one_case, dtype_, random);
    const std::vector<Values> want = c_.d.reference(inputs);
    RunResult base;
    if (!run("reference", one_case, inputs, want, {}, &base)) return;

    same_bits("again", one_case, inputs, {.workspace_fill = 0}, base);
    same_bits("2 threads", one_case, inputs, {.threads = 2}, base);
    run("unaligned", one_case, inputs, want, {.in = Layout::kUnaligned, .out = Layout::kUnaligned});
    if (kernel_.kernel->flags & GESTALT_KERNEL_STRIDED) {
      run("transposed", one_case, inputs, want, {.in = Layout::kTransposed});
      run("sliced", one_case, inputs, want, {.in = Layout::kSliced});
      Random again(c_.seed ^ std::hash<std::string>()(c_.d.op + one_case.name));
      const Inputs equal = make_inputs(c_.op, one_case, dtype_, again, true);
      run("broadcast", one_case, equal, c_.d.reference(equal), {.in = Layout::kBroadcast});
    }
    sinks(one_case, inputs, want, random);
    overlay(one_case, inputs, base);
  }

  void grows(const Case& planned, const Case& actual) {
    if (!(kernel_.kernel->flags & GESTALT_KERNEL_ANY_SHAPE)) return;
    Random random(c_.seed);
    const Inputs inputs = make_inputs(c_.op, actual, dtype_, random);
    run("below the plan", actual, inputs, c_.d.reference(inputs), {.planned = &planned});
  }

  void bad_values(const Case& one_case) {
    // Where the host does not see the memory, a kernel cannot look at its index operands before it is enqueued.
    if (!c_.e.tested().device->host_visible()) return;
    for (const BadValue& bad : c_.d.bad_values) {
      c_.begin("bad value", backend_, dtype_, one_case, bad.what);
      Random random(c_.seed);
      Inputs inputs = make_inputs(c_.op, one_case, dtype_, random);
      inputs.in[bad.input].v.back() = bad.value;
      try {
        run_kernel(c_.e, kernel_, c_.op, one_case, inputs, {});
        c_.report.fail("was accepted, expected an error");
      } catch (const Error& e) {
        c_.report.expect(e.message().empty() ? "an error without a message" : "");
      }
    }
  }

 private:
  bool run(std::string_view what, const Case& one_case, const Inputs& inputs, const std::vector<Values>& want,
           const RunOptions& options, RunResult* result = nullptr) {
    c_.begin("kernel", backend_, dtype_, one_case, what);
    try {
      RunResult r = run_kernel(c_.e, kernel_, c_.op, one_case, inputs, options);
      std::string problem = r.broken;
      if (r.out.size() != want.size())
        problem = fmt::format("the reference has {} results, the op {}", want.size(), r.out.size());
      for (size_t i = 0; problem.empty() && i < want.size(); ++i)
        if (const std::string off = compare(r.out[i], want[i], r.dtypes[i], dtype_, c_.d.loosen, inner_); !off.empty())
          problem = fmt::format("result {}: {}", i, off);
      c_.report.expect(problem);
      if (result) *result = std::move(r);
      return problem.empty();
    } catch (const Error& e) {
      c_.report.fail(e.message());
      return false;
    }
  }

  void same_bits(std::string_view what, const Case& one_case, const Inputs& inputs, const RunOptions& options,
                 const RunResult& base) {
    c_.begin("kernel", backend_, dtype_, one_case, what);
    try {
      const RunResult r = run_kernel(c_.e, kernel_, c_.op, one_case, inputs, options);
      if (!r.broken.empty()) return c_.report.fail(r.broken);
      c_.report.expect(r.bits == base.bits ? "" : "other bits than the first time");
    } catch (const Error& e) {
      c_.report.fail(e.message());
    }
  }

  // Gradient outputs as f32 (f64) views: written, and added to what is there.
  void sinks(const Case& one_case, const Inputs& inputs, const std::vector<Values>& want, Random& random) {
    const bool any = std::any_of(c_.op.schema.outputs.begin(), c_.op.schema.outputs.end(),
                                 [](const Schema::Output& o) { return o.accumulates; });
    if (!any || !(kernel_.kernel->flags & GESTALT_KERNEL_ACCUMULATES)) return;
    run("into f32", one_case, inputs, want, {.into_sinks = true});
    std::vector<Values> start, sum = want;
    const std::vector<OutType> types = infer_outputs(c_.e, c_.op, one_case, dtype_);
    if (is_float(dtype_) && !is_float(types[0].dtype)) return;  // sums of gradients are never integers
    for (size_t i = 0; i < want.size(); ++i) {
      const bool adds = i < c_.op.schema.outputs.size() && c_.op.schema.outputs[i].accumulates;
      Values s(want[i].shape);
      for (double& x : s.v) x = static_cast<double>(static_cast<float>(100 * random.uniform(-1, 1)));
      if (i < types.size() && !is_float(types[i].dtype))
        for (double& x : s.v) x = static_cast<double>(static_cast<int64_t>(x));
      for (int64_t k = 0; adds && k < s.size(); ++k) sum[i][k] += s[k];
      start.push_back(std::move(s));
    }
    RunOptions options{.into_sinks = true, .add_to = &start};
    run("accumulate", one_case, inputs, sum, options);
  }

  // The memory plan puts an output marked !inplace where its dying input lies.
  void overlay(const Case& one_case, const Inputs& inputs, const RunResult& base) {
    if (c_.op.schema.outputs.empty() || !c_.op.schema.outputs[0].inplace) return;
    const size_t input = *c_.op.schema.outputs[0].inplace;
    same_bits("in place", one_case, inputs, {.overlay = input}, base);
  }

  const CheckContext& c_;
  KernelRef kernel_;
  std::string backend_;
  uint32_t dtype_;
  double inner_;
};

}  // namespace

void check_kernels(const CheckContext& c) {
  for (uint32_t dtype : c.d.dtypes) {
    // A kernel may decline a case; another must serve it then.
    std::vector<std::string> declined(c.d.cases.size());
    std::vector<bool> served(c.d.cases.size());
    for (const KernelRef& k : c.kernels()) {
      KernelCheck check(c, k, dtype);
      std::string reason;
      for (size_t i = 0; i < c.d.cases.size(); ++i) {
        const Case& one_case = c.d.cases[i];
        if (!accepts(c.e, k, c.op, one_case, dtype, &reason)) {
          declined[i] += " " + reason;
          continue;
        }
        served[i] = true;
        if (!(c.small && one_case.large)) check.one(one_case);
        if (i == 0) check.bad_values(one_case);
      }
      for (const auto& [planned, actual] : c.d.grows)
        if (accepts(c.e, k, c.op, planned, dtype, &reason)) check.grows(planned, actual);
    }
    for (size_t i = 0; i < c.d.cases.size(); ++i) {
      c.begin("kernel", "any", dtype, c.d.cases[i]);
      c.report.expect(served[i] ? "" : "no kernel serves it:" + declined[i]);
    }
  }
}

}  // namespace gestalt::harness

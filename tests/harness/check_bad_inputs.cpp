#include <algorithm>
#include <deque>

#include "core/base/host.h"
#include "core/program/builder.h"
#include "tests/harness/checks.h"
#include "tests/harness/kernel_run.h"

namespace gestalt::harness {

using namespace core;

namespace {

class BadInputCheck {
 public:
  explicit BadInputCheck(const CheckContext& c) : c_(c), good_(c.d.cases.at(0)) {}

  void run() {
    const bool takes_any = c_.d.any_dtype;
    for (size_t i = 0; i < good_.in.size(); ++i) {
      if (!good_.in[i].present) continue;
      const std::string& name = c_.op.schema.input(i).name;
      Case wrong = good_;
      wrong.in[i].dtype = GESTALT_U8;
      both("dtype u8 of " + name, wrong, i == 0 && takes_any);
      wrong = good_;
      wrong.in[i].shape.insert(wrong.in[i].shape.begin(), 2);
      both("rank of " + name, wrong, (i == 0 && c_.d.any_rank) || c_.op.schema.input(i).variadic);
      if (good_.in[i].shape.empty()) continue;
      wrong = good_;
      ++wrong.in[i].shape.back();
      const auto& any = c_.d.any_size;
      record("size of " + name, wrong, (i == 0 && c_.d.any_rank) || std::find(any.begin(), any.end(), i) != any.end());
    }
    Case wrong = good_;
    wrong.attrs.set("no_such_attribute", int64_t{1});
    record("unknown attribute", wrong, false);
    for (const auto& [name, value] : good_.attrs.values()) {
      wrong = good_;
      wrong.attrs.set(name, std::vector<double>{0.5});
      record("type of attribute " + name, wrong, false);
    }
    if (!good_.in.empty()) {
      wrong = good_;
      wrong.in.pop_back();
      const bool optional = c_.op.schema.input(good_.in.size() - 1).optional || c_.op.schema.input(0).variadic;
      record("number of inputs", wrong, optional);
    }
    missing_attributes();
  }

 private:
  void both(const std::string& what, const Case& wrong, bool may_pass) {
    record(what, wrong, may_pass);
    prepare(what, wrong, may_pass);
  }

  // Through inference, as a module would record it; then the kernels decide.
  void record(const std::string& what, const Case& wrong, bool may_pass) {
    c_.begin("bad input", "record", GESTALT_F32, wrong, what);
    try {
      infer_outputs(c_.e, c_.op, wrong, c_.d.dtypes[c_.d.dtypes.size() > 1 ? 1 : 0]);
    } catch (const Error& e) {
      return c_.report.expect(e.message().empty() ? "an error without a message" : "");
    }
    // Inference left it to the kernels: then all of them must decline.
    bool taken = false;
    for (const KernelRef& k : c_.kernels()) {
      std::string reason;
      taken |= accepts(c_.e, k, c_.op, wrong, GESTALT_F32, &reason);
    }
    c_.report.expect(may_pass || !taken ? "" : "was accepted, expected an error");
  }

  // The kernel's own checks, with the outputs of the good case.
  void prepare(const std::string& what, const Case& wrong, bool may_pass) {
    for (const KernelRef& k : c_.kernels()) {
      c_.begin("bad input", std::string(view_of(k.kernel->backend)), GESTALT_F32, wrong, what + " in prepare");
      try {
        std::deque<Tensor> tensors;
        std::vector<const gestalt_view*> in, out;
        for (const Arg& a : wrong.in)
          in.push_back(a.present
                           ? &tensors.emplace_back(dtype_of(a, GESTALT_F32), std::span<const int64_t>(a.shape)).view
                           : nullptr);
        for (const OutType& t : infer_outputs(c_.e, c_.op, good_, GESTALT_F32))
          out.push_back(&tensors.emplace_back(t.dtype, std::span<const int64_t>(t.shape)).view);
        PreparedKernel(c_.e, k, c_.op, c_.op.schema.complete(good_.attrs), in, out, 0);
        c_.report.expect(may_pass ? "" : "was accepted, expected a status");
      } catch (const Error& e) {
        c_.report.expect(e.message().empty() ? "a status without a message" : "");
      }
    }
  }

  // A host that fills in no defaults gets a status or a kernel with the schema's own defaults, never a crash.
  void missing_attributes() {
    for (const KernelRef& k : c_.kernels()) {
      c_.begin("bad input", std::string(view_of(k.kernel->backend)), GESTALT_F32, good_, "no attributes");
      try {
        std::deque<Tensor> tensors;
        std::vector<const gestalt_view*> in, out;
        for (const Arg& a : good_.in)
          in.push_back(a.present
                           ? &tensors.emplace_back(dtype_of(a, GESTALT_F32), std::span<const int64_t>(a.shape)).view
                           : nullptr);
        for (const OutType& t : infer_outputs(c_.e, c_.op, good_, GESTALT_F32))
          out.push_back(&tensors.emplace_back(t.dtype, std::span<const int64_t>(t.shape)).view);
        PreparedKernel(c_.e, k, c_.op, Attrs(), in, out, 0);
        c_.report.pass();
      } catch (const Error& e) {
        c_.report.expect(e.message().empty() ? "a status without a message" : "");
      }
    }
  }

  const CheckContext& c_;
  const Case& good_;
};

}  // namespace

void check_bad_inputs(const CheckContext& c) { BadInputCheck(c).run(); }

}  // namespace gestalt::harness

#include "plugins/kernels_cpu/copy.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/elementwise.h"
#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {
namespace {

void need_halves(const Plan& plan, View gate_up, View half, std::string_view name) {
  need_float(plan, gate_up, "gate_up");
  if (gate_up.ndim() < 1 || gate_up.dim(-1) % 2 != 0)
    throw InvalidArgument(place(plan) + "gate_up: last dimension cannot be halved, got " + describe(gate_up) +
                          ", expected an even size");
  need_ndim(plan, half, name, gate_up.ndim());
  need_dim(plan, half, name, half.ndim() - 1, gate_up.dim(-1) / 2);
}

Part gate_of(View gate_up) { return Part(gate_up, gate_up.ndim() - 1, 0, gate_up.dim(-1) / 2); }
Part up_of(View gate_up) { return Part(gate_up, gate_up.ndim() - 1, gate_up.dim(-1) / 2, gate_up.dim(-1) / 2); }

// y = silu(gate) * up.
class Swiglu : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.swiglu";

  explicit Swiglu(Plan plan) : team_(plan.host()) {
    need_halves(plan, plan.in(0), plan.out(0), "y");
    run_ = for_compute_type(plan.in(0).dtype(), &Swiglu::run_as<float>, &Swiglu::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const Part gate = gate_of(call.in(0)), up = up_of(call.in(0));
    const auto loop = loops<C>().swiglu;
    elementwise<C, 2, 1>(team_, {gate.view(), up.view()}, {call.out(0)}, false,
                         [=](const auto& in, const auto& out, int64_t n) { loop(in[0], in[1], out[0], n); });
  }

  Parallel team_;
  void (Swiglu::*run_)(Call) const;
};
GESTALT_KERNEL(Swiglu);

class SwigluBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.swiglu_bwd";

  explicit SwigluBwd(Plan plan) : team_(plan.host()) {
    need_halves(plan, plan.in(0), plan.in(1), "dy");
    need_like(plan, plan.in(1), "dy", plan.in(0));
    run_ = for_compute_type(plan.in(0).dtype(), &SwigluBwd::run_as<float>, &SwigluBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const Part gate = gate_of(call.in(0)), up = up_of(call.in(0));
    const Part dgate = gate_of(call.out(0)), dup = up_of(call.out(0));
    const auto loop = loops<C>().swiglu_bwd;
    elementwise<C, 3, 2>(
        team_, {gate.view(), up.view(), call.in(1)}, {dgate.view(), dup.view()}, false,
        [=](const auto& in, const auto& out, int64_t n) { loop(in[0], in[1], in[2], out[0], out[1], n); });
  }

  Parallel team_;
  void (SwigluBwd::*run_)(Call) const;
};
GESTALT_KERNEL(SwigluBwd);

}  // namespace
}  // namespace gestalt::kernels_cpu

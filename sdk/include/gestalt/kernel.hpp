// Kernels. A kernel is a class:
//
//   class RmsNorm {
//    public:
//     static constexpr std::string_view op = "core.rms_norm", device = "cpu", backend = "acme.cpu";
//     static constexpr uint64_t flags = GESTALT_KERNEL_DETERMINISTIC;
//     explicit RmsNorm(gestalt::Plan plan);   // prepare: reads attributes, plans, or throws Unsupported
//     void run(gestalt::Call call) const;     // enqueues the work; allocates nothing
//   };
//   GESTALT_KERNEL(RmsNorm);
//
// The destructor is the C table's destroy. A class template serves several ops: GESTALT_KERNEL(Binary<Add>).
#pragma once

#include <string_view>
#include <utility>

#include "gestalt/attrs.hpp"
#include "gestalt/parallel.hpp"
#include "gestalt/registration.hpp"
#include "gestalt/view.hpp"

namespace gestalt {

// The cold description of one op instance: shapes at their maxima, no data.
class Plan {
 public:
  Plan(const gestalt_host* host, gestalt_plan* plan) : host_(host), plan_(plan) {}

  View in(uint64_t i) const { return View(i < plan_->num_in ? plan_->in[i] : nullptr); }
  bool has_in(uint64_t i) const { return i < plan_->num_in && plan_->in[i]; }
  uint64_t num_in() const { return plan_->num_in; }
  View out(uint64_t i) const { return View(plan_->out[i]); }
  uint64_t num_out() const { return plan_->num_out; }
  Attrs attrs() const { return {plan_->attrs, plan_->num_attrs}; }
  std::string_view op() const { return view_of(plan_->op); }
  std::string_view path() const { return view_of(plan_->path); }
  // run may be asked to add into out[i].
  bool may_accumulate(uint64_t i) const { return plan_->accumulate >> i & 1; }
  uint64_t require() const { return plan_->require; }  // GESTALT_REQUIRE_ bits
  int32_t device_type() const { return plan_->device_type; }
  int32_t device_id() const { return plan_->device_id; }
  int64_t sm_budget() const { return plan_->sm_budget; }
  const void* group() const { return plan_->group; }
  void workspace(uint64_t bytes, uint64_t align = 64) {
    plan_->workspace_size = bytes;
    plan_->workspace_align = align;
  }
  const gestalt_host* host() const { return host_; }
  gestalt_plan* raw() const { return plan_; }

 private:
  const gestalt_host* host_;
  gestalt_plan* plan_;
};

// One execution. Indices are those of the plan.
class Call {
 public:
  explicit Call(const gestalt_call* call) : call_(call) {}

  View in(uint64_t i) const { return View(call_->in[i]); }
  // i must be below the plan's num_in.
  bool has_in(uint64_t i) const { return call_->in[i] != nullptr; }
  View out(uint64_t i) const { return View(call_->out[i]); }
  bool accumulate(uint64_t i) const { return call_->accumulate >> i & 1; }
  void* workspace() const { return call_->workspace; }
  void* stream() const { return call_->stream; }
  const gestalt_host* host() const { return call_->host; }
  const gestalt_call* raw() const { return call_; }

 private:
  const gestalt_call* call_;
};

namespace detail {

template <class K>
struct KernelFunctions {
  static gestalt_status* prepare(const gestalt_host* host, gestalt_plan* plan) noexcept {
    return guard(host, [&] { plan->state = new K(Plan(host, plan)); });
  }
  static gestalt_status* run(void* state, const gestalt_call* call) noexcept {
    return guard(call->host, [&] { static_cast<const K*>(state)->run(Call(call)); });
  }
  static void destroy(void* state) noexcept { delete static_cast<K*>(state); }
};

template <class K>
inline constexpr gestalt_kernel kernel_entry = {sizeof(gestalt_kernel),
                                                str_of(K::op),
                                                str_of(K::device),
                                                str_of(K::backend),
                                                K::flags,
                                                &KernelFunctions<K>::prepare,
                                                &KernelFunctions<K>::run,
                                                &KernelFunctions<K>::destroy};

}  // namespace detail
}  // namespace gestalt

#define GESTALT_KERNEL(...) \
  GESTALT_REGISTER(gestalt_kernel, "gestalt_kernels", ::gestalt::detail::kernel_entry<__VA_ARGS__>)

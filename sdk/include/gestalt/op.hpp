// Ops. An op is a class of static functions:
//
//   struct Rope2d {
//     static constexpr std::string_view schema = "acme.rope_2d(x, pos, *, base: f64 = 1e4) -> (y)";
//     static constexpr uint64_t flags = GESTALT_OP_PURE;
//     static void infer(gestalt::InferPlan& plan) { plan.out(0, plan.in(0)); }
//     static constexpr auto vjp = gestalt::vjp_by_op<"acme.rope_2d_bwd">;   // or static void vjp(gestalt::Vjp&)
//     static void decompose(gestalt::Decompose&);                           // optional too
//   };
//   GESTALT_OP(Rope2d)
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gestalt/registration.hpp"
#include "gestalt/tensor.hpp"
#include "gestalt/view.hpp"

namespace gestalt {

// Shapes of inputs (sizes may be handles of named dimensions), to be turned into those of the outputs.
class InferPlan {
 public:
  InferPlan(const gestalt_host* host, gestalt_plan* plan) : host_(host), plan_(plan) {}

  View in(uint64_t i) const { return View(i < plan_->num_in ? plan_->in[i] : nullptr); }
  bool has_in(uint64_t i) const { return i < plan_->num_in && plan_->in[i]; }
  uint64_t num_in() const { return plan_->num_in; }
  uint64_t num_out() const { return plan_->num_out; }
  Attrs attrs() const { return {plan_->attrs, plan_->num_attrs}; }
  std::string_view op() const { return view_of(plan_->op); }
  std::string_view path() const { return view_of(plan_->path); }
  Dims dims() const { return Dims(plan_->dims); }
  const gestalt_host* host() const { return host_; }

  void out(uint64_t i, DType dtype, std::span<const int64_t> shape) {
    if (i >= plan_->num_out || shape.size() > GESTALT_MAX_NDIM)
      error("output " + std::to_string(i) + " of " + std::to_string(shape.size()) +
            " dimensions, expected output below " + std::to_string(plan_->num_out) + " and at most " +
            std::to_string(GESTALT_MAX_NDIM) + " dimensions");
    gestalt_view& v = *plan_->out[i];
    v.dtype = dtype;
    v.ndim = static_cast<int32_t>(shape.size());
    for (size_t k = 0; k < shape.size(); ++k) v.shape[k] = shape[k];
  }
  void out(uint64_t i, DType dtype, std::initializer_list<int64_t> shape) {
    out(i, dtype, std::span(shape.begin(), shape.size()));
  }
  // The type of another view.
  void out(uint64_t i, View like) {
    out(i, like.dtype(), std::span<const int64_t>(like.raw()->shape, static_cast<size_t>(like.ndim())));
  }
  // "[acme.rope_2d] x: got f32[3, 4], expected 3 dimensions"
  [[noreturn]] void error(const std::string& message) const {
    throw InvalidArgument("[" + std::string(op()) + "] " + message);
  }
  void expect_ndim(uint64_t i, int ndim) const {
    if (!has_in(i) || in(i).ndim() != ndim)
      error("input " + std::to_string(i) + ": got " + describe(in(i)) + ", expected " + std::to_string(ndim) +
            " dimensions");
  }
  void expect_same(uint64_t i, uint64_t j) const {
    if (!has_in(i) || !has_in(j) || in(i).dtype() != in(j).dtype() || !same_shape(in(i), in(j)))
      error("input " + std::to_string(i) + ": got " + describe(in(i)) + ", expected " + describe(in(j)));
  }

 private:
  const gestalt_host* host_;
  gestalt_plan* plan_;
};

// What the rules of an op work on: a recorder and the op's inputs and attributes.
class Rule : public Recorder {
 public:
  explicit Rule(const gestalt_compose_call* call) : Recorder(call->build, call->host), call_(call) {}

  Tensor in(uint64_t i) const { return wrap(i < call_->num_in ? call_->in[i] : nullptr); }
  uint64_t num_in() const { return call_->num_in; }
  uint64_t num_out() const { return call_->num_out; }
  Attrs attrs() const { return {call_->attrs, call_->num_attrs}; }

 protected:
  void put(uint64_t i, uint64_t num, Tensor t) {
    if (i >= num)
      throw Error(GESTALT_INTERNAL,
                  "[rule] got result " + std::to_string(i) + ", expected below " + std::to_string(num));
    call_->result[i] = t.raw();
  }
  const gestalt_compose_call* call_;
};

// The gradient rule: gradients of the inputs from those of the outputs.
class Vjp : public Rule {
 public:
  using Rule::Rule;
  Tensor out(uint64_t i) const { return wrap(call_->out[i]); }
  Tensor grad(uint64_t i) const { return wrap(call_->grad_out[i]); }  // none where no gradient flows
  bool needs(uint64_t i) const { return call_->needs >> i & 1; }
  void result(uint64_t i, Tensor gradient) { put(i, call_->num_in, gradient); }
};

// The meaning by other ops.
class Decompose : public Rule {
 public:
  using Rule::Rule;
  void result(uint64_t i, Tensor output) { put(i, call_->num_out, output); }
};

// A string as a template argument.
template <size_t N>
struct FixedString {
  constexpr FixedString(const char (&text)[N]) {
    for (size_t i = 0; i < N; ++i) data[i] = text[i];
  }
  constexpr std::string_view view() const { return {data, N - 1}; }
  char data[N] = {};
};

// The usual gradient rule: the op `Name` gets the inputs, the outputs but the first (what was saved), the gradient of
// the first output, and the same attributes; its outputs are the gradients of the floating-point inputs in order.
template <FixedString Name>
void vjp_by_op(Vjp& c) {
  if (!c.grad(0)) return;
  std::vector<Tensor> in;
  for (uint64_t i = 0; i < c.num_in(); ++i) in.push_back(c.in(i));
  for (uint64_t i = 1; i < c.num_out(); ++i) in.push_back(c.out(i));
  in.push_back(c.grad(0));
  const std::vector<Tensor> gradients = c.apply(Name.view(), in, c.attrs());
  size_t next = 0;
  for (uint64_t i = 0; i < c.num_in() && next < gradients.size(); ++i) {
    if (!c.in(i) || !is_floating(c.in(i).dtype())) continue;
    if (c.needs(i)) c.result(i, gradients[next]);
    ++next;
  }
}

namespace detail {

template <class O>
struct OpFunctions {
  static gestalt_status* infer(const gestalt_host* host, gestalt_plan* plan) noexcept {
    return guard(host, [&] {
      InferPlan p(host, plan);
      O::infer(p);
    });
  }
  static gestalt_status* vjp(void*, const gestalt_compose_call* call) noexcept {
    return guard(call->host, [&] {
      Vjp c(call);
      O::vjp(c);
    });
  }
  static gestalt_status* decompose(void*, const gestalt_compose_call* call) noexcept {
    return guard(call->host, [&] {
      Decompose c(call);
      O::decompose(c);
    });
  }
  using Compose = gestalt_status* (*)(void*, const gestalt_compose_call*) noexcept;
  static constexpr Compose vjp_entry() {
    if constexpr (requires(Vjp & c) { O::vjp(c); }) return &vjp;
    return nullptr;
  }
  static constexpr Compose decompose_entry() {
    if constexpr (requires(Decompose & c) { O::decompose(c); }) return &decompose;
    return nullptr;
  }
};

template <class O>
inline constexpr gestalt_op op_entry = {sizeof(gestalt_op),
                                        str_of(O::schema),
                                        O::flags,
                                        &OpFunctions<O>::infer,
                                        OpFunctions<O>::vjp_entry(),
                                        OpFunctions<O>::decompose_entry(),
                                        nullptr};

}  // namespace detail
}  // namespace gestalt

#define GESTALT_OP(...) GESTALT_REGISTER(gestalt_op, "gestalt_ops", ::gestalt::detail::op_entry<__VA_ARGS__>)

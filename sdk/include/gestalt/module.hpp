// Component kind "module/1": layers and models.
//
//   class Mlp : public gestalt::Module {   // t tokens, h hidden, f ffn
//    public:
//     static constexpr std::string_view name = "acme.mlp";
//     static constexpr gestalt::ConfigKey keys[] = {{.name = "hidden", .type = "i64", .required = true}, ...};
//     Mlp(gestalt::Declare& d, const gestalt::Attrs& c)
//         : up_(d.column_linear("up", c.i64("hidden"), {c.i64("ffn")})), down_(...) {}
//     Tensor emit(gestalt::Build& b, Tensor x_th) const { return b.call(down_, ops::gelu(b.call(up_, x_th))); }
//   };
//   GESTALT_COMPONENT(Mlp)
//
// Record in statements of one op each where the order matters: C++ leaves the order of function arguments to the
// compiler. emit takes one to four tensors, or std::span<const Tensor> for any number, and returns a Tensor or a
// container of them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gestalt/component.hpp"
#include "gestalt/declare.hpp"
#include "gestalt/tensor.hpp"

namespace gestalt {

enum class Phase : int32_t {
  kTrain = GESTALT_PHASE_TRAIN,
  kInfer = GESTALT_PHASE_INFER,
  kAfterBackward = GESTALT_PHASE_AFTER_BACKWARD,
  kAfterStep = GESTALT_PHASE_AFTER_STEP,
  kEval = GESTALT_PHASE_EVAL
};

// The context in which a module emits.
class Build : public Recorder {
 public:
  using Recorder::Recorder;

  Phase phase() const { return static_cast<Phase>(api().phase(build_)); }
  // A named tensor of the batch, "step_scalars" or "step_seed".
  Tensor batch(std::string_view name) { return batch(name, 1); }
  // None when the batch has no such field.
  Tensor batch_if_any(std::string_view name) { return batch(name, 0); }
  Tensor param(Param p) { return get(api().param, p.id); }
  Tensor buffer(Buffer p) { return get(api().buffer, p.id); }
  Tensor state(State s) { return get(api().state, s.id); }  // none in phases without state

  // The first output of a child.
  template <class... T>
  Tensor call(Child child, T... in) {
    const Tensor list[] = {in...};
    return calls(child, list).at(0);
  }
  std::vector<Tensor> calls(Child child, std::span<const Tensor> in) {
    const std::vector<gestalt_tensor*> handles = raw(in);
    gestalt_tensor* out[kMaxOutputs];
    uint64_t num_out = kMaxOutputs;
    check(host_, api().call(build_, child.id, handles.data(), handles.size(), out, &num_out));
    return wrap({out, num_out});
  }
  using Recorder::raw;

  // x [t, in] -> [t, out]
  Tensor call(const Linear& l, Tensor x) {
    return op("core.linear", {x, param(l.weight), l.has_bias ? param(l.bias) : Tensor()});
  }

  // sum: scalar sum of token losses; weight: scalar sum of token weights.
  void loss(std::string_view name, Tensor sum, Tensor weight) {
    check(host_, api().loss(build_, str_of(name), sum.raw(), weight.raw()));
  }
  void metric(std::string_view name, Tensor sum, Tensor weight) {
    check(host_, api().metric(build_, str_of(name), sum.raw(), weight.raw()));
  }

 private:
  const gestalt_build_api& api() const { return *build_->api; }
  Tensor batch(std::string_view name, int32_t required) {
    gestalt_tensor* t = nullptr;
    check(host_, api().batch(build_, str_of(name), required, &t));
    return wrap(t);
  }
  Tensor get(decltype(gestalt_build_api::param) function, uint64_t id) {
    gestalt_tensor* t = nullptr;
    check(host_, function(build_, id, &t));
    return wrap(t);
  }
};

class Module;

namespace detail {

// A module before and after declare.
class ModuleHolder {
 public:
  virtual ~ModuleHolder() = default;
  virtual void declare(Declare& d) = 0;
  virtual std::vector<Tensor> emit(Build& b, std::span<const Tensor> in) = 0;
};

template <class R>
std::vector<Tensor> tensors_of(R&& result) {
  if constexpr (std::is_convertible_v<R, Tensor>)
    return {result};
  else
    return std::vector<Tensor>(std::begin(result), std::end(result));
}

template <class M, size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires(M & m, Build & b, std::span<const Tensor> in) { m.emit(b, in[I]...); };
}

// Calls M::emit with as many tensors as it takes.
template <class M, size_t N = 1>
std::vector<Tensor> emit_with(M& m, Build& b, std::span<const Tensor> in) {
  if constexpr (requires { m.emit(b, in); }) {
    return tensors_of(m.emit(b, in));
  } else {
    static_assert(N <= 4, "emit(Build&, ...) takes one to four Tensors or std::span<const Tensor>");
    if constexpr (takes<M>(std::make_index_sequence<N>())) {
      if (in.size() != N)
        throw InvalidArgument("[" + std::string(M::name) + "] got " + std::to_string(in.size()) +
                              " input tensors, expected " + std::to_string(N));
      return [&]<size_t... I>(std::index_sequence<I...>) { return tensors_of(m.emit(b, in[I]...)); }
      (std::make_index_sequence<N>());
    } else {
      return emit_with<M, N + 1>(m, b, in);
    }
  }
}

template <class M>
class ModuleOf : public ModuleHolder {
 public:
  explicit ModuleOf(Attrs config) : config_(config) {}
  void declare(Declare& d) override {
    const Attrs config = config_;
    module_ = std::make_unique<M>(d, config);
  }
  std::vector<Tensor> emit(Build& b, std::span<const Tensor> in) override {
    if (!module_)
      throw Error(GESTALT_INTERNAL, "[" + std::string(M::name) + "] emit got a module that was not declared");
    return emit_with(*module_, b, in);
  }

 private:
  OwnedAttrs config_;
  std::unique_ptr<M> module_;
};

// What Module stands for in the machinery of components.
class ModuleBase : public ModuleHolder {
 public:
  static constexpr std::string_view kKind = "module/1";
  template <class M>
  static std::unique_ptr<ModuleHolder> make(Host, Attrs config) {
    return std::make_unique<ModuleOf<M>>(config);
  }
  template <class>
  static constexpr const void* table();
};

template <>
struct Held<ModuleBase> {
  const gestalt_host* host;
  std::unique_ptr<ModuleHolder> object;
};

inline constexpr gestalt_module_1 module_table = {
    sizeof(gestalt_module_1),
    [](void* self, gestalt_declare* declare) noexcept {
      Held<ModuleBase>& h = held<ModuleBase>(self);
      return guard(h.host, [&] {
        Declare d(declare, h.host);
        h.object->declare(d);
      });
    },
    [](void* self, gestalt_build* build, gestalt_tensor* const* in, uint64_t num_in, gestalt_tensor** out,
       uint64_t* num_out) noexcept {
      Held<ModuleBase>& h = held<ModuleBase>(self);
      return guard(h.host, [&] {
        Build b(build, h.host);
        const std::vector<Tensor> inputs = b.wrap({in, static_cast<size_t>(num_in)});
        const std::vector<Tensor> results = h.object->emit(b, inputs);
        if (results.size() > *num_out)
          throw InvalidArgument("[emit] got " + std::to_string(results.size()) + " outputs, expected at most " +
                                std::to_string(*num_out));
        for (size_t i = 0; i < results.size(); ++i) out[i] = results[i].raw();
        *num_out = results.size();
      });
    }};

template <class>
constexpr const void* ModuleBase::table() {
  return &module_table;
}

}  // namespace detail

// The base of modules. It has no functions of its own: constructor and emit are found by their signatures.
class Module {
 public:
  using ComponentBase = detail::ModuleBase;
};

}  // namespace gestalt

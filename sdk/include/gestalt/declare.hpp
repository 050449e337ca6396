// What a module owns: children, parameters, buffers, state. Declared once per instance, in the module's constructor.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "gestalt/abi/module.h"
#include "gestalt/attrs.hpp"
#include "gestalt/tensor.hpp"

namespace gestalt {

// Ids that Declare returns and Build takes.
struct Child {
  uint64_t id = 0;
};
struct Param {
  uint64_t id = 0;
};
struct Buffer {
  uint64_t id = 0;
};
struct State {
  uint64_t id = 0;
};

// How a parameter starts. The values depend on (seed, name, global element index) only.
struct Init {
  int64_t kind;
  double a = 0, b = 0;
  static Init zeros() { return {GESTALT_INIT_ZEROS}; }
  static Init ones() { return {GESTALT_INIT_ONES}; }
  static Init normal(double deviation, double mean = 0) { return {GESTALT_INIT_NORMAL, mean, deviation}; }
  static Init uniform(double low, double high) { return {GESTALT_INIT_UNIFORM, low, high}; }
  static Init constant(double value) { return {GESTALT_INIT_CONSTANT, value}; }
};

// The dimension that is cut and the mesh axis it is cut over, in multiples of `unit` elements. dim -1: replicated.
struct Shard {
  int64_t dim = -1;
  std::string_view axis = {};
  int64_t unit = 1;
};

// What a parameter may have beside name, shape and start.
struct ParamOptions {
  Shard shard = {};
  Shape parts = {};  // sizes along dimension 0 of a fused weight; empty: one part
  std::vector<std::string_view> part_names = {};
  std::string_view group = {};  // optimizer group; empty: "decay" for two and more dimensions, else "no_decay"
  DType dtype = 0;              // 0: the run's compute type
};

// A linear layer's parameters: weight [out, in] and, with has_bias, bias [out].
struct Linear {
  Param weight, bias;
  bool has_bias = false;
};

struct LinearOptions {
  std::string_view axis = "tp";
  int64_t unit = 1;  // a column linear's parts are cut in multiples of this
  bool bias = false;
  Init init = Init::normal(0.02);
  std::vector<std::string_view> part_names = {};
};

// A norm's parameters: weight [width] and, with has_bias, bias [width].
struct Norm {
  Param weight, bias;
  bool has_bias = false;
};

// What a child is for, and its name in paths where that differs: {"norm", "attention_norm"}.
struct Slot {
  std::string_view slot, name = {};
  Slot(const char* slot_in) : slot(slot_in) {}
  Slot(std::string_view slot_in) : slot(slot_in) {}
  Slot(std::string_view slot_in, std::string_view name_in) : slot(slot_in), name(name_in) {}
};

class Declare {
 public:
  Declare(gestalt_declare* declare, const gestalt_host* host) : declare_(declare), host_(host) {}

  // A child in a named slot. Of `config`, the keys that the child knows are passed on, the others ignored.
  Child child(Slot slot, std::string_view default_component, Attrs config = {}) {
    Child c;
    check(host_, api().child(declare_, str_of(slot.slot), str_of(slot.name), str_of(default_component), config.data(),
                             config.size(), &c.id));
    return c;
  }
  // The same with some keys changed or added.
  Child child(Slot slot, std::string_view default_component, Attrs config, std::initializer_list<Attr> changed) {
    std::vector<gestalt_attr> all;
    for (const gestalt_attr& a : config)
      if (!Attrs(changed.begin(), changed.size()).has(view_of(a.name))) all.push_back(a);
    all.insert(all.end(), changed.begin(), changed.end());
    std::sort(all.begin(), all.end(),
              [](const gestalt_attr& a, const gestalt_attr& b) { return view_of(a.name) < view_of(b.name); });
    return child(slot, default_component, Attrs(all.data(), all.size()));
  }

  Param param(std::string_view name, const Shape& shape, Init init, const ParamOptions& options = {}) {
    return {describe(name, shape, init, options, api().param)};
  }
  // Not trained.
  Buffer buffer(std::string_view name, const Shape& shape, Init init, const ParamOptions& options = {}) {
    return {describe(name, shape, init, options, api().buffer)};
  }
  // weight "<name>.weight" of shape [sum of parts, in], cut over the outputs, each part by itself.
  Linear column_linear(std::string_view name, int64_t in, const Shape& parts, const LinearOptions& options = {}) {
    int64_t out = 0;
    for (int64_t p : parts) out += p;
    ParamOptions o{{0, options.axis, options.unit}, parts.size() > 1 ? parts : Shape{}, options.part_names};
    Linear l;
    l.weight = param(joined(name, "weight"), {out, in}, options.init, o);
    l.has_bias = options.bias;
    if (l.has_bias) l.bias = param(joined(name, "bias"), {out}, Init::zeros(), o);
    return l;
  }
  // weight "<name>.weight" of shape [out, in], cut over the inputs; the bias is replicated.
  Linear row_linear(std::string_view name, int64_t in, int64_t out, const LinearOptions& options = {}) {
    Linear l;
    l.weight = param(joined(name, "weight"), {out, in}, options.init, {{1, options.axis, options.unit}});
    l.has_bias = options.bias;
    if (l.has_bias) l.bias = param(joined(name, "bias"), {out}, Init::zeros());
    return l;
  }
  Norm norm(std::string_view name, int64_t width, bool bias = false) {
    Norm n;
    n.weight = param(joined(name, "weight"), {width}, Init::ones());
    n.has_bias = bias;
    if (bias) n.bias = param(joined(name, "bias"), {width}, Init::zeros());
    return n;
  }

  // What generation keeps for every token or sequence; shape excludes that dimension.
  State state_per_token(std::string_view name, const Shape& shape, Shard shard = {}, DType dtype = 0) {
    return state(name, GESTALT_STATE_PER_TOKEN, shape, shard, dtype);
  }
  State state_per_sequence(std::string_view name, const Shape& shape, Shard shard = {}, DType dtype = 0) {
    return state(name, GESTALT_STATE_PER_SEQUENCE, shape, shard, dtype);
  }

  // The parameter at `path` below this module becomes this module's too: one tensor, one gradient.
  Param tie(std::string_view path) {
    Param p;
    check(host_, api().tie(declare_, str_of(path), &p.id));
    return p;
  }
  // A pipeline stage may begin before this child.
  void boundary(Child child) { check(host_, api().boundary(declare_, child.id)); }

  struct Axis {
    int64_t size = 1, index = 0;
  };
  Axis axis(std::string_view name) const {
    Axis a;
    api().axis(declare_, str_of(name), &a.size, &a.index);
    return a;
  }
  DType dtype() const { return api().dtype(declare_); }  // the run's compute type
  std::string_view path() const {
    gestalt_str path{};
    api().path(declare_, &path);
    return view_of(path);
  }
  const gestalt_host* host() const { return host_; }

 private:
  using DescribeFn = decltype(gestalt_declare_api::param);

  const gestalt_declare_api& api() const { return *declare_->api; }
  // An empty name stands for the module itself.
  static std::string joined(std::string_view name, const char* last) {
    return name.empty() ? last : std::string(name) + "." + last;
  }
  uint64_t describe(std::string_view name, const Shape& shape, Init init, const ParamOptions& options,
                    DescribeFn declare) {
    std::vector<gestalt_str> part_names;
    for (std::string_view p : options.part_names) part_names.push_back(str_of(p));
    if (!part_names.empty() && part_names.size() != options.parts.size())
      throw InvalidArgument("[" + std::string(name) + "] got " + std::to_string(part_names.size()) +
                            " part names, expected " + std::to_string(options.parts.size()));
    const gestalt_param_desc desc = {sizeof(gestalt_param_desc),
                                     str_of(name),
                                     shape.data(),
                                     static_cast<int64_t>(shape.size()),
                                     options.parts.empty() ? nullptr : options.parts.data(),
                                     part_names.empty() ? nullptr : part_names.data(),
                                     options.parts.size(),
                                     init.kind,
                                     init.a,
                                     init.b,
                                     options.shard.dim,
                                     str_of(options.shard.axis),
                                     options.shard.unit,
                                     str_of(options.group),
                                     options.dtype,
                                     0};
    uint64_t id = 0;
    check(host_, declare(declare_, &desc, &id));
    return id;
  }
  State state(std::string_view name, int64_t scope, const Shape& shape, Shard shard, DType dtype) {
    const gestalt_state_desc desc = {
        sizeof(gestalt_state_desc), str_of(name), scope, shape.data(), static_cast<int64_t>(shape.size()), shard.dim,
        str_of(shard.axis),         dtype,        0};
    State s;
    check(host_, api().state(declare_, &desc, &s.id));
    return s;
  }

  gestalt_declare* declare_;
  const gestalt_host* host_;
};

}  // namespace gestalt

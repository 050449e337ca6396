#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/attrs.h"

namespace gestalt::core {

// The parsed form of an op's schema text (syntax: gestalt/abi/plugin.h, gestalt_op). It is the one source of names,
// defaults, optional inputs and marks.
struct Schema {
  struct Input {
    std::string name;
    bool optional = false;
    bool mutated = false;   // !mut
    bool variadic = false;  // name...
  };
  struct Attribute {
    std::string name;
    uint64_t kind;
    std::optional<AttrValue> default_value;
  };
  struct Output {
    std::string name;
    std::optional<size_t> inplace;  // !inplace(x): index of x
    bool accumulates = false;       // !acc(f32)
    bool saved = false, nograd = false, opaque = false, variadic = false;
  };

  std::string name;
  std::vector<Input> inputs;
  std::vector<Attribute> attributes;
  std::vector<Output> outputs;

  size_t min_inputs() const;
  size_t max_inputs() const;  // SIZE_MAX when variadic
  bool mutates() const;
  const Input& input(size_t i) const { return inputs[i < inputs.size() ? i : inputs.size() - 1]; }
  const Output& output(size_t i) const { return outputs[i < outputs.size() ? i : outputs.size() - 1]; }
  // Checks names and types and fills in defaults; integers are accepted where floats are meant.
  Attrs complete(const Attrs& given) const;
};

// Throws invalid_argument with the column of the problem.
Schema parse_schema(std::string_view text);

}  // namespace gestalt::core

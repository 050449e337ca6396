// A family of models: how its config.json and its tensors translate. Each is one file with constant tables that
// registers itself; nothing else names it.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "gestalt/registration.hpp"
#include "plugins/format_hf/model_keys.h"
#include "support/json.h"

namespace gestalt::format_hf {

// A logical tensor, below "model.", out of stored ones: joined along dimension 0, each transposed first when it is stored
// [in, out]. '*' stands for the layer.
struct TensorRule {
  std::string_view logical;
  std::array<std::string_view, 3> stored;
  bool transposed = false;
};

// A key of [model] out of a key of config.json. A null or absent value takes the default, which the library does not
// write; without one the key is left out of [model].
enum class KeyKind { kInteger, kReal, kBoolean };
struct KeyRule {
  std::string_view key, hf;
  KeyKind kind;
  std::string_view absent = {};
};

struct Family {
  std::string_view model_type;
  std::span<const KeyRule> keys;
  std::span<const TensorRule> tensors;        // looked at first
  std::span<const TensorRule> more_tensors;   // what the family shares with others
  std::span<const std::string_view> ignored;  // patterns of stored names that carry nothing
  std::string_view optional_prefix;           // of stored names; files of the bare model lack it
  // What the tables cannot say.
  void (*more)(const support::Json& config, ModelKeys& out);
};

GESTALT_REGISTERED(Family, families, "gestalt_hf_families")

const Family* find_family(std::string_view model_type);
std::vector<std::string_view> family_names();

// The keys of [model] for a config.json; DATA_ERROR that names the key otherwise.
ModelKeys model_keys(const Family& family, const support::Json& config);

}  // namespace gestalt::format_hf

#define GESTALT_HF_FAMILY(...) GESTALT_REGISTER(::gestalt::format_hf::Family, "gestalt_hf_families", __VA_ARGS__)

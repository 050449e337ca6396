// A family of models: how its config.json and its tensors translate, both ways. Each is one file with constant tables
// that registers itself; nothing else names it.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "gestalt/registration.hpp"
#include "plugins/format_hf/config_reader.h"
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

// A key of [model] that is a key of config.json.
enum class KeyKind { kInteger, kReal, kBoolean };
struct KeyRule {
  std::string_view key, hf;
  KeyKind kind;
};
// What a null or absent value of config.json stands for; the library leaves values out that equal it. Without one the
// key is left out of [model].
struct Absent {
  std::string_view hf, value;
};

struct Family {
  std::string_view model_type, architecture;
  std::span<const KeyRule> keys;
  std::span<const KeyRule> more_keys;         // beside those that the family shares with others
  std::span<const Absent> absent;
  std::span<const TensorRule> tensors;        // looked at first
  std::span<const TensorRule> more_tensors;   // what the family shares with others
  std::span<const std::string_view> ignored;  // patterns of stored names that carry nothing
  std::span<const std::string_view> harmless; // keys of config.json beside kHarmlessKeys
  std::string_view optional_prefix;           // of stored names; files of the bare model lack it
  // What the tables cannot say.
  void (*more)(const ConfigReader& config, ModelKeys& out);
  void (*write_more)(const ModelKeys& model, support::Json& out);
};

GESTALT_REGISTERED(Family, families, "gestalt_hf_families")

const Family* find_family(std::string_view model_type);
std::vector<std::string_view> family_names();

struct Translated {
  ModelKeys keys;                     // of [model]
  std::vector<std::string> unknown;  // "foo is 3": keys that are not understood
};
// DATA_ERROR that names the key for a value that cannot be.
Translated translate(const Family& family, const support::Json& config);

// The rule of a logical name ("model.layers.0.mlp.down.weight") and the layer in it; NULL if there is none.
struct FoundRule {
  const TensorRule* rule;
  std::string layer;
};
FoundRule find_rule(const Family& family, std::string_view logical);

// config.json of a model; tensors are of `dtype` ("bfloat16").
support::Json write_config(const Family& family, const ModelKeys& model, std::string_view dtype);

}  // namespace gestalt::format_hf

#define GESTALT_HF_FAMILY(...) GESTALT_REGISTER(::gestalt::format_hf::Family, "gestalt_hf_families", __VA_ARGS__)

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.h"
#include "gestalt/abi/plugin.h"

namespace gestalt::core {

// One configuration key, as gestalt_config_key describes it.
struct KeySpec {
  // A path below its section: `lr`, `corpora[].path` (in every table of an array), `*` (any other key).
  std::string name = {};
  // i64 f64 str bool file, each with an optional []; table (whatever is inside); alternatives by '|' (core only).
  std::string type = {};
  std::string default_value = {}, min = {}, max = {};  // TOML literals; empty: none
  std::string choices = {};                            // valid strings separated by '|'; empty: any
  std::string when = {};  // "key=value" or "key=a|b", the key being one of the same section
  std::string doc = {};
  bool required = false;
};

KeySpec key_spec(const gestalt_config_key& key);

// Throws CONFIG_ERROR naming `owner` and the key when the specification contradicts itself: unknown type, a default
// outside its range, ... Manifests come from strangers.
void check_key_spec(const KeySpec& spec, std::string_view owner);

// Whether a section's defaults and required keys count when the configuration does not have the section.
enum class Presence { kAlways, kIfPresent };

// All keys a run may set, by path.
class ConfigSchema {
 public:
  ConfigSchema();
  ConfigSchema(ConfigSchema&&) noexcept;
  ConfigSchema& operator=(ConfigSchema&&) noexcept;
  ~ConfigSchema();

  // Adds the keys of `owner` ("core", "gestalt.adam") to a section (`optimizer`, `metrics."gestalt.jsonl"`). A key that
  // the section has already must have the same type; the later default, range and owner then count.
  void extend(std::string_view section, std::string_view owner, const std::vector<KeySpec>& keys,
              Presence presence = Presence::kAlways);
  // The section must be there; `why` completes "[data] is missing: ".
  void require_section(std::string_view section, std::string_view why);
  // Every key as a path, sorted: for documentation and hints.
  std::vector<std::string> paths() const;

 private:
  friend class SchemaCheck;
  struct Tree;
  std::unique_ptr<Tree> tree_;
};

// Fills defaults in, turns integers into floats where the key is f64, and refuses what the schema does not allow:
// unknown keys, wrong types, values out of range, missing keys, keys without effect. All problems come in one
// CONFIG_ERROR, one a line. Values that only a checkpoint brought and that no longer mean anything are dropped instead.
void check(Config& config, const ConfigSchema& schema);

// The sections that belong to no plugin.
ConfigSchema core_schema();

}  // namespace gestalt::core

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/config/node.h"

namespace gestalt::core {

// Hard limits of any TOML text; a breach is a CONFIG_ERROR.
struct TomlLimits {
  uint64_t file_bytes = uint64_t{1} << 20;
  uint64_t string_bytes = 4096;  // of one key or string value
  int depth = 64;                // of tables and arrays
  int key_parts = 64;            // of one dotted key
};

// Reads TOML 1.0 without dates. Errors are CONFIG_ERROR "FILE:LINE:COL: problem" (a missing file NOT_FOUND); whatever
// the bytes, nothing else comes out.
ConfigNode read_toml_file(const std::filesystem::path& path, const TomlLimits& limits = {});
ConfigNode read_toml_text(std::string_view text, std::string name, const TomlLimits& limits = {});

// One value, as it stands right of '='.
ConfigNode read_toml_value(std::string_view text, std::string name);

}  // namespace gestalt::core

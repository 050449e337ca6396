#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/schema.h"
#include "gestalt/abi/plugin.h"

namespace gestalt::core {

// The platform whose [library.PLATFORM] section this host reads.
inline constexpr std::string_view kPlatform = "linux-x86_64";

struct KernelEntry {
  std::string op, device, backend;
  uint64_t flags = 0;  // GESTALT_KERNEL_ bits
};

struct ComponentEntry {
  std::string kind, name;
  std::vector<KeySpec> keys;  // sorted by name
};

// What the machine must have. "glibc" is checked before loading; other needs ("cuda") are checked by the plugin's main
// or by its kernels, which know how to ask, and are shown to the user here.
struct Need {
  std::string name;
  std::string range;              // ">=2.34,<3"
  std::vector<std::string> list;  // sm = ["80", "90"]; then range is empty
};

// plugin.toml: what a plugin is and provides, readable without running any of it.
struct Manifest {
  std::string id, version;                      // "acme.kernels", "1.4.0"
  std::string publisher, license, description;  // authored
  uint32_t abi_major = 0, min_minor = 0;
  std::string library;  // relative to the manifest
  std::string sha256;
  std::vector<Need> needs;
  std::vector<std::string> ops;  // schemas
  std::vector<KernelEntry> kernels;
  std::vector<ComponentEntry> components;

  const ComponentEntry* component(std::string_view kind, std::string_view name) const;
};

// Throws Error (CONFIG_ERROR) with line and key. `name` is the file's name for messages.
Manifest parse_manifest(std::string_view text, const std::string& name);
// Reads FOLDER/plugin.toml, which must be a regular file.
Manifest read_manifest(const std::filesystem::path& folder);

std::string to_toml(const Manifest& manifest);

// One sorted line for each thing that manifest and binary must agree on, to compare and to print.
std::vector<std::string> promises(const Manifest& manifest);

// The part of a manifest that the binary decides: id, version, ABI and what it provides.
Manifest describe(const gestalt_plugin& plugin);

// The hand-written part, read by `gestalt plugin pack`: publisher, license, description, [needs]; id and version may be
// repeated and must then agree with the binary.
struct Authored {
  std::string id, version, publisher, license, description;
  std::vector<Need> needs;
};
Authored parse_authored(std::string_view text, const std::string& name);

// "acme.kernels": dotted lower-case words, at least two.
bool valid_id(std::string_view id);
// True if `version` ("13.0") meets every part of `range` (">=12.4,<14"). Throws CONFIG_ERROR for a malformed range.
bool version_in_range(std::string_view version, std::string_view range);

}  // namespace gestalt::core

#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plugin/confined_file.h"
#include "core/plugin/elf.h"
#include "core/plugin/manifest.h"
#include "gestalt/abi/plugin.h"

namespace gestalt::core {

// Which plugin files may load (PLUGIN_ABI 5.12). Plugins are trusted code: these checks say which file it is, not what
// it does.
enum class Trust {
  kNamed,   // named in the run, hash equal to the manifest's, nothing world-writable
  kLocked,  // and: only hashes of the lock file, owned by the user or root, nothing group-writable
};

// plugins.lock.toml: what a run used.
struct LockEntry {
  std::string id, version, sha256;
};
struct Lock {
  std::vector<LockEntry> plugins;  // sorted by id
  std::string path;                // for messages
  const LockEntry* find(std::string_view id) const;
};
Lock parse_lock(std::string_view text, const std::string& name);
Lock read_lock(const std::filesystem::path& path);
std::string to_toml(const Lock& lock);

// A plugin in this process. Never unloaded: its code may be referenced from anywhere (PLUGIN_ABI 5.11).
struct Plugin {
  Manifest manifest;
  std::filesystem::path folder;  // empty: part of this process
  const gestalt_plugin* descriptor = nullptr;
  const gestalt_host* host = nullptr;
};

// The steps in order. Each failure is an Error (CONFIG_ERROR) "plugin 'acme.kernels': step 'hash': file ...: reason".
// No code of the plugin runs before step 'load'.
//   manifest   read and parsed
//   path       the library lies inside the manifest's folder, without links
//   owner      library and folders are not world-writable; locked: owned by the user or root, not group-writable
//   lock       locked: the lock file has this id, version and hash
//   hash       SHA-256 of the library is the manifest's
//   elf        a complete shared library of this machine
//   abi        the library exports this host's ABI, and the host's minor is new enough
//   needs      glibc is new enough
//   load       dlopen of the descriptor that was checked, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE
//   symbol     gestalt_plugin_main_v1 is found
//   main       it returns success
//   descriptor well formed
//   compare    the descriptor provides what the manifest says, no more and no less
Plugin load_plugin(const std::filesystem::path& folder, Trust trust, const Lock* lock);

// Loads a bare library that has no manifest yet, for `gestalt plugin pack`. Steps elf to descriptor.
struct BareLibrary {
  const gestalt_plugin* descriptor;
  std::string sha256;
  ElfFile elf;
};
BareLibrary load_bare(const std::filesystem::path& library);

// Writes the manifest of `library` to `out`: what the binary provides and the authored lines of `authored` (empty path:
// none). The library must lie in the folder of `out` or below.
void pack(const std::filesystem::path& library, const std::filesystem::path& authored,
          const std::filesystem::path& out);

}  // namespace gestalt::core

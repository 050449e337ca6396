#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gestalt::core {

// What a plugin file says about itself before any of it runs.
struct ElfFile {
  std::string machine;                      // "x86_64"
  std::vector<std::string> needed;          // DT_NEEDED, in order
  std::vector<std::string> exports;         // defined global symbols of .dynsym, sorted
  std::vector<std::string> glibc_versions;  // every "GLIBC_x.y" asked for, sorted
  std::string glibc;                        // the newest of them as "2.34"; empty if none
  std::string soname, run_path;             // DT_SONAME; DT_RUNPATH or DT_RPATH
  uint64_t constructors = 0;                // entries of DT_INIT_ARRAY
  bool executable_stack = false;

  bool has_export(std::string_view name) const;
  // ABI majors N for which gestalt_plugin_main_vN is exported, ascending.
  std::vector<int> abi_majors() const;
};

// Reads a shared library of this machine out of its bytes. Everything the dynamic loader would map must lie inside the
// file: glibc does not check that and dies of SIGBUS. Throws Error (CONFIG_ERROR) with the reason alone; the caller
// adds plugin, step and file.
ElfFile parse_elf(std::string_view bytes);

}  // namespace gestalt::core

#include "core/plugin/elf.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/catch_compat.hpp"

using namespace gestalt::core;

namespace {
// A shared library that every process has: libm, or what stands for it.
std::string some_library() {
  Dl_info info{};
  REQUIRE(dladdr(reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::lgamma)), &info) != 0);
  return read_file(info.dli_fname, 1 << 28);
}

// True if refused in the proper way.
bool refused(const std::string& bytes) {
  try {
    parse_elf(bytes);
    return false;
  } catch (const Error& e) {
    CHECK(e.code() == GESTALT_CONFIG_ERROR);
    return true;
  }
}
}  // namespace

TEST_CASE("a system library is read") {
  const ElfFile elf = parse_elf(some_library());
  CHECK(elf.machine == "x86_64");
  CHECK(elf.has_export("lgamma"));
  CHECK(!elf.has_export("gestalt_plugin_main_v1"));
  CHECK(elf.abi_majors().empty());
  CHECK(std::is_sorted(elf.exports.begin(), elf.exports.end()));
  CHECK(!elf.soname.empty());
}

TEST_CASE("the ABI majors come from the names of the entries") {
  ElfFile elf;
  elf.exports = {"gestalt_plugin_main_v", "gestalt_plugin_main_v1", "gestalt_plugin_main_v12",
                 "gestalt_plugin_main_v2x", "other"};
  CHECK(elf.abi_majors() == std::vector<int>{1, 12});
}

TEST_CASE("a library cut anywhere is refused") {
  const std::string all = some_library();
  for (size_t size = 0; size < std::min<size_t>(all.size(), 4096); size += 7) CHECK(refused(all.substr(0, size)));
  for (size_t i = 1; i < 200; ++i) CHECK(refused(all.substr(0, all.size() * i / 200)));
  CHECK(refused(all.substr(0, all.size() - 1)));
}

TEST_CASE("damaged bytes are read within bounds") {
  const std::string all = some_library().substr(0, 1 << 20);
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = all.substr(0, i % 2 ? all.size() : 8192);
    // Most of what the reader looks at stands in the first pages.
    for (int j = 0; j < 8; ++j)
      bytes[random() % std::min<size_t>(bytes.size(), 1 << (6 + random() % 15))] = char(random());
    refused(bytes);
  }
  SUCCEED();
}

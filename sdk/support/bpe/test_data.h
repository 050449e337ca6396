// What the tests of this folder share: reference files (which a checkout may lack), sizes of fuzzing, random text.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support::bpe {

inline int64_t num_fuzz(int64_t in_ci, int64_t usual) {
  if (const char* runs = std::getenv("GESTALT_FUZZ_RUNS")) return std::atoll(runs);
  const char* ci = std::getenv("CI");
  return ci && std::string(ci) == "1" ? in_ci : usual;
}

// A path in this process's own folder, which goes when the process ends.
inline std::string scratch(const std::string& name) {
  static const support::TestFolder folder;
  return folder.file(name);
}

inline std::string write_file(const std::string& name, const std::string& bytes) {
  const std::string path = scratch(name);
  std::filesystem::remove(path);  // some file systems write through when an old file is cut to nothing
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// A reference file, unpacked if it is stored as .xz; empty when it is absent (the caller skips, visibly).
inline std::string reference(const std::string& relative) {
  const std::filesystem::path base = std::filesystem::path(GESTALT_SOURCE_DIR) / "../shared";
  if (exists(base / relative)) return (base / relative).string();
  if (!exists(base / (relative + ".xz"))) {
    WARN("SKIP: " << relative << " is not beside this checkout");
    return {};
  }
  const std::string path = scratch(std::filesystem::path(relative).filename().string());
  if (!std::filesystem::exists(path)) {
    const std::string command = "xz -dc '" + (base / (relative + ".xz")).string() + "' > '" + path + "'";
    REQUIRE(std::system(command.c_str()) == 0);
  }
  return path;
}

// Well-formed UTF-8 rich in what patterns turn on: spaces, newlines, apostrophes, case, digits, marks, slashes.
template <class Allowed>
std::string random_text(std::mt19937_64& random, Allowed allowed) {
  static const char* const kBits[] = {" ",        "  ",
                                      "\n",       "\r\n",
                                      "\t",       "'s",
                                      "'S",       "'ll",
                                      "'VE",      "'",
                                      "a",        "Zb",
                                      "aB",       "12",
                                      "3",        "/",
                                      "//",       "!?",
                                      ".",        "\xC5\xBF",
                                      "\xC2\xA0", "\xE3\x80\x80",
                                      "\xCC\x81", "\xD7\x90",
                                      "\xC7\x85", "\xE6\xBC\xA2",
                                      "\xC2\xB2", "\xE2\x85\xA7"};
  std::string text;
  for (uint64_t n = random() % 24; n > 0; --n) {
    if (random() % 3) {
      text += kBits[random() % std::size(kBits)];
      continue;
    }
    const uint32_t limits[] = {0x80, 0x400, 0x3000, 0xFFFF, 0x110000};
    uint32_t code = static_cast<uint32_t>(random() % limits[random() % 5]);
    if ((code >= 0xD800 && code < 0xE000) || !allowed(code)) continue;
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += static_cast<char>(0xC0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 63));
    } else if (code < 0x10000) {
      text += static_cast<char>(0xE0 | code >> 12);
      text += static_cast<char>(0x80 | (code >> 6 & 63));
      text += static_cast<char>(0x80 | (code & 63));
    } else {
      text += static_cast<char>(0xF0 | code >> 18);
      text += static_cast<char>(0x80 | (code >> 12 & 63));
      text += static_cast<char>(0x80 | (code >> 6 & 63));
      text += static_cast<char>(0x80 | (code & 63));
    }
  }
  return text;
}

inline std::string random_bytes(std::mt19937_64& random) {
  std::string bytes(random() % 64, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

}  // namespace gestalt::support::bpe

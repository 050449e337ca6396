#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gestalt/abi/module.h"

// A host that is just enough for one plugin, written against the C headers only. What it was told is kept as text.
struct FakeHost {
  gestalt_host table{};
  std::vector<std::string> log;
  int open_statuses = 0;
  bool with_parallel = true;

  FakeHost();
};

// Recording and declaring contexts; entries are "op(in, in){attr=...}", "param name [8, 4]" and so on. Handles are
// numbered from 1 in the order of creation; every tensor is f32 [6] unless its number is in `integers`.
struct FakeBuild : gestalt_build {
  std::vector<std::string> log;
  std::vector<int> integers;
  uint64_t num_outputs = 1;
  int next = 1;

  FakeBuild();
  gestalt_tensor* make() { return reinterpret_cast<gestalt_tensor*>(static_cast<uintptr_t>(next++)); }
};

struct FakeDeclare : gestalt_declare {
  std::vector<std::string> log;
  FakeDeclare();
};

// "1 message", and frees the status; "ok" for NULL.
std::string text_of(const FakeHost& host, gestalt_status* status);

inline gestalt_str abi_str(std::string_view s) { return {s.data(), s.size()}; }
inline std::string text_of(gestalt_str s) { return std::string(s.data, s.size); }

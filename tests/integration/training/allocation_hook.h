#pragma once

#include <cstdint>
#include <string>

namespace gestalt::test {

// Counts malloc, calloc, realloc, aligned_alloc, posix_memalign and mmap of all threads of the process, plugins
// included, between begin and end. operator new is malloc here.
class AllocationCount {
 public:
  // False under sanitizers, which have their own.
  static bool works();

  AllocationCount();
  ~AllocationCount();
  int64_t end();
  // Who asked first: "malloc(64) from libx.so+0x12".
  std::string first() const;
};

}  // namespace gestalt::test

#include "tests/integration/training/allocation_hook.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GESTALT_HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GESTALT_HAS_SANITIZER 1
#endif

namespace {

std::atomic<bool> g_counting{false};
std::atomic<int64_t> g_count{0};
std::atomic<const char*> g_first_what{nullptr};
std::atomic<void*> g_first_caller{nullptr};
std::atomic<size_t> g_first_bytes{0};

}  // namespace

#ifndef GESTALT_HAS_SANITIZER

namespace {

void count(const char* what, size_t bytes, void* caller) {
  if (!g_counting.load(std::memory_order_relaxed)) return;
  if (g_count.fetch_add(1) != 0) return;
  g_first_what = what;
  g_first_bytes = bytes;
  g_first_caller = caller;
}

}  // namespace

// glibc's own functions under their other names; symbols of the executable come before those of every library.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t num, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  count("malloc", bytes, __builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(size_t num, size_t bytes) {
  count("calloc", num * bytes, __builtin_return_address(0));
  return __libc_calloc(num, bytes);
}
void* realloc(void* old, size_t bytes) {
  count("realloc", bytes, __builtin_return_address(0));
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  count("aligned_alloc", bytes, __builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  count("posix_memalign", bytes, __builtin_return_address(0));
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : ENOMEM;
}
void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  count("mmap", bytes, __builtin_return_address(0));
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
}

#endif

namespace gestalt::test {

bool AllocationCount::works() {
#ifdef GESTALT_HAS_SANITIZER
  return false;
#else
  return true;
#endif
}

AllocationCount::AllocationCount() {
  g_count = 0;
  g_counting = true;
}

AllocationCount::~AllocationCount() { g_counting = false; }

int64_t AllocationCount::end() {
  g_counting = false;
  return g_count;
}

std::string AllocationCount::first() const {
  if (g_count == 0) return "none";
  Dl_info where{};
  void* caller = g_first_caller;
  const bool known = ::dladdr(caller, &where) != 0 && where.dli_fname;
  return fmt::format(
      "{}({}) from {}+{:#x}", g_first_what.load(), g_first_bytes.load(), known ? where.dli_fname : "?",
      reinterpret_cast<uintptr_t>(caller) - reinterpret_cast<uintptr_t>(known ? where.dli_fbase : nullptr));
}

}  // namespace gestalt::test

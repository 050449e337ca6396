#include "tests/harness/allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<uint64_t> count{0};

void* counted(std::size_t bytes, std::size_t align) {
  count.fetch_add(1, std::memory_order_relaxed);
  bytes = (bytes + align - 1) / align * align;
  void* data = align <= alignof(std::max_align_t) ? std::malloc(bytes ? bytes : 1)
                                                  : std::aligned_alloc(align, bytes ? bytes : align);
  if (!data) throw std::bad_alloc();
  return data;
}

}  // namespace

namespace gestalt::harness {

uint64_t allocations() { return count.load(std::memory_order_relaxed); }

}  // namespace gestalt::harness

void* operator new(std::size_t bytes) { return counted(bytes, 1); }
void* operator new[](std::size_t bytes) { return counted(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t align) {
  return counted(bytes, static_cast<std::size_t>(align));
}
void* operator new[](std::size_t bytes, std::align_val_t align) {
  return counted(bytes, static_cast<std::size_t>(align));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete[](void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }

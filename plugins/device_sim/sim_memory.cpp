#include "plugins/device_sim/sim_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "gestalt/error.hpp"

namespace gestalt::device_sim {

namespace {

// NaN as f16, bf16, f32 and f64; 2147319805 as i32.
constexpr uint16_t kPoison = 0x7ffd;

void poison(uintptr_t first, uint64_t bytes) {
  auto* words = reinterpret_cast<uint16_t*>(first);
  std::fill(words, words + bytes / 2, kPoison);
}

std::string hex(uintptr_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Range range_of(const gestalt_view& view) {
  int64_t low = 0, high = 0;
  for (int i = 0; i < view.ndim; ++i) {
    if (view.shape[i] == 0) return {};
    const int64_t reach = (view.shape[i] - 1) * view.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = (view.dtype >> 8 & 0xff) / 8;
  const auto base = reinterpret_cast<intptr_t>(view.data);
  return {static_cast<uintptr_t>(base + low * size), static_cast<uintptr_t>(base + (high + 1) * size)};
}

Memory::Memory(bool strict, uint64_t limit)
    : strict_(strict), limit_(limit), page_(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))) {}

Memory::~Memory() {
  for (auto& [base, a] : allocations_) munmap(reinterpret_cast<void*>(base - page_), a.mapped + 2 * page_);
}

void* Memory::alloc(uint64_t bytes, bool pinned) {
  if (bytes == 0) return nullptr;
  std::lock_guard lock(mutex_);
  const bool over = limit_ && !pinned && bytes > limit_ - std::min(limit_, used_);
  const uint64_t mapped = (bytes + page_ - 1) / page_ * page_;
  void* start = MAP_FAILED;
  if (!over && mapped >= bytes)
    start = mmap(nullptr, mapped + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED)
    throw Error(GESTALT_OUT_OF_MEMORY, "[alloc] no memory, got " + std::to_string(bytes) + " bytes, in use " +
                                           std::to_string(used_) + " of " +
                                           (limit_ ? std::to_string(limit_) : std::string("what the system has")));
  const uintptr_t base = reinterpret_cast<uintptr_t>(start) + page_;
  protect(base, mapped, true);
  poison(base, mapped);
  if (strict_ && !pinned) protect(base, mapped, false);
  Allocation& a = allocations_[base];
  a.number = next_number_++;
  a.bytes = bytes;
  a.mapped = mapped;
  a.pinned = pinned;
  a.holders.assign(mapped / page_, 0);
  if (!pinned) used_ += bytes;
  return reinterpret_cast<void*>(base);
}

void Memory::free(void* data) {
  if (!data) return;
  std::lock_guard lock(mutex_);
  const auto base = reinterpret_cast<uintptr_t>(data);
  auto it = allocations_.find(base);
  if (it == allocations_.end())
    throw Error(GESTALT_INVALID_ARGUMENT, "[free] not the start of an allocation, got " + hex(base));
  Allocation& a = it->second;
  if (!a.live) throw Error(GESTALT_INVALID_ARGUMENT, "[free] freed twice, got " + name(a));
  // The bytes between the end of the allocation and the end of its last page belong to nobody: still poison?
  protect(base, a.mapped, true);
  uint64_t slack = a.bytes + a.bytes % 2;
  while (slack < a.mapped && *reinterpret_cast<uint16_t*>(base + slack) == kPoison) slack += 2;
  protect(base, a.mapped, false);
  madvise(data, a.mapped, MADV_DONTNEED);
  a.live = false;
  a.holders = {};
  if (!a.pinned) used_ -= a.bytes;
  if (slack < a.mapped)
    throw Error(GESTALT_INTERNAL, "[free] " + name(a) + " was written past its end, at byte " + std::to_string(slack));
}

std::string Memory::name(const Allocation& a) {
  return "allocation " + std::to_string(a.number) + " of " + std::to_string(a.bytes) + " bytes" +
         (a.pinned ? " (pinned)" : "");
}

Memory::Map::const_iterator Memory::find(uintptr_t address) const {
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return allocations_.end();
  --it;
  return address < it->first + it->second.mapped ? it : allocations_.end();
}

Memory::Allocation& Memory::held(Range range, uintptr_t* base) {
  auto it = find(range.first);
  if (it == allocations_.end())
    throw Error(GESTALT_INVALID_ARGUMENT, "[memory] work holds an address that is not of this device, got " +
                                              hex(range.first) + "; is it host memory that was not copied?");
  const Allocation& a = it->second;
  if (!a.live) throw Error(GESTALT_INVALID_ARGUMENT, "[memory] work holds freed memory, got " + name(a));
  if (range.last > it->first + a.bytes)
    throw Error(GESTALT_INVALID_ARGUMENT, "[memory] work leaves its allocation, got bytes " +
                                              std::to_string(range.first - it->first) + " to " +
                                              std::to_string(range.last - it->first) + " of " + name(a));
  *base = it->first;
  return const_cast<Allocation&>(a);
}

void Memory::protect(uintptr_t first, uint64_t bytes, bool open) const {
  if (mprotect(reinterpret_cast<void*>(first), bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
    throw Error(GESTALT_INTERNAL, "[memory] mprotect of " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
}

// Calls change(holders) on each page of the range; runs of pages where it returns true change their protection.
template <class Change>
void Memory::change_pages(Allocation& a, uintptr_t base, Range range, bool open, Change change) {
  const uint64_t begin = (range.first - base) / page_, end = (range.last - 1 - base) / page_ + 1;
  uint64_t from = begin;
  for (uint64_t page = begin; page < end; ++page) {
    if (change(a.holders[page])) continue;
    if (from < page) protect(base + from * page_, (page - from) * page_, open);
    from = page + 1;
  }
  if (from < end) protect(base + from * page_, (end - from) * page_, open);
}

void Memory::open(Range range) {
  if (range.empty()) return;
  std::lock_guard lock(mutex_);
  uintptr_t base = 0;
  Allocation& a = held(range, &base);
  if (strict_ && !a.pinned) change_pages(a, base, range, true, [](uint32_t& holders) { return holders++ == 0; });
}

void Memory::close(Range range) {
  if (range.empty()) return;
  std::lock_guard lock(mutex_);
  uintptr_t base = 0;
  Allocation& a = held(range, &base);
  if (strict_ && !a.pinned) change_pages(a, base, range, false, [](uint32_t& holders) { return --holders == 0; });
}

bool Memory::is_device(Range range) const {
  std::lock_guard lock(mutex_);
  auto it = allocations_.lower_bound(range.last);
  if (range.empty() || it == allocations_.begin()) return false;
  --it;
  return !it->second.pinned && range.first < it->first + it->second.mapped;
}

uint64_t Memory::free_bytes() const {
  std::lock_guard lock(mutex_);
  return limit_ - std::min(limit_, used_);
}

std::vector<std::string> Memory::leaks() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& [base, a] : allocations_)
    if (a.live) lines.push_back(name(a));
  return lines;
}

bool Memory::describe(uintptr_t address, char* text, uint64_t size) const noexcept {
  if (!mutex_.try_lock()) return false;
  bool known = false;
  auto it = allocations_.upper_bound(address + page_);  // the guard page before an allocation counts as its own
  if (it != allocations_.begin()) {
    --it;
    const Allocation& a = it->second;
    known = address + page_ >= it->first && address < it->first + a.mapped + page_;
    if (known)
      std::snprintf(text, size, "byte %lld of %s allocation %llu (%llu bytes)",
                    static_cast<long long>(address - it->first), a.live ? "the live" : "the FREED",
                    static_cast<unsigned long long>(a.number), static_cast<unsigned long long>(a.bytes));
  }
  mutex_.unlock();
  return known;
}

}  // namespace gestalt::device_sim

// The memory of a simulated device: every allocation on its own pages between two guard pages, closed (no access)
// except while work that holds them runs. Freed pages stay closed and their addresses are never used again, so that a
// late touch always faults. [any] thread; one lock.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gestalt/abi/device.h"

namespace gestalt::device_sim {

// Bytes [first, last).
struct Range {
  uintptr_t first = 0, last = 0;
  bool empty() const { return first == last; }
};

inline Range range_of(const void* data, uint64_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(data);
  return {first, first + bytes};
}

// The bytes that a view touches, by its shape and strides.
Range range_of(const gestalt_view& view);

class Memory {
 public:
  // strict: pages are closed when not in use. limit: bytes that may be allocated, 0 for no limit.
  Memory(bool strict, uint64_t limit);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // New memory holds a pattern that is NaN in every float type and a large number in every integer type.
  void* alloc(uint64_t bytes, bool pinned);
  void free(void* data);

  // Opens the pages of a range that lies in one live allocation, or throws; each open needs its close. Pages are
  // counted: work on two streams may hold the same ones. Neither allocates.
  void open(Range range);
  void close(Range range);

  // True when the range touches device (not pinned) memory, live or freed.
  bool is_device(Range range) const;
  uint64_t page_size() const { return page_; }
  uint64_t free_bytes() const;
  // One line a live allocation.
  std::vector<std::string> leaks() const;
  // For a signal handler: writes what lies at `address` to `text`; false when that is not memory of this device.
  bool describe(uintptr_t address, char* text, uint64_t size) const noexcept;

 private:
  struct Allocation {
    uint64_t number = 0, bytes = 0, mapped = 0;  // mapped: whole pages, without the guards
    bool pinned = false, live = true;
    std::vector<uint32_t> holders;  // one a page
  };
  using Map = std::map<uintptr_t, Allocation>;

  static std::string name(const Allocation& allocation);
  Map::const_iterator find(uintptr_t address) const;
  Allocation& held(Range range, uintptr_t* base);
  void protect(uintptr_t first, uint64_t bytes, bool open) const;
  template <class Change>
  void change_pages(Allocation& allocation, uintptr_t base, Range range, bool open, Change change);

  const bool strict_;
  const uint64_t limit_, page_;
  mutable std::mutex mutex_;
  Map allocations_;  // by first address; freed ones stay
  uint64_t used_ = 0, next_number_ = 1;
};

}  // namespace gestalt::device_sim

#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/program/schedule.h"

namespace gestalt::core {

// Pass 9: memory. Where every value that a program makes lives, in one arena a stream.
struct MemoryPlan {
  struct Place {
    int stream = 0;
    uint64_t offset = 0, bytes = 0;
  };
  std::unordered_map<const Value*, Place> places;  // of roots that own storage
  std::vector<Place> workspaces;                   // by bound node; bytes 0: none
  std::vector<uint64_t> arena_bytes;               // by stream: exactly what is allocated
  uint64_t sum_bytes = 0;                          // what it would take without sharing
  uint64_t num_overlays = 0;                       // outputs that took the place of a dead input
};

// `alignment`: of the device, a power of two; every place starts at a multiple of it.
MemoryPlan plan_memory(const Program& program, const Binding& binding, const Schedule& schedule, uint64_t alignment);

}  // namespace gestalt::core

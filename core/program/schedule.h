#pragma once

#include <cstdint>
#include <vector>

#include "core/program/bind.h"

namespace gestalt::core {

// The order in which the host issues work: bound nodes, and events where one stream needs another's results. Every run
// begins with all streams behind stream 0 and ends with stream 0 behind all streams.
struct Schedule {
  enum class Kind { kNode, kRecord, kWait };
  struct Item {
    Kind kind;
    uint32_t node = 0;   // kNode: index into the binding
    uint32_t event = 0;  // kRecord, kWait
    int stream = 0;
  };
  std::vector<Item> items;
  int num_streams = 1;
  uint32_t num_events = 0;
  // clocks[n][s]: number of bound nodes whose completion on stream s node n has waited for, as index + 1; 0: none.
  std::vector<std::vector<uint32_t>> clocks;
};

Schedule make_schedule(const Binding& binding);

}  // namespace gestalt::core

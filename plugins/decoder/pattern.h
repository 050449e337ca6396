#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gestalt/abi/base.h"

namespace gestalt::decoder {

// What one layer is: its slot, which [model.slots] may fill with another component or other settings, and the branches
// that its block has where the slot does not say otherwise.
struct LayerKind {
  std::string slot;
  std::string_view mixer, feed_forward;
};

// The kinds of one period of the stack. An entry is the slot of a layer of both branches ("block", "sliding"), a kind
// of one branch by name ("attention_layer"), or a word of the letters that hybrid models are written in:
//   *  attention   -  MLP   M  Mamba   E  mixture of experts
// CONFIG_ERROR for an entry that is none of these, or that is the slot of something else.
std::vector<LayerKind> read_pattern(std::span<const gestalt_str> entries);

}  // namespace gestalt::decoder

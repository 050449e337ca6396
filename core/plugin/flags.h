#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gestalt::core {

// Kernel flags as words of a manifest: "deterministic". Bits that this host does not know are "bit7".
std::optional<uint64_t> parse_kernel_flag(std::string_view word);
std::vector<std::string> kernel_flag_list(uint64_t flags);
std::string kernel_flag_names();  // for messages

}  // namespace gestalt::core

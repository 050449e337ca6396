#pragma once

#include <string>
#include <string_view>

namespace gestalt::device_cuda {

// Whether code built for `list` (CMake's CUDA_ARCHITECTURES with commas: "80-real,90a-real") runs on compute capability
// major.minor. Machine code ("real") runs on the same major number and an equal or higher minor one; code with features
// of one architecture ("90a") on that one alone; intermediate code ("virtual", or no suffix) on everything newer.
bool code_runs_on(std::string_view list, int major, int minor);

// "8.0, 9.0a": what a list serves, for messages.
std::string readable(std::string_view list);

}  // namespace gestalt::device_cuda

#pragma once

#include "gestalt/kernel.hpp"

namespace gestalt::kernels_cuda {

// The bits of every element of `from`, into `to` of the same shape and dtype.
void copy_elements(const Call& call, std::string_view op, View from, View to);

// Zero in every element.
void zero_elements(const Call& call, std::string_view op, View to);

}  // namespace gestalt::kernels_cuda

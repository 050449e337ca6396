#pragma once

#include <cstdint>
#include <string_view>

#include "plugins/ckpt_hdf5/hdf5_handle.h"

namespace gestalt::ckpt_hdf5 {

// The little-endian type of an element in a file: IEEE floats; bf16 as the float type with 8 bits of exponent and 7 of
// mantissa, which other readers widen to f32; bool as h5py's enumeration. INVALID_ARGUMENT for another dtype.
Handle type_of(uint32_t dtype, std::string_view where);

// 0 for a type that type_of does not make.
uint32_t dtype_of(hid_t type, std::string_view where);

}  // namespace gestalt::ckpt_hdf5

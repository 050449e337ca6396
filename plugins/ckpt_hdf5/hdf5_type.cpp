#include "plugins/ckpt_hdf5/hdf5_type.h"

#include "gestalt/dtype.hpp"
#include "gestalt/error.hpp"

namespace gestalt::ckpt_hdf5 {

namespace {

constexpr uint32_t kDTypes[] = {kF32, kF64, kBF16, kF16, kI32, kI64, kU8, kBool};

// A 16-bit float by its fields.
Handle half(size_t exponent_bits, size_t bias, std::string_view where) {
  const size_t mantissa_bits = 15 - exponent_bits;
  Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, GESTALT_INTERNAL, where, "copy of a type");
  // Fields first: they must fit both sizes at every moment.
  checked(H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits), GESTALT_INTERNAL, where, "fields of a type");
  checked(H5Tset_size(type, 2), GESTALT_INTERNAL, where, "size of a type");
  checked(H5Tset_ebias(type, bias), GESTALT_INTERNAL, where, "bias of a type");
  return type;
}

Handle boolean(std::string_view where) {
  Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose, GESTALT_INTERNAL, where, "an enumeration");
  for (const int8_t value : {0, 1})
    checked(H5Tenum_insert(type, value ? "TRUE" : "FALSE", &value), GESTALT_INTERNAL, where, "an enumeration's value");
  return type;
}

}  // namespace

Handle type_of(uint32_t dtype, std::string_view where) {
  auto standard = [&](hid_t type) { return Handle(H5Tcopy(type), H5Tclose, GESTALT_INTERNAL, where, "copy of a type"); };
  switch (dtype) {
    case kF32: return standard(H5T_IEEE_F32LE);
    case kF64: return standard(H5T_IEEE_F64LE);
    case kI32: return standard(H5T_STD_I32LE);
    case kI64: return standard(H5T_STD_I64LE);
    case kU8: return standard(H5T_STD_U8LE);
    case kBF16: return half(8, 127, where);
    case kF16: return half(5, 15, where);
    case kBool: return boolean(where);
    default: throw InvalidArgument(std::string(where) + "dtype " + std::to_string(dtype) + " has no HDF5 type");
  }
}

uint32_t dtype_of(hid_t type, std::string_view where) {
  for (const uint32_t dtype : kDTypes)
    if (H5Tequal(type, type_of(dtype, where)) > 0) return dtype;
  return 0;
}

}  // namespace gestalt::ckpt_hdf5

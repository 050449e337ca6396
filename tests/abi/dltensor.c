/* gestalt_view is DLTensor: the offsets below are those of DLPack's header on a 64-bit platform, written by hand. */
#include <stddef.h>

#include "gestalt/abi/base.h"

#define AT(field, offset, size)                                                     \
  _Static_assert(offsetof(gestalt_view, field) == (offset), "DLTensor " #field);    \
  _Static_assert(sizeof(((gestalt_view*)0)->field) == (size), "DLTensor " #field)

AT(data, 0, 8);
AT(device_type, 8, 4); /* DLDevice.device_type */
AT(device_id, 12, 4);  /* DLDevice.device_id */
AT(ndim, 16, 4);
AT(dtype, 20, 4); /* DLDataType: code at 20, bits at 21, lanes at 22 */
AT(shape, 24, 8);
AT(strides, 32, 8);
AT(byte_offset, 40, 8);
_Static_assert(sizeof(gestalt_view) == 48, "DLTensor");

/* code, bits, lanes of a little-endian DLDataType: kDLFloat is 2, kDLBfloat 4, kDLInt 0, kDLUInt 1, kDLBool 6. */
_Static_assert(GESTALT_F32 == (2u | 32u << 8 | 1u << 16), "DLDataType");
_Static_assert(GESTALT_BF16 == (4u | 16u << 8 | 1u << 16), "DLDataType");
_Static_assert(GESTALT_I64 == (0u | 64u << 8 | 1u << 16), "DLDataType");
_Static_assert(GESTALT_U8 == (1u | 8u << 8 | 1u << 16), "DLDataType");
_Static_assert(GESTALT_BOOL == (6u | 8u << 8 | 1u << 16), "DLDataType");

/* kDLCPU, kDLCUDA, kDLOpenCL */
_Static_assert(GESTALT_DEVICE_CPU == 1 && GESTALT_DEVICE_CUDA == 2 && GESTALT_DEVICE_OPENCL == 4, "DLDeviceType");

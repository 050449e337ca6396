// The host's memory as a device. Streams are in order by construction: every call runs before it returns, so streams
// and events are tokens, and kernels run inline (no launch entry). There is nothing to capture.
#pragma once

#include "gestalt/abi/device.h"

namespace gestalt::device_cpu {

extern const gestalt_device_1 kCpuTable;
extern const gestalt_component kCpuComponent;  // "device/1", "cpu"

}  // namespace gestalt::device_cpu

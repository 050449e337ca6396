// The host's memory as a device. Streams are in order by construction: every call runs before it returns, so streams
// and events are tokens, and kernels run inline (no launch). There is nothing to capture.
#pragma once

#include "gestalt/abi/device.h"

namespace gestalt::device_cpu {

const gestalt_component& cpu_component();  // "device/1", "cpu"
const gestalt_device_1& cpu_table();

}  // namespace gestalt::device_cpu

#pragma once

#include "gestalt/abi/device.h"

namespace gestalt::device_sim {

extern const gestalt_device_1 kSimTable;
extern const gestalt_component kSimComponent;  // "device/1", "sim"

}  // namespace gestalt::device_sim

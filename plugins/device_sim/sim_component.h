#pragma once

#include "gestalt/abi/device.h"

namespace gestalt::device_sim {

const gestalt_component& sim_component();  // "device/1", "sim"
const gestalt_device_1& sim_table();

}  // namespace gestalt::device_sim

#pragma once

#include "gestalt/abi/comm.h"

namespace gestalt::comm_self {

const gestalt_component& self_component();  // "comm/1", "gestalt.self"
const gestalt_comm_1& self_table();

}  // namespace gestalt::comm_self

#pragma once

#include "gestalt/abi/comm.h"

namespace gestalt::comm_self {

extern const gestalt_comm_1 kSelfTable;
extern const gestalt_component kSelfComponent;  // "comm/1", "gestalt.self"

}  // namespace gestalt::comm_self

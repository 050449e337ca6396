#pragma once

#include "gestalt/abi/comm.h"

namespace gestalt::comm_threads {

const gestalt_component& threads_component();  // "comm/1", "gestalt.threads"
const gestalt_comm_1& threads_table();

}  // namespace gestalt::comm_threads

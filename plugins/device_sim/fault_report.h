// A touch of closed memory kills the process, as it should; this says first, on stderr, which memory it was. A signal
// handler can only reach globals, hence the process-wide list behind these two functions.
#pragma once

#include "plugins/device_sim/sim_memory.h"

namespace gestalt::device_sim {

void start_fault_report(const Memory* memory);
void stop_fault_report(const Memory* memory);

}  // namespace gestalt::device_sim

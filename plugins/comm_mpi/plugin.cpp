#include "gestalt/plugin.hpp"
#include "plugins/comm_mpi/mpi_world.h"

GESTALT_PLUGIN_WITH_SHUTDOWN("gestalt.comm_mpi", "0.1.0", gestalt::comm_mpi::leave_mpi)

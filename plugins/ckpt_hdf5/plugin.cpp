#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.ckpt_hdf5", "0.1.0")

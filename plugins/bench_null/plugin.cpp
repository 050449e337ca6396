#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.bench_null", "0.1.0")

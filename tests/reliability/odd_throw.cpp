// A plugin whose main throws across the border, which the contract forbids and the host survives.
#include <stdexcept>

#include "gestalt/abi/plugin.h"

extern "C" __attribute__((visibility("default"))) gestalt_status* gestalt_plugin_main_v1(const gestalt_host*,
                                                                                         const gestalt_plugin**) {
  throw std::runtime_error("thrown on purpose");
}

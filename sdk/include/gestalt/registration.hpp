// How the things of a plugin find their way into its descriptor: each macro puts one constant pointer into an ELF
// section, and the section is the array. Nothing runs when the plugin is loaded, and adding a thing edits no other
// file.
#pragma once

#include "gestalt/abi/plugin.h"

#define GESTALT_JOIN_(a, b) a##b
#define GESTALT_JOIN(a, b) GESTALT_JOIN_(a, b)
// Works with and without a semicolon after it.
#define GESTALT_REGISTER(type, section_name, ...)                                                           \
  __attribute__((section(section_name), used)) static const type* const GESTALT_JOIN(gestalt_registration_, \
                                                                                     __COUNTER__) = &(__VA_ARGS__);

namespace gestalt::detail {

// The bounds that the linker defines for a section that exists; NULL for one that does not.
#define GESTALT_BOUND(type, name, symbol) \
  extern const type* const name[] __asm__(symbol) __attribute__((weak, visibility("hidden")))
GESTALT_BOUND(gestalt_op, ops_begin, "__start_gestalt_ops");
GESTALT_BOUND(gestalt_op, ops_end, "__stop_gestalt_ops");
GESTALT_BOUND(gestalt_kernel, kernels_begin, "__start_gestalt_kernels");
GESTALT_BOUND(gestalt_kernel, kernels_end, "__stop_gestalt_kernels");
GESTALT_BOUND(gestalt_component, components_begin, "__start_gestalt_components");
GESTALT_BOUND(gestalt_component, components_end, "__stop_gestalt_components");
#undef GESTALT_BOUND

}  // namespace gestalt::detail

// How the things of a plugin find their way into its descriptor: each macro puts one constant pointer into an ELF
// section, and the section is the array. Nothing runs when the plugin is loaded, and adding a thing edits no other
// file.
#pragma once

#include <cstdint>
#include <span>

#include "gestalt/abi/plugin.h"

#define GESTALT_JOIN_(a, b) a##b
#define GESTALT_JOIN(a, b) GESTALT_JOIN_(a, b)
// Works with and without a semicolon after it.
#define GESTALT_REGISTER(type, section_name, ...)                                                           \
  __attribute__((section(section_name), used)) static const type* const GESTALT_JOIN(gestalt_registration_, \
                                                                                     __COUNTER__) = &(__VA_ARGS__);

// Defines the inline function `name`, which gives everything that GESTALT_REGISTER put into a section of the plugin's
// own; the section must have an entry. In a named namespace.
#define GESTALT_REGISTERED(type, name, section_name)                                                                   \
  extern const type* const GESTALT_JOIN(name, _begin)[] __asm__("__start_" section_name)                               \
      __attribute__((visibility("hidden")));                                                                           \
  extern const type* const GESTALT_JOIN(name, _end)[] __asm__("__stop_" section_name)                                  \
      __attribute__((visibility("hidden")));                                                                           \
  inline std::span<const type* const> name() {                                                                         \
    /* By address: to the compiler these are two arrays, and pointers into two arrays never meet. */                   \
    const auto bytes = reinterpret_cast<uintptr_t>(GESTALT_JOIN(name, _end)) -                                         \
                       reinterpret_cast<uintptr_t>(GESTALT_JOIN(name, _begin));                                        \
    return {GESTALT_JOIN(name, _begin), bytes / sizeof(const type*)};                                                  \
  }

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

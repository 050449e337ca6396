// Everything for plugin authors, and GESTALT_PLUGIN, which each plugin writes once.
#pragma once

#include "gestalt/checkpoint.hpp"
#include "gestalt/comm.hpp"
#include "gestalt/dataset.hpp"
#include "gestalt/device.hpp"
#include "gestalt/format.hpp"
#include "gestalt/kernel.hpp"
#include "gestalt/module.hpp"
#include "gestalt/op.hpp"
#include "gestalt/ops.hpp"
#include "gestalt/optimizer.hpp"
#include "gestalt/task.hpp"
#include "gestalt/tokenizer.hpp"
#include "gestalt/tracker.hpp"

namespace gestalt::detail {

#if defined(__clang__)
#define GESTALT_BUILD_TEXT "clang " __clang_version__
#else
#define GESTALT_BUILD_TEXT "gcc " __VERSION__
#endif

inline gestalt_status* plugin_main(const gestalt_host* host, const gestalt_plugin** out, std::string_view id,
                                   std::string_view version, void (*shutdown)() noexcept) noexcept {
  // Constant storage that is filled on the first call, because the number of entries is known to the linker only.
  static constinit gestalt_plugin plugin{};
  if (host->abi_major != GESTALT_ABI_MAJOR)
    return host->status_new(host->self, GESTALT_CONFIG_ERROR, str_of("[abi] the host's major version differs"));
  plugin = {sizeof(gestalt_plugin),
            GESTALT_ABI_MAJOR,
            GESTALT_ABI_MINOR,
            0,
            0,
            str_of(id),
            str_of(version),
            str_of(GESTALT_BUILD_TEXT),
            ops_begin,
            static_cast<uint64_t>(ops_end - ops_begin),
            kernels_begin,
            static_cast<uint64_t>(kernels_end - kernels_begin),
            components_begin,
            static_cast<uint64_t>(components_end - components_begin),
            shutdown};
  // A linker told to drop unused sections may drop the registrations too.
  if (plugin.num_ops + plugin.num_kernels + plugin.num_components == 0)
    return host->status_new(host->self, GESTALT_CONFIG_ERROR,
                            str_of("[plugin] nothing is registered, got 0 ops, kernels and components; link without "
                                   "--gc-sections"));
  *out = &plugin;
  return nullptr;
}

}  // namespace gestalt::detail

// gestalt_add_plugin() gives the id too, so that the build and the binary cannot disagree.
#ifdef GESTALT_PLUGIN_ID
#define GESTALT_CHECK_ID(id)                                            \
  static_assert(std::string_view(id) == GESTALT_PLUGIN_ID,              \
                "GESTALT_PLUGIN and gestalt_add_plugin name different " \
                "ids");
#else
#define GESTALT_CHECK_ID(id)
#endif

// shutdown: void() noexcept, called before the launcher's main returns; or nullptr.
#define GESTALT_PLUGIN_WITH_SHUTDOWN(id, version, shutdown)                                               \
  GESTALT_CHECK_ID(id)                                                                                    \
  extern "C" __attribute__((visibility("default"))) gestalt_status* gestalt_plugin_main_v1(               \
      const gestalt_host* host, const gestalt_plugin** out) noexcept;                                     \
  gestalt_status* gestalt_plugin_main_v1(const gestalt_host* host, const gestalt_plugin** out) noexcept { \
    return ::gestalt::detail::plugin_main(host, out, id, version, shutdown);                              \
  }
#define GESTALT_PLUGIN(id, version) GESTALT_PLUGIN_WITH_SHUTDOWN(id, version, nullptr)

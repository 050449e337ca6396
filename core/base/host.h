#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"
#include "gestalt/abi/plugin.h"

namespace gestalt::core {

inline std::string_view view_of(gestalt_str s) { return {s.data, static_cast<size_t>(s.size)}; }
inline gestalt_str str_of(std::string_view s) { return {s.data(), s.size()}; }

// The gestalt_host table handed to one plugin. Errors and log lines carry the plugin's id; interfaces are looked up in a
// process-wide table filled by register_interface. Objects live as long as the process.
const gestalt_host* make_host(const std::string& owner);

// [setup] Publishes a table under an id ("gestalt.parallel/1"). `table` must live as long as the process.
void register_interface(std::string_view id, const void* table);

// Turns a status into an Error, frees it, and returns normally for NULL. `context` is put in front of the message when
// it is not empty: "[core.matmul at model.layers.0.mlp] ...".
void check(const gestalt_host* host, gestalt_status* status, std::string_view context = {});

// Makes a status out of the exception being handled; for functions of the host that plugins call.
gestalt_status* status_of_current_exception() noexcept;

// Code and message of a status, and frees it.
Error take(gestalt_status* status);

}  // namespace gestalt::core

#include "core/base/host.h"

#include <deque>
#include <map>
#include <mutex>
#include <new>

#include <spdlog/spdlog.h>

// The status object of the ABI: one allocation, message inside.
struct gestalt_status {
  int32_t code;
  std::string message;
};

namespace gestalt::core {

namespace {

// Used when there is no memory for a real one; never freed.
gestalt_status g_no_memory{GESTALT_OUT_OF_MEMORY, "out of memory while an error was being reported"};

struct Interfaces {
  std::mutex mutex;
  std::map<std::string, const void*, std::less<>> tables;
};
Interfaces& interfaces() {
  static Interfaces* i = new Interfaces;  // never destroyed: plugins may ask until the process ends
  return *i;
}

gestalt_status* new_status(int32_t code, std::string_view message) noexcept {
  try {
    return new gestalt_status{code, std::string(message)};
  } catch (...) {
    return &g_no_memory;
  }
}

gestalt_status* status_new(void*, int32_t code, gestalt_str message) noexcept {
  return new_status(code, view_of(message));
}

void status_free(void*, gestalt_status* status) noexcept {
  if (status != &g_no_memory) delete status;
}

int32_t status_get(void*, const gestalt_status* status, gestalt_str* message) noexcept {
  if (message) *message = str_of(status->message);
  return status->code;
}

void log(void* self, int32_t level, gestalt_str message) noexcept {
  try {
    static constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                            spdlog::level::warn, spdlog::level::err};
    const int index = level < 0 ? 0 : level > 3 ? 3 : level;
    spdlog::log(kLevels[index], "[{}] {}", *static_cast<const std::string*>(self), view_of(message));
  } catch (...) {
  }
}

const void* get_interface(void*, gestalt_str id) noexcept {
  Interfaces& i = interfaces();
  std::lock_guard lock(i.mutex);
  auto it = i.tables.find(view_of(id));
  return it == i.tables.end() ? nullptr : it->second;
}

}  // namespace

const gestalt_host* make_host(const std::string& owner) {
  struct Owned {
    std::string owner;
    gestalt_host host;
  };
  static std::mutex mutex;
  static auto* hosts = new std::map<std::string, Owned>;  // never destroyed: plugins keep the pointers
  std::lock_guard lock(mutex);
  auto [it, fresh] = hosts->try_emplace(owner);
  if (fresh) {
    it->second.owner = owner;
    it->second.host = gestalt_host{sizeof(gestalt_host), GESTALT_ABI_MAJOR, GESTALT_ABI_MINOR, &it->second.owner,
                                   status_new,           status_free,       status_get,        log,
                                   get_interface};
  }
  return &it->second.host;
}

void register_interface(std::string_view id, const void* table) {
  Interfaces& i = interfaces();
  std::lock_guard lock(i.mutex);
  i.tables.insert_or_assign(std::string(id), table);
}

Error take(gestalt_status* status) {
  Error e(status->code, status->message);
  status_free(nullptr, status);
  return e;
}

void check(const gestalt_host*, gestalt_status* status, std::string_view context) {
  if (!status) return;
  Error e = take(status);
  if (context.empty()) throw e;
  throw Error(e.code(), fmt::format("[{}] {}", context, e.message()));
}

gestalt_status* status_of_current_exception() noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return new_status(e.code(), e.message());
  } catch (const std::bad_alloc&) {
    return &g_no_memory;
  } catch (const std::exception& e) {
    return new_status(GESTALT_INTERNAL, e.what());
  } catch (...) {
    return new_status(GESTALT_INTERNAL, "unknown exception");
  }
}

}  // namespace gestalt::core

#pragma once

#include <mutex>
#include <vector>

#include "gestalt/abi/comm.h"

namespace gestalt::core {

class Device;

// The devices that are open in this process, behind the interface "gestalt.copy/1". [any]
class OpenDevices {
 public:
  static OpenDevices& of_process();

  void add(Device* device);
  void remove(Device* device);

 private:
  OpenDevices();
  static gestalt_status* copy(void* self, const gestalt_view* in, const gestalt_view* out, void* stream) noexcept;
  static gestalt_status* to_host(void* self, const gestalt_view* in, void* host, void* stream) noexcept;
  static gestalt_status* from_host(void* self, const void* host, const gestalt_view* out, void* stream) noexcept;
  gestalt_status* move(const gestalt_view& view, void* to, const void* from, int32_t direction, void* stream) noexcept;
  Device& find(const gestalt_view& view);

  std::mutex mutex_;
  std::vector<Device*> devices_;
  gestalt_copy_1 table_;
};

}  // namespace gestalt::core

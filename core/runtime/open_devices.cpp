#include "core/runtime/open_devices.h"

#include <algorithm>

#include "core/base/host.h"
#include "core/runtime/device.h"
#include "core/tensor/tensor.h"

namespace gestalt::core {

OpenDevices::OpenDevices() : table_{sizeof(gestalt_copy_1), this, copy} {}

OpenDevices& OpenDevices::of_process() {
  // Never destroyed: plugins keep the table.
  static OpenDevices* made = [] {
    auto* devices = new OpenDevices;
    register_interface("gestalt.copy/1", &devices->table_);
    return devices;
  }();
  return *made;
}

void OpenDevices::add(Device* device) {
  std::lock_guard lock(mutex_);
  devices_.push_back(device);
}

void OpenDevices::remove(Device* device) {
  std::lock_guard lock(mutex_);
  devices_.erase(std::remove(devices_.begin(), devices_.end(), device), devices_.end());
}

Device& OpenDevices::find(const gestalt_view& view) {
  std::lock_guard lock(mutex_);
  // The newest first: a process that opens a device again means the new one.
  for (size_t i = devices_.size(); i-- > 0;)
    if (devices_[i]->type() == view.device_type && devices_[i]->id() == view.device_id) return *devices_[i];
  fail(GESTALT_UNAVAILABLE, "[gestalt.copy/1] no open device of type {} with id {}", view.device_type, view.device_id);
}

gestalt_status* OpenDevices::copy(void* self, const gestalt_view* in, const gestalt_view* out, void* stream) noexcept {
  try {
    Device& device = static_cast<OpenDevices*>(self)->find(*out);
    const uint64_t bytes = num_bytes(*in);
    if (bytes != num_bytes(*out))
      fail(GESTALT_INVALID_ARGUMENT, "[gestalt.copy/1] different sizes, got {} to {}", describe(*in), describe(*out));
    if (bytes == 0) return nullptr;
    return device.table_->copy(device.self_, out->data, in->data, bytes, GESTALT_COPY_ON_DEVICE, stream);
  } catch (...) {
    return status_of_current_exception();
  }
}

}  // namespace gestalt::core

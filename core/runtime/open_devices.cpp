#include "core/runtime/open_devices.h"

#include <algorithm>

#include "core/base/host.h"
#include "core/runtime/device.h"
#include "core/tensor/tensor.h"

namespace gestalt::core {

OpenDevices::OpenDevices() : table_{sizeof(gestalt_copy_1), this, copy, to_host, from_host} {}

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

gestalt_status* OpenDevices::move(const gestalt_view& view, void* to, const void* from, int32_t direction,
                                  void* stream) noexcept {
  try {
    Device& device = find(view);
    const uint64_t bytes = num_bytes(view);
    if (bytes == 0) return nullptr;
    if (gestalt_status* s = device.table_->copy(device.self_, to, from, bytes, direction, stream)) return s;
    return device.table_->sync(device.self_, stream);
  } catch (...) {
    return status_of_current_exception();
  }
}

gestalt_status* OpenDevices::to_host(void* self, const gestalt_view* in, void* host, void* stream) noexcept {
  return static_cast<OpenDevices*>(self)->move(*in, host, in->data, GESTALT_COPY_TO_HOST, stream);
}

gestalt_status* OpenDevices::from_host(void* self, const void* host, const gestalt_view* out, void* stream) noexcept {
  return static_cast<OpenDevices*>(self)->move(*out, out->data, host, GESTALT_COPY_TO_DEVICE, stream);
}

}  // namespace gestalt::core

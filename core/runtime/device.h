// C++ over the table of a "device/1" component. A Device outlives every Buffer, Stream, Event and Graph made from it.
// Every failing call of the plugin becomes an Error that names the device.
#pragma once

#include <memory>
#include <string>

#include "core/base/host.h"
#include "core/runtime/ledger.h"
#include "gestalt/abi/device.h"

namespace gestalt::core {

class Device;

// Memory of a device or pinned host memory; counted in the device's ledger while it lives.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  Category category() const { return category_; }
  explicit operator bool() const { return device_ != nullptr; }

 private:
  friend class Device;
  Buffer(Device* device, void* data, uint64_t bytes, Category category)
      : device_(device), data_(data), bytes_(bytes), category_(category) {}
  void swap(Buffer& other) noexcept;

  Device* device_ = nullptr;
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
  Category category_ = Category::kOther;
};

// A stream, event or captured graph of a device.
template <int32_t Kind>
class DeviceHandle {
 public:
  DeviceHandle() = default;
  DeviceHandle(DeviceHandle&& other) noexcept { swap(other); }
  DeviceHandle& operator=(DeviceHandle&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceHandle();

  void* get() const { return handle_; }
  explicit operator bool() const { return device_ != nullptr; }

 private:
  friend class Device;
  DeviceHandle(Device* device, void* handle) : device_(device), handle_(handle) {}
  void swap(DeviceHandle& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
  }

  Device* device_ = nullptr;
  void* handle_ = nullptr;
};
using Stream = DeviceHandle<GESTALT_HANDLE_STREAM>;
using Event = DeviceHandle<GESTALT_HANDLE_EVENT>;
using Graph = DeviceHandle<GESTALT_HANDLE_GRAPH>;

class Device {
 public:
  // `owner` keeps the component (and its plugin) alive as long as the device.
  Device(const gestalt_host* host, const gestalt_device_1* table, void* self, std::shared_ptr<void> owner = {});
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  // As the device opened: name and kernels_of are copied, free_bytes is read again by free_bytes().
  const std::string& name() const { return name_; }
  const std::string& kernels_of() const { return kernels_of_; }
  int32_t type() const { return info_.device_type; }
  int32_t id() const { return info_.device_id; }
  uint64_t alignment() const { return info_.alignment; }
  uint64_t total_bytes() const { return info_.total_bytes; }
  uint64_t free_bytes() const;
  bool host_visible() const { return info_.host_visible != 0; }
  bool can_capture() const;
  Ledger& ledger() { return ledger_; }

  // Out of memory: the Error shows the ledger. 0 bytes: a buffer without memory.
  Buffer alloc(uint64_t bytes, Category category);
  Buffer alloc_pinned(uint64_t bytes);
  Stream open_stream();
  Event open_event();

  // In stream order. Host memory stays valid and unchanged until the stream has passed the copy.
  void copy_to_device(void* dst, const void* src, uint64_t bytes, const Stream& stream);
  void copy_to_host(void* dst, const void* src, uint64_t bytes, const Stream& stream);
  void copy_on_device(void* dst, const void* src, uint64_t bytes, const Stream& stream);
  void fill(void* dst, uint8_t byte, uint64_t bytes, const Stream& stream);
  // The same on a stream of the device's own, done at return. They do not wait for work on other streams.
  void copy_to_device(void* dst, const void* src, uint64_t bytes);
  void copy_to_host(void* dst, const void* src, uint64_t bytes);
  void copy_on_device(void* dst, const void* src, uint64_t bytes);
  void fill(void* dst, uint8_t byte, uint64_t bytes);

  void record(const Event& event, const Stream& stream) {
    expect(table_->record(self_, event.get(), stream.get()), "record");
  }
  void wait(const Event& event, const Stream& stream) {
    expect(table_->wait(self_, event.get(), stream.get()), "wait");
  }
  void sync(const Stream& stream) { expect(table_->sync(self_, stream.get()), "sync"); }
  void sync() { expect(table_->sync(self_, nullptr), "sync"); }

  // Runs or enqueues a bound kernel; call->stream says where. No allocation. The status is the kernel's own: the caller
  // knows the op and the path, and turns it into an Error with check() or take().
  gestalt_status* launch(gestalt_status* (*run)(void*, const gestalt_call*), void* state, const gestalt_call* call,
                         uint64_t num_in, uint64_t num_out, uint64_t workspace_size) const {
    if (!launch_) return run(state, call);
    return launch_(self_, call->stream, run, state, call, num_in, num_out, workspace_size);
  }
  // True when launch() only calls run: a run loop may then call it directly.
  bool runs_inline() const { return launch_ == nullptr; }

  void capture_begin(const Stream& stream);
  Graph capture_end(const Stream& stream);
  void replay(const Graph& graph, const Stream& stream);

 private:
  friend class Buffer;
  friend class OpenDevices;
  template <int32_t Kind>
  friend class DeviceHandle;

  void expect(gestalt_status* status, const char* what) const {
    if (status) [[unlikely]]
      raise(status, what);
  }
  [[noreturn]] void raise(gestalt_status* status, const char* what) const;
  Buffer alloc(uint64_t bytes, Category category, int32_t where);
  void copy(void* dst, const void* src, uint64_t bytes, int32_t direction, const Stream& stream, const char* what);
  const Stream& own_stream();
  void release(Buffer& buffer) noexcept;
  void close(int32_t kind, void* handle) noexcept;

  std::shared_ptr<void> owner_;
  const gestalt_host* host_;
  const gestalt_device_1* table_;
  void* self_;
  decltype(gestalt_device_1::launch) launch_ = nullptr;
  gestalt_device_info info_{};
  std::string name_, kernels_of_;
  Ledger ledger_;
  Stream own_stream_;
};

template <int32_t Kind>
DeviceHandle<Kind>::~DeviceHandle() {
  if (device_) device_->close(Kind, handle_);
}

}  // namespace gestalt::core

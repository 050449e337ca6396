#include "core/runtime/device.h"

#include <spdlog/spdlog.h>

#include "core/runtime/open_devices.h"

namespace gestalt::core {

Buffer::~Buffer() {
  if (device_) device_->release(*this);
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(category_, other.category_);
}

Device::Device(const gestalt_host* host, const gestalt_device_1* table, void* self, std::shared_ptr<void> owner)
    : owner_(std::move(owner)), host_(host), table_(table), self_(self) {
  if (!GESTALT_HAS(table, sync))
    fail(GESTALT_CONFIG_ERROR, "[device] the device's table is too short, got {} bytes, expected at least {}",
         table->struct_size, offsetof(gestalt_device_1, sync) + sizeof(table->sync));
  if (GESTALT_HAS(table, launch)) launch_ = table->launch;
  name_ = "device";
  info_.struct_size = sizeof info_;
  expect(table_->info(self_, &info_), "info");
  name_ = view_of(info_.name);
  kernels_of_ = view_of(info_.kernels_of);
  if (info_.alignment == 0 || (info_.alignment & (info_.alignment - 1)))
    fail(GESTALT_CONFIG_ERROR, "[device {}] wrong alignment, got {}, expected a power of two", name_, info_.alignment);
  OpenDevices::of_process().add(this);
}

Device::~Device() { OpenDevices::of_process().remove(this); }

void Device::raise(gestalt_status* status, const char* what) const {
  check(host_, status, fmt::format("device {} {}", name_, what));
  fail(GESTALT_INTERNAL, "[device {} {}] failed without a status", name_, what);
}

uint64_t Device::free_bytes() const {
  gestalt_device_info now{};
  now.struct_size = sizeof now;
  expect(table_->info(self_, &now), "info");
  return now.free_bytes;
}

bool Device::can_capture() const {
  return GESTALT_HAS(table_, replay) && table_->capture_begin && table_->capture_end && table_->replay;
}

Buffer Device::alloc(uint64_t bytes, Category category, int32_t where) {
  void* data = nullptr;
  if (gestalt_status* status = table_->alloc(self_, bytes, where, &data)) {
    const Error cause = take(status);
    if (cause.code() != GESTALT_OUT_OF_MEMORY) fail(cause.code(), "[device {} alloc] {}", name_, cause.message());
    fail(GESTALT_OUT_OF_MEMORY, "[device {} alloc] no memory for {} bytes of {}: {}; in use:\n{}", name_, bytes,
         category_name(category), cause.message(), ledger_.table());
  }
  ledger_.add(category, bytes);
  return Buffer(this, data, bytes, category);
}

Buffer Device::alloc(uint64_t bytes, Category category) { return alloc(bytes, category, GESTALT_ALLOC_DEVICE); }

Buffer Device::alloc_pinned(uint64_t bytes) { return alloc(bytes, Category::kPinned, GESTALT_ALLOC_PINNED); }

// Destructors cannot throw: a failing free or close is logged with the device's own words.
void Device::release(Buffer& buffer) noexcept {
  ledger_.remove(buffer.category_, buffer.bytes_);
  if (!buffer.data_) return;
  if (gestalt_status* status = table_->free(self_, buffer.data_))
    spdlog::error("[device {} free] {}", name_, take(status).message());
}

void Device::close(int32_t kind, void* handle) noexcept {
  if (gestalt_status* status = table_->close(self_, kind, handle))
    spdlog::error("[device {} close] {}", name_, take(status).message());
}

Stream Device::open_stream() {
  void* handle = nullptr;
  expect(table_->stream_open(self_, &handle), "stream_open");
  return Stream(this, handle);
}

Event Device::open_event() {
  void* handle = nullptr;
  expect(table_->event_open(self_, &handle), "event_open");
  return Event(this, handle);
}

const Stream& Device::own_stream() {
  if (!own_stream_) own_stream_ = open_stream();
  return own_stream_;
}

void Device::copy(void* dst, const void* src, uint64_t bytes, int32_t direction, const Stream& stream,
                  const char* what) {
  if (bytes) expect(table_->copy(self_, dst, src, bytes, direction, stream.get()), what);
}

void Device::copy_to_device(void* dst, const void* src, uint64_t bytes, const Stream& stream) {
  copy(dst, src, bytes, GESTALT_COPY_TO_DEVICE, stream, "copy_to_device");
}

void Device::copy_to_host(void* dst, const void* src, uint64_t bytes, const Stream& stream) {
  copy(dst, src, bytes, GESTALT_COPY_TO_HOST, stream, "copy_to_host");
}

void Device::copy_on_device(void* dst, const void* src, uint64_t bytes, const Stream& stream) {
  copy(dst, src, bytes, GESTALT_COPY_ON_DEVICE, stream, "copy_on_device");
}

void Device::fill(void* dst, uint8_t byte, uint64_t bytes, const Stream& stream) {
  if (bytes) expect(table_->fill(self_, dst, byte, bytes, stream.get()), "fill");
}

void Device::copy_to_device(void* dst, const void* src, uint64_t bytes) {
  copy_to_device(dst, src, bytes, own_stream());
  sync(own_stream());
}

void Device::copy_to_host(void* dst, const void* src, uint64_t bytes) {
  copy_to_host(dst, src, bytes, own_stream());
  sync(own_stream());
}

void Device::copy_on_device(void* dst, const void* src, uint64_t bytes) {
  copy_on_device(dst, src, bytes, own_stream());
  sync(own_stream());
}

void Device::fill(void* dst, uint8_t byte, uint64_t bytes) {
  fill(dst, byte, bytes, own_stream());
  sync(own_stream());
}

void Device::capture_begin(const Stream& stream) {
  if (!can_capture()) fail(GESTALT_UNSUPPORTED, "[device {} capture_begin] this device cannot capture", name_);
  expect(table_->capture_begin(self_, stream.get()), "capture_begin");
}

Graph Device::capture_end(const Stream& stream) {
  void* handle = nullptr;
  expect(table_->capture_end(self_, stream.get(), &handle), "capture_end");
  return Graph(this, handle);
}

void Device::replay(const Graph& graph, const Stream& stream) {
  expect(table_->replay(self_, graph.get(), stream.get()), "replay");
}

}  // namespace gestalt::core

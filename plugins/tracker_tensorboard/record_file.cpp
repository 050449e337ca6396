#include "plugins/tracker_tensorboard/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gestalt/error.hpp"

namespace gestalt::tracker_tensorboard {

namespace {

constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
    table[i] = c;
  }
  return table;
}();

// A record often holds other records' checksums; masking keeps CRCs of CRCs apart.
uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

void append_little(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t c = 0xffffffffu;
  for (const char b : bytes) c = kTable[(c ^ static_cast<uint8_t>(b)) & 0xff] ^ c >> 8;
  return ~c;
}

std::string record_of(std::string_view bytes) {
  std::string out;
  append_little(out, bytes.size(), 8);
  append_little(out, masked(crc32c(out)), 4);
  out += bytes;
  append_little(out, masked(crc32c(bytes)), 4);
  return out;
}

RecordFile::RecordFile(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    throw Error(GESTALT_IO_ERROR, "[" + path_ + "] open for appending failed: " + std::strerror(errno));
}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

RecordFile& RecordFile::operator=(RecordFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

RecordFile::~RecordFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void RecordFile::append(std::string_view bytes) {
  const std::string record = record_of(bytes);
  for (std::string_view left = record; !left.empty();) {
    const ssize_t done = ::write(descriptor_, left.data(), left.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw Error(GESTALT_IO_ERROR, "[" + path_ + "] write failed: " + std::strerror(errno));
    left.remove_prefix(static_cast<size_t>(done));
  }
}

void RecordFile::sync() {
  if (descriptor_ >= 0 && ::fdatasync(descriptor_) != 0)
    throw Error(GESTALT_IO_ERROR, "[" + path_ + "] fdatasync failed: " + std::strerror(errno));
}

}  // namespace gestalt::tracker_tensorboard

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gestalt::tracker_tensorboard {

// CRC-32C (Castagnoli) of bytes.
uint32_t crc32c(std::string_view bytes);

// A TFRecord: u64 length, masked CRC of it, the bytes, masked CRC of them; little endian.
std::string record_of(std::string_view bytes);

// A file that records are appended to, each with one system call.
class RecordFile {
 public:
  RecordFile() = default;
  explicit RecordFile(std::string path);
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&& other) noexcept;
  ~RecordFile();

  explicit operator bool() const { return descriptor_ >= 0; }
  void append(std::string_view bytes);
  void sync();

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace gestalt::tracker_tensorboard

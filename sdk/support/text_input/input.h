// Reads a file, or standard input, as a stream of bytes; gzip, zstd and xz are unpacked, told by content, not by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gestalt::support::text_input {

class InputStream {
 public:
  // "-": standard input. NOT_FOUND when absent.
  explicit InputStream(std::string path);
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;
  ~InputStream();

  const std::string& path() const { return path_; }
  // Up to `room` bytes; 0 at the end. DATA_ERROR with file and byte when what is packed is damaged or cut.
  uint64_t read(void* out, uint64_t room);
  uint64_t packed_bytes() const { return packed_bytes_; }  // read from the file so far
  uint64_t file_bytes() const { return file_bytes_; }      // of the file; 0 when unknown

  class Unpacker;  // one format

 private:
  uint64_t read_packed(void* out, uint64_t room);

  std::string path_;
  int descriptor_ = -1;
  uint64_t packed_bytes_ = 0, file_bytes_ = 0;
  std::vector<unsigned char> buffer_;  // packed bytes not yet taken: [begin_, end_)
  uint64_t begin_ = 0, end_ = 0;
  bool at_end_ = false;
  std::unique_ptr<Unpacker> unpacker_;
};

// Lines without their ends (LF or CRLF).
class LineReader {
 public:
  explicit LineReader(InputStream* input) : input_(input) {}
  // False at the end. DATA_ERROR for a line above max_bytes.
  bool next(std::string* line, uint64_t max_bytes = uint64_t{1} << 30);
  uint64_t number() const { return number_; }  // of the line that next gave, from 1

 private:
  InputStream* input_;
  std::string buffer_;
  uint64_t begin_ = 0, number_ = 0;
};

std::string read_input(const std::string& path);

}  // namespace gestalt::support::text_input

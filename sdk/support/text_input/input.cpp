#include "support/text_input/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gestalt/error.hpp"
#include "support/text_input/unpack.h"

namespace gestalt::support::text_input {

InputStream::InputStream(std::string path) : path_(std::move(path)), buffer_(1 << 18) {
  descriptor_ = path_ == "-" ? dup(0) : open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0)
    throw Error(errno == ENOENT ? GESTALT_NOT_FOUND : GESTALT_IO_ERROR,
                "[" + path_ + "] cannot be opened: " + std::strerror(errno));
  struct stat info {};
  if (fstat(descriptor_, &info) == 0 && S_ISDIR(info.st_mode)) {
    close(descriptor_);
    throw Error(GESTALT_DATA_ERROR, "[" + path_ + "] is a folder, expected a file");
  }
  if (S_ISREG(info.st_mode)) file_bytes_ = static_cast<uint64_t>(info.st_size);
  while (end_ < 6 && !at_end_) {
    const uint64_t got = read_packed(buffer_.data() + end_, buffer_.size() - end_);
    at_end_ = got == 0;
    end_ += got;
  }
  try {
    unpacker_ = make_unpacker(buffer_.data(), end_, path_);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

InputStream::~InputStream() { close(descriptor_); }

uint64_t InputStream::read_packed(void* out, uint64_t room) {
  for (;;) {
    const ssize_t got = ::read(descriptor_, out, room);
    if (got >= 0) {
      packed_bytes_ += static_cast<uint64_t>(got);
      return static_cast<uint64_t>(got);
    }
    if (errno != EINTR)
      throw Error(GESTALT_IO_ERROR, "[" + path_ + "] cannot be read at byte " + std::to_string(packed_bytes_) + ": " +
                                        std::strerror(errno));
  }
}

uint64_t InputStream::read(void* out, uint64_t room) {
  for (uint64_t made = 0; room > 0;) {
    if (begin_ == end_ && !at_end_) {
      begin_ = 0;
      end_ = read_packed(buffer_.data(), buffer_.size());
      at_end_ = end_ == 0;
    }
    if (!unpacker_) {
      made = end_ - begin_ < room ? end_ - begin_ : room;
      std::memcpy(out, buffer_.data() + begin_, made);
      begin_ += made;
      return made;
    }
    Unpacker::Step step{buffer_.data() + begin_, end_ - begin_, static_cast<unsigned char*>(out), room, at_end_};
    const bool fine = unpacker_->step(&step);
    const bool stuck = step.num_in == end_ - begin_;
    begin_ = end_ - step.num_in;
    made = room - step.num_out;
    if (!fine)
      throw Error(GESTALT_DATA_ERROR, "[" + path_ + "] packed data are damaged or cut at byte " +
                                          std::to_string(packed_bytes_ - step.num_in));
    if (made > 0) return made;
    if (at_end_ && (begin_ == end_ || stuck)) {
      if (unpacker_->whole()) return 0;
      throw Error(GESTALT_DATA_ERROR, "[" + path_ + "] packed data are cut at byte " + std::to_string(packed_bytes_));
    }
  }
  return 0;
}

bool LineReader::next(std::string* line, uint64_t max_bytes) {
  uint64_t searched = begin_;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      line->assign(buffer_, begin_, end - begin_);
      begin_ = end + 1;
      break;
    }
    if (buffer_.size() - begin_ > max_bytes)
      throw Error(GESTALT_DATA_ERROR, "[" + input_->path() + "] line " + std::to_string(number_ + 1) + " is above " +
                                          std::to_string(max_bytes) + " bytes");
    buffer_.erase(0, begin_);
    begin_ = 0;
    const uint64_t had = buffer_.size();
    searched = had;
    buffer_.resize(had + (1 << 18));
    const uint64_t got = input_->read(buffer_.data() + had, 1 << 18);
    buffer_.resize(had + got);
    if (got > 0) continue;
    if (buffer_.empty()) return false;
    line->assign(buffer_);
    buffer_.clear();
    break;
  }
  ++number_;
  if (!line->empty() && line->back() == '\r') line->pop_back();
  return true;
}

std::string read_input(const std::string& path) {
  InputStream input(path);
  std::string all;
  for (uint64_t room = 1 << 16;; room = room < (1 << 24) ? room * 2 : room) {
    const uint64_t had = all.size();
    all.resize(had + room);
    const uint64_t got = input.read(all.data() + had, room);
    all.resize(had + got);
    if (got == 0) return all;
  }
}

}  // namespace gestalt::support::text_input

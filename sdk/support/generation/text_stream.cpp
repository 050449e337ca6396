#include "support/generation/text_stream.h"

#include <algorithm>

namespace gestalt::support {

std::string TextStream::give(size_t size) {
  std::string out = held_.substr(0, size);
  held_.erase(0, size);
  text_ += out;
  return out;
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return {};
  splitter_.push(bytes, &held_);
  size_t first = std::string::npos;
  for (const std::string& stop : stops_)
    if (!stop.empty()) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    std::string out = give(first);
    held_.clear();
    stopped_ = true;
    return out;
  }
  // The longest end of what is held that begins a stop string waits.
  size_t wait = 0;
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size(), held_.size()); n > wait; --n)
      if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n)) wait = n;
  return give(held_.size() - wait);
}

std::string TextStream::finish() {
  if (stopped_) return {};
  splitter_.finish(&held_);
  return give(held_.size());
}

}  // namespace gestalt::support

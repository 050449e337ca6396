#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/utf8.h"

namespace gestalt::support {

// The text of tokens as it may be shown: whole characters only, and nothing of a stop string or of what may become one.
class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Takes the bytes of a token and returns what can be shown now. After a stop string nothing comes any more.
  std::string push(std::string_view bytes);
  // What was held back, at the end.
  std::string finish();
  bool stopped() const { return stopped_; }
  const std::string& text() const { return text_; }  // all that was given out

 private:
  std::string give(size_t size);

  std::vector<std::string> stops_;
  Utf8Splitter splitter_;
  std::string held_, text_;
  bool stopped_ = false;
};

}  // namespace gestalt::support

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gestalt::format_llama2c {

inline constexpr int32_t kUnknown = 0, kBegin = 1, kEnd = 2, kFirstByte = 3;

// Tokens with scores: a text becomes characters, then the pair with the highest score merges, the leftmost of equals,
// until none is a token. Characters that are no token become bytes.
class Vocabulary {
 public:
  // DATA_ERROR for a file that is not one.
  static Vocabulary read(const std::string& file);
  Vocabulary(std::vector<std::string> pieces, std::vector<float> scores);

  void encode(std::string_view text, std::vector<int32_t>& ids) const;
  // The bytes of a token; empty for the tokens without text.
  std::string_view bytes(int32_t id) const { return decoded_[static_cast<size_t>(id)]; }
  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  std::span<const std::string> pieces() const { return pieces_; }
  std::span<const float> scores() const { return scores_; }

 private:
  std::vector<std::string> pieces_, decoded_;
  std::vector<float> scores_;
  std::unordered_map<std::string_view, int32_t> ids_;  // keys point into pieces_
};

}  // namespace gestalt::format_llama2c

#include "plugins/format_llama2c/vocabulary.h"

#include <cstring>

#include "gestalt/error.hpp"
#include "support/file.h"

namespace gestalt::format_llama2c {

namespace {

constexpr uint64_t kLongestToken = 4096;
constexpr int32_t kNumSpecial = 3, kNumBytes = 256;

// Bytes of the UTF-8 character at the start of the text; as far as continuation bytes go.
size_t character(std::string_view text) {
  size_t n = 1;
  while (n < text.size() && n < 4 && (static_cast<unsigned char>(text[n]) & 0xc0) == 0x80) ++n;
  return n;
}

}  // namespace

Vocabulary Vocabulary::read(const std::string& file) {
  const std::string all = support::ReadFile(file).read_all();
  std::vector<std::string> pieces;
  std::vector<float> scores;
  uint64_t at = sizeof(int32_t);
  auto refuse = [&](const std::string& why) {
    throw Error(GESTALT_DATA_ERROR, "[" + file + "] token " + std::to_string(pieces.size()) + ": " + why);
  };
  while (at < all.size()) {
    float score = 0;
    int32_t length = 0;
    if (all.size() - at < 8) refuse("the file ends inside its head");
    std::memcpy(&score, all.data() + at, 4);
    std::memcpy(&length, all.data() + at + 4, 4);
    at += 8;
    if (length < 0 || static_cast<uint64_t>(length) > kLongestToken || all.size() - at < static_cast<uint64_t>(length))
      refuse("length " + std::to_string(length) + " does not fit the file");
    pieces.emplace_back(all.substr(at, static_cast<size_t>(length)));
    scores.push_back(score);
    at += static_cast<uint64_t>(length);
  }
  if (pieces.size() < kNumSpecial + kNumBytes)
    refuse("is the end, expected at least " + std::to_string(kNumSpecial + kNumBytes) + " tokens");
  return Vocabulary(std::move(pieces), std::move(scores));
}

Vocabulary::Vocabulary(std::vector<std::string> pieces, std::vector<float> scores)
    : pieces_(std::move(pieces)), decoded_(pieces_), scores_(std::move(scores)) {
  for (int32_t i = 0; i < static_cast<int32_t>(pieces_.size()); ++i) {
    if (i < kNumSpecial)
      decoded_[static_cast<size_t>(i)].clear();
    else if (i < kNumSpecial + kNumBytes)
      decoded_[static_cast<size_t>(i)] = std::string(1, static_cast<char>(i - kFirstByte));
    ids_.emplace(pieces_[static_cast<size_t>(i)], i);
  }
}

void Vocabulary::encode(std::string_view text, std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  std::vector<int32_t> own;
  auto add = [&](std::string_view piece) {
    if (const auto it = ids_.find(piece); it != ids_.end())
      own.push_back(it->second);
    else
      for (char c : piece) own.push_back(kFirstByte + static_cast<unsigned char>(c));
  };
  add(" ");  // every text begins as if a space stood before it
  while (!text.empty()) {
    const size_t n = character(text);
    add(text.substr(0, n));
    text.remove_prefix(n);
  }
  std::string joined;
  while (true) {
    size_t best = own.size();
    int32_t best_id = -1;
    float best_score = -1e10f;
    for (size_t i = 0; i + 1 < own.size(); ++i) {
      joined.assign(pieces_[static_cast<size_t>(own[i])]).append(pieces_[static_cast<size_t>(own[i + 1])]);
      const auto it = ids_.find(joined);
      if (it == ids_.end() || !(scores_[static_cast<size_t>(it->second)] > best_score)) continue;
      best = i;
      best_id = it->second;
      best_score = scores_[static_cast<size_t>(best_id)];
    }
    if (best_id < 0) break;
    own[best] = best_id;
    own.erase(own.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  ids.insert(ids.end(), own.begin(), own.end());
}

}  // namespace gestalt::format_llama2c

#include "support/bpe/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "gestalt/error.hpp"

namespace gestalt::support::bpe {
namespace {

struct Word {
  std::vector<int32_t> ids;
  int64_t count;
};

uint64_t pair_key(int32_t a, int32_t b) {
  return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
}

struct PairInfo {
  int64_t count = 0;
  std::vector<uint32_t> words;  // where it occurs or once occurred; may repeat
};

struct Candidate {
  int64_t count;
  uint64_t key;
  bool operator<(const Candidate& other) const { return count != other.count ? count < other.count : key > other.key; }
};

class PairCounts {
 public:
  void change(int32_t a, int32_t b, int64_t by, uint32_t word) {
    const uint64_t key = pair_key(a, b);
    PairInfo& info = pairs_[key];
    info.count += by;
    if (by <= 0) return;
    info.words.push_back(word);
    grown_.push_back(key);
  }
  // Counts only fall between merges except for pairs with the newest token, so a candidate whose count is out of date
  // is put back with its true one.
  void offer_grown() {
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const uint64_t key : grown_) queue_.push({pairs_[key].count, key});
    grown_.clear();
  }
  // The best pair that occurs at least twice; false if there is none. Takes it out.
  bool take_best(int32_t* a, int32_t* b, std::vector<uint32_t>* words) {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(top.key);
      if (found == pairs_.end() || found->second.count < 2) continue;
      if (found->second.count != top.count) {
        if (found->second.count < top.count) queue_.push({found->second.count, top.key});
        continue;
      }
      *a = static_cast<int32_t>(top.key >> 32);
      *b = static_cast<int32_t>(top.key & 0xFFFFFFFFu);
      *words = std::move(found->second.words);
      pairs_.erase(found);
      std::sort(words->begin(), words->end());
      words->erase(std::unique(words->begin(), words->end()), words->end());
      return true;
    }
    return false;
  }

 private:
  std::unordered_map<uint64_t, PairInfo> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<uint64_t> grown_;
};

// Joins every (a, b) in the word, left to right, and keeps the counts of its neighbours true.
void join(Word* word, uint32_t index, int32_t a, int32_t b, int32_t joined, PairCounts* counts) {
  std::vector<int32_t>& ids = word->ids;
  bool found = false;
  for (size_t i = 0; i + 1 < ids.size() && !found; ++i) found = ids[i] == a && ids[i + 1] == b;
  if (!found) return;
  for (size_t i = 0; i + 1 < ids.size(); ++i) counts->change(ids[i], ids[i + 1], -word->count, index);
  size_t out = 0;
  for (size_t i = 0; i < ids.size(); ++out) {
    if (i + 1 < ids.size() && ids[i] == a && ids[i + 1] == b) {
      ids[out] = joined;
      i += 2;
    } else {
      ids[out] = ids[i++];
    }
  }
  ids.resize(out);
  for (size_t i = 0; i + 1 < ids.size(); ++i) counts->change(ids[i], ids[i + 1], word->count, index);
}

}  // namespace

Trainer::Trainer(const Pattern& pattern) : scanner_(pattern.make_scanner()) {}

void Trainer::add(std::string_view text) {
  const auto* start = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = start + text.size();
  std::string piece;
  for (const uint8_t* p = start; p < end;) {
    const uint8_t* q = scanner_->next(start, p, end);
    piece.assign(reinterpret_cast<const char*>(p), static_cast<size_t>(q - p));
    ++counts_[piece];
    p = q;
  }
}

Vocabulary Trainer::train(int64_t num_tokens) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (num_tokens < 256 || num_tokens > kMost)
    throw InvalidArgument(fmt::format("[train] vocabulary is {}, expected 256 to {}", num_tokens, kMost));
  // The order of a hash table must not reach the result: words are sorted.
  std::vector<const std::pair<const std::string, int64_t>*> sorted;
  for (const auto& entry : counts_) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  std::vector<Word> words;
  PairCounts counts;
  for (const auto* entry : sorted) {
    Word word{{}, entry->second};
    for (const char c : entry->first) word.ids.push_back(static_cast<uint8_t>(c));
    const auto index = static_cast<uint32_t>(words.size());
    for (size_t i = 0; i + 1 < word.ids.size(); ++i) counts.change(word.ids[i], word.ids[i + 1], word.count, index);
    words.push_back(std::move(word));
  }
  counts.offer_grown();

  Vocabulary vocabulary;
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    vocabulary.add({&c, 1}, b);
  }
  std::vector<uint32_t> where;
  for (int32_t id = 256; id < num_tokens;) {
    int32_t a, b;
    if (!counts.take_best(&a, &b, &where))
      throw Error(GESTALT_DATA_ERROR,
                  fmt::format("[train] the text gives {} tokens, got {} as the vocabulary; give more "
                              "text or ask for fewer",
                              id, num_tokens));
    const std::string bytes = std::string(vocabulary.token(a)) + std::string(vocabulary.token(b));
    // Two cuts of the same bytes are one token.
    const int32_t known = vocabulary.find(bytes.data(), bytes.size());
    const int32_t joined = known >= 0 ? known : id;
    if (known < 0) vocabulary.add(bytes, id++);
    for (const uint32_t w : where) join(&words[w], w, a, b, joined, &counts);
    counts.offer_grown();
  }
  vocabulary.merges_by_rank();
  return vocabulary;
}

}  // namespace gestalt::support::bpe

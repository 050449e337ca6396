#include "support/bpe/vocabulary.h"

#include <fmt/format.h>

#include <cstring>

#include "gestalt/error.hpp"
#include "support/bpe/merge.h"

namespace gestalt::support::bpe {

uint64_t Vocabulary::hash_bytes(const char* p, size_t size, uint64_t* head) {
  uint64_t word = 0;
  if (size >= 8) {
    std::memcpy(&word, p, 8);
  } else if (size >= 4) {
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + size - 4, 4);
    word = low | static_cast<uint64_t>(high) << (8 * (size - 4));
  } else if (size) {
    const auto at = [&](size_t i) { return static_cast<uint64_t>(static_cast<uint8_t>(p[i])); };
    word = at(0) | at(size / 2) << (8 * (size / 2)) | at(size - 1) << (8 * (size - 1));
  }
  *head = word;
  uint64_t h = hash(word + size);
  for (size_t i = 8; i < size; i += 8) {
    uint64_t next;
    std::memcpy(&next, p + (i + 8 <= size ? i : size - 8), 8);
    h = hash(h ^ next);
  }
  return h;
}

void Vocabulary::check_id(std::string_view bytes, int32_t id) const {
  if (bytes.empty()) throw InvalidArgument(fmt::format("token {} is empty, expected at least one byte", id));
  // Holes are allowed, but not so many that a wrong number in a file takes all memory.
  const int64_t limit = 4 * num_tokens_ + (int64_t{1} << 18);
  if (id < 0 || id > limit)
    throw InvalidArgument(
        fmt::format("id {} is out of range, expected 0 to {} after {} tokens", id, limit, num_tokens_));
  if (assigned(id)) throw InvalidArgument(fmt::format("id {} appears twice", id));
}

void Vocabulary::append(std::string_view bytes, int32_t id) {
  if (id >= size()) spans_.resize(static_cast<size_t>(id) + 1, Span{0, 0});
  spans_[static_cast<size_t>(id)] = {bytes_.size(), static_cast<uint32_t>(bytes.size())};
  bytes_.append(bytes);
  ++num_tokens_;
}

void Vocabulary::add(std::string_view bytes, int32_t id) {
  check_id(bytes, id);
  const int32_t other = find(bytes.data(), bytes.size());
  if (other >= 0) throw InvalidArgument(fmt::format("id {} has the same bytes as id {}", id, other));
  append(bytes, id);
  if (tokens_.size() < 3 * static_cast<size_t>(num_tokens_)) {
    build_tokens();
  } else {
    insert(id);
  }
}

void Vocabulary::add_special(std::string_view text, int32_t id) {
  check_id(text, id);
  append(text, id);
}

void Vocabulary::build_tokens() {
  size_t room = 1024;
  while (room < 4 * static_cast<size_t>(num_tokens_)) room *= 2;
  tokens_.assign(room, TokenSlot{0, 0, -1});
  token_mask_ = room - 1;
  for (int32_t id = 0; id < size(); ++id)
    if (assigned(id)) insert(id);
}

void Vocabulary::insert(int32_t id) {
  const std::string_view bytes = token(id);
  uint64_t head;
  size_t i = hash_bytes(bytes.data(), bytes.size(), &head) & token_mask_;
  while (tokens_[i].size) i = (i + 1) & token_mask_;
  tokens_[i] = {head, static_cast<uint32_t>(bytes.size()), id};
}

int32_t Vocabulary::find(const char* p, size_t size) const {
  if (tokens_.empty()) return -1;
  uint64_t head;
  for (size_t i = hash_bytes(p, size, &head) & token_mask_;; i = (i + 1) & token_mask_) {
    const TokenSlot& slot = tokens_[i];
    if (slot.size == 0) return -1;
    if (slot.head == head && slot.size == size &&
        (size <= 8 ||
         std::memcmp(bytes_.data() + spans_[static_cast<size_t>(slot.id)].begin + 8, p + 8, size - 8) == 0))
      return slot.id;
  }
}

void Vocabulary::check_bytes() const {
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    if (find(&c, 1) < 0)
      throw InvalidArgument(
          fmt::format("the vocabulary has no token for the single byte 0x{:02x}; all 256 are needed", b));
  }
}

void Vocabulary::reserve_pairs(size_t num) {
  size_t room = 16;
  while (room < 2 * num) room *= 2;
  pairs_.assign(room, PairSlot{});
  pair_mask_ = room - 1;
  num_pairs_ = 0;
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    byte_ids_[static_cast<size_t>(b)] = find(&c, 1);
  }
}

bool Vocabulary::insert_pair(int32_t a, int32_t b, Merge merge) {
  if (2 * ++num_pairs_ > pairs_.size()) {
    const std::vector<PairSlot> old = std::move(pairs_);
    reserve_pairs(old.size());
    for (const PairSlot& slot : old)
      if (slot.key != kNoKey)
        insert_pair(static_cast<int32_t>(slot.key >> 32), static_cast<int32_t>(slot.key & 0xFFFFFFFFu), slot.merge);
    ++num_pairs_;
  }
  const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
  for (size_t i = hash(key) & pair_mask_;; i = (i + 1) & pair_mask_) {
    if (pairs_[i].key == key) return false;
    if (pairs_[i].key != kNoKey) continue;
    pairs_[i].key = key;
    pairs_[i].merge = merge;
    return true;
  }
}

// Of all ways to cut a token into two, merging uses one: while no merge reaches over the token's ends, what happens
// inside is what happens to the token alone, and every merge of a lower rank goes before its own. So one pair a token
// is enough, the two parts that lower ranks leave of it; the table stays small. Where they leave more than two (a file
// that no training made), a merge of a higher rank may still bring two parts about: then every cut is entered.
void Vocabulary::merges_by_rank() {
  check_bytes();
  reserve_pairs(static_cast<size_t>(num_tokens_));
  MergeScratch scratch;
  std::vector<int32_t> parts;
  for (int32_t id = 0; id < size(); ++id) {
    const std::string_view t = token(id);
    if (t.size() < 2) continue;
    const Merge merge{static_cast<uint32_t>(id), id};
    parts.clear();
    merge_piece(*this, t.data(), t.size(), &scratch, &parts);
    if (parts.size() == 2) {
      insert_pair(parts[0], parts[1], merge);
      continue;
    }
    for (size_t i = 1; i < t.size(); ++i) {
      const int32_t a = find(t.data(), i), b = a < 0 ? -1 : find(t.data() + i, t.size() - i);
      if (b >= 0) insert_pair(a, b, merge);
    }
  }
  all_whole_ = true;
}

void Vocabulary::merges_listed(const std::vector<Listed>& merges) {
  check_bytes();
  reserve_pairs(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    if (!insert_pair(merges[i].a, merges[i].b, {static_cast<uint32_t>(i), merges[i].id}))
      throw InvalidArgument(fmt::format("merge {} appears twice", i));
  }
  whole_.assign(spans_.size(), 0);
  all_whole_ = false;
  MergeScratch scratch;
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < size(); ++id) {
    if (!assigned(id)) continue;
    const std::string_view t = token(id);
    ids.clear();
    merge_piece(*this, t.data(), t.size(), &scratch, &ids);
    whole_[static_cast<size_t>(id)] = ids.size() == 1 && ids[0] == id;
  }
}

}  // namespace gestalt::support::bpe

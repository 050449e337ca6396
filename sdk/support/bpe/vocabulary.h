// Tokens by id and by bytes, and the pairs that merging may join.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gestalt::support::bpe {

constexpr uint32_t kNoRank = UINT32_MAX;

// One pair of neighbouring tokens that may become `id`; the pair of lowest rank goes first.
struct Merge {
  uint32_t rank;
  int32_t id;
};

class Vocabulary {
 public:
  // Adds a token. INVALID_ARGUMENT for an empty one, an id in use, bytes in use, or an id far outside the count.
  void add(std::string_view bytes, int32_t id);

  // Adds a token that only its id stands for: text never encodes to it. After the merges.
  void add_special(std::string_view text, int32_t id);

  // Pairs by rank of what they join (tiktoken): every way of cutting a token into two tokens may be merged, in the
  // order of ids.
  void merges_by_rank();
  // Listed pairs (merges.txt), the first listed goes first. `merges` are pairs of ids and the id of the joined token.
  struct Listed {
    int32_t a, b, id;
  };
  void merges_listed(const std::vector<Listed>& merges);

  // After merges_listed: a piece of text that is a token becomes it, also where no merge makes that token.
  void take_whole_pieces() { all_whole_ = true; }

  // Ids are 0 to size() - 1; some may be unassigned.
  int64_t size() const { return static_cast<int64_t>(spans_.size()); }
  int64_t num_tokens() const { return num_tokens_; }
  bool assigned(int64_t id) const { return id >= 0 && id < size() && spans_[static_cast<size_t>(id)].size > 0; }
  std::string_view token(int32_t id) const {
    const Span s = spans_[static_cast<size_t>(id)];
    return {bytes_.data() + s.begin, s.size};
  }
  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }

  // The id of a token by its bytes; -1 if there is none.
  int32_t find(const char* p, size_t size) const;
  // As find, but only tokens that merging gives for exactly these bytes.
  int32_t find_whole(const char* p, size_t size) const {
    const int32_t id = find(p, size);
    return id >= 0 && (all_whole_ || whole_[static_cast<size_t>(id)]) ? id : -1;
  }
  Merge pair(int32_t a, int32_t b) const {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
    for (size_t i = hash(key) & pair_mask_;; i = (i + 1) & pair_mask_) {
      const PairSlot& slot = pairs_[i];
      if (slot.key == key) return slot.merge;
      if (slot.key == kNoKey) return {kNoRank, -1};
    }
  }

 private:
  static constexpr uint64_t kNoKey = UINT64_MAX;
  struct Span {
    uint64_t begin;
    uint32_t size;
  };
  struct TokenSlot {
    uint64_t head;  // the first eight bytes, zeros after a shorter token
    uint32_t size;  // 0: empty slot
    int32_t id;
  };
  struct PairSlot {
    uint64_t key = kNoKey;
    Merge merge{kNoRank, -1};
  };
  static uint64_t hash(uint64_t key) {
    key *= 0x9E3779B97F4A7C15u;
    return key ^ key >> 32;
  }
  static uint64_t hash_bytes(const char* p, size_t size, uint64_t* head);

  void check_id(std::string_view bytes, int32_t id) const;
  void check_bytes() const;
  void append(std::string_view bytes, int32_t id);
  void build_tokens();
  void insert(int32_t id);
  void reserve_pairs(size_t num);
  bool insert_pair(int32_t a, int32_t b, Merge merge);

  std::string bytes_;
  std::vector<Span> spans_;
  int64_t num_tokens_ = 0;
  std::vector<TokenSlot> tokens_;
  size_t token_mask_ = 0;
  std::vector<PairSlot> pairs_{PairSlot{}};
  size_t pair_mask_ = 0, num_pairs_ = 0;
  std::array<int32_t, 256> byte_ids_{};
  bool all_whole_ = true;
  std::vector<uint8_t> whole_;
};

}  // namespace gestalt::support::bpe

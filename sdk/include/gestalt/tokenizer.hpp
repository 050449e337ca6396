// Component kind "tokenizer/1". Implementations are called from any thread, so the functions are const.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gestalt/abi/tokenizer.h"
#include "gestalt/component.hpp"

namespace gestalt {

// Where ids of a batch go. For each item any number of calls, in order.
class IdSink {
 public:
  explicit IdSink(const gestalt_id_sink* sink) : sink_(sink) {}
  void put(uint64_t item, std::span<const int32_t> ids) const { sink_->put(sink_->self, item, ids.data(), ids.size()); }

 private:
  const gestalt_id_sink* sink_;
};

class ByteSink {
 public:
  explicit ByteSink(const gestalt_byte_sink* sink) : sink_(sink) {}
  void put(uint64_t item, std::string_view bytes) const { sink_->put(sink_->self, item, str_of(bytes)); }

 private:
  const gestalt_byte_sink* sink_;
};

class Tokenizer : public detail::ComponentOf<Tokenizer> {
 public:
  // Appends the ids of one text. flags: GESTALT_ENCODE_ bits.
  virtual void encode(std::string_view text, uint64_t flags, std::vector<int32_t>& ids) const = 0;
  // Appends the bytes of ids; throws InvalidArgument for an id outside the vocabulary.
  virtual void decode(std::span<const int32_t> ids, std::string& bytes) const = 0;
  virtual int64_t vocab_size() const = 0;
  // The id of a role ("bos", "eos", "pad", "unk") or of a special token by its text; -1 if there is none.
  virtual int64_t special(std::string_view role) const = 0;
  // Changes whenever any text may encode differently.
  virtual std::array<uint8_t, 32> fingerprint() const = 0;

  // Whole batches, for implementations that gain from them.
  virtual void encode_batch(std::span<const gestalt_str> texts, uint64_t flags, const IdSink& sink) const {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < texts.size(); ++i) {
      ids.clear();
      encode(view_of(texts[i]), flags, ids);
      sink.put(i, ids);
    }
  }
  virtual void decode_batch(std::span<const int32_t> ids, std::span<const uint64_t> offsets,
                            const ByteSink& sink) const {
    std::string bytes;
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      bytes.clear();
      decode(ids.subspan(offsets[i], offsets[i + 1] - offsets[i]), bytes);
      sink.put(i, bytes);
    }
  }

  static constexpr std::string_view kKind = "tokenizer/1";
  template <class>
  static constexpr const void* table();
};

namespace detail {

inline constexpr gestalt_tokenizer_1 tokenizer_table = {
    sizeof(gestalt_tokenizer_1),
    [](void* self, const gestalt_str* texts, uint64_t num, uint64_t flags, const gestalt_id_sink* sink) noexcept {
      return with<Tokenizer>(self, [&](Tokenizer& t) { t.encode_batch({texts, num}, flags, IdSink(sink)); });
    },
    [](void* self, const int32_t* ids, const uint64_t* offsets, uint64_t num, const gestalt_byte_sink* sink) noexcept {
      return with<Tokenizer>(self, [&](Tokenizer& t) {
        t.decode_batch({ids, num ? offsets[num] : 0}, {offsets, num + 1}, ByteSink(sink));
      });
    },
    [](void* self) noexcept {
      return value_or([&] { return held<Tokenizer>(self).object->vocab_size(); }, int64_t{-1});
    },
    [](void* self, gestalt_str role) noexcept {
      return value_or([&] { return held<Tokenizer>(self).object->special(view_of(role)); }, int64_t{-1});
    },
    [](void* self, uint8_t out[32]) noexcept {
      const auto print =
          value_or([&] { return held<Tokenizer>(self).object->fingerprint(); }, std::array<uint8_t, 32>{});
      for (size_t i = 0; i < 32; ++i) out[i] = print[i];
    }};

}  // namespace detail

template <class>
constexpr const void* Tokenizer::table() {
  return &detail::tokenizer_table;
}

// A tokenizer of the host, as data sets and tasks get it. False when the run names none.
class TokenizerRef {
 public:
  TokenizerRef() = default;
  TokenizerRef(const gestalt_host* host, const gestalt_tokenizer_1* table, void* self)
      : host_(host), table_(table), self_(self) {}
  explicit operator bool() const { return table_ != nullptr; }

  std::vector<int32_t> encode(std::string_view text, uint64_t flags = 0) const {
    std::vector<int32_t> ids;
    const gestalt_id_sink sink = {sizeof(gestalt_id_sink), &ids,
                                  [](void* out, uint64_t, const int32_t* more, uint64_t num) noexcept {
                                    auto& all = *static_cast<std::vector<int32_t>*>(out);
                                    all.insert(all.end(), more, more + num);
                                  }};
    const gestalt_str item = str_of(text);
    check(host_, table_->encode_batch(self_, &item, 1, flags, &sink));
    return ids;
  }
  std::string decode(std::span<const int32_t> ids) const {
    std::string bytes;
    const gestalt_byte_sink sink = {
        sizeof(gestalt_byte_sink), &bytes,
        [](void* out, uint64_t, gestalt_str more) noexcept { static_cast<std::string*>(out)->append(view_of(more)); }};
    const uint64_t offsets[2] = {0, ids.size()};
    check(host_, table_->decode_batch(self_, ids.data(), offsets, 1, &sink));
    return bytes;
  }
  int64_t vocab_size() const { return table_->vocab_size(self_); }
  int64_t special(std::string_view role) const { return table_->special(self_, str_of(role)); }
  std::array<uint8_t, 32> fingerprint() const {
    std::array<uint8_t, 32> print{};
    table_->fingerprint(self_, print.data());
    return print;
  }
  const gestalt_tokenizer_1* table() const { return table_; }
  void* self() const { return self_; }

 private:
  const gestalt_host* host_ = nullptr;
  const gestalt_tokenizer_1* table_ = nullptr;
  void* self_ = nullptr;
};

}  // namespace gestalt

// Component kind "dataset/1": named batches by global sample number.
#pragma once

#include <span>
#include <string_view>

#include "gestalt/abi/dataset.h"
#include "gestalt/component.hpp"
#include "gestalt/dtype.hpp"
#include "gestalt/tokenizer.hpp"

namespace gestalt {

// The six fields of a language-model batch, in the order in which Dataset::read gets their views.
inline constexpr gestalt_field kTextFields[] = {{str_of("tokens"), kI32, 1, {str_of("tokens")}},
                                                {str_of("labels"), kI32, 1, {str_of("tokens")}},
                                                {str_of("weights"), kF32, 1, {str_of("tokens")}},
                                                {str_of("positions"), kI32, 1, {str_of("tokens")}},
                                                {str_of("seq_starts"), kI32, 1, {str_of("sequences+1")}},
                                                {str_of("keys"), kI32, 2, {str_of("tokens"), str_of("2")}}};

// Real sizes of what was read.
struct BatchSizes {
  int64_t num_tokens = 0, num_sequences = 0;
};

class Dataset : public detail::ComponentOf<Dataset> {
 public:
  // Once, before anything else. The tokenizer is false when the run names none.
  virtual void open(TokenizerRef tokenizer, int64_t seq_len, int64_t seed) = 0;
  // [any] Fills `out` (struct_size is set); NOT_FOUND for a split that is absent. Borrowed parts live as long as this.
  virtual void info(std::string_view split, gestalt_dataset_info& out) = 0;
  // Writes the samples one after the other into the views, which have the order of info's fields and room for the
  // maxima.
  virtual BatchSizes read(std::string_view split, std::span<const int64_t> samples,
                          std::span<gestalt_view* const> out) = 0;

  static constexpr std::string_view kKind = "dataset/1";
  template <class>
  static constexpr const void* table();
};

namespace detail {

inline constexpr gestalt_dataset_1 dataset_table = {
    sizeof(gestalt_dataset_1),
    [](void* self, const gestalt_tokenizer_1* tokenizer, void* tokenizer_self, int64_t seq_len, int64_t seed) noexcept {
      const TokenizerRef ref(held<Dataset>(self).host, tokenizer, tokenizer_self);
      return with<Dataset>(self, [&](Dataset& d) { d.open(ref, seq_len, seed); });
    },
    [](void* self, gestalt_str split, gestalt_dataset_info* out) noexcept {
      return with<Dataset>(self, [&](Dataset& d) { d.info(view_of(split), *out); });
    },
    [](void* self, gestalt_str split, const int64_t* samples, uint64_t num_samples, gestalt_view* const* out,
       uint64_t num_out, int64_t* num_tokens, int64_t* num_sequences) noexcept {
      return with<Dataset>(self, [&](Dataset& d) {
        const BatchSizes sizes = d.read(view_of(split), {samples, num_samples}, {out, num_out});
        *num_tokens = sizes.num_tokens;
        *num_sequences = sizes.num_sequences;
      });
    }};

}  // namespace detail

template <class>
constexpr const void* Dataset::table() {
  return &detail::dataset_table;
}

}  // namespace gestalt

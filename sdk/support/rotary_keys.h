// The keys of rotary positions, as their module and the modules around it take them.
#pragma once

#include <array>

#include "gestalt/component.hpp"

namespace gestalt::support {

// `when`: what makes them matter; empty for the module itself.
constexpr auto rotary_keys(std::string_view when) {
  std::array keys{
      ConfigKey{.name = "rope_theta", .type = "f64", .default_value = "10000.0", .min = "1.0", .doc = "base of the rotary frequencies"},
      ConfigKey{.name = "rope_kind", .type = "str", .default_value = "'default'", .choices = "default|linear|dynamic|yarn|llama3|longrope", .doc = "how the frequencies are scaled for long contexts"},
      ConfigKey{.name = "rope_factor", .type = "f64", .default_value = "1.0", .min = "0.0", .doc = "how many times longer the context is"},
      ConfigKey{.name = "rope_original_len", .type = "i64", .default_value = "0", .min = "0", .doc = "context before the scaling, tokens"},
      ConfigKey{.name = "rope_low_freq_factor", .type = "f64", .default_value = "1.0", .doc = "of llama3"},
      ConfigKey{.name = "rope_high_freq_factor", .type = "f64", .default_value = "4.0", .doc = "of llama3"},
      ConfigKey{.name = "rope_beta_fast", .type = "f64", .default_value = "32.0", .doc = "of yarn"},
      ConfigKey{.name = "rope_beta_slow", .type = "f64", .default_value = "1.0", .doc = "of yarn"},
      ConfigKey{.name = "rope_truncate", .type = "bool", .default_value = "true", .doc = "of yarn: whole bounds of the ramp"},
      ConfigKey{.name = "rope_mscale", .type = "f64", .default_value = "0.0", .doc = "of yarn"},
      ConfigKey{.name = "rope_mscale_all_dim", .type = "f64", .default_value = "0.0", .doc = "of yarn"},
      ConfigKey{.name = "rope_attention_factor", .type = "f64", .default_value = "0.0", .doc = "factor on rotated vectors; 0: by the kind's rule"},
      ConfigKey{.name = "rope_short_factor", .type = "f64[]", .default_value = "[]", .doc = "of longrope: divides each frequency"},
      ConfigKey{.name = "rope_long_factor", .type = "f64[]", .default_value = "[]", .doc = "of longrope, beyond the original context"},
      ConfigKey{.name = "rope_fraction", .type = "f64", .default_value = "1.0", .min = "0.0", .max = "1.0", .doc = "part of each head that turns"},
      ConfigKey{.name = "rope_interleaved", .type = "bool", .default_value = "false", .doc = "neighbours turn together, not halves"}};
  for (ConfigKey& k : keys) k.when = when;
  return keys;
}

template <size_t N, size_t M>
constexpr std::array<ConfigKey, N + M> joined(const ConfigKey (&a)[N], const std::array<ConfigKey, M>& b) {
  std::array<ConfigKey, N + M> all{};
  for (size_t i = 0; i < N; ++i) all[i] = a[i];
  for (size_t i = 0; i < M; ++i) all[N + i] = b[i];
  return all;
}

}  // namespace gestalt::support

#pragma once

#include <cstdint>
#include <span>

namespace gestalt::support {

// How the next token is chosen; the meaning of each is that of core.sample.
struct Sampling {
  double temperature = 1;  // 0: the largest logit
  int64_t top_k = 0;       // 0: all
  double top_p = 1, min_p = 0;
  uint64_t seed = 1;
};

// What core.sample does, on the host, for models that run on whole sequences. position: tokens drawn before.
int32_t pick(std::span<const float> logits, const Sampling& how, uint64_t position);

}  // namespace gestalt::support

// Megatron's rules for mixing corpora: which corpus gives sample k of the mixture, and which of its samples.
#pragma once

#include <cstdint>
#include <vector>

#include "support/indexed/index_array.h"

namespace gestalt::support::indexed {

struct Blend {
  IndexArray dataset;  // i16 [size]
  IndexArray sample;   // i64 [size]
  int64_t size() const { return dataset.size(); }
};

// Divided by their sum. CONFIG_ERROR for a weight that is not above 0.
std::vector<double> normalized(const std::vector<double>& weights);

// Sample k goes to the corpus whose count lags most behind weight * max(k, 1); the first of equals. Counts are within
// one of their share at every k.
Blend blend_by_weight(const std::vector<double>& weights, int64_t size);

// Every sample of every corpus once, in proportion to their sizes.
Blend blend_exhaustive(const std::vector<int64_t>& sizes);

// ceil(size * weight) for each corpus, and what is built to be sure of it: ceil of that * (1 + surplus).
std::vector<int64_t> target_sizes(const std::vector<double>& weights, int64_t size);
int64_t with_surplus(int64_t target, double surplus);

}  // namespace gestalt::support::indexed

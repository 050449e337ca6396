#include "support/indexed/blend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gestalt/error.hpp"

namespace gestalt::support::indexed {
namespace {

constexpr size_t kMostCorpora = 32766;

void check_number(size_t num) {
  if (num < 1 || num > kMostCorpora)
    throw Error(GESTALT_CONFIG_ERROR, fmt::format("[data.paths] got {} corpora, expected 1 to {}", num, kMostCorpora));
}

}  // namespace

std::vector<double> normalized(const std::vector<double>& weights) {
  double sum = 0;
  for (const double w : weights) {
    if (!(w > 0) || !std::isfinite(w))
      throw Error(GESTALT_CONFIG_ERROR, fmt::format("[data.paths] got the weight {}, expected a number above 0", w));
    sum += w;
  }
  std::vector<double> out;
  for (const double w : weights) out.push_back(w / sum);
  return out;
}

Blend blend_by_weight(const std::vector<double>& weights, int64_t size) {
  check_number(weights.size());
  std::vector<int16_t> dataset(static_cast<size_t>(size));
  std::vector<int64_t> sample(static_cast<size_t>(size)), counts(weights.size(), 0);
  for (int64_t k = 0; k < size; ++k) {
    const double x = std::max(static_cast<double>(k), 1.0);
    size_t best = 0;
    double most = weights[0] * x - static_cast<double>(counts[0]);
    for (size_t d = 1; d < weights.size(); ++d) {
      const double lag = weights[d] * x - static_cast<double>(counts[d]);
      if (lag > most) most = lag, best = d;
    }
    dataset[static_cast<size_t>(k)] = static_cast<int16_t>(best);
    sample[static_cast<size_t>(k)] = counts[best]++;
  }
  return {IndexArray(std::move(dataset)), IndexArray(std::move(sample))};
}

Blend blend_exhaustive(const std::vector<int64_t>& sizes) {
  check_number(sizes.size());
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  std::vector<int16_t> dataset(static_cast<size_t>(total));
  std::vector<int64_t> sample(static_cast<size_t>(total)), counts(sizes.size(), 0);
  for (int64_t k = 0; k < total; ++k) {
    const double x = std::max(static_cast<double>(k), 1.0);
    size_t best = 0;
    double most = std::numeric_limits<double>::lowest();
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (counts[d] == sizes[d]) continue;
      const double lag =
          static_cast<double>(sizes[d]) / static_cast<double>(total) * x - static_cast<double>(counts[d]);
      if (lag > most) most = lag, best = d;
    }
    dataset[static_cast<size_t>(k)] = static_cast<int16_t>(best);
    sample[static_cast<size_t>(k)] = counts[best]++;
  }
  return {IndexArray(std::move(dataset)), IndexArray(std::move(sample))};
}

std::vector<int64_t> target_sizes(const std::vector<double>& weights, int64_t size) {
  std::vector<int64_t> out;
  for (const double w : weights) out.push_back(static_cast<int64_t>(std::ceil(static_cast<double>(size) * w)));
  return out;
}

int64_t with_surplus(int64_t target, double surplus) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(target) * (1 + surplus)));
}

}  // namespace gestalt::support::indexed

#include "support/generation/pick.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "gestalt/philox.h"

namespace gestalt::support {

int32_t pick(std::span<const float> logits, const Sampling& how, uint64_t position) {
  const auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  // As the numbers of a pass hold them.
  const double temperature = static_cast<double>(static_cast<float>(how.temperature));
  const double top_p = static_cast<double>(static_cast<float>(how.top_p));
  const double min_p = static_cast<double>(static_cast<float>(how.min_p));
  if (temperature == 0) return best;
  auto at = [&](int32_t id) { return static_cast<double>(logits[static_cast<size_t>(id)]); };
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return at(a) > at(b); });
  if (how.top_k > 0 && static_cast<size_t>(how.top_k) < order.size()) order.resize(static_cast<size_t>(how.top_k));
  std::vector<double> p;
  for (int32_t id : order) p.push_back(std::exp((at(id) - at(best)) / temperature));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  double sum = 0;
  size_t kept = 0;
  while (kept < p.size() && (kept == 0 || (sum < top_p * total && p[kept] >= min_p))) sum += p[kept++];
  const PhiloxBlock bits = philox_token(how.seed, 0, 0, static_cast<uint32_t>(position), 0, 0);
  double left = static_cast<double>(philox_uniform(bits.word[0])) * sum;
  for (size_t i = 0; i < kept; ++i)
    if ((left -= p[i]) < 0) return order[i];
  return order[kept - 1];
}

}  // namespace gestalt::support

#include "support/indexed/gpt_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "gestalt/error.hpp"
#include "support/indexed/random_state.h"

namespace gestalt::support::indexed {
namespace {

// The epochs of `num` together in one shuffle.
void append_epochs(const GptIndexRequest& r, int64_t num, RandomState* random, std::vector<int32_t>* documents) {
  const auto first = static_cast<int64_t>(documents->size());
  for (int64_t e = 0; e < num; ++e)
    for (int64_t id = r.begin; id < r.end; ++id) documents->push_back(static_cast<int32_t>(id));
  random->shuffle(documents->data() + first, static_cast<int64_t>(documents->size()) - first);
}

// Walks the documents; consecutive samples share `extra` tokens.
template <class T>
std::vector<T> walk_samples(const IndexFile& corpus, const GptIndexRequest& r, const std::vector<int32_t>& documents,
                            int64_t num_samples) {
  std::vector<T> rows;
  rows.reserve(2 * static_cast<size_t>(num_samples + 1));
  int64_t position = 0, offset = 0;
  const auto last = static_cast<int64_t>(documents.size()) - 1;
  rows.push_back(0);
  rows.push_back(0);
  for (int64_t k = 0; k < num_samples; ++k) {
    for (int64_t wanted = r.seq_len + r.extra; wanted > 0;) {
      const int64_t length = corpus.length(documents[static_cast<size_t>(position)]);
      const int64_t left = length - offset;
      if (left >= wanted) {
        offset += wanted - r.extra;
        wanted = 0;
      } else if (position == last) {
        offset = length - r.extra;
        wanted = 0;
      } else {
        wanted -= left;
        ++position;
        offset = 0;
      }
    }
    rows.push_back(static_cast<T>(position));
    rows.push_back(static_cast<T>(offset));
  }
  return rows;
}

template <class T>
std::vector<T> shuffle_samples(int64_t first_part, int64_t total, RandomState* random) {
  std::vector<T> order(static_cast<size_t>(total));
  std::iota(order.begin(), order.end(), T{0});
  random->shuffle(order.data(), first_part);
  random->shuffle(order.data() + first_part, total - first_part);
  return order;
}

}  // namespace

GptPlan plan_gpt_index(const IndexFile& corpus, const GptIndexRequest& r) {
  if (r.begin < 0 || r.end > corpus.num_sequences() || r.begin >= r.end || r.seq_len < 1)
    throw InvalidArgument(
        fmt::format("[{}] got sequences {} to {} and samples of {} tokens, expected a part of 0 to {}", corpus.prefix(),
                    r.begin, r.end, r.seq_len, corpus.num_sequences()));
  if (r.end > std::numeric_limits<int32_t>::max())
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] {} sequences, expected at most {}", corpus.prefix(), r.end,
                                                std::numeric_limits<int32_t>::max()));
  GptPlan plan;
  int64_t longest = 0;
  for (int64_t i = r.begin; i < r.end; ++i) {
    plan.tokens_per_epoch += corpus.length(i);
    longest = std::max(longest, corpus.length(i));
  }
  const int64_t t = plan.tokens_per_epoch, length = r.seq_len;
  const int64_t most = std::numeric_limits<int64_t>::max() / 4 / length;
  if (r.num_samples > most)
    throw InvalidArgument(
        fmt::format("[{}] got {} samples, expected at most {}", corpus.prefix(), r.num_samples, most));
  if (t < r.extra + (r.keep_partial ? 1 : length) && (r.num_samples < 0 || t < 1))
    throw Error(GESTALT_DATA_ERROR,
                fmt::format("[{}] sequences {} to {} hold {} tokens, fewer than one sample of {} + {}", corpus.prefix(),
                            r.begin, r.end, t, length, r.extra));
  if (r.num_samples >= 0) plan.num_epochs = std::max<int64_t>(1, (r.num_samples * length + r.extra + t - 1) / t);
  const int64_t tokens = plan.num_epochs * t - r.extra;
  plan.num_samples = r.keep_partial ? (tokens + length - 1) / length : tokens / length;
  if (plan.num_samples < 1)
    throw Error(GESTALT_DATA_ERROR,
                fmt::format("[{}] sequences {} to {} hold {} tokens, fewer than one sample of {} + {}", corpus.prefix(),
                            r.begin, r.end, t, length, r.extra));
  if (plan.num_epochs > 1) {
    plan.samples_without_last = ((plan.num_epochs - 1) * t - r.extra) / length;
    const int64_t from_last = r.num_samples - plan.samples_without_last;
    const int64_t per_epoch = t > r.extra ? (t - r.extra) / length : 0;
    plan.separate_last_epoch = from_last < static_cast<int64_t>(0.80 * static_cast<double>(per_epoch));
  }
  plan.wide_samples = std::max(plan.num_epochs * (r.end - r.begin), longest) > std::numeric_limits<int32_t>::max();
  plan.wide_shuffle = plan.num_samples >= static_cast<int64_t>(std::numeric_limits<uint32_t>::max()) - 1;
  return plan;
}

GptIndex build_gpt_index(const IndexFile& corpus, const GptIndexRequest& r) {
  const GptPlan plan = plan_gpt_index(corpus, r);
  RandomState random(r.seed);
  std::vector<int32_t> documents;
  documents.reserve(static_cast<size_t>(plan.num_epochs * (r.end - r.begin)));
  if (plan.separate_last_epoch) {
    append_epochs(r, plan.num_epochs - 1, &random, &documents);
    append_epochs(r, 1, &random, &documents);
  } else {
    append_epochs(r, plan.num_epochs, &random, &documents);
  }
  GptIndex index;
  index.num_epochs = plan.num_epochs;
  index.separate_last_epoch = plan.separate_last_epoch;
  index.samples = plan.wide_samples ? IndexArray(walk_samples<int64_t>(corpus, r, documents, plan.num_samples))
                                    : IndexArray(walk_samples<int32_t>(corpus, r, documents, plan.num_samples));
  const int64_t first = plan.separate_last_epoch ? plan.samples_without_last : plan.num_samples;
  index.shuffle = plan.wide_shuffle ? IndexArray(shuffle_samples<int64_t>(first, plan.num_samples, &random))
                                    : IndexArray(shuffle_samples<uint32_t>(first, plan.num_samples, &random));
  index.documents = IndexArray(std::move(documents));
  return index;
}

}  // namespace gestalt::support::indexed

#include "support/generation/continuation.h"

#include <algorithm>
#include <numeric>

#include "gestalt/host.hpp"

namespace gestalt::support {

namespace {

constexpr int64_t kBlockTokens = 16;
constexpr int64_t kChunk = 1024;  // longest piece of a prompt in one pass

}  // namespace

Continuation::Continuation(Session& session, const Sampling& how)
    : session_(session), how_(how), window_(session.i64("model.seq_len")), chunk_(std::min(window_, kChunk)) {
  blocks_.resize(static_cast<size_t>((window_ + kBlockTokens - 1) / kBlockTokens));
  std::iota(blocks_.begin(), blocks_.end(), 0);
  const gestalt_generation sizes = {sizeof sizes, kBlockTokens, static_cast<int64_t>(blocks_.size()), chunk_, 1};
  try {
    session.open_generation(sizes);
  } catch (const Error& e) {
    if (e.code != GESTALT_UNSUPPORTED && e.code != GESTALT_UNAVAILABLE) throw;  // or a device without kernels for it
    on_state_ = false;
    Host(session.host()).info(e.message() + "; every token is computed from the whole sequence");
  }
}

int32_t Continuation::next() {
  if (ids_.empty()) throw InvalidArgument("[generate] got no token, expected at least one to continue");
  // The newest three quarters stay in sight.
  if (ids_.size() - begin_ > static_cast<size_t>(window_)) {
    begin_ = ids_.size() - static_cast<size_t>(std::max<int64_t>(window_ - window_ / 4, 1));
    done_ = begin_;
  }
  const int32_t id = on_state_ ? next_on_state() : next_on_sequence();
  ++drawn_;
  ids_.push_back(id);
  return id;
}

int32_t Continuation::next_on_state() {
  int32_t id = 0;
  const gestalt_sampling sampling = {static_cast<float>(how_.temperature), static_cast<float>(how_.top_p),
                                     static_cast<float>(how_.min_p),       static_cast<int32_t>(how_.top_k),
                                     how_.seed,                            drawn_};
  while (done_ < ids_.size()) {
    const size_t count = std::min(ids_.size() - done_, static_cast<size_t>(chunk_));
    const int32_t starts[] = {0, static_cast<int32_t>(count)};
    const auto length = static_cast<int32_t>(done_ + count - begin_), slot = 0;
    gestalt_generation_pass pass = {};
    pass.struct_size = sizeof pass;
    pass.tokens = ids_.data() + done_;
    pass.num_tokens = count;
    pass.num_sequences = 1;
    pass.starts = starts;
    pass.lengths = &length;
    pass.blocks = blocks_.data();
    pass.blocks_per_sequence = blocks_.size();
    pass.slots = &slot;
    pass.sampling = &sampling;
    pass.ids = &id;
    session_.generate(pass);
    done_ += count;
  }
  return id;
}

int32_t Continuation::next_on_sequence() {
  int64_t vocab = 0;
  const std::vector<float> all = session_.logits(std::span(ids_).subspan(begin_), &vocab);
  // A padded vocabulary has columns that no token stands for.
  const auto usable = static_cast<size_t>(std::min(vocab, session_.tokenizer().vocab_size()));
  return pick(std::span(all).last(static_cast<size_t>(vocab)).first(usable), how_, drawn_);
}

}  // namespace gestalt::support

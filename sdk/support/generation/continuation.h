#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gestalt/task.hpp"
#include "support/generation/pick.h"

namespace gestalt::support {

// One sequence that grows token by token, on the state that the model's modules keep; where one keeps none, by running
// the whole sequence for every token. Beyond the model's length the oldest quarter falls out of sight.
class Continuation {
 public:
  Continuation(Session& session, const Sampling& how);

  void put(std::span<const int32_t> ids) { ids_.insert(ids_.end(), ids.begin(), ids.end()); }
  // Chooses the next token and appends it. At least one token must be there.
  int32_t next();
  const std::vector<int32_t>& ids() const { return ids_; }
  bool on_state() const { return on_state_; }

 private:
  int32_t next_on_state();
  int32_t next_on_sequence();

  Session& session_;
  Sampling how_;
  int64_t window_, chunk_;
  bool on_state_ = true;
  std::vector<int32_t> ids_;
  size_t begin_ = 0;  // the first token in sight
  size_t done_ = 0;   // tokens whose state is kept end here
  uint64_t drawn_ = 0;
  std::vector<int32_t> blocks_;
};

}  // namespace gestalt::support

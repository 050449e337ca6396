#pragma once

#include <memory>
#include <vector>

#include "core/program/builder.h"
#include "core/session/data_source.h"
#include "core/session/parameter_store.h"
#include "core/session/run.h"
#include "gestalt/abi/session.h"

namespace gestalt::core {

// Storage of what the modules of a model declared to keep while it generates: one buffer a state, of blocks or slots. Who
// generates says with every pass which blocks and slots belong to which sequence.
class StatePool {
 public:
  StatePool(Device& device, const ModelTree& tree, const StateLayout& layout);

  const StateLayout& layout() const { return layout_; }
  void bind(Compiled& compiled) const;
  // Block `from` of every state per token to block `to`.
  void copy_block(int64_t from, int64_t to);

 private:
  struct Entry {
    const StateDecl* state;
    Buffer data;
    uint64_t block_bytes;  // of a slot where per sequence
  };
  Device& device_;
  StateLayout layout_;
  std::vector<Entry> entries_;
};

// Passes over new tokens of sequences whose earlier tokens are in the state: the model in phase infer and the choice of
// the next token of each sequence. Two programs: one for long passes (prompts), one for a token of each sequence.
class Generation {
 public:
  // UNSUPPORTED when a module that needs earlier tokens keeps no state. known: ids that the tokenizer knows; 0: all.
  Generation(const Run& run, Machine& machine, const ModelTree& tree, ParameterStore& store, int64_t seq_len,
             int64_t known, const gestalt_generation& sizes);

  int64_t vocabulary() const { return vocabulary_; }
  void pass(const gestalt_generation_pass& pass);
  void copy_block(int64_t from, int64_t to) { pool_.copy_block(from, to); }

 private:
  struct Pass {
    std::unique_ptr<BatchBuffers> batch;
    std::unique_ptr<Compiled> compiled;
  };
  std::unique_ptr<Pass> make(int64_t max_tokens);
  void check(const gestalt_generation_pass& pass) const;
  void fill(Pass& program, const gestalt_generation_pass& pass) const;

  const Run& run_;
  Machine& machine_;
  const ModelTree& tree_;
  ParameterStore& store_;
  int64_t seq_len_, known_, max_tokens_, max_sequences_, table_width_;
  StatePool pool_;
  std::vector<FieldSpec> fields_;
  Buffer seed_, scalars_;
  int64_t vocabulary_ = 0;
  std::unique_ptr<Pass> long_, short_;
};

}  // namespace gestalt::core

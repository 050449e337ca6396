#include "core/session/generation.h"

#include <cstring>

#include "core/session/trainer.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

const gestalt_generation& checked(const gestalt_generation& s) {
  if (s.block_tokens < 1 || s.num_blocks < 1 || s.max_sequences < 1 || s.max_tokens < s.max_sequences)
    fail(GESTALT_INVALID_ARGUMENT, "[open_generation] got blocks of {} tokens, {} blocks, {} sequences and {} tokens, "
         "expected at least one of each and as many tokens as sequences", s.block_tokens, s.num_blocks, s.max_sequences,
         s.max_tokens);
  return s;
}

}  // namespace

StatePool::StatePool(Device& device, const ModelTree& tree, const StateLayout& layout)
    : device_(device), layout_(layout) {
  for (const StateDecl& s : tree.states()) {
    const TensorType t = layout.type_of(s);
    uint64_t bytes = dtype_size(t.dtype);
    for (int i = 1; i < t.ndim; ++i) bytes *= static_cast<uint64_t>(t.dim(i));
    Entry e{&s, device.alloc(bytes * static_cast<uint64_t>(t.dim(0)), Category::kState), bytes};
    device.fill(e.data.data(), 0, e.data.bytes());
    entries_.push_back(std::move(e));
  }
}

void StatePool::bind(Compiled& compiled) const {
  for (const Entry& e : entries_) compiled.executable().bind_input("state:" + e.state->path, e.data.data());
  compiled.forget_graphs();
}

void StatePool::copy_block(int64_t from, int64_t to) {
  for (int64_t b : {from, to})
    if (b < 0 || b >= layout_.num_blocks)
      fail(GESTALT_INVALID_ARGUMENT, "[copy_block] got block {}, expected 0 to {}", b, layout_.num_blocks - 1);
  device_.sync();
  for (const Entry& e : entries_) {
    if (e.state->scope != GESTALT_STATE_PER_TOKEN) continue;
    char* data = static_cast<char*>(e.data.data());
    device_.copy_on_device(data + static_cast<uint64_t>(to) * e.block_bytes,
                           data + static_cast<uint64_t>(from) * e.block_bytes, e.block_bytes);
  }
}

Generation::Generation(const Run& run, Machine& machine, const ModelTree& tree, ParameterStore& store, int64_t seq_len,
                       int64_t known, const gestalt_generation& sizes)
    : run_(run),
      machine_(machine),
      tree_(tree),
      store_(store),
      seq_len_(seq_len),
      known_(known),
      max_tokens_(checked(sizes).max_tokens),
      max_sequences_(sizes.max_sequences),
      table_width_((seq_len + sizes.block_tokens - 1) / sizes.block_tokens),
      pool_(machine.device(), tree, {sizes.num_blocks, sizes.block_tokens, sizes.max_sequences}) {
  fields_ = inference_fields();
  for (const char* name : {"lengths", "slots", "output_rows", "top_k"}) fields_.push_back({name, GESTALT_I32, {"sequences"}});
  for (const char* name : {"temperature", "top_p", "min_p"}) fields_.push_back({name, GESTALT_F32, {"sequences"}});
  fields_.push_back({"block_table", GESTALT_I32, {"sequences", std::to_string(table_width_)}});
  fields_.push_back({"seeds", GESTALT_I32, {"sequences", "4"}});
  seed_ = machine.device().alloc(16, Category::kOther);
  scalars_ = machine.device().alloc(4 * GESTALT_NUM_SCALARS, Category::kOther);
  machine.device().fill(seed_.data(), 0, seed_.bytes());
  machine.device().fill(scalars_.data(), 0, scalars_.bytes());
  short_ = make(max_sequences_);
}

std::unique_ptr<Generation::Pass> Generation::make(int64_t max_tokens) {
  auto p = std::make_unique<Pass>();
  p->batch = std::make_unique<BatchBuffers>(machine_.device(), fields_, max_tokens, max_sequences_);
  p->compiled = std::make_unique<Compiled>(
      run_.ops(), run_.registry(), machine_.device(), machine_.policy(), 1, [](Program&) {},
      [&](Program& program) {
        Builder b(program, batch_fields(fields_, program.dims(), max_tokens, max_sequences_), GESTALT_PHASE_INFER,
                  pool_.layout());
        const std::vector<Value*> out = b.emit(tree_.root(), {});
        if (out.empty() || out[0]->type.ndim != 2)
          fail(GESTALT_CONFIG_ERROR, "[model] '{}' returns no logits [tokens, vocabulary] in phase infer",
               tree_.root().component);
        if (!b.without_state().empty())
          fail(GESTALT_UNSUPPORTED, "[{}] looks at other tokens, but keeps no state", b.without_state());
        // A model that knows output_rows computes only those.
        Value* logits = out[0];
        if (!program.find_input("batch:output_rows")) logits = b.op("core.gather_rows", {logits, b.batch("output_rows", true)});
        logits = b.op("core.cast", {logits}, {{"dtype", std::string("f32")}});
        vocabulary_ = logits->type.dim(1);
        const int64_t known = known_ < vocabulary_ ? known_ : 0;
        const std::vector<Value*> chosen =
            b.apply("core.sample", {logits, b.batch("temperature", true), b.batch("top_k", true), b.batch("top_p", true),
                                    b.batch("min_p", true), b.batch("seeds", true)}, {{"vocab", known}});
        program.outputs["logits"] = logits;
        program.outputs["ids"] = chosen[0];
        program.outputs["logprob"] = chosen[1];
      });
  bind_inputs(*p->compiled, tree_, store_, p->batch.get(), nullptr, scalars_.data(), seed_.data());
  pool_.bind(*p->compiled);
  return p;
}

void Generation::check(const gestalt_generation_pass& pass) const {
  const auto tokens = static_cast<int64_t>(pass.num_tokens), sequences = static_cast<int64_t>(pass.num_sequences);
  if (tokens < 1 || tokens > max_tokens_ || sequences < 1 || sequences > max_sequences_)
    fail(GESTALT_INVALID_ARGUMENT, "[generate] got {} tokens in {} sequences, expected 1 to {} in 1 to {}", tokens,
         sequences, max_tokens_, max_sequences_);
  for (int64_t i = 0; i < tokens; ++i)
    if (pass.tokens[i] < 0 || pass.tokens[i] >= vocabulary_)
      fail(GESTALT_INVALID_ARGUMENT, "[generate] token {} is {}, expected 0 to {}", i, pass.tokens[i], vocabulary_ - 1);
  for (int64_t i = 0; i < sequences; ++i) {
    const int32_t count = pass.starts[i + 1] - pass.starts[i];
    if (count < 1 || pass.lengths[i] < count || pass.lengths[i] > seq_len_)
      fail(GESTALT_INVALID_ARGUMENT, "[generate] sequence {} has {} new tokens of {}, expected 1 to {} (model.seq_len)", i,
           count, pass.lengths[i], seq_len_);
    if (pass.slots[i] < 0 || pass.slots[i] >= max_sequences_)
      fail(GESTALT_INVALID_ARGUMENT, "[generate] sequence {} has slot {}, expected 0 to {}", i, pass.slots[i],
           max_sequences_ - 1);
  }
  if (pass.starts[0] != 0 || pass.starts[sequences] != tokens)
    fail(GESTALT_INVALID_ARGUMENT, "[generate] starts go from {} to {}, expected 0 to {}", pass.starts[0],
         pass.starts[sequences], tokens);
}

void Generation::fill(Pass& program, const gestalt_generation_pass& pass) const {
  BatchBuffers& batch = *program.batch;
  auto i32 = [&](const char* name) { return batch.host()[static_cast<size_t>(batch.index(name))].data<int32_t>(); };
  auto f32 = [&](const char* name) { return batch.host()[static_cast<size_t>(batch.index(name))].data<float>(); };
  const auto sequences = static_cast<int64_t>(pass.num_sequences);
  const auto given = static_cast<int64_t>(pass.blocks_per_sequence);
  std::memcpy(i32("tokens"), pass.tokens, pass.num_tokens * 4);
  std::memcpy(i32("seq_starts"), pass.starts, (pass.num_sequences + 1) * 4);
  for (int64_t s = 0; s < sequences; ++s) {
    for (int32_t t = pass.starts[s]; t < pass.starts[s + 1]; ++t) {
      i32("positions")[t] = pass.lengths[s] - (pass.starts[s + 1] - t);
      i32("keys")[2 * t] = static_cast<int32_t>(s);
      i32("keys")[2 * t + 1] = i32("positions")[t];
    }
    i32("lengths")[s] = pass.lengths[s];
    i32("slots")[s] = pass.slots[s];
    i32("output_rows")[s] = pass.starts[s + 1] - 1;
    for (int64_t b = 0; b < table_width_; ++b)
      i32("block_table")[s * table_width_ + b] = b < given ? pass.blocks[s * given + b] : -1;
    const gestalt_sampling& how = pass.sampling[s];
    f32("temperature")[s] = how.temperature;
    f32("top_p")[s] = how.top_p;
    f32("min_p")[s] = how.min_p;
    i32("top_k")[s] = how.top_k;
    i32("seeds")[4 * s] = static_cast<int32_t>(how.seed);
    i32("seeds")[4 * s + 1] = static_cast<int32_t>(how.seed >> 32);
    i32("seeds")[4 * s + 2] = static_cast<int32_t>(how.position);
    i32("seeds")[4 * s + 3] = 0;
  }
}

void Generation::pass(const gestalt_generation_pass& pass) {
  check(pass);
  const auto tokens = static_cast<int64_t>(pass.num_tokens), sequences = static_cast<int64_t>(pass.num_sequences);
  if (tokens > max_sequences_ && !long_) long_ = make(max_tokens_);
  Pass& p = tokens > max_sequences_ ? *long_ : *short_;
  Device& device = machine_.device();
  device.sync(machine_.streams()[0]);
  p.batch->resize(tokens, sequences);
  fill(p, pass);
  p.compiled->attach(machine_.arenas());
  p.compiled->set_dims(device, {{"tokens", tokens}, {"sequences", sequences}});
  p.batch->upload(machine_.streams()[0]);
  p.compiled->run(device, machine_.streams(), false, false);
  device.sync();
  auto read = [&](const char* name, void* to, int64_t elements) {
    if (to) device.copy_to_host(to, p.compiled->executable().output(name).view.data, static_cast<uint64_t>(elements) * 4);
  };
  read("ids", pass.ids, sequences);
  read("logprob", pass.logprobs, sequences);
  read("logits", pass.logits, sequences * vocabulary_);
}

}  // namespace gestalt::core

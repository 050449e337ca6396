#include <cstring>

#include "core/session/session.h"
#include "core/tensor/half.h"

namespace gestalt::core {

Predictor::Predictor(const Run& run, Machine& machine, const ModelTree& tree, ParameterStore& store, int64_t max_tokens,
                     int64_t max_sequences)
    : machine_(machine),
      batch_(std::make_unique<BatchBuffers>(machine.device(), inference_fields(), max_tokens, max_sequences)) {
  compiled_ = std::make_unique<Compiled>(
      run.ops(), run.registry(), machine.device(), machine.policy(), 1, [](Program&) {},
      [&](Program& program) {
        Builder b(program, batch_fields(inference_fields(), program.dims(), max_tokens, max_sequences), GESTALT_PHASE_INFER);
        const std::vector<Value*> out = b.emit(tree.root(), {});
        if (out.empty() || out[0]->type.ndim != 2)
          fail(GESTALT_CONFIG_ERROR, "[model] '{}' returns no logits [tokens, vocabulary] in phase infer",
               tree.root().component);
        Value* logits = b.op("core.cast", {out[0]}, {{"dtype", std::string("f32")}});
        program.outputs["logits"] = logits;
        vocabulary_ = logits->type.dim(1);
      });
  seed_ = machine.device().alloc(16, Category::kOther);
  scalars_ = machine.device().alloc(4 * GESTALT_NUM_SCALARS, Category::kOther);
  machine.device().fill(seed_.data(), 0, seed_.bytes());
  machine.device().fill(scalars_.data(), 0, scalars_.bytes());
  bind_inputs(*compiled_, tree, store, batch_.get(), nullptr, scalars_.data(), seed_.data());
}

void Predictor::logits(const int32_t* ids, int64_t num, float* out) {
  if (num > batch_->max_tokens())
    fail(GESTALT_INVALID_ARGUMENT, "[logits] got {} tokens, expected at most {} ([model] seq_len)", num,
         batch_->max_tokens());
  logits(num, 1, [&](std::vector<Tensor>& host) {
    auto field = [&](const char* name) { return host[static_cast<size_t>(batch_->index(name))].data<int32_t>(); };
    std::memcpy(field("tokens"), ids, static_cast<size_t>(num) * 4);
    for (int64_t i = 0; i < num; ++i) {
      field("positions")[i] = static_cast<int32_t>(i);
      field("keys")[2 * i] = 0;
      field("keys")[2 * i + 1] = static_cast<int32_t>(i);
    }
    field("seq_starts")[0] = 0;
    field("seq_starts")[1] = static_cast<int32_t>(num);
  }, out);
}

void Predictor::logits(int64_t num_tokens, int64_t num_sequences, const std::function<void(std::vector<Tensor>&)>& fill,
                       float* out) {
  machine_.device().sync(machine_.streams()[0]);
  batch_->resize(num_tokens, num_sequences);
  fill(batch_->host());
  const int32_t* ids = batch_->host()[static_cast<size_t>(batch_->index("tokens"))].data<int32_t>();
  for (int64_t i = 0; i < num_tokens; ++i)
    if (ids[i] < 0 || ids[i] >= vocabulary_)
      fail(GESTALT_INVALID_ARGUMENT, "[logits] token {} is {}, expected 0 to {}", i, ids[i], vocabulary_ - 1);
  compiled_->attach(machine_.arenas());
  compiled_->set_dims(machine_.device(), {{"tokens", num_tokens}, {"sequences", num_sequences}});
  batch_->upload(machine_.streams()[0]);
  compiled_->run(machine_.device(), machine_.streams(), false, false);
  machine_.device().sync();
  const Tensor& t = compiled_->executable().output("logits");
  machine_.device().copy_to_host(out, t.view.data, static_cast<uint64_t>(num_tokens * vocabulary_) * 4);
}

}  // namespace gestalt::core

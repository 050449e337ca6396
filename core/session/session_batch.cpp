// What a session does for comparisons with other programs: batches from host memory, and tensors by name.

#include <cstring>

#include "core/base/host.h"
#include "core/session/session.h"
#include "core/tensor/half.h"

#include <spdlog/spdlog.h>

namespace gestalt::core {

namespace {

// The batch's fields in the order of `specs`.
std::vector<const gestalt_view*> in_order(std::span<const gestalt_batch_view> fields, const std::vector<FieldSpec>& specs) {
  std::vector<const gestalt_view*> views;
  for (const FieldSpec& spec : specs) {
    const gestalt_view* found = nullptr;
    for (const gestalt_batch_view& f : fields)
      if (view_of(f.name) == spec.name) found = &f.view;
    if (!found) fail(GESTALT_INVALID_ARGUMENT, "[run_batch] field '{}' is missing", spec.name);
    if (found->dtype != spec.dtype || found->ndim != static_cast<int32_t>(spec.dims.size()))
      fail(GESTALT_INVALID_ARGUMENT, "[run_batch] field '{}' is {}, expected {} of {} dimensions", spec.name,
           describe(*found), dtype_name(spec.dtype), spec.dims.size());
    views.push_back(found);
  }
  return views;
}

BatchSpec size_of(const std::vector<FieldSpec>& specs, const std::vector<const gestalt_view*>& views) {
  BatchSpec size{specs, 0, 0};
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].name == "tokens") size.max_tokens = views[i]->shape[0];
    if (specs[i].name == "seq_starts") size.max_sequences = views[i]->shape[0] - 1;
  }
  if (size.max_tokens < 1 || size.max_sequences < 1)
    fail(GESTALT_INVALID_ARGUMENT, "[run_batch] got {} tokens in {} sequences, expected at least one", size.max_tokens,
         size.max_sequences);
  return size;
}

template <class T>
void convert(const void* data, uint32_t dtype, int64_t num, T* out) {
  for (int64_t i = 0; i < num; ++i) switch (dtype) {
      case GESTALT_F32: out[i] = static_cast<T>(static_cast<const float*>(data)[i]); break;
      case GESTALT_F64: out[i] = static_cast<T>(static_cast<const double*>(data)[i]); break;
      case GESTALT_BF16: out[i] = static_cast<T>(f32_from_bf16(static_cast<const uint16_t*>(data)[i])); break;
      case GESTALT_F16: out[i] = static_cast<T>(f32_from_f16(static_cast<const uint16_t*>(data)[i])); break;
      default: fail(GESTALT_INVALID_ARGUMENT, "[read_tensor] the tensor is {}, expected a floating type", dtype_name(dtype));
    }
}

}  // namespace

Trainer& Session::trainer_for_batches() {
  if (!trainer_) trainer_ = std::make_unique<Trainer>(run_, machine(), tree(), store(), nullptr);
  return *trainer_;
}

std::pair<double, double> Session::run_batch(std::span<const gestalt_batch_view> fields, uint64_t flags) {
  const std::vector<const gestalt_view*> views = in_order(fields, loss_fields());
  if (fields.size() != views.size())
    fail(GESTALT_INVALID_ARGUMENT, "[run_batch] got {} fields, expected {}", fields.size(), views.size());
  const bool more = flags & GESTALT_BATCH_ACCUMULATE;
  const BatchSpec size = size_of(loss_fields(), views);
  const FillBatch fill = [&](std::vector<Tensor>& host, int64_t* num_tokens, int64_t* num_sequences) {
    *num_tokens = size.max_tokens;
    *num_sequences = size.max_sequences;
    for (size_t i = 0; i < host.size(); ++i) std::memcpy(host[i].view.data, views[i]->data, num_bytes(*views[i]));
  };
  LossProgram* program = nullptr;
  double weight = 0;
  if (flags & GESTALT_BATCH_GRADIENTS) {
    Trainer& trainer = trainer_for_batches();
    weight = trainer.run_batch(size, fill, more);
    program = &trainer.loss_program();
  } else {
    if (!batch_evaluator_ || !batch_evaluator_->fits(size.max_tokens, size.max_sequences))
      batch_evaluator_ = std::make_unique<LossProgram>(run_, machine(), tree(), store(), size, false, nullptr, nullptr);
    program = batch_evaluator_.get();
    weight = program->run(fill, more, false);
  }
  return {program->sums().at(program->loss_name() + ".sum"), weight};
}

void Session::batch_logits(std::span<const gestalt_batch_view> fields, float* out, uint64_t room, int64_t* vocabulary) {
  const std::vector<const gestalt_view*> views = in_order(fields, inference_fields());
  const BatchSpec size = size_of(inference_fields(), views);
  if (!batch_predictor_ || !batch_predictor_->fits(size.max_tokens, size.max_sequences))
    batch_predictor_ = std::make_unique<Predictor>(run_, machine(), tree(), store(), size.max_tokens, size.max_sequences);
  *vocabulary = batch_predictor_->vocabulary();
  if (room == 0) return;
  if (room / static_cast<uint64_t>(*vocabulary) < static_cast<uint64_t>(size.max_tokens))
    fail(GESTALT_INVALID_ARGUMENT, "[batch_logits] room for {} floats, expected {}", room, size.max_tokens * *vocabulary);
  batch_predictor_->logits(size.max_tokens, size.max_sequences, [&](std::vector<Tensor>& host) {
    for (size_t i = 0; i < host.size(); ++i) std::memcpy(host[i].view.data, views[i]->data, num_bytes(*views[i]));
  }, out);
}

bool Session::begin_as_foreign(const std::filesystem::path& path) {
  const std::unique_ptr<ForeignModel> model =
      ForeignModel::detect(run_.registry(), std::filesystem::absolute(path).lexically_normal());
  if (!model) return false;
  const ForeignTensors tensors = model->open();
  tensors.check_settings(run_.config().str_list("model.allow_keys"));
  const Config theirs = Config::from_text(tensors.config_text(), path.native());
  for (const auto& [key, value] : theirs.leaves()) {
    const ConfigNode* own = run_.config().find(key);
    if (!key.starts_with("model.") || key == "model.family" || (own && own->text() == value->text())) continue;
    spdlog::warn("[{}] is {} here, but {} in '{}'", key, own ? own->text() : "not set", value->text(), path.native());
  }
  tensors.load(tree(), store());
  return true;
}

void Session::open_reference(const std::string& tensors_file, const std::string& prefix) {
  if (!run_.foreign())
    fail(GESTALT_INVALID_ARGUMENT, "[open_reference] the command line names no model of another program");
  reference_ = std::make_unique<ForeignTensors>(run_.foreign()->open(tensors_file, prefix));
}

void Session::read_tensor(int32_t kind, const std::string& name, gestalt_view& out) {
  const Parameter* p = tree().find(name);
  if (!p) fail(GESTALT_NOT_FOUND, "[{}] the model has no such tensor", name);
  if (Tensor(out.dtype, p->global_shape).dims().size() != static_cast<size_t>(out.ndim) ||
      !std::equal(p->global_shape.begin(), p->global_shape.end(), out.shape))
    fail(GESTALT_INVALID_ARGUMENT, "[{}] got a view {}, expected {}", name, describe(out),
         describe(Tensor(out.dtype, p->global_shape).view));
  if (kind == GESTALT_TENSOR_REFERENCE) {
    if (!reference_) fail(GESTALT_INVALID_ARGUMENT, "[{}] comes before open_reference", name);
    if (!reference_->read(name, out)) fail(GESTALT_NOT_FOUND, "[{}] the reference has no such tensor", name);
    return;
  }
  const ParameterStore::Location at = kind == GESTALT_TENSOR_GRADIENT ? store().gradient(*p) : store().weight(*p);
  if (!at.data) fail(GESTALT_NOT_FOUND, "[{}] has no gradient", name);
  machine().device().sync();
  const std::vector<char> bytes = store().read(at);
  if (out.dtype == GESTALT_F64)
    convert(bytes.data(), at.dtype, at.length, static_cast<double*>(out.data));
  else if (out.dtype == GESTALT_F32)
    convert(bytes.data(), at.dtype, at.length, static_cast<float*>(out.data));
  else
    fail(GESTALT_INVALID_ARGUMENT, "[{}] got a view of {}, expected f32 or f64", name, dtype_name(out.dtype));
  const double scale = kind == GESTALT_TENSOR_GRADIENT && trainer_ ? trainer_->loss_scale().value() : 1;
  for (int64_t i = 0; scale != 1 && i < at.length; ++i) {
    if (out.dtype == GESTALT_F64)
      static_cast<double*>(out.data)[i] /= scale;
    else
      static_cast<float*>(out.data)[i] /= static_cast<float>(scale);
  }
}

}  // namespace gestalt::core

#include "core/session/data_source.h"

#include <algorithm>
#include <charconv>

#include "core/base/hash.h"
#include "core/base/host.h"
#include "core/base/text.h"
#include "core/config/attr_list.h"

namespace gestalt::core {

namespace {

// "tokens", "sequences+1", "2": a sum of numbers and names, evaluated by `name_of` and `add`.
template <class T, class NameFn, class AddFn>
T evaluate(const std::string& text, NameFn name_of, AddFn add) {
  T sum{};
  for (const std::string& term : split(text, '+')) {
    int64_t number = 0;
    auto [end, ec] = std::from_chars(term.data(), term.data() + term.size(), number);
    const bool is_number = ec == std::errc{} && end == term.data() + term.size() && number >= 0;
    sum = add(sum, is_number ? T(number) : name_of(term));
  }
  return sum;
}

AttrList section(const Config& config, const char* name) {
  ConfigNode node = *config.find(name);
  node.erase("type");
  return to_attrs(node);
}

}  // namespace

std::vector<BatchField> batch_fields(const std::vector<FieldSpec>& specs, DimTable& dims, int64_t max_tokens,
                                     int64_t max_sequences) {
  std::vector<BatchField> out;
  for (const FieldSpec& s : specs) {
    BatchField f;
    f.name = s.name;
    f.type.dtype = s.dtype;
    for (const std::string& d : s.dims)
      f.type.shape[static_cast<size_t>(f.type.ndim++)] = evaluate<int64_t>(
          d,
          [&](const std::string& name) {
            if (name == "tokens") return dims.named(name, max_tokens);
            if (name == "sequences") return dims.named(name, max_sequences);
            fail(GESTALT_INVALID_ARGUMENT, "[batch field '{}'] dimension '{}' is unknown, expected tokens, sequences or a "
                 "number", s.name, name);
          },
          [&](int64_t a, int64_t b) { return dims.add(a, b); });
    out.push_back(f);
  }
  return out;
}

const std::vector<FieldSpec>& inference_fields() {
  static const auto* kFields = new std::vector<FieldSpec>{{"tokens", GESTALT_I32, {"tokens"}},
                                                          {"positions", GESTALT_I32, {"tokens"}},
                                                          {"seq_starts", GESTALT_I32, {"sequences+1"}},
                                                          {"keys", GESTALT_I32, {"tokens", "2"}}};
  return *kFields;
}

const std::vector<FieldSpec>& loss_fields() {
  static const auto* kFields = new std::vector<FieldSpec>([] {
    std::vector<FieldSpec> all = inference_fields();
    all.push_back({"labels", GESTALT_I32, {"tokens"}});
    all.push_back({"weights", GESTALT_F32, {"tokens"}});
    return all;
  }());
  return *kFields;
}

DataSource::DataSource(const Registry& registry, const Config& config) : registry_(registry), config_(config) {
  if (!config.has("tokenizer.type")) return;
  const AttrList attrs = section(config, "tokenizer");
  tokenizer_ = Instance(registry.component("tokenizer/1", config.str("tokenizer.type")), attrs.data(), attrs.size());
}

void DataSource::open(int64_t seq_len, int64_t seed) {
  if (dataset_) return;
  if (!config_.has("data.type")) fail(GESTALT_CONFIG_ERROR, "[data] is missing, expected a section with 'type'");
  const AttrList attrs = section(config_, "data");
  Instance dataset(registry_.component("dataset/1", config_.str("data.type")), attrs.data(), attrs.size());
  check(dataset.component().host,
        dataset.table<gestalt_dataset_1>()->open(dataset.self(), tokenizer_ ? tokenizer() : nullptr,
                                                 tokenizer_ ? tokenizer_self() : nullptr, seq_len, seed),
        dataset.text());
  dataset_ = std::move(dataset);
}

const DataSource::Split* DataSource::split(const std::string& name) {
  for (const auto& [n, s] : splits_)
    if (n == name) return s.get();
  gestalt_dataset_info info{};
  info.struct_size = sizeof(info);
  gestalt_status* status = dataset_.table<gestalt_dataset_1>()->info(dataset_.self(), str_of(name), &info);
  if (status) {
    const Error e = take(status);
    if (e.code() != GESTALT_NOT_FOUND) throw e;
    splits_.emplace_back(name, nullptr);
    return nullptr;
  }
  auto s = std::make_unique<Split>();
  for (uint64_t i = 0; i < info.num_fields; ++i) {
    const gestalt_field& f = info.fields[i];
    FieldSpec spec{std::string(view_of(f.name)), f.dtype, {}};
    for (uint32_t k = 0; k < f.ndim && k < 4; ++k) spec.dims.emplace_back(view_of(f.dims[k]));
    s->fields.push_back(spec);
  }
  s->num_samples = info.num_samples;
  s->max_tokens = info.max_tokens_per_sample;
  s->max_sequences = info.max_sequences_per_sample;
  s->bytes_of_text = info.bytes_of_text;
  s->digest = to_hex(info.digest, sizeof(info.digest));
  splits_.emplace_back(name, std::move(s));
  return splits_.back().second.get();
}

BatchSpec DataSource::batches(const std::string& name, int64_t max_samples) {
  const Split* s = split(name);
  if (!s) fail(GESTALT_NOT_FOUND, "[data] has no split '{}'", name);
  return {s->fields, s->max_tokens * max_samples, s->max_sequences * max_samples};
}

void DataSource::read(const std::string& split, const std::vector<int64_t>& samples, std::vector<Tensor>& views,
                      int64_t* num_tokens, int64_t* num_sequences) {
  pointers_.clear();
  for (Tensor& t : views) pointers_.push_back(&t.view);
  check(dataset_.component().host,
        dataset_.table<gestalt_dataset_1>()->read(dataset_.self(), str_of(split), samples.data(), samples.size(),
                                                  pointers_.data(), pointers_.size(), num_tokens, num_sequences),
        dataset_.text());
}

BatchBuffers::BatchBuffers(Device& device, const std::vector<FieldSpec>& fields, int64_t max_tokens,
                           int64_t max_sequences)
    : device_(device), fields_(fields), max_tokens_(max_tokens), max_sequences_(max_sequences) {
  for (const FieldSpec& f : fields_) {
    const std::vector<int64_t> s = shape(f, max_tokens, max_sequences);
    Tensor t(f.dtype, s);
    const uint64_t bytes = num_bytes(t.view);
    pinned_.push_back(device.alloc_pinned(bytes));
    device_buffers_.push_back(device.alloc(bytes, Category::kBatch));
    t.view.data = pinned_.back().data();
    host_.push_back(t);
  }
}

std::vector<int64_t> BatchBuffers::shape(const FieldSpec& f, int64_t tokens, int64_t sequences) const {
  std::vector<int64_t> s;
  for (const std::string& d : f.dims)
    s.push_back(evaluate<int64_t>(
        d, [&](const std::string& name) { return name == "tokens" ? tokens : sequences; },
        [](int64_t a, int64_t b) { return a + b; }));
  return s;
}

void BatchBuffers::resize(int64_t num_tokens, int64_t num_sequences) {
  if (num_tokens < 0 || num_tokens > max_tokens_ || num_sequences < 0 || num_sequences > max_sequences_)
    fail(GESTALT_INVALID_ARGUMENT, "[batch] got {} tokens in {} sequences, expected at most {} in {}", num_tokens,
         num_sequences, max_tokens_, max_sequences_);
  for (size_t i = 0; i < fields_.size(); ++i) host_[i].reshape(shape(fields_[i], num_tokens, num_sequences));
}

void BatchBuffers::upload(const Stream& stream) {
  for (size_t i = 0; i < fields_.size(); ++i)
    if (const uint64_t bytes = num_bytes(host_[i].view))
      device_.copy_to_device(device_buffers_[i].data(), host_[i].view.data, bytes, stream);
}

int64_t BatchBuffers::index(std::string_view name) const {
  for (size_t i = 0; i < fields_.size(); ++i)
    if (fields_[i].name == name) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace gestalt::core

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/plugin/registry.h"
#include "core/program/builder.h"
#include "core/runtime/device.h"
#include "core/tensor/tensor.h"
#include "gestalt/abi/dataset.h"

namespace gestalt::core {

// One field of a batch with the text of its dimensions ("tokens", "sequences+1", "2").
struct FieldSpec {
  std::string name;
  uint32_t dtype = 0;
  std::vector<std::string> dims;
};

// The fields of a batch as types of a program; declares the named dimensions with these maxima.
std::vector<BatchField> batch_fields(const std::vector<FieldSpec>& specs, DimTable& dims, int64_t max_tokens,
                                     int64_t max_sequences);

// The standard fields that generation makes: tokens, positions, seq_starts, keys.
const std::vector<FieldSpec>& inference_fields();

// What inference_fields lacks for a loss: labels and weights.
const std::vector<FieldSpec>& loss_fields();

// The fields of batches and their largest sizes.
struct BatchSpec {
  std::vector<FieldSpec> fields;
  int64_t max_tokens = 0, max_sequences = 0;
};
// Fills the host views of one batch, in the order of its fields, and says how large it is.
using FillBatch = std::function<void(std::vector<Tensor>& views, int64_t* num_tokens, int64_t* num_sequences)>;

// The tokenizer and data set of a run.
class DataSource {
 public:
  DataSource(const Registry& registry, const Config& config);
  DataSource(const DataSource&) = delete;

  // Opens the data set; seq_len and seed as in the run. Without it only the tokenizer can be used.
  void open(int64_t seq_len, int64_t seed);
  bool has_tokenizer() const { return static_cast<bool>(tokenizer_); }
  const gestalt_tokenizer_1* tokenizer() const { return tokenizer_.table<gestalt_tokenizer_1>(); }
  void* tokenizer_self() const { return tokenizer_.self(); }

  struct Split {
    std::vector<FieldSpec> fields;
    int64_t num_samples = 0, max_tokens = 0, max_sequences = 0, bytes_of_text = -1;
    std::string digest;  // hex
  };
  // NULL when the data set has no such split.
  const Split* split(const std::string& name);
  // Batches of at most `max_samples` samples of a split, which must exist, and what reads one.
  BatchSpec batches(const std::string& split, int64_t max_samples);
  FillBatch reader(const std::string& split, const std::vector<int64_t>& samples) {
    return [this, &split, &samples](std::vector<Tensor>& views, int64_t* num_tokens, int64_t* num_sequences) {
      read(split, samples, views, num_tokens, num_sequences);
    };
  }
  // Into host memory, in the order of the split's fields.
  void read(const std::string& split, const std::vector<int64_t>& samples, std::vector<Tensor>& views, int64_t* num_tokens,
            int64_t* num_sequences);

 private:
  const Registry& registry_;
  const Config& config_;
  Instance tokenizer_, dataset_;
  std::vector<std::pair<std::string, std::unique_ptr<Split>>> splits_;
  std::vector<gestalt_view*> pointers_;
};

// Host staging and device memory for batches of at most `max_samples` samples of one set of fields.
class BatchBuffers {
 public:
  BatchBuffers(Device& device, const std::vector<FieldSpec>& fields, int64_t max_tokens, int64_t max_sequences);

  const std::vector<FieldSpec>& fields() const { return fields_; }
  // Host views with room for the maxima; shrink() gives them the real sizes.
  std::vector<Tensor>& host() { return host_; }
  void resize(int64_t num_tokens, int64_t num_sequences);
  // On `stream`; the host memory is free again after the stream has passed.
  void upload(const Stream& stream);
  void* device_data(size_t field) const { return device_buffers_[field].data(); }
  int64_t index(std::string_view name) const;  // -1 when absent
  int64_t max_tokens() const { return max_tokens_; }
  int64_t max_sequences() const { return max_sequences_; }

 private:
  std::vector<int64_t> shape(const FieldSpec& f, int64_t tokens, int64_t sequences) const;

  Device& device_;
  std::vector<FieldSpec> fields_;
  int64_t max_tokens_, max_sequences_;
  std::vector<Buffer> pinned_, device_buffers_;
  std::vector<Tensor> host_;
};

}  // namespace gestalt::core

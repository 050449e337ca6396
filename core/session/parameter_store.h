#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/runtime/device.h"
#include "core/session/model_tree.h"
#include "gestalt/abi/optimizer.h"

namespace gestalt::core {

// Parameters, gradients, master weights and optimizer state on the device. Trainable parameters of one dtype lie in one
// flat vector, in the order in which the backward produces their gradients, each at an aligned offset; gradients, masters
// and states are vectors of the same layout. Gaps are zero.
class ParameterStore {
 public:
  struct Segment {
    const Parameter* parameter;
    int64_t offset, length;  // elements
  };
  struct Flat {
    uint32_t dtype;
    int64_t length = 0;
    std::vector<Segment> segments;
    Buffer weights, gradients, master;
    std::vector<Buffer> states;
    Buffer segment_table, segment_hyper;  // as the optimizer sees them
  };
  // Where one tensor of the store lives.
  struct Location {
    void* data = nullptr;
    uint32_t dtype = 0;
    int64_t length = 0;
  };

  ParameterStore(Device& device, const ModelTree& tree);

  // Gradients, masters (f32, where weights are bf16 or f16) and optimizer states; decay and learning-rate scale by
  // parameter.
  struct Hyper {
    float decay, lr_scale;
  };
  void open_training(const std::vector<gestalt_optimizer_state>& states,
                     const std::function<Hyper(const Parameter&)>& hyper);

  std::vector<Flat>& flats() { return flats_; }
  const std::vector<Flat>& flats() const { return flats_; }
  Location weight(const Parameter& p) const;
  Location gradient(const Parameter& p) const;
  // A state by index, or the master weights for index -1; data is NULL when there are none.
  Location state(const Parameter& p, int index) const;
  uint32_t state_dtype(const Flat& flat, const gestalt_optimizer_state& s) const;

  // Values as declared: a function of (seed, name, global element index).
  void initialise(uint64_t seed, const Mesh& mesh);
  // From host memory in the parameter's dtype; masters follow.
  void set(const Parameter& p, const void* host, uint64_t bytes);
  std::vector<char> read(const Location& location) const;
  void read(const Location& location, void* host) const;
  void write(const Location& location, const void* host, uint64_t bytes);

 private:
  std::pair<size_t, const Segment*> find(const Parameter& p) const;

  Device& device_;
  std::vector<Flat> flats_;
  struct Loose {  // buffers of the model
    const Parameter* parameter;
    Buffer data;
  };
  std::vector<Loose> loose_;
};

// The initial elements of a rank's part of a parameter, in its dtype.
std::vector<char> initial_values(const Parameter& p, uint64_t seed, const Mesh& mesh);

}  // namespace gestalt::core

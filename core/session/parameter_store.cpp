#include "core/session/parameter_store.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/dtype.h"
#include "core/tensor/half.h"
#include "gestalt/philox.h"

namespace gestalt::core {

namespace {

int64_t elements(const TensorType& t) {
  int64_t n = 1;
  for (int i = 0; i < t.ndim; ++i) n *= t.dim(i);
  return n;
}

void store(char* at, uint32_t dtype, double value) {
  if (dtype == GESTALT_F64) {
    std::memcpy(at, &value, 8);
    return;
  }
  const float f = static_cast<float>(value);
  if (dtype == GESTALT_F32) {
    std::memcpy(at, &f, 4);
  } else if (dtype == GESTALT_BF16 || dtype == GESTALT_F16) {
    const uint16_t h = dtype == GESTALT_BF16 ? bf16_from_f32(f) : f16_from_f32(f);
    std::memcpy(at, &h, 2);
  } else if (dtype == GESTALT_I64) {
    const auto i = static_cast<int64_t>(value);
    std::memcpy(at, &i, 8);
  } else if (dtype == GESTALT_I32) {
    const auto i = static_cast<int32_t>(value);
    std::memcpy(at, &i, 4);
  } else {
    *at = static_cast<char>(value);
  }
}

double initial_value(const Parameter& p, uint64_t seed, uint64_t hash, int64_t element) {
  switch (p.init) {
    case GESTALT_INIT_ZEROS: return 0;
    case GESTALT_INIT_ONES: return 1;
    case GESTALT_INIT_CONSTANT: return p.init_a;
    default: break;
  }
  const PhiloxBlock block = philox_parameter(seed, hash, static_cast<uint64_t>(element) / 4);
  const uint32_t bits = block.word[element % 4];
  if (p.init == GESTALT_INIT_NORMAL) return p.init_a + p.init_b * static_cast<double>(philox_normal(bits));
  if (p.init == GESTALT_INIT_UNIFORM)
    return p.init_a + (p.init_b - p.init_a) * static_cast<double>(philox_uniform(bits));
  fail(GESTALT_INVALID_ARGUMENT, "[{}] initialisation {} is unknown", p.path, p.init);
}

}  // namespace

std::vector<char> initial_values(const Parameter& p, uint64_t seed, const Mesh& mesh) {
  const uint64_t size = dtype_size(p.type.dtype);
  std::vector<char> values(static_cast<size_t>(elements(p.type)) * size);
  const uint64_t hash = philox_name_hash(p.path.data(), p.path.size());
  // Local element (outer, d, inner) is global element (outer, g, inner), where piece k of the cut dimension maps d to g.
  const int64_t dim = std::max<int64_t>(p.placement.dim, 0);
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < p.global_shape.size(); ++i) {
    if (static_cast<int64_t>(i) < dim) outer *= p.global_shape[i];
    if (static_cast<int64_t>(i) > dim) inner *= p.global_shape[i];
  }
  const int64_t global = p.global_shape.empty() ? 1 : p.global_shape[static_cast<size_t>(dim)];
  const std::vector<int64_t> parts = dim == 0 && !p.parts.empty() ? p.parts : std::vector<int64_t>{global};
  const std::vector<Piece> pieces =
      p.placement.sharded(mesh) ? local_pieces(p.placement, parts, mesh, p.path) : std::vector<Piece>{{0, global}};
  char* at = values.data();
  for (int64_t o = 0; o < outer; ++o)
    for (const Piece& piece : pieces)
      for (int64_t d = piece.begin; d < piece.begin + piece.size; ++d)
        for (int64_t i = 0; i < inner; ++i, at += size)
          store(at, p.type.dtype, initial_value(p, seed, hash, (o * global + d) * inner + i));
  return values;
}

ParameterStore::ParameterStore(Device& device, const ModelTree& tree) : device_(device) {
  const std::vector<const Parameter*> parameters = tree.parameters();
  for (auto it = parameters.rbegin(); it != parameters.rend(); ++it) {
    const Parameter& p = **it;
    const uint64_t size = dtype_size(p.type.dtype);
    if (!p.trainable) {
      loose_.push_back({&p, device_.alloc(static_cast<uint64_t>(elements(p.type)) * size, Category::kWeights)});
      continue;
    }
    auto flat = std::find_if(flats_.begin(), flats_.end(), [&](const Flat& f) { return f.dtype == p.type.dtype; });
    if (flat == flats_.end()) {
      flats_.emplace_back().dtype = p.type.dtype;
      flat = flats_.end() - 1;
    }
    const auto align = std::max<int64_t>(static_cast<int64_t>(device_.alignment() / size), 1);
    flat->segments.push_back({&p, flat->length, elements(p.type)});
    flat->length = (flat->length + elements(p.type) + align - 1) / align * align;
  }
  for (Flat& f : flats_) {
    f.weights = device_.alloc(static_cast<uint64_t>(f.length) * dtype_size(f.dtype), Category::kWeights);
    device_.fill(f.weights.data(), 0, f.weights.bytes());
  }
}

uint32_t ParameterStore::state_dtype(const Flat& flat, const gestalt_optimizer_state& s) const {
  return s.dtype ? s.dtype : accumulation_dtype(flat.dtype);
}

void ParameterStore::open_training(const std::vector<gestalt_optimizer_state>& states,
                                   const std::function<Hyper(const Parameter&)>& hyper) {
  for (Flat& f : flats_) {
    const auto n = static_cast<uint64_t>(f.length);
    const uint64_t acc = dtype_size(accumulation_dtype(f.dtype));
    f.gradients = device_.alloc(n * acc, Category::kGradients);
    device_.fill(f.gradients.data(), 0, f.gradients.bytes());
    if (f.dtype != accumulation_dtype(f.dtype)) {
      f.master = device_.alloc(n * acc, Category::kMaster);
      std::vector<char> weights(f.weights.bytes());
      device_.copy_to_host(weights.data(), f.weights.data(), weights.size());
      std::vector<float> master(n);
      for (uint64_t i = 0; i < n; ++i) {
        uint16_t h;
        std::memcpy(&h, weights.data() + 2 * i, 2);
        master[i] = f.dtype == GESTALT_BF16 ? f32_from_bf16(h) : f32_from_f16(h);
      }
      device_.copy_to_device(f.master.data(), master.data(), f.master.bytes());
    }
    for (const gestalt_optimizer_state& s : states) {
      const uint32_t dtype = state_dtype(f, s);
      f.states.push_back(device_.alloc(n * dtype_size(dtype), Category::kOptimizer));
      std::vector<char> init(n * dtype_size(dtype), 0);
      if (s.init != 0)
        for (uint64_t i = 0; i < n; ++i) store(init.data() + i * dtype_size(dtype), dtype, s.init);
      device_.copy_to_device(f.states.back().data(), init.data(), init.size());
    }
    std::vector<int64_t> table;
    std::vector<float> values;
    for (const Segment& s : f.segments) {
      table.insert(table.end(), {s.offset, s.length});
      const Hyper h = hyper(*s.parameter);
      values.insert(values.end(), {h.decay, h.lr_scale});
    }
    f.segment_table = device_.alloc(table.size() * 8, Category::kOptimizer);
    f.segment_hyper = device_.alloc(values.size() * 4, Category::kOptimizer);
    device_.copy_to_device(f.segment_table.data(), table.data(), table.size() * 8);
    device_.copy_to_device(f.segment_hyper.data(), values.data(), values.size() * 4);
  }
}

std::pair<size_t, const ParameterStore::Segment*> ParameterStore::find(const Parameter& p) const {
  for (size_t i = 0; i < flats_.size(); ++i)
    for (const Segment& s : flats_[i].segments)
      if (s.parameter == &p) return {i, &s};
  return {0, nullptr};
}

ParameterStore::Location ParameterStore::weight(const Parameter& p) const {
  for (const Loose& l : loose_)
    if (l.parameter == &p) return {l.data.data(), p.type.dtype, elements(p.type)};
  auto [flat, s] = find(p);
  if (!s) fail(GESTALT_INTERNAL, "[{}] is not in the store", p.path);
  return {static_cast<char*>(flats_[flat].weights.data()) + static_cast<uint64_t>(s->offset) * dtype_size(p.type.dtype),
          p.type.dtype, s->length};
}

ParameterStore::Location ParameterStore::gradient(const Parameter& p) const {
  auto [flat, s] = find(p);
  if (!s || !flats_[flat].gradients.data()) return {};
  const uint32_t dtype = accumulation_dtype(p.type.dtype);
  return {static_cast<char*>(flats_[flat].gradients.data()) + static_cast<uint64_t>(s->offset) * dtype_size(dtype), dtype,
          s->length};
}

ParameterStore::Location ParameterStore::state(const Parameter& p, int index) const {
  auto [flat, s] = find(p);
  if (!s) return {};
  const Flat& f = flats_[flat];
  const Buffer* b = index < 0 ? &f.master : static_cast<size_t>(index) < f.states.size() ? &f.states[static_cast<size_t>(index)] : nullptr;
  if (!b || !b->data()) return {};
  const uint64_t size = b->bytes() / static_cast<uint64_t>(f.length);
  const uint32_t dtype = size == 8 ? GESTALT_F64 : size == 4 ? GESTALT_F32 : f.dtype;
  return {static_cast<char*>(b->data()) + static_cast<uint64_t>(s->offset) * size, dtype, s->length};
}

void ParameterStore::initialise(uint64_t seed, const Mesh& mesh) {
  auto put = [&](const Parameter& p) {
    const std::vector<char> values = initial_values(p, seed, mesh);
    write(weight(p), values.data(), values.size());
  };
  for (const Flat& f : flats_)
    for (const Segment& s : f.segments) put(*s.parameter);
  for (const Loose& l : loose_) put(*l.parameter);
}

void ParameterStore::set(const Parameter& p, const void* host, uint64_t bytes) {
  write(weight(p), host, bytes);
  const Location master = state(p, -1);
  if (!master.data) return;
  std::vector<float> values(static_cast<size_t>(master.length));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t h;
    std::memcpy(&h, static_cast<const char*>(host) + 2 * i, 2);
    values[i] = p.type.dtype == GESTALT_BF16 ? f32_from_bf16(h) : f32_from_f16(h);
  }
  write(master, values.data(), values.size() * 4);
}

std::vector<char> ParameterStore::read(const Location& l) const {
  std::vector<char> host(static_cast<size_t>(l.length) * dtype_size(l.dtype));
  read(l, host.data());
  return host;
}

void ParameterStore::read(const Location& l, void* host) const {
  device_.sync();
  device_.copy_to_host(host, l.data, static_cast<uint64_t>(l.length) * dtype_size(l.dtype));
}

void ParameterStore::write(const Location& l, const void* host, uint64_t bytes) {
  const uint64_t expected = static_cast<uint64_t>(l.length) * dtype_size(l.dtype);
  if (bytes != expected) fail(GESTALT_INVALID_ARGUMENT, "[parameters] got {} bytes, expected {}", bytes, expected);
  if (bytes == 0) return;
  device_.sync();
  device_.copy_to_device(l.data, host, bytes);
}

}  // namespace gestalt::core

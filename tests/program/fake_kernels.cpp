#include "tests/program/fake_kernels.h"

#include <array>
#include <cstring>
#include <utility>

#include "core/base/host.h"
#include "core/ops/attrs.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace gestalt::core::test {

namespace {

constexpr size_t kSlots = 64;
std::array<FakeKernel*, kSlots> g_slots{};
int g_alive = 0;

struct State {
  const FakeKernel* kernel;
  std::string op;
  Attrs attrs;
  size_t num_in, num_out;
};

char* element(const gestalt_view& v, int64_t index) {
  int64_t at = 0;
  for (int k = v.ndim - 1; k >= 0; --k) {
    at += index % v.shape[k] * v.strides[k];
    index /= v.shape[k];
  }
  return static_cast<char*>(v.data) + at * static_cast<int64_t>(dtype_size(v.dtype));
}

// y over (outer, dim, inner) of a view, as three sizes.
struct Split {
  int64_t outer = 1, size, inner = 1;
  Split(const gestalt_view& v, int64_t dim) : size(v.shape[dim < 0 ? dim += v.ndim : dim]) {
    for (int64_t k = 0; k < v.ndim; ++k) (k < dim ? outer : inner) *= k == dim ? 1 : v.shape[k];
  }
};

using Values = std::vector<double>;

Values matmul(const gestalt_view& a, const gestalt_view& b, bool ta, bool tb) {
  const Values x = read_view(a), y = read_view(b);
  const int64_t m = a.shape[ta ? 1 : 0], k = a.shape[ta ? 0 : 1], n = b.shape[tb ? 0 : 1];
  Values z(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l)
        z[static_cast<size_t>(i * n + j)] += x[static_cast<size_t>(ta ? l * m + i : i * k + l)] *
                                             y[static_cast<size_t>(tb ? j * k + l : l * n + j)];
  return z;
}

Values sum(const gestalt_view& x, const std::vector<int64_t>& dims, size_t size) {
  const Values v = read_view(x);
  std::vector<bool> reduced(static_cast<size_t>(x.ndim), dims.empty());
  for (int64_t d : dims) reduced[static_cast<size_t>(d < 0 ? d + x.ndim : d)] = true;
  Values y(size);
  for (size_t i = 0; i < v.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), at = 0, stride = 1;
    for (int k = x.ndim - 1; k >= 0; --k) {
      const int64_t index = rest % x.shape[k];
      rest /= x.shape[k];
      if (reduced[static_cast<size_t>(k)]) continue;
      at += index * stride;
      stride *= x.shape[k];
    }
    y[static_cast<size_t>(at)] += v[i];
  }
  return y;
}

Values compute(const State& s, const gestalt_call& call, size_t output) {
  const std::string op = s.op.substr(s.op.find('.') + 1);
  auto in = [&](size_t i) { return read_view(*call.in[i]); };
  const gestalt_view& out = *call.out[output];
  const auto size = static_cast<size_t>(num_elements(out));
  Values y(size);
  auto each = [&](auto f) {
    for (size_t i = 0; i < size; ++i) y[i] = f(i);
    return y;
  };
  if (op == "fill") return Values(size, s.attrs.f64("value"));
  if (op == "concat" || op == "pad") {
    const Split to(out, s.attrs.i64("dim"));
    int64_t at = op == "pad" ? s.attrs.i64("before") : 0;
    for (size_t k = 0; k < s.num_in; ++k) {
      const Values x = in(k);
      const Split from(*call.in[k], s.attrs.i64("dim"));
      for (int64_t o = 0; o < from.outer; ++o)
        for (int64_t i = 0; i < from.size * from.inner; ++i)
          y[static_cast<size_t>((o * to.size + at) * to.inner + i)] =
              x[static_cast<size_t>(o * from.size * from.inner + i)];
      at += from.size;
    }
    return y;
  }
  const Values a = in(0);
  if (op == "copy" || op == "cast") return a;
  if (op == "neg") return each([&](size_t i) { return -a[i]; });
  if (op == "scale") return each([&](size_t i) { return a[i] * s.attrs.f64("factor"); });
  if (op == "relu") return each([&](size_t i) { return std::max(a[i], 0.0); });
  if (op == "sum") return sum(*call.in[0], s.attrs.i64_list("dims"), size);
  if (op == "matmul") return matmul(*call.in[0], *call.in[1], s.attrs.boolean("trans_a"), s.attrs.boolean("trans_b"));
  if (op == "linear") {
    y = matmul(*call.in[0], *call.in[1], false, true);
    if (call.in[2]) {
      const Values b = in(2);
      for (size_t i = 0; i < size; ++i) y[i] += b[i % b.size()];
    }
    return y;
  }
  if (op == "relu_bwd") {
    const Values dy = in(1);
    return each([&](size_t i) { return a[i] > 0 ? dy[i] : 0; });
  }
  if (op == "add" || op == "sub" || op == "mul" || op == "div") {
    const Values b = in(1);
    return each([&](size_t i) {
      const double x = a[i], z = b[i % b.size()];
      return op == "add" ? x + z : op == "sub" ? x - z : op == "mul" ? x * z : x / z;
    });
  }
  // Any other op: the sum of its inputs, each output one more than the one before.
  for (size_t k = 0; k < s.num_in; ++k) {
    if (!call.in[k]) continue;
    const Values x = in(k);
    for (size_t i = 0; i < size; ++i) y[i] += x[i % x.size()];
  }
  return each([&](size_t i) { return y[i] + static_cast<double>(output); });
}

gestalt_status* status(const gestalt_host* host, int32_t code, const std::string& message) {
  return host->status_new(host->self, code, str_of(message));
}

template <size_t N>
gestalt_status* prepare(const gestalt_host* host, gestalt_plan* plan) noexcept {
  FakeKernel& k = *g_slots[N];
  ++k.prepared;
  if (!k.refuses.empty()) return status(host, k.refuse_code, k.refuses);
  if (k.refuses_to_accumulate && plan->accumulate) return status(host, GESTALT_UNSUPPORTED, "cannot add");
  for (uint64_t i = 0; i < plan->num_in; ++i)
    if (!(k.flags & GESTALT_KERNEL_STRIDED) && plan->in[i] && !is_contiguous(*plan->in[i]))
      return status(host, GESTALT_INTERNAL, "got strides");
  plan->workspace_size = k.workspace;
  plan->workspace_align = k.workspace_align;
  plan->state = new State{&k, std::string(view_of(plan->op)), Attrs(plan->attrs, plan->num_attrs), plan->num_in,
                          plan->num_out};
  ++g_alive;
  return nullptr;
}

gestalt_status* run(void* state, const gestalt_call* call) noexcept {
  const State& s = *static_cast<const State*>(state);
  if (!s.kernel->run_fails.empty()) return status(call->host, GESTALT_DATA_ERROR, s.kernel->run_fails);
  if (s.kernel->workspace) std::memset(call->workspace, 0xee, s.kernel->workspace);
  std::vector<Values> results;
  for (size_t i = 0; i < s.num_out; ++i) results.push_back(compute(s, *call, i));
  for (size_t i = 0; i < s.num_out; ++i) write_view(*call->out[i], results[i], call->accumulate >> i & 1);
  return nullptr;
}

void destroy(void* state) noexcept {
  --g_alive;
  delete static_cast<State*>(state);
}

using Prepare = decltype(gestalt_kernel::prepare);
template <size_t... N>
std::array<Prepare, kSlots> prepares(std::index_sequence<N...>) {
  return {prepare<N>...};
}

}  // namespace

std::vector<double> read_view(const gestalt_view& v) {
  Values out(static_cast<size_t>(num_elements(v)));
  for (size_t i = 0; i < out.size(); ++i) {
    const char* at = element(v, static_cast<int64_t>(i));
    auto as = [&](auto x) {
      std::memcpy(&x, at, sizeof x);
      return static_cast<double>(x);
    };
    out[i] = v.dtype == GESTALT_F32 ? as(float{}) : v.dtype == GESTALT_F64 ? as(double{}) : as(int32_t{});
  }
  return out;
}

void write_view(const gestalt_view& v, const std::vector<double>& values, bool add) {
  const Values old = add ? read_view(v) : Values(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    char* at = element(v, static_cast<int64_t>(i));
    auto put = [&](auto x) { std::memcpy(at, &x, sizeof x); };
    const double sum = values[i] + old[i];
    v.dtype == GESTALT_F32   ? put(static_cast<float>(sum))
    : v.dtype == GESTALT_F64 ? put(sum)
                             : put(static_cast<int32_t>(sum));
  }
}

FakePlugin::FakePlugin(std::string id, std::vector<FakeKernel> kernels) : id_(std::move(id)), kernels_(std::move(kernels)) {
  static const std::array<Prepare, kSlots> table = prepares(std::make_index_sequence<kSlots>());
  for (FakeKernel& k : kernels_) {
    size_t slot = 0;
    while (slot < kSlots && g_slots[slot]) ++slot;
    if (slot == kSlots) fail(GESTALT_INTERNAL, "[test] more than {} fake kernels", kSlots);
    g_slots[slot] = &k;
    slots_.push_back(slot);
    tables_.push_back({sizeof(gestalt_kernel), str_of(k.op), str_of("cpu"), str_of(k.backend), k.flags, table[slot], run,
                       destroy});
    pointers_.push_back(&tables_.back());
  }
  plugin_ = {sizeof(gestalt_plugin), GESTALT_ABI_MAJOR, 0, 0, 0, str_of(id_), str_of("1.0"), str_of(""), nullptr, 0,
             pointers_.data(), pointers_.size(), nullptr, 0, nullptr};
}

FakePlugin::~FakePlugin() {
  for (size_t slot : slots_) g_slots[slot] = nullptr;
}

int FakePlugin::states_alive() { return g_alive; }

std::vector<FakeKernel> core_kernels() {
  std::vector<FakeKernel> all;
  for (const char* op : {"fill", "concat", "pad", "copy", "cast", "neg", "scale", "relu", "relu_bwd", "sum", "matmul",
                         "linear", "add", "sub", "mul", "div"})
    all.push_back({std::string("core.") + op});
  return all;
}

}  // namespace gestalt::core::test

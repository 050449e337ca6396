#include "plugins/kernels_cpu/kernel_caller.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "gestalt/kernel.hpp"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/local_host.h"
#include "tests/catch_compat.hpp"

namespace gestalt::kernels_cpu {
namespace {

constexpr unsigned char kGuard = 0xA5;
constexpr int64_t kZone = 64;  // elements before and after

const gestalt_kernel& find_kernel(std::string_view op, std::string_view backend) {
  for (const gestalt_kernel* const* k = detail::kernels_begin; k != detail::kernels_end; ++k)
    if (view_of((*k)->op) == op && view_of((*k)->backend) == backend) return **k;
  throw InvalidArgument("no kernel for " + std::string(op) + " by " + std::string(backend));
}

double tolerance(DType dtype) {
  switch (dtype) {
    case kF64:
      return 1e-11;
    case kF32:
      return 4e-6;
    case kBF16:
      return 1.0 / 128;
    case kF16:
      return 1.0 / 1024;
    default:
      return 0;
  }
}

}  // namespace

int64_t count_of(const Shape& shape) {
  int64_t n = 1;
  for (int64_t size : shape) n *= size;
  return n;
}

Array::Array(DType dtype, Shape shape, Layout layout)
    : shape_(std::move(shape)), strides_(shape_.size()), size_(size_of(dtype)) {
  int64_t step = layout == Layout::kGaps ? 2 : 1;
  for (size_t i = 0; i < shape_.size(); ++i) {
    const size_t d = layout == Layout::kReversed ? i : shape_.size() - 1 - i;
    strides_[d] = step;
    step *= std::max<int64_t>(shape_[d], 1);
    if (layout == Layout::kGaps) step += 3;
  }
  room_ = step + 2 * kZone;
  bytes_.assign(static_cast<size_t>(room_ * size_), kGuard);
  view_ = {bytes_.data() + kZone * size_,
           GESTALT_DEVICE_CPU,
           0,
           static_cast<int32_t>(shape_.size()),
           dtype,
           shape_.data(),
           strides_.data(),
           0};
}

Array::Array(DType dtype, Shape shape, const Values& values, Layout layout) : Array(dtype, std::move(shape), layout) {
  set(values);
}

std::vector<int64_t> Array::offsets() const {
  std::vector<int64_t> result;
  const int64_t n = count_of(shape_);
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, offset = 0;
    for (size_t d = shape_.size(); d-- > 0;) {
      offset += rest % shape_[d] * strides_[d];
      rest /= shape_[d];
    }
    result.push_back(offset);
  }
  return result;
}

void Array::set(const Values& values) {
  const auto at = offsets();
  REQUIRE(values.size() == at.size());
  for (size_t i = 0; i < at.size(); ++i)
    store_fn<double>(view_.dtype)(&values[i], static_cast<char*>(view_.data) + at[i] * size_, 1, 1, false);
}

Values Array::get() const {
  Values values;
  for (int64_t at : offsets()) {
    values.emplace_back();
    load_fn<double>(view_.dtype)(static_cast<const char*>(view_.data) + at * size_, 1, 1, &values.back());
  }
  return values;
}

bool Array::guards_intact() const {
  std::vector<unsigned char> used(bytes_.size());
  for (int64_t at : offsets()) std::fill_n(used.begin() + (kZone + at) * size_, size_, static_cast<unsigned char>(1));
  for (size_t i = 0; i < bytes_.size(); ++i)
    if (used[i] == 0 && bytes_[i] != kGuard) return false;
  return true;
}

void call_kernel(std::string_view op, const std::vector<Array*>& in, const std::vector<Array*>& out,
                 const std::vector<Attr>& attrs, const CallOptions& options) {
  const LocalHost host(options.threads);
  const gestalt_kernel& kernel = find_kernel(op, options.backend);
  std::vector<const gestalt_view*> in_views;
  std::vector<gestalt_view*> out_views;
  for (Array* a : in) in_views.push_back(a != nullptr ? a->view() : nullptr);
  for (Array* a : out) out_views.push_back(a->view());
  const std::vector<gestalt_attr> plain(attrs.begin(), attrs.end());

  // In prepare no data is there yet.
  std::vector<void*> data;
  for (Array* a : in) data.push_back(a != nullptr ? std::exchange(a->view()->data, nullptr) : nullptr);
  for (Array* a : out) data.push_back(std::exchange(a->view()->data, nullptr));
  gestalt_plan plan{sizeof(gestalt_plan),
                    str_of(op),
                    str_of("test"),
                    in_views.data(),
                    in_views.size(),
                    out_views.data(),
                    out_views.size(),
                    plain.data(),
                    plain.size(),
                    GESTALT_DEVICE_CPU,
                    0,
                    options.require,
                    options.accumulate,
                    0,
                    nullptr,
                    nullptr,
                    0,
                    0,
                    nullptr};
  gestalt_status* status = kernel.prepare(host.get(), &plan);
  // Backwards, because one tensor may be both input and output.
  for (size_t i = in.size() + out.size(); i-- > 0;) {
    Array* a = i < in.size() ? in[i] : out[i - in.size()];
    if (a != nullptr && data[i] != nullptr) a->view()->data = data[i];
  }
  check(host.get(), status);

  const size_t size = static_cast<size_t>(plan.workspace_size);
  std::vector<unsigned char> room(size + 192, kGuard);
  unsigned char* workspace = room.data() + 64 + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64;
  const std::vector<const gestalt_view*> out_now(out_views.begin(), out_views.end());
  const gestalt_call call{sizeof(gestalt_call),           in_views.data(), out_now.data(), options.accumulate, nullptr,
                          size > 0 ? workspace : nullptr, host.get()};
  status = kernel.run(plan.state, &call);
  kernel.destroy(plan.state);
  bool intact = true;
  for (unsigned char* p = room.data(); p < workspace; ++p) intact = intact && *p == kGuard;
  for (unsigned char* p = workspace + size; p < room.data() + room.size(); ++p) intact = intact && *p == kGuard;
  CHECK(intact);
  check(host.get(), status);
}

namespace {

struct Run {
  std::vector<std::unique_ptr<Array>> in, out;
};

Run run_case(const OpCase& test, DType dtype, Layout layout, int64_t threads, bool accumulate, const Values& start) {
  const DType wide = dtype == kF64 ? kF64 : kF32;
  Run run;
  std::vector<Array*> in, out;
  for (const Input& input : test.in) {
    const DType own = input.fixed != 0 ? input.fixed : input.wide ? wide : dtype;
    run.in.push_back(input.absent ? nullptr : std::make_unique<Array>(own, input.shape, input.values, layout));
    in.push_back(run.in.back().get());
  }
  uint64_t bits = 0;
  for (size_t i = 0; i < test.out.size(); ++i) {
    const Output& output = test.out[i];
    const bool adds = accumulate && output.accumulates;
    run.out.push_back(std::make_unique<Array>(adds || output.wide ? wide : dtype, output.shape, layout));
    if (adds) {
      bits |= uint64_t{1} << i;
      run.out.back()->set(Values(start.begin(), start.begin() + count_of(output.shape)));
    }
    out.push_back(run.out.back().get());
  }
  std::vector<std::vector<unsigned char>> before;
  for (Array* a : in) before.push_back(a != nullptr ? a->bytes() : std::vector<unsigned char>());
  call_kernel(test.op, in, out, test.attrs, {threads, bits, test.backend, 0});
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] != nullptr) CHECK(in[i]->bytes() == before[i]);
  for (Array* a : out) CHECK(a->guards_intact());
  return run;
}

}  // namespace

void check_op(const OpCase& test) {
  int64_t most = 1;
  for (const Output& output : test.out) most = std::max(most, count_of(output.shape));
  const Values start = some_values(most, 99);
  for (DType dtype : {kF64, kF32, kBF16, kF16}) {
    for (Layout layout : {Layout::kContiguous, Layout::kReversed, Layout::kGaps}) {
      for (bool accumulate : {false, true}) {
        if (accumulate && std::none_of(test.out.begin(), test.out.end(), [](const Output& o) { return o.accumulates; }))
          continue;
        INFO(test.op << " " << name_of(dtype) << " layout " << static_cast<int>(layout) << " accumulate "
                     << accumulate);
        const Run run = run_case(test, dtype, layout, 1, accumulate, start);
        // The reference sees the inputs as rounded to their dtype.
        std::vector<Values> seen;
        for (const auto& a : run.in) seen.push_back(a ? a->get() : Values());
        const std::vector<Values> expected = test.reference(seen);
        REQUIRE(expected.size() == test.out.size());
        for (size_t i = 0; i < expected.size(); ++i) {
          const Values got = run.out[i]->get();
          REQUIRE(got.size() == expected[i].size());
          double largest = 0;
          for (double v : expected[i]) largest = std::max(largest, std::abs(v));
          const double slack = tolerance(dtype) * test.loosen;
          for (size_t j = 0; j < got.size(); ++j) {
            const double want = expected[i][j] + (accumulate && test.out[i].accumulates ? start[j] : 0);
            INFO("output " << i << " element " << j);
            const double error = std::abs(got[j] - want);
            if (!(error <= slack * (std::abs(want) + 0.1 * largest + 1e-3))) {
              CHECK(got[j] == want);
              return;
            }
          }
        }
        for (int64_t threads : {2, 3}) {
          const Run again = run_case(test, dtype, layout, threads, accumulate, start);
          for (size_t i = 0; i < run.out.size(); ++i) {
            INFO("threads " << threads);
            CHECK(again.out[i]->bytes() == run.out[i]->bytes());
          }
        }
      }
    }
  }
}

Values finite_differences(const Reference& forward, const std::vector<Values>& in, size_t which,
                          const std::vector<Values>& dy) {
  const auto value = [&](const std::vector<Values>& x) {
    const std::vector<Values> y = forward(x);
    double total = 0;
    for (size_t i = 0; i < dy.size(); ++i)
      for (size_t j = 0; j < dy[i].size(); ++j) total += dy[i][j] * y[i][j];
    return total;
  };
  Values gradient;
  std::vector<Values> x = in;
  for (double& v : x[which]) {
    // A five-point stencil: errors stay near 1e-11 for values around one.
    const double saved = v, h = 2e-3;
    double f[4];
    for (int i = 0; i < 4; ++i) {
      v = saved + h * (i < 2 ? i - 2 : i - 1);
      f[i] = value(x);
    }
    v = saved;
    gradient.push_back((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h));
  }
  return gradient;
}

Values some_values(int64_t n, uint64_t seed) {
  Values values;
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(static_cast<double>(state >> 40) / static_cast<double>(1 << 23) - 1);
  }
  return values;
}

}  // namespace gestalt::kernels_cpu

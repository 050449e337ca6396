#include "tests/harness/environment.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/host.h"
#include "core/config/attr_list.h"
#include "core/program/builder.h"
#include "core/runtime/parallel.h"

namespace gestalt::harness {

using namespace core;

Environment::Environment(const std::vector<std::string>& search, const std::vector<std::string>& plugins,
                         uint64_t seed_in, const std::string& device)
    : seed(seed_in) {
  parallel();  // publishes the team before plugins look for it
  std::vector<std::filesystem::path> paths(search.begin(), search.end());
  if (paths.empty()) paths = plugin_search({}, Trust::kNamed);
  registry.discover(paths);
  registry.load(plugins);
  for (const OpRef& op : registry.ops()) ops.add_plugin_op(op.op, op.host, std::string(op.plugin));
  cpu = open("cpu", -1);
  sim = open("sim", static_cast<int64_t>(seed_in >> 1));
  if (device != "cpu") other = open(device, -1);
}

Environment::~Environment() {
  for (OpenDevice* d : {&cpu, &sim, &other}) {
    d->streams.clear();
    d->device.reset();
  }
  registry.shutdown();
}

OpenDevice Environment::open(const std::string& name, int64_t seed_of_device) {
  const ComponentRef component = registry.component("device/1", name);
  AttrList config;
  if (seed_of_device >= 0) config.add("seed", seed_of_device);
  if (seed_of_device >= 0) config.add("max_delay_us", int64_t{2});
  auto instance = std::make_shared<Instance>(component, config.data(), config.size());
  OpenDevice d;
  d.device = std::make_unique<Device>(component.host, instance->table<gestalt_device_1>(), instance->self(), instance);
  for (int i = 0; i < 2; ++i) d.streams.push_back(d.device->open_stream());
  return d;
}

void Report::fail(const std::string& message) {
  ++failed_;
  std::printf("FAILED %s: %s\n", what_.c_str(), message.c_str());
}

uint32_t dtype_of(const Arg& arg, uint32_t tested) {
  if (arg.dtype == kTested) return tested;
  if (arg.dtype == kWide) return tested == GESTALT_F64 ? GESTALT_F64 : GESTALT_F32;
  return arg.dtype;
}

Inputs make_inputs(const OpDef& op, const Case& c, uint32_t dtype, Random& random, bool equal_along_first) {
  Inputs out;
  out.attrs = op.schema.complete(c.attrs);
  out.dtype = dtype;
  for (const Arg& a : c.in) {
    Values v(a.present ? a.shape : Shape{0});
    for (int64_t i = 0; a.present && i < v.size(); ++i) v[i] = a.fill(random, i);
    if (!is_float(dtype_of(a, dtype)) && a.dtype == kTested)
      for (double& x : v.v) x = std::round(100 * x);
    if (equal_along_first && !a.plain && v.ndim() > 0 && v.dim(0) > 1) {
      const int64_t row = v.size() / v.dim(0);
      for (int64_t i = row; i < v.size(); ++i) v[i] = v[i % row];
    }
    out.in.push_back(std::move(v));
    out.present.push_back(a.present);
  }
  auto round_all = [&] {
    for (size_t i = 0; i < c.in.size(); ++i) round_to(dtype_of(c.in[i], dtype), out.in[i]);
  };
  round_all();
  if (c.derive) {
    c.derive(out.in);
    round_all();
  }
  return out;
}

TensorType type_of(uint32_t dtype, const Shape& shape) {
  TensorType t;
  t.dtype = dtype;
  for (int64_t d : shape) t.shape[static_cast<size_t>(t.ndim++)] = d;
  return t;
}

std::vector<OutType> infer_outputs(const Environment& e, const OpDef& op, const Case& c, uint32_t dtype) {
  DimTable dims;
  Program program(e.ops, dims);
  Builder builder(program, {}, GESTALT_PHASE_TRAIN);
  std::vector<Value*> in;
  for (size_t i = 0; i < c.in.size(); ++i)
    in.push_back(c.in[i].present
                     ? program.input(fmt::format("batch:{}", i), type_of(dtype_of(c.in[i], dtype), c.in[i].shape))
                     : nullptr);
  std::vector<OutType> out;
  for (const Value* v : builder.apply(op.name(), in, c.attrs))
    out.push_back({v->type.dtype, Shape(v->type.shape.begin(), v->type.shape.begin() + v->type.ndim)});
  return out;
}

namespace {

double epsilon(uint32_t dtype) {
  switch (dtype) {
    case GESTALT_F64:
      return 1e-13;
    case GESTALT_F32:
      return 1e-6;
    case GESTALT_BF16:
      return 0x1p-8;
    case GESTALT_F16:
      return 0x1p-11;
    default:
      return 0;
  }
}

}  // namespace

std::string compare(const Values& got, const Values& want, uint32_t out_dtype, uint32_t tested, double loosen,
                    double inner) {
  if (got.size() != want.size())
    return fmt::format("the reference has {} elements, the output {}", want.size(), got.size());
  double squares = 0;
  for (double x : want.v) squares += x * x;
  const double typical = want.v.empty() ? 0 : std::sqrt(squares / static_cast<double>(want.v.size()));
  const double arithmetic = is_float(out_dtype) ? (tested == GESTALT_F64 ? 1e-13 : 2e-6) * loosen : 0;
  // Sums that cancel keep the error of their terms, which are near 1 in all descriptions.
  const double floor = arithmetic * 0.02;
  double worst = 0;
  int64_t at = -1;
  for (int64_t i = 0; i < got.size(); ++i) {
    const double allowed = arithmetic * std::max(std::abs(want[i]), typical) + epsilon(out_dtype) * std::abs(want[i]) +
                           (out_dtype == GESTALT_F16 ? 6e-8 : 0) + floor + inner * epsilon(tested) * typical;
    const double off = std::abs(got[i] - want[i]);
    const double ratio = std::isfinite(got[i]) ? (off == 0 ? 0 : off / std::max(allowed, 1e-300)) : INFINITY;
    if (ratio > worst) {
      worst = ratio;
      at = i;
    }
  }
  if (worst <= 1) return {};
  return fmt::format("element {} is {:.9g}, the reference says {:.9g} ({:.3g} times what is allowed)", at, got[at],
                     want[at], worst);
}

}  // namespace gestalt::harness

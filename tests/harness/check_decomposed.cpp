#include <algorithm>
#include <cmath>

#include "core/base/host.h"
#include "tests/harness/checks.h"
#include "tests/harness/program_run.h"

// An op without kernels runs as the ops it is made of. Its results differ from the reference by the roundings of every
// step in between.
namespace gestalt::harness {

using namespace core;

namespace {

double tolerance(uint32_t dtype) {
  switch (dtype) {
    case GESTALT_F64:
      return 1e-12;
    case GESTALT_F32:
      return 1e-5;
    case GESTALT_F16:
      return 4e-3;
    default:
      return 3e-2;
  }
}

std::string difference(const Values& got, const Values& want, double allowed) {
  double largest = 1;
  for (double x : want.v) largest = std::max(largest, std::abs(x));
  for (int64_t i = 0; i < want.size(); ++i)
    if (!(std::abs(got[i] - want[i]) <= allowed * largest))
      return fmt::format("element {} is {:.9g}, expected {:.9g} (allowed {:.2g} off)", i, got[i], want[i],
                         allowed * largest);
  return "";
}

}  // namespace

void check_decomposed(const CheckContext& c) {
  for (uint32_t dtype : c.d.dtypes) {
    for (const Case& one : c.d.cases) {
      for (const OpenDevice* device : c.e.devices()) {
        c.begin("decomposed", device->device->name(), dtype, one);
        try {
          Random random(c.seed ^ std::hash<std::string>()(c.d.op + one.name));
          const Inputs inputs = make_inputs(c.op, one, dtype, random);
          const std::vector<Values> want = c.d.reference(inputs);
          const std::vector<OutType> types = infer_outputs(c.e, c.op, one, dtype);
          ProgramRun p(c.e, *device, c.d.op, "", 1, [&](Builder& b) {
            std::vector<Value*> in;
            for (size_t i = 0; i < one.in.size(); ++i) {
              const Arg& a = one.in[i];
              in.push_back(a.present ? b.program().input(std::to_string(i), type_of(dtype_of(a, dtype), a.shape))
                                     : nullptr);
            }
            const std::vector<Value*> out = b.apply(c.d.op, in, one.attrs);
            for (size_t i = 0; i < out.size(); ++i) b.program().outputs[std::to_string(i)] = out[i];
          });
          for (size_t i = 0; i < one.in.size(); ++i)
            if (one.in[i].present) p.write(std::to_string(i), encode(dtype_of(one.in[i], dtype), inputs.in[i]));
          p.run();
          std::string problem;
          for (size_t i = 0; problem.empty() && i < want.size(); ++i) {
            const Values got = decode(types[i].dtype, types[i].shape, p.read_output(std::to_string(i)));
            problem = difference(got, want[i], tolerance(dtype) * c.d.loosen);
            if (!problem.empty()) problem = fmt::format("result {}: {}", i, problem);
          }
          c.report.expect(problem);
        } catch (const Error& e) {
          c.report.fail(e.message());
        }
      }
    }
  }
}

}  // namespace gestalt::harness

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plugin/registry.h"
#include "core/program/executable.h"
#include "tests/harness/description.h"

namespace gestalt::harness {

// A device with its streams.
struct OpenDevice {
  std::unique_ptr<core::Device> device;
  std::vector<core::Stream> streams;
};

// The plugins and ops under test, and the devices that they run on.
class Environment {
 public:
  // `search`: folders of plugins beside the executable's own; `seed` also of the simulated device's delays; `device`:
  // whose kernels are tested, "cpu" (on cpu and sim) or another, which is opened besides.
  Environment(const std::vector<std::string>& search, const std::vector<std::string>& plugins, uint64_t seed,
              const std::string& device);
  ~Environment();

  core::Registry registry;
  core::OpRegistry ops;
  OpenDevice cpu, sim, other;
  uint64_t seed;

  // Where kernels run directly, and where programs run.
  const OpenDevice& tested() const { return other.device ? other : cpu; }
  std::vector<const OpenDevice*> devices() const {
    if (other.device) return {&other};
    return {&cpu, &sim};
  }

 private:
  OpenDevice open(const std::string& name, int64_t seed_of_device);
};

// What was checked and what failed.
class Report {
 public:
  void begin(std::string what) { what_ = std::move(what); }
  void pass() { ++passed_; }
  void fail(const std::string& message);
  // Passes when `message` is empty.
  void expect(const std::string& message) { message.empty() ? pass() : fail(message); }
  int64_t passed() const { return passed_; }
  int64_t failed() const { return failed_; }

 private:
  std::string what_;
  int64_t passed_ = 0, failed_ = 0;
};

// Shapes and dtypes of the outputs, by the op's own inference; throws as it does.
struct OutType {
  uint32_t dtype;
  Shape shape;
};
uint32_t dtype_of(const Arg& arg, uint32_t tested);
Inputs make_inputs(const core::OpDef& op, const Case& c, uint32_t dtype, Random& random,
                   bool equal_along_first = false);
std::vector<OutType> infer_outputs(const Environment& e, const core::OpDef& op, const Case& c, uint32_t dtype);
core::TensorType type_of(uint32_t dtype, const Shape& shape);

// Empty when `got` equals `want` within what `dtype` under test and the output's own dtype allow; else the worst
// element. `inner`: roundings of a typical element to the dtype under test that happen inside the kernel.
std::string compare(const Values& got, const Values& want, uint32_t out_dtype, uint32_t tested, double loosen,
                    double inner = 0);

}  // namespace gestalt::harness

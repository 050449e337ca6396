#include "core/base/host.h"
#include "tests/harness/checks.h"
#include "tests/harness/kernel_run.h"
#include "tests/harness/program_run.h"

namespace gestalt::harness {

using namespace core;

namespace {

std::string input_name(size_t i) { return fmt::format("batch:{}", i); }

// Records the op on inputs "batch:N"; outputs are "N".
void record(Builder& b, const OpDef& op, const Case& c, uint32_t dtype) {
  std::vector<Value*> in;
  for (size_t i = 0; i < c.in.size(); ++i)
    in.push_back(c.in[i].present ? b.program().input(input_name(i), type_of(dtype_of(c.in[i], dtype), c.in[i].shape))
                                 : nullptr);
  const std::vector<Value*> out = b.apply(op.name(), in, c.attrs);
  for (size_t i = 0; i < out.size(); ++i) b.program().outputs[std::to_string(i)] = out[i];
}

void write_inputs(ProgramRun& p, const Case& c, const Inputs& inputs) {
  for (size_t i = 0; i < c.in.size(); ++i)
    if (c.in[i].present) p.write(input_name(i), encode(dtype_of(c.in[i], inputs.dtype), inputs.in[i]));
}

// All results in the order of RunResult::bits.
Bytes read_results(ProgramRun& p, const OpDef& op, const Case& c) {
  Bytes all;
  auto append = [&](const Bytes& b) { all.insert(all.end(), b.begin(), b.end()); };
  for (size_t i = 0; i < p.executable().program().outputs.size(); ++i) append(p.read_output(std::to_string(i)));
  for (size_t i = 0; i < c.in.size(); ++i)
    if (c.in[i].present && op.schema.input(i).mutated) append(p.read_input(input_name(i)));
  return all;
}

void check_one(const CheckContext& c, const KernelRef& kernel, uint32_t dtype, const Case& one) {
  const std::string backend(view_of(kernel.kernel->backend));
  Random random(c.seed ^ std::hash<std::string>()(c.d.op + one.name));
  const Inputs inputs = make_inputs(c.op, one, dtype, random);
  std::string device_now = c.e.tested().device->name();
  try {
    const RunResult direct = run_kernel(c.e, kernel, c.op, one, inputs, {});
    for (const OpenDevice* device : c.e.devices()) {
      device_now = device->device->name();
      ProgramRun p(c.e, *device, c.d.op, backend, 1, [&](Builder& b) { record(b, c.op, one, dtype); });
      c.begin("program", backend, dtype, one, device_now);
      const BoundNode* bound = nullptr;
      for (const BoundNode& n : p.executable().binding().nodes())
        if (n.node->op == &c.op) bound = &n;
      if (!bound || bound->kernel != kernel.kernel) {
        c.report.fail("the program did not bind this kernel");
        continue;
      }
      auto expect_bits = [&](std::string_view how) {
        c.begin("program", backend, dtype, one, fmt::format("{}, {}", device_now, how));
        c.report.expect(read_results(p, c.op, one) == direct.bits ? "" : "other bits than the direct call");
      };
      write_inputs(p, one, inputs);
      p.run();
      expect_bits("run");
      if (!(kernel.kernel->flags & GESTALT_KERNEL_CAPTURABLE) || !p.capturable()) continue;
      for (const char* how : {"captured", "replayed"}) {
        write_inputs(p, one, inputs);
        p.replay();
        expect_bits(how);
      }
    }
  } catch (const Error& e) {
    c.begin("program", backend, dtype, one, device_now);
    c.report.fail(e.message());
  }
}

}  // namespace

void check_programs(const CheckContext& c) {
  for (uint32_t dtype : c.d.dtypes)
    for (const KernelRef& k : c.kernels()) {
      std::string reason;
      for (const Case& one : c.d.cases)
        if (!(c.small && one.large) && accepts(c.e, k, c.op, one, dtype, &reason)) check_one(c, k, dtype, one);
    }
}

void check_views(const CheckContext& c) {
  for (uint32_t dtype : c.d.dtypes) {
    for (const Case& one : c.d.cases) {
      for (const bool transposed : {false, true}) {
        const Shape& shape = one.in.at(0).shape;
        if (transposed && shape.size() < 2) continue;
        for (const OpenDevice* device : c.e.devices()) {
          c.begin("view", device->device->name(), dtype, one, transposed ? "of a transposed tensor" : "");
          try {
            Random random(c.seed);
            const Inputs inputs = make_inputs(c.op, one, dtype, random);
            const std::vector<Values> want = c.d.reference(inputs);
            std::vector<uint32_t> dtypes;
            ProgramRun p(c.e, *device, c.d.op, "", 1, [&](Builder& b) {
              Shape stored = shape;
              if (transposed) std::swap(stored[0], stored[1]);
              Value* x = b.program().input("batch:0", type_of(dtype, stored));
              if (transposed) x = b.op("core.transpose", {x}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}});
              const std::vector<Value*> out = b.apply(c.d.op, {x}, one.attrs);
              for (size_t i = 0; i < out.size(); ++i)
                b.program().outputs[std::to_string(i)] = b.op("core.copy", {out[i]});
            });
            p.write("batch:0", encode(dtype, transposed ? swapped(inputs.in[0]) : inputs.in[0]));
            p.run();
            std::string problem;
            if (p.executable().program().outputs.size() != want.size())
              problem = "another number of results than the reference";
            for (size_t i = 0; problem.empty() && i < want.size(); ++i) {
              const Tensor& t = p.executable().output(std::to_string(i));
              if (!std::equal(want[i].shape.begin(), want[i].shape.end(), t.dims().begin(), t.dims().end()))
                problem = fmt::format("result {} is {}, which is not the reference's shape", i, describe(t.view));
              else if (p.read_output(std::to_string(i)) != encode(dtype, want[i]))
                problem = fmt::format("result {} has other elements than the reference", i);
            }
            c.report.expect(problem);
          } catch (const Error& e) {
            c.report.fail(e.message());
          }
        }
      }
    }
  }
}

}  // namespace gestalt::harness

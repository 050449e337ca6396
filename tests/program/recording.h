// For the tests of this folder: a program being recorded, then compiled for the CPU device and run.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/program/executable.h"
#include "tests/program/fake_kernels.h"
#include "core/program/passes.h"

namespace gestalt::core::test {

class Recording {
 public:
  explicit Recording(std::vector<FakeKernel> kernels = core_kernels(), uint32_t dtype = GESTALT_F64);
  ~Recording();

  // A willing kernel of any op, also of ops that tests define: outputs are sums of the inputs.
  void add_kernels(std::vector<FakeKernel> kernels, const std::string& id);
  FakeKernel& kernel(const std::string& op);  // of the first plugin
  // Defines an op of a test. Rules may be empty.
  void define(const std::string& schema, InferFn infer, ComposeFn vjp = nullptr, ComposeFn decompose = nullptr,
              uint64_t flags = GESTALT_OP_PURE);

  Value* input(const std::string& name, std::initializer_list<int64_t> shape);
  Value* param(const std::string& name, std::initializer_list<int64_t> shape);
  Value* op(std::string_view name, const std::vector<Value*>& in, const Attrs& attrs = {}) { return b->op(name, in, attrs); }
  std::vector<Value*> ops_of(std::string_view name, const std::vector<Value*>& in, const Attrs& attrs = {}) {
    return b->apply(name, in, attrs);
  }
  Value* sum(Value* x) { return op("core.sum", {x}); }
  // The loss is the sum of x's elements; its weight is 1.
  void loss(Value* x, const std::string& name = "loss");
  std::vector<std::string> gradients();

  size_t count(const std::string& op) const;  // nodes of that op in the program

  void compile(const KernelPolicy& policy = {}, int num_streams = 1);
  void set(const std::string& input, const std::vector<double>& values);
  std::vector<double> get(const std::string& input_or_output);
  void run(bool accumulate = false);
  // Every gradient against differences of the loss; "" or what is wrong. Parameters and inputs get arbitrary values.
  std::string check_gradients();

  Registry registry;
  OpRegistry ops;
  DimTable dims;
  std::unique_ptr<Device> device;
  std::unique_ptr<Program> program;
  Program* recorded;  // also after compile
  std::unique_ptr<Builder> b;
  std::unique_ptr<Executable> executable;
  std::vector<Stream> streams;

 private:
  uint32_t dtype_;
  std::deque<FakePlugin> plugins_;
  std::deque<Parameter> parameters_;
  std::map<std::string, Buffer> inputs_;
  std::vector<Buffer> arenas_;
};

// infer of an op whose outputs all have the type of its first input.
InferFn like_first(size_t num_out = 1);

}  // namespace gestalt::core::test

// Loads the sample plugin named by GESTALT_SAMPLE (tests/abi/sample.sh builds it with several compilers) and drives it
// through the C contract.
#include <dlfcn.h>

#include <cstdlib>

#include "gestalt/abi/tokenizer.h"
#include "tests/abi/fake_host.h"
#include "tests/catch_compat.hpp"

namespace {

const gestalt_plugin& plugin(FakeHost& host) {
  const char* path = std::getenv("GESTALT_SAMPLE");
  REQUIRE(path);
  void* image = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!image) FAIL(dlerror());
  auto main = reinterpret_cast<gestalt_plugin_main_v1_fn>(dlsym(image, GESTALT_PLUGIN_MAIN_V1));
  REQUIRE(main);
  const gestalt_plugin* p = nullptr;
  REQUIRE(text_of(host, main(&host.table, &p)) == "ok");
  return *p;
}

const gestalt_kernel& kernel(const gestalt_plugin& p, std::string_view op) {
  for (uint64_t i = 0; i < p.num_kernels; ++i)
    if (text_of(p.kernels[i]->op) == op) return *p.kernels[i];
  throw std::runtime_error("no kernel");
}

const gestalt_component& component(const gestalt_plugin& p, std::string_view name) {
  for (uint64_t i = 0; i < p.num_components; ++i)
    if (text_of(p.components[i]->name) == name) return *p.components[i];
  throw std::runtime_error("no component");
}

gestalt_attr attr(std::string_view name, double f) { return {abi_str(name), GESTALT_ATTR_F64, {.f = f}}; }
gestalt_attr attr(std::string_view name, int64_t i) { return {abi_str(name), GESTALT_ATTR_I64, {.i = i}}; }

// One vector of six elements.
struct Vector {
  int64_t shape[GESTALT_MAX_NDIM] = {6}, strides[GESTALT_MAX_NDIM] = {1};
  float values[6] = {};
  gestalt_view view{values, GESTALT_DEVICE_CPU, 0, 1, GESTALT_F32, shape, strides, 0};
};

struct Instance {
  explicit Instance(FakeHost& host, double factor) : factor(attr("factor", factor)) {
    plan.struct_size = sizeof plan;
    plan.op = abi_str("sample.twice");
    plan.in = in;
    plan.num_in = 2;
    plan.out = out;
    plan.num_out = 1;
    plan.attrs = &this->factor;
    plan.num_attrs = 1;
    call = {sizeof call, in, const_in, 0, nullptr, nullptr, &host.table};
  }
  Vector x, y;
  gestalt_attr factor;
  const gestalt_view* in[2] = {&x.view, nullptr};
  gestalt_view* out[1] = {&y.view};
  const gestalt_view* const_in[1] = {&y.view};
  gestalt_plan plan{};
  gestalt_call call{};
};

}  // namespace

TEST_CASE("the descriptor lists everything that the files registered") {
  FakeHost host;
  const gestalt_plugin& p = plugin(host);
  CHECK(p.struct_size == sizeof(gestalt_plugin));
  CHECK(text_of(p.id) == "gestalt.sample");
  CHECK(text_of(p.version) == "1.2.3");
  CHECK(p.num_ops == 1);
  CHECK(p.num_kernels == 2);
  CHECK(p.num_components == 2);
  CHECK(kernel(p, "sample.twice").flags == GESTALT_KERNEL_DETERMINISTIC);
  const gestalt_component& letters = component(p, "sample.letters");
  CHECK(text_of(letters.kind) == "tokenizer/1");
  REQUIRE(letters.num_keys == 2);
  CHECK(text_of(letters.keys[0].default_value) == "97");
  CHECK(letters.keys[0].flags == 0);
  CHECK(letters.keys[1].flags == GESTALT_KEY_REQUIRED);
}

TEST_CASE("another major version is refused") {
  FakeHost host;
  plugin(host);
  auto main = reinterpret_cast<gestalt_plugin_main_v1_fn>(
      dlsym(dlopen(std::getenv("GESTALT_SAMPLE"), RTLD_NOW | RTLD_LOCAL), GESTALT_PLUGIN_MAIN_V1));
  host.table.abi_major = 2;
  const gestalt_plugin* p = nullptr;
  CHECK(text_of(host, main(&host.table, &p)).rfind("8 ", 0) == 0);
  CHECK(p == nullptr);
}

TEST_CASE("a kernel plans, runs over the host's threads and is destroyed") {
  for (bool with_parallel : {true, false}) {
    FakeHost host;
    host.with_parallel = with_parallel;
    const gestalt_kernel& k = kernel(plugin(host), "sample.twice");
    Instance i(host, 3);
    REQUIRE(text_of(host, k.prepare(&host.table, &i.plan)) == "ok");
    CHECK(i.plan.workspace_size == 256);
    CHECK(i.plan.workspace_align == 64);
    for (int j = 0; j < 6; ++j) i.x.values[j] = static_cast<float>(j);
    CHECK(text_of(host, k.run(i.plan.state, &i.call)) == "ok");
    CHECK(i.y.values[5] == 15);
    k.destroy(i.plan.state);
  }
}

TEST_CASE("what a kernel throws becomes a status") {
  FakeHost host;
  const gestalt_kernel& k = kernel(plugin(host), "sample.twice");
  Instance wrong_type(host, 3), thirteen(host, 13), negative(host, 3);
  wrong_type.x.view.dtype = GESTALT_BF16;
  CHECK(text_of(host, k.prepare(&host.table, &wrong_type.plan)) == "3 [sample.twice] got bf16[6], expected f32");
  CHECK(text_of(host, k.prepare(&host.table, &thirteen.plan)) == "2 thirteen");
  REQUIRE(text_of(host, k.prepare(&host.table, &negative.plan)) == "ok");
  negative.x.values[3] = -1;  // thrown in the second half of the loop
  CHECK(text_of(host, k.run(negative.plan.state, &negative.call)) == "1 negative");
  k.destroy(negative.plan.state);
  CHECK(host.open_statuses == 0);
}

TEST_CASE("infer writes types and names what is wrong") {
  FakeHost host;
  const gestalt_op& op = *plugin(host).ops[0];
  Instance i(host, 2);
  i.x.shape[0] = -7;  // the handle of a named dimension
  CHECK(text_of(host, op.infer(&host.table, &i.plan)) == "ok");
  CHECK(i.y.shape[0] == -7);
  i.x.view.ndim = 0;
  CHECK(text_of(host, op.infer(&host.table, &i.plan)) == "1 [sample.twice] input 0: got f32[], expected 1 dimensions");
}

TEST_CASE("the usual gradient rule passes inputs and gradient and skips integer inputs") {
  FakeHost host;
  FakeBuild build;
  const gestalt_op& op = *plugin(host).ops[0];
  REQUIRE(op.vjp);
  CHECK(op.decompose == nullptr);
  gestalt_tensor* in[2] = {build.make(), build.make()};
  gestalt_tensor *out[1] = {build.make()}, *grad[1] = {build.make()}, *result[2] = {};
  build.integers = {2};
  const gestalt_attr factor = attr("factor", 2.0);
  gestalt_compose_call call = {sizeof call, &build, in, 2, out, grad, 1, 3, result, &factor, 1, &host.table};
  CHECK(text_of(host, op.vjp(nullptr, &call)) == "ok");
  REQUIRE(build.log.size() == 1);
  CHECK(build.log[0] == "sample.twice_bwd(1, 2, 4) factor");
  CHECK(reinterpret_cast<uintptr_t>(result[0]) == 5);
  CHECK(result[1] == nullptr);

  grad[0] = nullptr;  // no gradient flows: nothing is recorded
  CHECK(text_of(host, op.vjp(nullptr, &call)) == "ok");
  CHECK(build.log.size() == 1);
}

TEST_CASE("a tokenizer's table encodes and decodes batches") {
  FakeHost host;
  const gestalt_component& c = component(plugin(host), "sample.letters");
  const gestalt_attr config = attr("first", int64_t{97});
  void* self = nullptr;
  REQUIRE(text_of(host, c.create(&host.table, &config, 1, &self)) == "ok");
  CHECK(host.log.at(0) == "1 letters made");
  const auto& t = *static_cast<const gestalt_tokenizer_1*>(c.table);
  CHECK(t.vocab_size(self) == 26);
  CHECK(t.special(self, abi_str("throw")) == -1);
  uint8_t print[32];
  t.fingerprint(self, print);
  CHECK(print[2] == 3);

  std::vector<std::vector<int32_t>> ids(2);
  const gestalt_id_sink sink = {sizeof sink, &ids, [](void* s, uint64_t item, const int32_t* p, uint64_t n) noexcept {
                                  auto& list = (*static_cast<std::vector<std::vector<int32_t>>*>(s))[item];
                                  list.insert(list.end(), p, p + n);
                                }};
  const gestalt_str texts[2] = {abi_str("abc"), abi_str("z")};
  CHECK(text_of(host, t.encode_batch(self, texts, 2, 0, &sink)) == "ok");
  CHECK(ids[0] == std::vector<int32_t>{0, 1, 2});
  CHECK(ids[1] == std::vector<int32_t>{25});

  std::string bytes;
  const gestalt_byte_sink bytes_sink = {sizeof bytes_sink, &bytes, [](void* s, uint64_t, gestalt_str b) noexcept {
                                          *static_cast<std::string*>(s) += text_of(b);
                                        }};
  const int32_t good[] = {7, 8}, bad[] = {26};
  const uint64_t offsets[] = {0, 2}, one[] = {0, 1};
  CHECK(text_of(host, t.decode_batch(self, good, offsets, 1, &bytes_sink)) == "ok");
  CHECK(bytes == "hi");
  CHECK(text_of(host, t.decode_batch(self, bad, one, 1, &bytes_sink)) == "1 [id] got 26, expected 0 to 25");
  c.destroy(self);

  void* none = nullptr;
  CHECK(text_of(host, c.create(&host.table, nullptr, 0, &none)) == "1 [first] got nothing, expected i64");
  CHECK(none == nullptr);
}

TEST_CASE("a module declares fused parts and emits ops") {
  FakeHost host;
  const gestalt_component& c = component(plugin(host), "sample.stack");
  const auto& m = *static_cast<const gestalt_module_1*>(c.table);
  void* self = nullptr;
  {
    const std::string key = "hidden";  // gone before declare: create keeps a copy
    const gestalt_attr config = attr(key, int64_t{6});
    REQUIRE(text_of(host, c.create(&host.table, &config, 1, &self)) == "ok");
  }
  FakeBuild build;
  gestalt_tensor *in[2] = {build.make(), build.make()}, *out[4] = {};
  uint64_t num_out = 4;
  CHECK(text_of(host, m.emit(self, &build, in, 1, out, &num_out)).rfind("2 ", 0) == 0);

  FakeDeclare declare;
  REQUIRE(text_of(host, m.declare(self, &declare)) == "ok");
  CHECK(declare.log == std::vector<std::string>{"up.weight [8, 6] gate:4 up:4 dim 0 tp",
                                                "up.bias [8] gate:4 up:4 dim 0 tp", "weight [6] dim -1 "});
  REQUIRE(text_of(host, m.emit(self, &build, in, 1, out, &num_out)) == "ok");
  CHECK(num_out == 1);
  REQUIRE(build.log.size() == 6);
  CHECK(build.log[1] == "core.rms_norm(1, 3) eps");
  CHECK(build.log[4].rfind("core.linear(4, ", 0) == 0);
  CHECK(build.log[5] == "core.swiglu(7)");
  CHECK(text_of(host, m.emit(self, &build, in, 2, out, &num_out)) ==
        "1 [sample.stack] got 2 input tensors, expected 1");
  c.destroy(self);
  CHECK(host.open_statuses == 0);
}

// The small types of the C++ layer.
#include <array>

#include "gestalt/plugin.hpp"
#include "tests/abi/fake_host.h"
#include "tests/catch_compat.hpp"

namespace {
using namespace gestalt;

struct Plain : Device {
  static constexpr std::string_view name = "plain";
  Plain(Host, Attrs) {}
  void info(gestalt_device_info&) override {}
  void* alloc(uint64_t, int32_t) override { return nullptr; }
  void free(void*) override {}
  void* stream_open() override { return nullptr; }
  void* event_open() override { return nullptr; }
  void close(int32_t, void*) override {}
  void copy(void*, const void*, uint64_t, int32_t, void*) override {}
  void fill(void*, uint8_t, uint64_t, void*) override {}
  void record(void*, void*) override {}
  void wait(void*, void*) override {}
  void sync(void*) override {}
};
struct Capturing : Plain {
  using Plain::Plain;
  void capture_begin(void*) override {}
  void* capture_end(void*) override { return nullptr; }
  void replay(void*, void*) override {}
};
}  // namespace

TEST_CASE("element types know their size and name") {
  CHECK(size_of(kF64) == 8);
  CHECK(size_of(kBF16) == 2);
  CHECK(size_of(kBool) == 1);
  CHECK(name_of(kBF16) == "bf16");
  CHECK(dtype_of("i32") == kI32);
  CHECK(dtype_of("f8") == 0);
  CHECK(is_floating(kBF16));
  CHECK_FALSE(is_floating(kI64));
}

TEST_CASE("attributes are read by type, and what is wrong is named") {
  const int64_t sizes[] = {3, 4};
  const Attr list[] = {{"count", 7}, {"name", "x"}, {"rate", 0.5}, {"sizes", sizes}, {"yes", true}};
  const Attrs attrs(list, 5);
  CHECK(attrs.i64("count") == 7);
  CHECK(attrs.f64("count") == 7.0);
  CHECK(attrs.f64("rate") == 0.5);
  CHECK(attrs.str("name") == "x");
  CHECK(attrs.boolean("yes"));
  CHECK(attrs.i64_list("sizes")[1] == 4);
  CHECK(attrs.i64("other", 5) == 5);
  CHECK_THROWS_WITH(attrs.i64("rate"), "[rate] got f64, expected i64");
  CHECK_THROWS_WITH(attrs.str("none"), "[none] got nothing, expected str");
}

TEST_CASE("a copy of attributes owns its strings and lists") {
  std::string name = "key", text = "a value that is longer than the small string buffer";
  std::vector<int64_t> sizes = {1, 2, 3};
  std::string first = "one", second = "two";
  std::vector<gestalt_str> strings = {str_of(first), str_of(second)};
  gestalt_attr list{str_of("list"), GESTALT_ATTR_STR_LIST, {.list = {strings.data(), strings.size()}}};
  const gestalt_attr all[] = {Attr(name, std::string_view(text)), list, Attr("sizes", sizes)};
  const OwnedAttrs owned(Attrs(all, 3));
  name = text = first = second = "";
  sizes.assign(3, 0);
  strings.clear();
  const Attrs copy = owned;
  CHECK(copy.str("key") == "a value that is longer than the small string buffer");
  CHECK(copy.i64_list("sizes")[2] == 3);
  CHECK(view_of(copy.str_list("list")[1]) == "two");
}

TEST_CASE("a view counts dimensions from both ends and knows whether it is contiguous") {
  int64_t shape[] = {2, 1, 3}, strides[] = {3, 99, 1}, other[] = {1, 2, 2};
  const gestalt_view v = {nullptr, GESTALT_DEVICE_CPU, 0, 3, GESTALT_F32, shape, strides, 0};
  const gestalt_view t = {nullptr, GESTALT_DEVICE_CPU, 0, 3, GESTALT_F32, shape, other, 0};
  CHECK(View(&v).dim(-1) == 3);
  CHECK(View(&v).numel() == 6);
  CHECK(View(&v).contiguous());
  CHECK_FALSE(View(&t).contiguous());
  CHECK(describe(View(&v)) == "f32[2, 1, 3]");
  CHECK_FALSE(View());
  shape[0] = 0;
  CHECK(View(&t).contiguous());
}

TEST_CASE("a status of the host becomes an error and is freed") {
  FakeHost host;
  gestalt_status* status = host.table.status_new(&host, GESTALT_NOT_FOUND, str_of("[x] gone"));
  try {
    check(&host.table, status);
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.code == GESTALT_NOT_FOUND);
    CHECK(e.message() == "[x] gone");
  }
  CHECK(host.open_statuses == 0);
  check(&host.table, nullptr);
}

TEST_CASE("the guard keeps codes and tells exceptions apart") {
  FakeHost host;
  auto status_of = [&](auto f) { return text_of(host, guard(&host.table, f)); };
  CHECK(status_of([] {}) == "ok");
  CHECK(status_of([] { throw Error(GESTALT_DATA_ERROR, "bad"); }) == "5 bad");
  CHECK(status_of([] { throw std::bad_alloc(); }) == "9 out of host memory");
  CHECK(status_of([] { throw 1; }) == "2 exception of an unknown type");
}

TEST_CASE("ops are recorded with attributes in the order of their names") {
  FakeHost host;
  FakeBuild build;
  Recorder r(&build, &host.table);
  const Tensor x = r.wrap(build.make());
  const Tensor y = ops::slice(x, 0, 1, 2);
  CHECK(build.log.at(0) == "core.slice(1) begin dim end");
  CHECK(y.ndim() == 1);
  CHECK(y.dim(-1) == 6);
  ops::linear(x, y);
  CHECK(build.log.at(1) == "core.linear(1, 2, 0)");
  CHECK_THROWS_WITH(ops::add(Tensor(), x), "[ops] got no tensor, expected one as the first input");
}

TEST_CASE("a device shows launch and capture to the host only if it overrides them") {
  CHECK(detail::device_table_of<Plain>.launch == nullptr);
  CHECK(detail::device_table_of<Plain>.replay == nullptr);
  CHECK(detail::device_table_of<Capturing>.launch == nullptr);
  CHECK(detail::device_table_of<Capturing>.capture_end != nullptr);
}

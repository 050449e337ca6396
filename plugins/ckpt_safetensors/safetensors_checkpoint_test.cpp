#include "plugins/ckpt_safetensors/safetensors_checkpoint.h"

#include <map>
#include <vector>

#include "core/base/host.h"
#include "plugins/ckpt_safetensors/layout_text.h"
#include "support/safetensors.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::ckpt_safetensors {

namespace {

using support::contains;
using support::error_of;
using support::TestFolder;

// A view with its own shape, strides and data of one element type.
template <class T>
struct Array {
  Array(uint32_t dtype, std::vector<int64_t> sizes) : shape(std::move(sizes)), strides(shape.size()) {
    int64_t count = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      strides[d] = count;
      count *= shape[d];
    }
    data.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<T>(i + 1);
    view = {data.data(),  GESTALT_DEVICE_CPU, 0, static_cast<int32_t>(shape.size()), dtype,
            shape.data(), strides.data(),     0};
  }
  Array(const Array&) = delete;

  std::vector<int64_t> shape, strides;
  std::vector<T> data;
  gestalt_view view;
};

gestalt_shard shard_of(std::string_view name, const gestalt_view& view, const std::vector<int64_t>& global,
                       const std::vector<int64_t>& offset, const std::vector<int64_t>& parts = {}) {
  return {sizeof(gestalt_shard), str_of(name), global.data(), offset.data(), parts.data(), parts.size(), view};
}

SafetensorsCheckpoint make() { return SafetensorsCheckpoint(Host(nullptr), Attrs()); }

}  // namespace

TEST_CASE("pieces come back with their place in the logical tensor, through the C table") {
  const TestFolder folder;
  const std::string path = folder.file("shard.safetensors");
  const gestalt_component& entry = detail::component_entry<SafetensorsCheckpoint>;
  const auto& table = *static_cast<const gestalt_checkpoint_1*>(entry.table);
  const gestalt_host* host = core::make_host("test");
  void *self = nullptr, *writer = nullptr, *reader = nullptr;
  check(host, entry.create(host, nullptr, 0, &self));
  CHECK(view_of(table.extension) == ".safetensors");

  const Array<float> w(GESTALT_F32, {2, 3}), scalar(GESTALT_F32, {});
  const Array<uint16_t> empty(GESTALT_BF16, {0, 4});
  const std::vector<int64_t> global = {8, 3}, offset = {4, 0}, parts = {2, 2, 4}, none, four = {0, 4}, zeros = {0, 0};
  check(host, table.open_write(self, str_of(path), &writer));
  const gestalt_shard shards[] = {shard_of("w", w.view, global, offset, parts), shard_of("s", scalar.view, none, none),
                                  shard_of("e", empty.view, four, zeros)};
  for (const gestalt_shard& shard : shards) check(host, table.put(writer, &shard));
  CHECK(folder.num_files() == 0);
  check(host, table.close_write(writer, 1));
  CHECK(folder.num_files() == 1);

  check(host, table.open_read(self, str_of(path), &reader));
  struct Seen {
    std::vector<int64_t> shape, global, offset, parts;
    uint32_t dtype;
  };
  std::map<std::string, Seen> seen;
  const gestalt_shard_sink sink = {sizeof(gestalt_shard_sink), &seen, [](void* out, const gestalt_shard* s) noexcept {
                                     const auto n = s->view.ndim;
                                     (*static_cast<std::map<std::string, Seen>*>(
                                         out))[std::string(view_of(s->name))] = {{s->view.shape, s->view.shape + n},
                                                                                 {s->global, s->global + n},
                                                                                 {s->offset, s->offset + n},
                                                                                 {s->parts, s->parts + s->num_parts},
                                                                                 s->view.dtype};
                                   }};
  check(host, table.list(reader, &sink));
  REQUIRE(seen.size() == 3);
  CHECK(seen["w"].global == global);
  CHECK(seen["w"].offset == offset);
  CHECK(seen["w"].parts == parts);
  CHECK(seen["w"].shape == w.shape);
  CHECK(seen["e"].dtype == GESTALT_BF16);
  CHECK(seen["s"].shape.empty());
  Array<float> back(GESTALT_F32, {2, 3});
  std::fill(back.data.begin(), back.data.end(), 0.0f);
  check(host, table.get(reader, str_of("w"), &back.view));
  CHECK(back.data == w.data);
  table.close_read(reader);
  entry.destroy(self);
}

TEST_CASE("the data is borrowed until the file is closed, and an abandoned file leaves nothing") {
  const TestFolder folder;
  SafetensorsCheckpoint checkpoint = make();
  Array<float> w(GESTALT_F32, {2});
  const std::vector<int64_t> global = {2}, offset = {0};
  { checkpoint.open_write(folder.file("a"))->put(shard_of("w", w.view, global, offset)); }
  CHECK(folder.num_files() == 0);
  const auto writer = checkpoint.open_write(folder.file("a"));
  writer->put(shard_of("w", w.view, global, offset));
  w.data[1] = 77;
  writer->finish();
  Array<float> back(GESTALT_F32, {2});
  checkpoint.open_read(folder.file("a"))->get("w", back.view);
  CHECK(back.data[1] == 77);
}

TEST_CASE("a piece outside its tensor, parts that do not add up and a name twice are refused") {
  const TestFolder folder;
  const auto writer = make().open_write(folder.file("a"));
  Array<float> w(GESTALT_F32, {2});
  const std::vector<int64_t> two = {2}, one = {1}, zero = {0}, minus = {-1}, parts = {1, 2};
  const auto refusal = [&](const gestalt_shard& shard) { return error_of([&] { writer->put(shard); }); };
  CHECK(contains(refusal(shard_of("w", w.view, two, one)),
                 "a: w] dimension 0 lies outside its tensor, got offset 1 and size 2"));
  CHECK(contains(refusal(shard_of("w", w.view, two, minus)), "got offset -1"));
  CHECK(contains(refusal(shard_of("w", w.view, two, zero, parts)), "parts do not add up"));
  CHECK(refusal(shard_of("w", w.view, two, zero)).empty());
  CHECK(contains(refusal(shard_of("w", w.view, two, zero)), "was put twice"));
  w.strides[0] = 2;
  CHECK(contains(refusal(shard_of("v", w.view, two, zero)), "expected a contiguous tensor in host memory"));
}

TEST_CASE("reading into a view of another type or shape, or of a name that is absent, is refused") {
  const TestFolder folder;
  const auto writer = make().open_write(folder.file("a"));
  const Array<float> w(GESTALT_F32, {2});
  const std::vector<int64_t> two = {2}, zero = {0};
  writer->put(shard_of("w", w.view, two, zero));
  writer->finish();
  const auto reader = make().open_read(folder.file("a"));
  Array<float> longer(GESTALT_F32, {3}), deeper(GESTALT_F32, {2, 1});
  Array<int32_t> other(GESTALT_I32, {2});
  CHECK(contains(error_of([&] { reader->get("w", longer.view); }),
                 "5: [" + folder.file("a") + ": w] the file holds F32[2], expected f32[3]"));
  CHECK(contains(error_of([&] { reader->get("w", deeper.view); }), "expected f32[2, 1]"));
  CHECK(contains(error_of([&] { reader->get("w", other.view); }), "expected i32[2]"));
  CHECK(contains(error_of([&] { reader->get("v", w.view); }), "4: ["));
}

TEST_CASE("a file of another program holds whole tensors, and a layout that contradicts the file is refused") {
  const TestFolder folder;
  const float data[4] = {1, 2, 3, 4};
  const auto write = [&](std::string_view layout) {
    support::SafetensorsWriter file(folder.file("a"));
    if (!layout.empty()) file.set_metadata(kLayoutKey, layout);
    file.add("w", *support::safetensors_type(GESTALT_F32), {2, 2}, data);
    file.commit();
    return error_of([&] { make().open_read(folder.file("a")); });
  };
  CHECK(write("").empty());
  CHECK(write(R"({"version":1,"tensors":{"w":{"global":[4,2],"offset":[2,0]}}})").empty());
  CHECK(contains(write("{"), "5: ["));
  CHECK(contains(write(R"({"version":2,"tensors":{}})"), "[version] got 2, expected 1"));
  CHECK(contains(write(R"({"version":1,"tensors":{}})"), "describes 0 tensors, expected the file's 1"));
  CHECK(contains(write(R"({"version":1,"tensors":{"v":{"global":[2,2],"offset":[0,0]}}})"), "a: w] has no entry"));
  CHECK(contains(write(R"({"version":1,"tensors":{"w":{"global":[2],"offset":[0]}}})"), "expected 2"));
  CHECK(contains(write(R"({"version":1,"tensors":{"w":{"global":[4,2],"offset":[3,0]}}})"), "lies outside its tensor"));
  CHECK(contains(write(R"({"version":1,"tensors":{"w":{"global":[4,2],"offset":[9223372036854775807,0]}}})"),
                 "lies outside"));
  CHECK(contains(
      write(R"({"version":1,"tensors":{"w":{"global":[4,2],"offset":[0,0],"parts":[9223372036854775807,5]}}})"),
      "parts do not add up"));
}

}  // namespace gestalt::ckpt_safetensors

#include "plugins/ckpt_hdf5/hdf5_checkpoint.h"

#include <map>
#include <vector>

#include "gestalt/dtype.hpp"
#include "plugins/ckpt_hdf5/hdf5_handle.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::ckpt_hdf5 {

namespace {

using support::contains;
using support::error_of;
using support::TestFolder;

// A view with its own shape, strides and bytes.
struct Array {
  Array(uint32_t dtype, std::vector<int64_t> sizes) : shape(std::move(sizes)), strides(shape.size()) {
    int64_t count = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      strides[d] = count;
      count *= shape[d];
    }
    bytes.resize(static_cast<size_t>(count) * size_of(dtype));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(dtype == kBool ? i % 2 : i * 37 + 1);
    view = {bytes.data(), GESTALT_DEVICE_CPU, 0, static_cast<int32_t>(shape.size()), dtype, shape.data(), strides.data(), 0};
  }
  Array(const Array&) = delete;

  std::vector<int64_t> shape, strides;
  std::vector<char> bytes;
  gestalt_view view;
};

gestalt_shard shard_of(std::string_view name, const gestalt_view& view, const std::vector<int64_t>& global,
                       const std::vector<int64_t>& offset, const std::vector<int64_t>& parts = {}) {
  return {sizeof(gestalt_shard), str_of(name), global.data(), offset.data(), parts.data(), parts.size(), view};
}

Hdf5Checkpoint make() { return Hdf5Checkpoint(Host(nullptr), Attrs()); }

struct Seen {
  std::vector<int64_t> shape, global, offset, parts;
  uint32_t dtype;
};

std::map<std::string, Seen> list(ShardReader& reader) {
  std::map<std::string, Seen> seen;
  const gestalt_shard_sink sink = {sizeof(gestalt_shard_sink), &seen, [](void* out, const gestalt_shard* s) noexcept {
                                     const auto n = s->view.ndim;
                                     (*static_cast<std::map<std::string, Seen>*>(out))[std::string(view_of(s->name))] = {
                                         {s->view.shape, s->view.shape + n}, {s->global, s->global + n}, {s->offset, s->offset + n},
                                         {s->parts, s->parts + s->num_parts}, s->view.dtype};
                                   }};
  reader.list(ShardSink(&sink));
  return seen;
}

}  // namespace

TEST_CASE("every type, scalars, empty tensors and tensors of many chunks come back bit for bit") {
  const TestFolder folder;
  Hdf5Checkpoint checkpoint = make();
  std::vector<std::unique_ptr<Array>> arrays;
  for (const uint32_t dtype : {kF32, kF64, kBF16, kF16, kI32, kI64, kU8, kBool}) arrays.push_back(std::make_unique<Array>(dtype, std::vector<int64_t>{5, 7}));
  arrays.push_back(std::make_unique<Array>(kF32, std::vector<int64_t>{}));
  arrays.push_back(std::make_unique<Array>(kF32, std::vector<int64_t>{0, 3}));
  arrays.push_back(std::make_unique<Array>(kF32, std::vector<int64_t>{1003, 1021}));
  arrays.push_back(std::make_unique<Array>(kU8, std::vector<int64_t>{2, 3'000'017}));
  {
    const auto writer = checkpoint.open_write(folder.file("a.h5"));
    for (size_t i = 0; i < arrays.size(); ++i)
      writer->put(shard_of("t." + std::to_string(i), arrays[i]->view, arrays[i]->shape, std::vector<int64_t>(arrays[i]->shape.size(), 0)));
    CHECK(folder.num_files() == 1);
    writer->finish();
  }
  const auto reader = checkpoint.open_read(folder.file("a.h5"));
  CHECK(list(*reader).size() == arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    INFO(i);
    Array back(arrays[i]->view.dtype, arrays[i]->shape);
    std::fill(back.bytes.begin(), back.bytes.end(), 0);
    reader->get("t." + std::to_string(i), back.view);
    CHECK(back.bytes == arrays[i]->bytes);
  }
}

TEST_CASE("pieces keep their place in the logical tensor") {
  const TestFolder folder;
  Hdf5Checkpoint checkpoint = make();
  const Array w(kF32, {2, 3});
  const auto writer = checkpoint.open_write(folder.file("a.h5"));
  writer->put(shard_of("w", w.view, {8, 3}, {4, 0}, {2, 2, 4}));
  writer->finish();
  const auto reader = checkpoint.open_read(folder.file("a.h5"));
  const Seen seen = list(*reader).at("w");
  CHECK(seen.shape == w.shape);
  CHECK(seen.global == std::vector<int64_t>{8, 3});
  CHECK(seen.offset == std::vector<int64_t>{4, 0});
  CHECK(seen.parts == std::vector<int64_t>{2, 2, 4});
  CHECK(seen.dtype == kF32);
}

TEST_CASE("an abandoned file leaves nothing, and a folder that is not there is a storage error") {
  const TestFolder folder;
  Hdf5Checkpoint checkpoint = make();
  const Array w(kF32, {2});
  { checkpoint.open_write(folder.file("a.h5"))->put(shard_of("w", w.view, {2}, {0})); }
  CHECK(folder.num_files() == 0);
  CHECK(contains(error_of([&] { checkpoint.open_write(folder.file("no/such/a.h5")); }), "7: ["));
}

TEST_CASE("another type or shape, an absent tensor, and a file that is no HDF5 are refused") {
  const TestFolder folder;
  Hdf5Checkpoint checkpoint = make();
  const Array w(kF32, {2});
  const auto writer = checkpoint.open_write(folder.file("a.h5"));
  writer->put(shard_of("w", w.view, {2}, {0}));
  CHECK(contains(error_of([&] { writer->put(shard_of("w", w.view, {2}, {0})); }), "create failed"));
  CHECK(contains(error_of([&] { writer->finish(); }), "an earlier write failed"));
  const auto good = checkpoint.open_write(folder.file("b.h5"));
  good->put(shard_of("w", w.view, {2}, {0}));
  good->finish();
  const auto reader = checkpoint.open_read(folder.file("b.h5"));
  Array longer(kF32, {3}), other(kI32, {2});
  CHECK(contains(error_of([&] { reader->get("w", longer.view); }), "5: ["));
  CHECK(contains(error_of([&] { reader->get("w", other.view); }), "expected i32[2]"));
  CHECK(contains(error_of([&] { reader->get("v", w.view); }), "4: ["));
  folder.write("c.h5", "not an HDF5 file");
  CHECK(contains(error_of([&] { checkpoint.open_read(folder.file("c.h5")); }), "5: ["));
}

}  // namespace gestalt::ckpt_hdf5

#include "core/tensor/tensor.h"

#include <vector>

#include "core/base/error.h"
#include "tests/catch_compat.hpp"

namespace gestalt::core {

TEST_CASE("a tensor's view points at the tensor's own shape and strides, also after a copy") {
  float data[6];
  Tensor a(GESTALT_F32, {2, 3}, data);
  std::vector<Tensor> many(3, a);
  many.push_back(a);
  for (const Tensor& t : many) {
    CHECK(t.view.shape == t.shape);
    CHECK(t.view.strides == t.strides);
    CHECK(t.view.data == data);
    CHECK(t.view.shape[1] == 3);
    CHECK(t.view.strides[0] == 3);
  }
  CHECK(reinterpret_cast<uintptr_t>(&many[1]) % 64 == 0);
}

TEST_CASE("a tensor made from a foreign view keeps its strides") {
  int64_t shape[2] = {2, 3}, strides[2] = {1, 2};
  gestalt_view v{nullptr, GESTALT_DEVICE_SIM, 1, 2, GESTALT_F16, shape, strides, 0};
  Tensor t(v);
  CHECK(t.strides[1] == 2);
  CHECK(t.view.device_type == GESTALT_DEVICE_SIM);
  CHECK(t.view.shape == t.shape);
}

TEST_CASE("contiguity ignores dimensions of size one and is true of empty tensors") {
  Tensor t(GESTALT_F32, {4, 1, 5});
  CHECK(is_contiguous(t.view));
  t.strides[1] = 77;
  CHECK(is_contiguous(t.view));
  t.strides[0] = 6;
  CHECK_FALSE(is_contiguous(t.view));
  t.shape[2] = 0;
  CHECK(is_contiguous(t.view));
  CHECK(is_contiguous(Tensor(GESTALT_F32, std::initializer_list<int64_t>{}).view));
}

TEST_CASE("sizes of scalars, empty tensors and ordinary tensors") {
  CHECK(num_bytes(Tensor(GESTALT_F64, std::initializer_list<int64_t>{}).view) == 8);
  CHECK(num_bytes(Tensor(GESTALT_BF16, {3, 0, 2}).view) == 0);
  CHECK(num_bytes(Tensor(GESTALT_BF16, {3, 5}).view) == 30);
}

TEST_CASE("the byte extent covers exactly the touched elements of a strided view") {
  Tensor t(GESTALT_F32, {3, 4});
  CHECK(byte_extent(t.view).last == 48);
  t.strides[0] = 10;
  t.strides[1] = 2;
  CHECK(byte_extent(t.view).first == 0);
  CHECK(byte_extent(t.view).last == (2 * 10 + 3 * 2 + 1) * 4);
  t.strides[0] = 0;
  CHECK(byte_extent(t.view).last == (3 * 2 + 1) * 4);
  t.strides[0] = -10;
  CHECK(byte_extent(t.view).first == -80);
  t.shape[1] = 0;
  CHECK(byte_extent(t.view).last == 0);
  CHECK(byte_extent(t.view).first == 0);
}

TEST_CASE("a tensor of nine dimensions or with a negative one is refused with the value") {
  std::vector<int64_t> nine(9, 1);
  CHECK_THROWS_WITH(Tensor(GESTALT_F32, std::span<const int64_t>(nine)), Catch::Contains("got 9"));
  CHECK_THROWS_WITH(Tensor(GESTALT_F32, {2, -4}), Catch::Contains("got -4"));
}

TEST_CASE("a view describes itself by type and shape") {
  CHECK(describe(Tensor(GESTALT_BF16, {2, 3}).view) == "bf16[2, 3]");
  CHECK(describe(Tensor(GESTALT_F32, std::initializer_list<int64_t>{}).view) == "f32[]");
}

}  // namespace gestalt::core

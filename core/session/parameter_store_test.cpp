#include "core/session/parameter_store.h"

#include <cmath>
#include <cstring>

#include "core/tensor/dtype.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;

namespace {

using List = std::vector<int64_t>;

Mesh tp(int64_t size, int64_t rank) {
  return Mesh(Config::from_text("[mesh]\ntp = " + std::to_string(size) + "\n", "x.toml"), rank, size);
}

Parameter parameter(List shape, Placement placement, List parts, const Mesh& mesh, uint32_t dtype = GESTALT_F32) {
  Parameter p;
  p.path = "model.layers.0.attention.qkv.weight";
  p.global_shape = shape;
  p.parts = parts;
  p.placement = placement;
  p.init = GESTALT_INIT_NORMAL;
  p.init_a = 0.5;
  p.init_b = 0.02;
  p.type.dtype = dtype;
  for (int64_t s : local_shape(placement, shape, parts, mesh, p.path)) p.type.shape[static_cast<size_t>(p.type.ndim++)] = s;
  return p;
}

// The logical tensor put together from what the ranks of a mesh initialise.
std::vector<char> gathered(const List& shape, const Placement& placement, const List& parts, int64_t ranks, uint32_t dtype) {
  const uint64_t size = dtype_size(dtype);
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (static_cast<int64_t>(i) < placement.dim) outer *= shape[i];
    if (static_cast<int64_t>(i) > placement.dim) inner *= shape[i];
  }
  const int64_t cut = shape[static_cast<size_t>(placement.dim)];
  std::vector<char> whole(static_cast<size_t>(outer * cut * inner) * size);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const Mesh mesh = tp(ranks, rank);
    const std::vector<char> local = initial_values(parameter(shape, placement, parts, mesh, dtype), 7, mesh);
    const char* at = local.data();
    for (int64_t o = 0; o < outer; ++o)
      for (const Piece& piece : local_pieces(placement, placement.dim == 0 && !parts.empty() ? parts : List{cut}, mesh, "w")) {
        const auto bytes = static_cast<uint64_t>(piece.size * inner) * size;
        std::memcpy(whole.data() + static_cast<uint64_t>((o * cut + piece.begin) * inner) * size, at, bytes);
        at += bytes;
      }
    CHECK(at == local.data() + local.size());
  }
  return whole;
}

}  // namespace

TEST_CASE("initial values do not depend on the mesh, with parts, along any dimension, in any dtype") {
  struct {
    List shape;
    Placement placement;
    List parts;
  } const cases[] = {{{32, 6}, {0, "tp", 1}, {}},
                     {{32, 6}, {0, "tp", 2}, {16, 8, 8}},
                     {{6, 16}, {1, "tp", 1}, {}},
                     {{16, 8}, {1, "tp", 1}, {8, 8}},
                     {{3, 8, 5}, {1, "tp", 1}, {}},
                     {{16}, {0, "tp", 4}, {}}};
  for (const auto& c : cases)
    for (const uint32_t dtype : {GESTALT_F32, GESTALT_F64, GESTALT_BF16, GESTALT_F16}) {
      const auto whole = gathered(c.shape, c.placement, c.parts, 1, dtype);
      CHECK(gathered(c.shape, c.placement, c.parts, 2, dtype) == whole);
      CHECK(gathered(c.shape, c.placement, c.parts, 4, dtype) == whole);
    }
}

TEST_CASE("a parameter that is replicated is the same on every rank") {
  const auto one = initial_values(parameter({8, 3}, {-1, "", 1}, {}, tp(1, 0)), 7, tp(1, 0));
  for (int64_t rank = 0; rank < 4; ++rank)
    CHECK(initial_values(parameter({8, 3}, {-1, "", 1}, {}, tp(4, rank)), 7, tp(4, rank)) == one);
}

TEST_CASE("initial values follow the seed, the name and the declared distribution") {
  const Mesh mesh = tp(1, 0);
  Parameter p = parameter({200, 100}, {-1, "", 1}, {}, mesh);
  const auto bytes = initial_values(p, 7, mesh);
  std::vector<float> x(20000);
  std::memcpy(x.data(), bytes.data(), bytes.size());
  double mean = 0, square = 0;
  for (float v : x) mean += static_cast<double>(v) / 20000;
  for (float v : x) square += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean) / 20000;
  CHECK(mean == Approx(0.5).margin(0.001));
  CHECK(std::sqrt(square) == Approx(0.02).epsilon(0.03));
  CHECK(initial_values(p, 8, mesh) != bytes);
  p.path = "model.layers.1.attention.qkv.weight";
  CHECK(initial_values(p, 7, mesh) != bytes);

  p.init = GESTALT_INIT_UNIFORM;
  p.init_a = -1;
  p.init_b = 3;
  const auto uniform = initial_values(p, 7, mesh);
  std::memcpy(x.data(), uniform.data(), uniform.size());
  for (float v : x) REQUIRE((v >= -1 && v < 3));
  auto first = [&](int64_t init) {
    p.init = init;
    float v;
    std::memcpy(&v, initial_values(p, 7, mesh).data(), 4);
    return v;
  };
  p.init_a = 0.25;
  CHECK(first(GESTALT_INIT_ZEROS) == 0);
  CHECK(first(GESTALT_INIT_ONES) == 1);
  CHECK(first(GESTALT_INIT_CONSTANT) == 0.25f);
  CHECK_THAT(gestalt::test::message_of([&] { first(99); }), Catch::Contains("[model.layers.1.attention.qkv.weight]") &&
                                                                Catch::Contains("99"));
}

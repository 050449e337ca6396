#include "core/parallel/placement.h"

#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using Catch::Contains;

namespace {
Mesh tp(int64_t size, int64_t rank) {
  return Mesh(Config::from_text("[mesh]\ntp = " + std::to_string(size) + "\n", "x.toml"), rank, size);
}
using List = std::vector<int64_t>;
}  // namespace

TEST_CASE("a plain tensor is cut into equal runs") {
  const Placement p{0, "tp", 1};
  for (int64_t rank = 0; rank < 4; ++rank) {
    const auto pieces = local_pieces(p, {12}, tp(4, rank), "w");
    REQUIRE(pieces.size() == 1);
    CHECK(pieces[0].begin == 3 * rank);
    CHECK(pieces[0].size == 3);
    CHECK(local_shape(p, {12, 5}, {}, tp(4, rank), "w") == List{3, 5});
  }
}

TEST_CASE("each fused part is cut by itself, and the pieces of all ranks cover it once") {
  const Placement p{0, "tp", 2};
  const List parts = {8, 4, 4};
  std::vector<int> covered(16);
  for (int64_t rank = 0; rank < 2; ++rank) {
    const auto pieces = local_pieces(p, parts, tp(2, rank), "qkv");
    REQUIRE(pieces.size() == 3);
    CHECK(pieces[1].begin == 8 + 2 * rank);
    for (const Piece& piece : pieces)
      for (int64_t i = piece.begin; i < piece.begin + piece.size; ++i) ++covered[static_cast<size_t>(i)];
    CHECK(local_shape(p, {16, 3}, parts, tp(2, rank), "qkv") == List{8, 3});
  }
  CHECK(covered == std::vector<int>(16, 1));
}

TEST_CASE("a tensor that is not cut keeps its shape, whatever unit is written") {
  CHECK(local_shape({-1, "", 64}, {10, 3}, {}, tp(2, 0), "w") == List{10, 3});
  CHECK(local_shape({0, "tp", 64}, {10, 3}, {}, tp(1, 0), "w") == List{10, 3});
  CHECK(local_shape({1, "ep", 1}, {10, 3}, {}, tp(2, 0), "w") == List{10, 3});
  CHECK_FALSE(Placement{0, "tp", 1}.sharded(tp(1, 0)));
}

TEST_CASE("parts along dimension 0 do not matter for a cut along another") {
  CHECK(local_shape({1, "tp", 1}, {10, 6}, {4, 6}, tp(2, 1), "w") == List{10, 3});
}

TEST_CASE("a part that does not divide is refused with name and numbers") {
  const auto e = gestalt::test::thrown_by([] { local_shape({0, "tp", 4}, {24, 3}, {16, 8}, tp(4, 0), "model.qkv"); });
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  CHECK_THAT(e.message(), Contains("[model.qkv]") && Contains("a part of 8") && Contains("tp = 4") &&
                              Contains("units of 4") && Contains("multiple of 16"));
}

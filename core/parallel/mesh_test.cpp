#include "core/parallel/mesh.h"

#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using Catch::Contains;
using gestalt::test::thrown_by;

namespace {
Mesh mesh(const std::string& toml, int64_t rank, int64_t world) { return Mesh(Config::from_text(toml, "x.toml"), rank, world); }
}  // namespace

TEST_CASE("a mesh of one rank has every axis at size one") {
  const Mesh m = mesh("", 0, 1);
  CHECK(m.text() == "tp=1 cp=1 dp=1 pp=1");
  CHECK(m.axis("tp").size == 1);
  CHECK(m.axis("nonsense").size == 1);
  CHECK(m.axis("nonsense").index == 0);
}

TEST_CASE("the first axis varies fastest with the rank") {
  for (int64_t rank = 0; rank < 8; ++rank) {
    const Mesh m = mesh("[mesh]\ntp = 2\npp = 2\n", rank, 8);
    CHECK(m.text() == "tp=2 cp=1 dp=2 pp=2");
    CHECK(m.axis("tp").index == rank % 2);
    CHECK(m.axis("dp").index == rank / 2 % 2);
    CHECK(m.axis("pp").index == rank / 4);
  }
}

TEST_CASE("the order of the axes may be given, in part too") {
  const Mesh m = mesh("[mesh]\ntp = 2\ndp = 4\norder = [\"dp\", \"tp\"]\n", 5, 8);
  CHECK(m.text() == "dp=4 tp=2 cp=1 pp=1");
  CHECK(m.axis("dp").index == 1);
  CHECK(m.axis("tp").index == 1);
}

TEST_CASE("sizes that do not multiply to the ranks are refused with the numbers") {
  CHECK_THAT(thrown_by([] { mesh("[mesh]\ntp = 3\n", 0, 8); }).message(), Contains("8 ranks") && Contains("tp=3"));
  const auto e = thrown_by([] { mesh("[mesh]\ntp = 2\ndp = 2\n", 0, 8); });
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  CHECK_THAT(e.message(), Contains("asks for 4 ranks, got 8") && Contains("--nproc 4"));
}

TEST_CASE("an order that names an axis twice, or one that is none, is refused") {
  CHECK_THAT(thrown_by([] { mesh("[mesh]\ntp = 2\norder = [\"tp\", \"tp\"]\n", 0, 4); }).message(),
             Contains("[mesh.order]") && Contains("'tp'") && Contains("twice"));
  CHECK_THAT(thrown_by([] { mesh("[mesh]\norder = [\"xp\"]\n", 0, 1); }).message(),
             Contains("[mesh.order]") && Contains("'xp'") && Contains("tp, cp, dp, pp"));
}

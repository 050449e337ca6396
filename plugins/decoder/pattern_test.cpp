#include "plugins/decoder/pattern.h"

#include "gestalt/error.hpp"
#include "tests/catch_compat.hpp"

using namespace gestalt;
using decoder::LayerKind;

namespace {

std::vector<LayerKind> read(const std::vector<std::string_view>& entries) {
  std::vector<gestalt_str> strs;
  for (std::string_view e : entries) strs.push_back(str_of(e));
  return decoder::read_pattern(strs);
}

std::string text(const std::vector<LayerKind>& kinds) {
  std::string out;
  for (const LayerKind& k : kinds)
    out += (out.empty() ? "" : " ") + k.slot + ":" + std::string(k.mixer) + "+" + std::string(k.feed_forward);
  return out;
}

}  // namespace

TEST_CASE("a word is the slot of a layer with both branches") {
  CHECK(text(read({"sliding", "full"})) == "sliding:attention+mlp full:attention+mlp");
}

TEST_CASE("letters of hybrid models are layers of one branch") {
  CHECK(text(read({"M-*E"})) ==
        "mamba_layer:mamba+none mlp_layer:none+mlp attention_layer:attention+none moe_layer:none+moe");
  CHECK(text(read({"*", "mlp_layer"})) == "attention_layer:attention+none mlp_layer:none+mlp");
}

TEST_CASE("an entry that is neither is refused with its text") {
  REQUIRE_THROWS_WITH(read({"M-X"}), Catch::Contains("M-X") && Catch::Contains("mixture"));
  REQUIRE_THROWS_WITH(read({""}), Catch::Contains("''"));
  REQUIRE_THROWS_WITH(read({}), Catch::Contains("empty"));
}

TEST_CASE("a layer may not take the slot of a part") {
  REQUIRE_THROWS_WITH(read({"mlp"}), Catch::Contains("'mlp'") && Catch::Contains("part of the model"));
}

// What config.json says, as keys of [model].
#include "plugins/format_hf/family.h"
#include "tests/catch_compat.hpp"

using namespace gestalt;
using namespace gestalt::format_hf;
using support::Json;

namespace {

Translated translated(const char* text) {
  const Json json = support::parse_json(text, "config.json");
  return translate(*find_family(json.str("model_type")), json);
}
std::string config_of(const char* text) { return translated(text).keys.text(); }

}  // namespace

TEST_CASE("old and new rotary keys mean the same") {
  const std::string old_keys = config_of(
      R"({"model_type":"llama","max_position_embeddings":64,"rope_theta":5e5,"rope_scaling":{"type":"linear","factor":2.0}})");
  const std::string new_keys = config_of(
      R"({"model_type":"llama","max_position_embeddings":64,"rope_parameters":{"rope_theta":5e5,"rope_type":"linear","factor":2.0}})");
  CHECK(old_keys == new_keys);
  CHECK_THAT(new_keys, Catch::Contains("rope_kind = \"linear\""));
}

TEST_CASE("longrope and yarn take their factor from the two lengths") {
  CHECK_THAT(config_of(R"({"model_type":"phi3","max_position_embeddings":64,"original_max_position_embeddings":16,
                          "rope_scaling":{"type":"su","short_factor":[1.0],"long_factor":[2.5]}})"),
             Catch::Contains("rope_factor = 4.0") && Catch::Contains("rope_long_factor = [2.5]"));
  CHECK_THAT(config_of(R"({"model_type":"llama","max_position_embeddings":64,
                          "rope_scaling":{"rope_type":"yarn","original_max_position_embeddings":32}})"),
             Catch::Contains("rope_factor = 2.0"));
}

TEST_CASE("windows follow layer_types, else the family's habit, as the shortest pattern of kinds of layers") {
  CHECK_THAT(config_of(R"({"model_type":"gemma2","num_hidden_layers":3,"sliding_window":8})"),
             Catch::Contains("pattern = [\"sliding\", \"full\"]\nslots.sliding.window = 8\n"));
  CHECK_THAT(config_of(R"({"model_type":"gemma2","num_hidden_layers":2,"sliding_window":8,
                          "layer_types":["full_attention","sliding_attention"]})"),
             Catch::Contains("pattern = [\"full\", \"sliding\"]"));
  CHECK_THAT(config_of(R"({"model_type":"qwen2","num_hidden_layers":3,"use_sliding_window":true,"sliding_window":8,
                          "max_window_layers":2})"),
             Catch::Contains("pattern = [\"full\", \"full\", \"sliding\"]"));
  CHECK_THAT(config_of(R"({"model_type":"mistral","num_hidden_layers":2,"sliding_window":8})"),
             Catch::Contains("window = 8\n") && !Catch::Contains("pattern"));
  CHECK_THAT(config_of(R"({"model_type":"mistral","num_hidden_layers":2,"sliding_window":null})"),
             !Catch::Contains("window"));
}

TEST_CASE("an activation, a rotary kind or a kind of layer that is unknown is refused by name") {
  REQUIRE_THROWS_WITH(config_of(R"({"model_type":"llama","hidden_act":"mish"})"), Catch::Contains("mish"));
  REQUIRE_THROWS_WITH(config_of(R"({"model_type":"llama","rope_scaling":{"type":"spiral"}})"),
                      Catch::Contains("spiral"));
  REQUIRE_THROWS_WITH(config_of(R"({"model_type":"gemma2","num_hidden_layers":1,"layer_types":["chunked_attention"]})"),
                      Catch::Contains("chunked_attention"));
}

TEST_CASE("keys that nobody asks for are listed, harmless and null ones not") {
  CHECK(translated(R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"use_cache":true,"eos_token_id":[1,2],
                      "rope_scaling":null,"quantization_config":null})")
            .unknown.empty());
  const auto unknown = translated(R"({"model_type":"llama","attn_temperature":0.5,
                                     "rope_scaling":{"rope_type":"linear","factor":2.0,"wobble":3}})")
                           .unknown;
  CHECK(unknown == std::vector<std::string>{"attn_temperature is 0.5", "rope_scaling.wobble is 3"});
}

TEST_CASE("a structure that the family does not have must be off") {
  REQUIRE_THROWS_WITH(translated(R"({"model_type":"gpt2","add_cross_attention":true})"),
                      Catch::Contains("add_cross_attention"));
  REQUIRE_THROWS_WITH(translated(R"({"model_type":"gpt2","scale_attn_by_inverse_layer_idx":true})"),
                      Catch::Contains("scale_attn_by_inverse_layer_idx"));
}

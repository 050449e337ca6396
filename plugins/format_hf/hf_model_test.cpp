#include "plugins/format_hf/hf_model.h"

#include <numeric>

#include "gestalt/dtype.hpp"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

using namespace gestalt;
using namespace gestalt::format_hf;
using support::Json;

namespace {

constexpr const char* kGpt2 =
    R"({"model_type":"gpt2","n_embd":4,"n_layer":1,"n_head":2,"n_positions":8,"vocab_size":3})";

struct Item {
  std::string name;
  std::vector<int64_t> shape;
  float first;
};

// Each tensor counts up from `first`.
std::string write_file(const support::TestFolder& folder, const std::string& name, const std::vector<Item>& items) {
  std::vector<std::vector<float>> values;
  support::SafetensorsWriter writer(folder.file(name));
  for (const Item& i : items) {
    const int64_t n = std::accumulate(i.shape.begin(), i.shape.end(), int64_t{1}, std::multiplies<>());
    values.emplace_back(static_cast<size_t>(n));
    std::iota(values.back().begin(), values.back().end(), i.first);
  }
  for (size_t i = 0; i < items.size(); ++i)
    writer.add(items[i].name, *support::safetensors_type(kF32), items[i].shape, values[i].data());
  writer.commit();
  return folder.file(name);
}

HfModel open(const char* config, StoredTensors tensors, const std::string& prefix = "") {
  const Json json = support::parse_json(config, "config.json");
  return HfModel("/models/tiny", *find_family(json.str("model_type")), json, std::move(tensors), prefix);
}

struct Logical {
  explicit Logical(std::vector<int64_t> shape_in)
      : shape(std::move(shape_in)),
        values(static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()))) {
    view.data = values.data();
    view.ndim = static_cast<int32_t>(shape.size());
    view.dtype = kF32;
    view.shape = shape.data();
    view.strides = shape.data();
  }
  std::vector<int64_t> shape;
  std::vector<float> values;
  gestalt_view view{};
};

std::vector<std::string> lines(const HfModel& model, uint64_t kind) {
  struct Wanted {
    uint64_t kind;
    std::vector<std::string> lines;
  } wanted{kind, {}};
  const gestalt_byte_sink sink{sizeof(gestalt_byte_sink), &wanted, [](void* self, uint64_t k, gestalt_str line) noexcept {
                                 auto& w = *static_cast<Wanted*>(self);
                                 if (k == w.kind) w.lines.emplace_back(view_of(line));
                               }};
  model.report(KeySink(&sink));
  return wanted.lines;
}

}  // namespace

TEST_CASE("a matrix stored [in, out] is transposed, with and without the prefix of the library") {
  for (const char* prefix : {"", "transformer."}) {
    support::TestFolder folder;
    HfModel model = open(kGpt2, StoredTensors::of_file(write_file(
                                    folder, "m.safetensors", {{std::string(prefix) + "h.0.mlp.c_fc.weight", {2, 3}, 0}})));
    Logical out({3, 2});
    REQUIRE(model.read("model.layers.0.mlp.up.weight", out.view));
    CHECK(out.values == std::vector<float>{0, 3, 1, 4, 2, 5});
    CHECK(lines(model, GESTALT_KEY_RESHAPED).size() == 1);
  }
}

TEST_CASE("queries, keys and values are joined") {
  support::TestFolder folder;
  const std::string at = "model.layers.3.self_attn.";
  HfModel model = open(R"({"model_type":"llama"})",
                       StoredTensors::of_file(write_file(folder, "m.safetensors",
                                                         {{at + "q_proj.weight", {2, 1}, 0},
                                                          {at + "k_proj.weight", {1, 1}, 10},
                                                          {at + "v_proj.weight", {1, 1}, 20}})));
  Logical out({4, 1});
  REQUIRE(model.read("model.layers.3.attention.qkv.weight", out.view));
  CHECK(out.values == std::vector<float>{0, 1, 10, 20});
}

TEST_CASE("a part that is missing or of another shape is named with its file") {
  support::TestFolder folder;
  const std::string at = "model.layers.0.mlp.";
  HfModel model = open(R"({"model_type":"llama"})",
                       StoredTensors::of_file(write_file(folder, "m.safetensors", {{at + "gate_proj.weight", {2, 2}, 0},
                                                                                   {at + "down_proj.weight", {2, 2}, 0}})));
  Logical out({4, 2});
  REQUIRE_THROWS_WITH(model.read("model.layers.0.mlp.gate_up.weight", out.view),
                      Catch::Contains("m.safetensors") && Catch::Contains("up_proj.weight' is missing"));
  REQUIRE_THROWS_WITH(model.read("model.layers.0.mlp.down.weight", out.view),
                      Catch::Contains("down_proj.weight") && Catch::Contains("[2, 2]") && Catch::Contains("[4, 2]"));
  CHECK_FALSE(model.read("model.final_norm.weight", out.view));
}

TEST_CASE("tensors that nobody asks for are reported, computed tables apart") {
  support::TestFolder folder;
  HfModel model = open(R"({"model_type":"llama"})",
                       StoredTensors::of_file(write_file(folder, "m.safetensors",
                                                         {{"score.weight", {1}, 0},
                                                          {"model.layers.0.self_attn.rotary_emb.inv_freq", {1}, 0}})));
  CHECK(lines(model, GESTALT_KEY_UNEXPECTED) == std::vector<std::string>{"score.weight"});
  CHECK(lines(model, GESTALT_KEY_IGNORED).size() == 1);
}

TEST_CASE("a prefix picks one of several sets of tensors in a file") {
  support::TestFolder folder;
  HfModel model = open(R"({"model_type":"llama"})",
                       StoredTensors::of_file(write_file(folder, "io.safetensors",
                                                         {{"grad.model.norm.weight", {2}, 5}, {"logits", {2}, 0}})),
                       "grad.");
  Logical out({2});
  REQUIRE(model.read("model.final_norm.weight", out.view));
  CHECK(out.values == std::vector<float>{5, 6});
  CHECK(lines(model, GESTALT_KEY_UNEXPECTED).empty());
}

TEST_CASE("shards are found by their index, and a missing one is named") {
  support::TestFolder folder;
  write_file(folder, "a.safetensors", {{"model.norm.weight", {1}, 1}});
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"model.norm.weight":"a.safetensors","lm_head.weight":"b.safetensors"}})");
  REQUIRE_THROWS_WITH(StoredTensors::of_folder(folder.file("")), Catch::Contains("b.safetensors"));
  write_file(folder, "b.safetensors", {{"lm_head.weight", {1}, 2}});
  CHECK(StoredTensors::of_folder(folder.file("")).names().size() == 2);
}

TEST_CASE("an index may not lead out of the folder") {
  support::TestFolder folder;
  folder.write("model.safetensors.index.json", R"({"weight_map":{"x":"../a.safetensors"}})");
  REQUIRE_THROWS_WITH(StoredTensors::of_folder(folder.file("")), Catch::Contains("../a.safetensors"));
}

// Models that are written, as the reader gives them back.
#include "plugins/format_hf/export.h"

#include <cstring>
#include <filesystem>
#include <list>
#include <random>

#include "gestalt/dtype.hpp"
#include "plugins/format_hf/hf_model.h"
#include "support/convert.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

using namespace gestalt;
using namespace gestalt::format_hf;
using support::Json;

namespace {

// One layer of each family with sizes that tell all dimensions apart.
struct Model {
  const char* family;
  const char* config;
};
const Model kModels[] = {
    {"gpt2", R"({"model_type":"gpt2","n_embd":4,"n_layer":1,"n_head":2,"n_positions":6,"vocab_size":5})"},
    {"llama",
     R"({"model_type":"llama","hidden_size":4,"intermediate_size":6,"num_hidden_layers":1,"num_attention_heads":2,
                  "num_key_value_heads":1,"vocab_size":5,"max_position_embeddings":8,"rope_scaling":{"rope_type":"llama3",
                  "factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":4}})"},
    {"mistral", R"({"model_type":"mistral","hidden_size":4,"intermediate_size":6,"num_hidden_layers":1,
                    "num_attention_heads":2,"num_key_value_heads":1,"vocab_size":5,"sliding_window":3})"},
    {"qwen2",
     R"({"model_type":"qwen2","hidden_size":4,"intermediate_size":6,"num_hidden_layers":2,"num_attention_heads":2,
                  "num_key_value_heads":1,"vocab_size":5,"use_sliding_window":true,"sliding_window":3,"max_window_layers":1})"},
    {"qwen3",
     R"({"model_type":"qwen3","hidden_size":4,"intermediate_size":6,"num_hidden_layers":1,"num_attention_heads":2,
                  "num_key_value_heads":1,"head_dim":6,"vocab_size":5,"tie_word_embeddings":true})"},
    {"olmo2",
     R"({"model_type":"olmo2","hidden_size":4,"intermediate_size":6,"num_hidden_layers":1,"num_attention_heads":2,
                  "num_key_value_heads":1,"vocab_size":5})"},
    {"gemma2", R"({"model_type":"gemma2","hidden_size":4,"intermediate_size":6,"num_hidden_layers":3,
                   "num_attention_heads":2,"num_key_value_heads":1,"head_dim":2,"vocab_size":5,"sliding_window":3,
                   "attn_logit_softcapping":50.0,"final_logit_softcapping":30.0,"query_pre_attn_scalar":2})"},
    {"phi3",
     R"({"model_type":"phi3","hidden_size":8,"intermediate_size":6,"num_hidden_layers":1,"num_attention_heads":2,
                 "num_key_value_heads":1,"vocab_size":5,"max_position_embeddings":64,"original_max_position_embeddings":16,
                 "rope_scaling":{"rope_type":"longrope","short_factor":[1.0,1.5],"long_factor":[2.0,3.5]}})"}};

// A tensor of the host: its logical name and values.
struct Logical {
  std::string name;
  std::vector<int64_t> shape, parts;
  std::vector<float> values;
};

std::vector<Logical> tensors_of(const ModelKeys& k) {
  std::vector<Logical> out;
  std::mt19937 random(7);
  auto add = [&](const std::string& name, std::vector<int64_t> shape, std::vector<int64_t> parts = {}) {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    Logical t{"model." + name, std::move(shape), std::move(parts), std::vector<float>(static_cast<size_t>(n))};
    for (float& v : t.values) v = static_cast<float>(random() % 10000) / 64.0f;
    out.push_back(std::move(t));
  };
  const int64_t h = k.i64("hidden"), f = k.i64("ffn"), d = k.i64("head_size"), q = k.i64("heads") * d,
                g = k.i64("kv_heads") * d;
  const bool layer = k.str("norm") == "layer", gated = k.str("activation").find("glu") != std::string::npos;
  auto norm = [&](const std::string& name) {
    add(name + ".weight", {h});
    if (layer) add(name + ".bias", {h});
  };
  add("embedding.weight", {k.i64("vocab"), h});
  if (k.str("positions") == "learned") add("embedding.position_weight", {k.i64("seq_len"), h});
  for (int64_t i = 0; i < k.i64("layers"); ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    for (const char* part : {"attention", "mlp"}) {
      if (k.str("norm_placement") != "after") norm(at + part + "_norm");
      if (k.str("norm_placement") != "before") norm(at + part + "_post_norm");
    }
    add(at + "attention.qkv.weight", {q + 2 * g, h}, {q, g, g});
    if (k.boolean("qkv_bias")) add(at + "attention.qkv.bias", {q + 2 * g}, {q, g, g});
    if (k.str("qk_norm") != "none") {
      const bool head = k.str("qk_norm") == "head";
      add(at + "attention.q_norm.weight", {head ? d : q});
      add(at + "attention.k_norm.weight", {head ? d : g});
    }
    add(at + "attention.out.weight", {h, q});
    if (k.boolean("attention_bias")) add(at + "attention.out.bias", {h});
    add(at + (gated ? "mlp.gate_up.weight" : "mlp.up.weight"), {gated ? 2 * f : f, h},
        gated ? std::vector<int64_t>{f, f} : std::vector<int64_t>{});
    if (k.boolean("mlp_bias")) add(at + "mlp.up.bias", {f});
    add(at + "mlp.down.weight", {h, f});
    if (k.boolean("mlp_bias")) add(at + "mlp.down.bias", {h});
  }
  norm("final_norm");
  if (!k.boolean("tied")) add("head.weight", {k.i64("vocab"), h});
  return out;
}

// What the host gives save: keys as attributes, tensors by name.
class FakeHost {
 public:
  FakeHost(const ModelKeys& keys, const std::vector<Logical>& tensors) : tensors_(tensors) {
    for (const auto& [key, value] : keys.all()) add(key, value);
    for (const Logical& t : tensors_) {
      gestalt_shard s{};
      s.struct_size = sizeof s;
      s.name = str_of(t.name);
      s.global = t.shape.data();
      s.parts = t.parts.data();
      s.num_parts = t.parts.size();
      s.view.dtype = kF32;
      s.view.ndim = static_cast<int32_t>(t.shape.size());
      s.view.shape = const_cast<int64_t*>(t.shape.data());
      shards_.push_back(s);
    }
    source_ = {sizeof source_,
               this,
               attrs_.data(),
               attrs_.size(),
               shards_.data(),
               shards_.size(),
               [](void* self, gestalt_str name, void* data, uint64_t bytes) noexcept -> gestalt_status* {
                 auto& host = *static_cast<FakeHost*>(self);
                 for (const Logical& t : host.tensors_)
                   if (t.name == view_of(name)) std::memcpy(data, t.values.data(), bytes);
                 ++host.reads;
                 return nullptr;
               }};
  }
  ModelSource source() const { return ModelSource(&source_, nullptr); }
  int64_t reads = 0;

 private:
  void add(const std::string& key, const ModelKeys::Value& value) {
    gestalt_attr a{};
    a.name = str_of(key);
    auto list = [&](uint64_t kind, const auto& v) {
      a.kind = kind;
      a.value.list = {v.data(), v.size()};
    };
    if (const auto* i = std::get_if<int64_t>(&value)) a.kind = GESTALT_ATTR_I64, a.value.i = *i;
    if (const auto* f = std::get_if<double>(&value)) a.kind = GESTALT_ATTR_F64, a.value.f = *f;
    if (const auto* b = std::get_if<bool>(&value)) a.kind = GESTALT_ATTR_BOOL, a.value.i = *b;
    if (const auto* s = std::get_if<std::string>(&value)) a.kind = GESTALT_ATTR_STR, a.value.s = str_of(*s);
    if (const auto* v = std::get_if<std::vector<int64_t>>(&value)) list(GESTALT_ATTR_I64_LIST, *v);
    if (const auto* v = std::get_if<std::vector<double>>(&value)) list(GESTALT_ATTR_F64_LIST, *v);
    if (const auto* v = std::get_if<std::vector<std::string>>(&value)) {
      auto& strs = strs_.emplace_back();
      for (const std::string& s : *v) strs.push_back(str_of(s));
      list(GESTALT_ATTR_STR_LIST, strs);
    }
    attrs_.push_back(a);
  }

  const std::vector<Logical>& tensors_;
  std::vector<gestalt_attr> attrs_;
  std::vector<gestalt_shard> shards_;
  std::list<std::vector<gestalt_str>> strs_;
  gestalt_model_source source_{};
};

ModelKeys keys_of(const char* config) {
  const Json json = support::parse_json(config, "config.json");
  return translate(*find_family(json.str("model_type")), json).keys;
}

std::string folder_of(const support::TestFolder& folder, const std::string& name) {
  std::filesystem::create_directories(folder.file(name));
  return folder.file(name);
}

void check_reads_back(const std::string& folder, const std::vector<Logical>& tensors) {
  const Json config = support::read_json_file(folder + "/config.json");
  HfModel model(folder, *find_family(config.str("model_type")), config, StoredTensors::of_folder(folder), "");
  for (const Logical& t : tensors) {
    std::vector<float> values(t.values.size());
    std::vector<int64_t> shape = t.shape;
    gestalt_view view{};
    view.data = values.data();
    view.ndim = static_cast<int32_t>(shape.size());
    view.dtype = kF32;
    view.shape = shape.data();
    view.strides = shape.data();
    INFO(folder << ": " << t.name);
    REQUIRE(model.read(t.name, view));
    CHECK(std::memcmp(values.data(), t.values.data(), 4 * values.size()) == 0);
  }
  std::vector<std::string> wrong;
  const gestalt_byte_sink sink{
      sizeof(gestalt_byte_sink), &wrong, [](void* self, uint64_t kind, gestalt_str line) noexcept {
        if (kind == GESTALT_KEY_UNEXPECTED || kind == GESTALT_KEY_MISSING || kind == GESTALT_KEY_SETTING)
          static_cast<std::vector<std::string>*>(self)->emplace_back(view_of(line));
      }};
  model.report(KeySink(&sink));
  CHECK(wrong.empty());
}

}  // namespace

TEST_CASE("a model of each family is written and read back byte by byte, as its family and with the same keys") {
  support::TestFolder folder;
  for (const Model& m : kModels) {
    INFO(m.family);
    const ModelKeys keys = keys_of(m.config);
    const std::vector<Logical> tensors = tensors_of(complete(keys));
    FakeHost host(keys, tensors);
    const std::string to = folder_of(folder, m.family);
    save_model(to, host.source(), m.family, uint64_t{1} << 30);
    const Json written = support::read_json_file(to + "/config.json");
    CHECK(written.str("model_type") == m.family);
    CHECK(differences(complete(keys), complete(translate(*find_family(m.family), written).keys)).empty());
    check_reads_back(to, tensors);
  }
}

TEST_CASE("above a size the tensors go into shards with an index") {
  support::TestFolder folder;
  const ModelKeys keys = keys_of(kModels[1].config);
  const std::vector<Logical> tensors = tensors_of(complete(keys));
  FakeHost host(keys, tensors);
  const std::string to = folder_of(folder, "shards");
  save_model(to, host.source(), "llama", 200);
  CHECK_FALSE(std::filesystem::exists(to + "/model.safetensors"));
  CHECK(support::read_json_file(to + "/model.safetensors.index.json").at("weight_map").size() == 12);
  check_reads_back(to, tensors);
}

TEST_CASE("a family that cannot express the model is refused with the settings, and another is found") {
  support::TestFolder folder;
  const ModelKeys keys = keys_of(kModels[5].config);
  const std::vector<Logical> tensors = tensors_of(complete(keys));
  FakeHost host(keys, tensors);
  REQUIRE_THROWS_WITH(save_model(folder_of(folder, "a"), host.source(), "llama", 1 << 30),
                      Catch::Contains("llama") && Catch::Contains("norm_placement = \"after\", expected \"before\""));
  REQUIRE_THROWS_WITH(save_model(folder_of(folder, "a"), host.source(), "lama", 1 << 30), Catch::Contains("'lama'"));
  const std::string to = folder_of(folder, "b");
  save_model(to, host.source(), "", 1 << 30);
  CHECK(support::read_json_file(to + "/config.json").str("model_type") == "olmo2");
}

TEST_CASE("layers of one branch are no model of the library") {
  support::TestFolder folder;
  ModelKeys keys = keys_of(kModels[1].config);
  keys.set("pattern", ModelKeys::Value(std::vector<std::string>{"*-"}));
  const std::vector<Logical> none;
  FakeHost host(keys, none);
  REQUIRE_THROWS_WITH(save_model(folder_of(folder, "a"), host.source(), "", 1 << 30), Catch::Contains("pattern"));
}

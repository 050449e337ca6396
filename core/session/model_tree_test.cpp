#include "core/session/model_tree.h"

#include "core/base/host.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using Catch::Contains;
using gestalt::test::thrown_by;

namespace {

// Modules of a plugin in this process: "test.model" with two layers of slot "mlp" and a tied head, "test.mlp", "test.wide".
struct Module {
  int64_t hidden = 0;
  bool wide = false, model = false;
};
int g_alive = 0;
std::string g_fault;  // what test.model does wrong

gestalt_status* error(gestalt_status* s) { return s; }

gestalt_status* declare_param(gestalt_declare* d, const char* name, int64_t rows, int64_t columns, bool split, uint64_t* id) {
  const int64_t shape[] = {rows, columns}, parts[] = {rows / 2, rows / 2};
  const gestalt_str names[] = {str_of("gate"), str_of("up")};
  gestalt_param_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.name = str_of(name);
  desc.shape = shape;
  desc.ndim = columns ? 2 : 1;
  if (split) {
    desc.parts = parts;
    desc.part_names = names;
    desc.num_parts = 2;
  }
  desc.init = GESTALT_INIT_ONES;
  desc.shard_dim = 0;
  desc.shard_axis = str_of("tp");
  return d->api->param(d, &desc, id);
}

gestalt_status* declare(void* self, gestalt_declare* d) noexcept {
  const Module& m = *static_cast<Module*>(self);
  uint64_t id = 0;
  if (!m.model) return declare_param(d, "up", m.wide ? 8 * m.hidden : 4 * m.hidden, m.hidden, true, &id);
  if (auto s = declare_param(d, "embedding", 16, m.hidden, false, &id)) return s;
  gestalt_attr config[2] = {};
  config[0] = {str_of("hidden"), GESTALT_ATTR_I64, {}};
  config[0].value.i = m.hidden;
  config[1] = {str_of("of_no_interest"), GESTALT_ATTR_I64, {}};
  for (const char* name : {"layers.0", "layers.1"})
    if (auto s = d->api->child(d, str_of("mlp"), str_of(name), str_of("test.mlp"), config, 2, &id)) return s;
  if (auto s = d->api->boundary(d, 1)) return s;
  if (auto s = d->api->tie(d, str_of(g_fault == "tie" ? "embeding" : "embedding"), &id)) return s;
  if (g_fault == "twice") return declare_param(d, "embedding", 16, m.hidden, false, &id);
  if (g_fault == "child") return d->api->child(d, str_of("mlp"), str_of("layers.0"), str_of("test.mlp"), config, 2, &id);
  if (g_fault == "boundary") return d->api->boundary(d, 5);
  const int64_t shape[] = {2, 3};
  gestalt_state_desc state{};
  state.struct_size = sizeof(state);
  state.name = str_of("cache");
  state.shape = shape;
  state.ndim = 2;
  return d->api->state(d, &state, &id);
}

gestalt_status* emit(void*, gestalt_build*, gestalt_tensor* const*, uint64_t, gestalt_tensor**, uint64_t* n) noexcept {
  *n = 0;
  return nullptr;
}

const gestalt_module_1 kTable = {sizeof(gestalt_module_1), declare, emit};

template <bool model, bool wide>
gestalt_status* create(const gestalt_host*, const gestalt_attr* config, uint64_t num, void** self) noexcept {
  auto* m = new Module{0, wide, model};
  for (uint64_t i = 0; i < num; ++i)
    if (view_of(config[i].name) == "hidden") m->hidden = config[i].value.i;
  ++g_alive;
  *self = m;
  return nullptr;
}
void destroy(void* self) noexcept {
  --g_alive;
  delete static_cast<Module*>(self);
}

struct Fixture {
  gestalt_config_key key{str_of("hidden"), str_of("i64"), str_of(""), str_of("1"), str_of(""), str_of(""),
                         str_of(""),       str_of("width"), GESTALT_KEY_REQUIRED};
  gestalt_component model{sizeof(gestalt_component), str_of("module/1"), str_of("test.model"), &key, 1,
                          create<true, false>,       destroy,            &kTable};
  gestalt_component mlp{sizeof(gestalt_component), str_of("module/1"), str_of("test.mlp"), &key, 1,
                        create<false, false>,      destroy,            &kTable};
  gestalt_component wide{sizeof(gestalt_component), str_of("module/1"), str_of("test.wide"), &key, 1,
                         create<false, true>,       destroy,            &kTable};
  const gestalt_component* components[3] = {&model, &mlp, &wide};
  gestalt_plugin plugin{sizeof(gestalt_plugin), GESTALT_ABI_MAJOR, 0, 0, 0, str_of("gestalt.test"), str_of("1.0"), str_of(""),
                        nullptr, 0, nullptr, 0, components, 3, nullptr};
  Registry registry;
  Mesh mesh;
  Config config;
  std::unique_ptr<ModelTree> tree;

  explicit Fixture(const std::string& slots = "", int64_t tp = 1, int64_t rank = 0)
      : config(Config::from_text("[mesh]\ntp = " + std::to_string(tp) + "\n[model]\ntype = \"test.model\"\nhidden = 4\n" + slots,
                                 "x.toml")) {
    registry.add_static(&plugin);
    mesh = Mesh(config, rank, tp);
  }
  // The model's own table as the run hands it over: without type and slots, which are the core's keys.
  ModelTree& make() {
    tree = std::make_unique<ModelTree>(registry, config, mesh, GESTALT_F32);
    return *tree;
  }
};

}  // namespace

TEST_CASE("a model is declared once: paths, shapes, ties, boundaries and states") {
  {
    Fixture f;
    ModelTree& tree = f.make();
    std::string paths;
    for (const Parameter* p : tree.parameters()) paths += p->path + " ";
    CHECK(paths == "model.embedding model.layers.0.up model.layers.1.up ");
    CHECK(tree.num_parameters() == 16 * 4 + 2 * 16 * 4);
    const Parameter* up = tree.find("model.layers.1.up");
    REQUIRE(up);
    CHECK(up->parts == std::vector<int64_t>{8, 8});
    CHECK(up->part_names == std::vector<std::string>{"gate", "up"});
    CHECK(up->type == TensorType(GESTALT_F32, {16, 4}));
    CHECK(up->group == "decay");
    CHECK(tree.find("model.layers.2.up") == nullptr);
    REQUIRE(tree.root().params.size() == 2);
    CHECK(tree.root().params[0] == tree.root().params[1]);
    CHECK(tree.root().boundaries == std::vector<uint64_t>{1});
    REQUIRE(tree.states().size() == 1);
    CHECK(tree.states()[0].path == "model.cache");
    CHECK_THAT(tree.text(), Contains("model.layers.0") && Contains("test.mlp"));
    CHECK(g_alive == 3);
  }
  CHECK(g_alive == 0);
}

TEST_CASE("a rank holds its pieces; the logical tensor stays whole") {
  Fixture f("", 4, 3);
  ModelTree& tree = f.make();
  const Parameter* up = tree.find("model.layers.0.up");
  CHECK(up->type == TensorType(GESTALT_F32, {4, 4}));
  CHECK(up->global_shape == std::vector<int64_t>{16, 4});
  CHECK(tree.num_parameters() == 16 * 4 + 2 * 16 * 4);
}

TEST_CASE("slots are filled by name, and a path pattern beats the name") {
  Fixture f("[model.slots]\nmlp = \"test.mlp\"\n\"layers.[1-3]\" = \"test.wide\"\n");
  ModelTree& tree = f.make();
  CHECK(tree.find("model.layers.0.up")->type.dim(0) == 16);
  CHECK(tree.find("model.layers.1.up")->type.dim(0) == 32);
}

TEST_CASE("a slot's table overrides keys of what the parent offers") {
  Fixture f("[model.slots]\nmlp = { type = \"test.wide\", hidden = 2 }\n");
  CHECK(f.make().find("model.layers.0.up")->type == TensorType(GESTALT_F32, {16, 2}));
}

TEST_CASE("a slot below another beats the name, and a path pattern beats both") {
  Fixture f("[model.slots]\nmlp = \"test.mlp\"\n\"model/mlp\" = \"test.wide\"\n\"layers.1\" = \"test.mlp\"\n");
  ModelTree& tree = f.make();
  CHECK(tree.root().children[0]->component == "test.wide");
  CHECK(tree.root().children[1]->component == "test.mlp");
}

TEST_CASE("slots that fit nothing, twice or no component are refused with line and name") {
  auto message = [](const std::string& slots) {
    Fixture f("[model.slots]\n" + slots);
    return thrown_by([&] { f.make(); }).message();
  };
  CHECK_THAT(message("mpl = \"test.mlp\"\n"),
             Contains("x.toml:7") && Contains("'mpl' has no effect") && Contains("nearest: 'mlp'"));
  CHECK_THAT(message("\"layers.9\" = \"test.mlp\"\n"), Contains("'layers.9' has no effect"));
  CHECK_THAT(message("\"layers.0\" = \"test.mlp\"\n\"layers.*\" = \"test.wide\"\n"), Contains("claimed twice"));
  CHECK_THAT(message("mlp = \"test.mpl\"\n"), Contains("did you mean 'test.mlp'"));
  CHECK_THAT(message("mlp = 3\n"), Contains("x.toml:7") && Contains("expected a component name or a table"));
  CHECK_THAT(message("mlp = { type = \"test.wide\", hiden = 2 }\n"), Contains("hiden"));
  CHECK(g_alive == 0);
}

TEST_CASE("what a module declares wrongly is refused with its path") {
  auto message = [](const std::string& fault) {
    g_fault = fault;
    Fixture f;
    const std::string m = thrown_by([&] { f.make(); }).message();
    g_fault.clear();
    return m;
  };
  CHECK_THAT(message("tie"), Contains("model.embeding") && Contains("nearest: 'model.embedding'"));
  CHECK_THAT(message("twice"), Contains("[model.embedding] declared twice"));
  CHECK_THAT(message("child"), Contains("[model.layers.0] is declared twice"));
  CHECK_THAT(message("boundary"), Contains("child 5"));
  CHECK(g_alive == 0);
}

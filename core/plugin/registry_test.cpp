#include "core/plugin/registry.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/base/host.h"
#include "gestalt/abi/tracker.h"
#include "tests/catch_compat.hpp"

using namespace gestalt::core;
namespace fs = std::filesystem;

namespace {

gestalt_status* infer(const gestalt_host*, gestalt_plan*) noexcept { return nullptr; }
gestalt_status* run(void*, const gestalt_call*) noexcept { return nullptr; }
void destroy(void*) noexcept {}

int g_alive = 0;
gestalt_status* create(const gestalt_host* host, const gestalt_attr*, uint64_t num, void** self) noexcept {
  if (num > 0) return host->status_new(host->self, GESTALT_DATA_ERROR, str_of("no keys, please"));
  ++g_alive;
  *self = &g_alive;
  return nullptr;
}
void destroy_component(void*) noexcept { --g_alive; }

std::string g_order;

// One plugin with one op, kernel and component, all by name.
struct Made {
  std::string id, schema, op, backend, name;
  gestalt_op the_op;
  gestalt_kernel the_kernel;
  gestalt_tracker_1 table{sizeof(gestalt_tracker_1), nullptr, nullptr, nullptr};
  gestalt_component the_component;
  const gestalt_op* ops[1] = {&the_op};
  const gestalt_kernel* kernels[1] = {&the_kernel};
  const gestalt_component* components[1] = {&the_component};
  gestalt_plugin plugin;

  Made(std::string id_, std::string op_, std::string backend_, std::string name_, void (*shutdown)() noexcept = nullptr)
      : id(std::move(id_)),
        schema(op_ + "(x) -> (y)"),
        op(std::move(op_)),
        backend(std::move(backend_)),
        name(std::move(name_)) {
    the_op = {sizeof(gestalt_op), str_of(schema), 0, infer, nullptr, nullptr, nullptr};
    the_kernel = {sizeof(gestalt_kernel), str_of(op), str_of("cpu"), str_of(backend), 0, infer, run, destroy};
    the_component = {
        sizeof(gestalt_component), str_of("tracker/1"), str_of(name), nullptr, 0, create, destroy_component, &table};
    plugin = {sizeof(gestalt_plugin),
              GESTALT_ABI_MAJOR,
              0,
              0,
              0,
              str_of(id),
              str_of("1.0"),
              str_of(""),
              ops,
              1,
              kernels,
              1,
              components,
              1,
              shutdown};
  }
};

std::string refusal(Registry& registry, const Made& made) {
  try {
    registry.add_static(&made.plugin);
  } catch (const Error& e) {
    CHECK(e.code() == GESTALT_CONFIG_ERROR);
    return e.message();
  }
  return "accepted";
}

void has(const std::string& message, const std::string& part) {
  INFO(message);
  CHECK(message.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("what two plugins both provide is refused with both names") {
  Registry registry;
  const Made first("acme.one", "acme.a", "acme.cpu", "acme.x");
  registry.add_static(&first.plugin);
  const Made op("acme.two", "acme.a", "acme.cpu2", "acme.y");
  has(refusal(registry, op), "plugin 'acme.two': step 'register'");
  has(refusal(registry, op), "op 'acme.a' is defined by plugin 'acme.one' already");
  Made kernel("acme.two", "acme.b", "acme.cpu", "acme.y");
  kernel.the_kernel.op = str_of("acme.a");
  has(refusal(registry, kernel),
      "kernel of 'acme.a' on 'cpu' by backend 'acme.cpu' is provided by plugin 'acme.one' already");
  const Made component("acme.two", "acme.b", "acme.cpu", "acme.x");
  has(refusal(registry, component), "tracker/1 'acme.x' is provided by plugin 'acme.one' already");
  const Made id("acme.one", "acme.c", "acme.cpu", "acme.z");
  has(refusal(registry, id), "loaded already");
  CHECK(registry.plugins().size() == 1);
  CHECK(registry.kernels().size() == 1);
}

TEST_CASE("a second backend of the same op is welcome, in load order") {
  Registry registry;
  const Made first("acme.one", "acme.a", "acme.cpu", "acme.x");
  Made second("rival.two", "rival.a", "rival.cpu", "rival.x");
  second.the_kernel.op = str_of("acme.a");
  registry.add_static(&first.plugin);
  registry.add_static(&second.plugin);
  const std::vector<KernelRef> found = registry.find_kernels("acme.a", "cpu");
  REQUIRE(found.size() == 2);
  CHECK(found[0].plugin == "acme.one");
  CHECK(found[1].plugin == "rival.two");
}

TEST_CASE("only the owner of a namespace defines its ops") {
  Registry registry;
  has(refusal(registry, Made("acme.one", "rival.a", "acme.cpu", "acme.x")), "only plugins 'rival.*'");
  has(refusal(registry, Made("acme.one", "core.a", "acme.cpu", "acme.x")), "only plugins 'gestalt.*'");
  has(refusal(registry, Made("acme.one", "gestalt.a", "acme.cpu", "acme.x")), "only plugins 'gestalt.*'");
  const Made ours("gestalt.one", "core.a", "gestalt.cpu", "gestalt.x");
  CHECK(refusal(registry, ours) == "accepted");
}

TEST_CASE("a component that is not there is an error with the nearest name") {
  Registry registry;
  const Made made("acme.one", "acme.a", "acme.cpu", "acme.jsonl");
  registry.add_static(&made.plugin);
  CHECK(!registry.find_component("tracker/1", "acme.jsonk"));
  try {
    registry.component("tracker/1", "acme.jsonk");
    FAIL("found");
  } catch (const Error& e) {
    has(e.message(), "did you mean 'acme.jsonl'?");
  }
}

TEST_CASE("an instance is created and destroyed once") {
  Registry registry;
  const Made made("acme.one", "acme.a", "acme.cpu", "acme.x");
  registry.add_static(&made.plugin);
  {
    Instance a(registry.component("tracker/1", "acme.x"), nullptr, 0);
    CHECK(g_alive == 1);
    Instance b = std::move(a);
    CHECK(!a);
    CHECK(b.self() == &g_alive);
    CHECK(b.table<gestalt_tracker_1>() == &made.table);
    b = Instance();
    CHECK(g_alive == 0);
  }
  const gestalt_attr attr{str_of("x"), GESTALT_ATTR_I64, {}};
  try {
    Instance refused(registry.component("tracker/1", "acme.x"), &attr, 1);
    FAIL("created");
  } catch (const Error& e) {
    CHECK(e.code() == GESTALT_DATA_ERROR);
    has(e.message(), "[tracker/1 'acme.x' of plugin 'acme.one'] no keys, please");
  }
  CHECK(g_alive == 0);
}

TEST_CASE("plugins shut down once, in reverse order") {
  Registry registry;
  const Made first("acme.one", "acme.a", "acme.cpu", "acme.x", []() noexcept { g_order += "1"; });
  const Made second("acme.two", "acme.b", "acme.cpu", "acme.y", []() noexcept { g_order += "2"; });
  registry.add_static(&first.plugin);
  registry.add_static(&second.plugin);
  registry.shutdown();
  registry.shutdown();
  CHECK(g_order == "21");
}

TEST_CASE("the search path is the executable's, the environment's and the configured one") {
  ::setenv("GESTALT_PLUGIN_PATH", "/from/environment::/second", 1);
  const std::vector<fs::path> named = plugin_search({"/configured"}, Trust::kNamed);
  REQUIRE(named.size() == 4);
  CHECK(named[0].native().ends_with("lib/gestalt/plugins"));
  CHECK(named[1] == "/from/environment");
  CHECK(named[3] == "/configured");
  CHECK(plugin_search({"/configured"}, Trust::kLocked).size() == 2);
  ::setenv("GESTALT_PLUGIN_PATH", "plugins", 1);
  CHECK_THROWS_AS(plugin_search({}, Trust::kNamed), Error);
  ::unsetenv("GESTALT_PLUGIN_PATH");
  Registry registry;
  CHECK_THROWS_AS(registry.discover({"plugins"}), Error);
}

TEST_CASE("a lock file is written and read back the same") {
  Lock lock;
  lock.plugins = {{"acme.one", "1.0", std::string(64, 'a')}, {"acme.two", "2.0", std::string(64, 'b')}};
  const Lock again = parse_lock(to_toml(lock), "plugins.lock.toml");
  REQUIRE(again.plugins.size() == 2);
  CHECK(again.find("acme.two")->version == "2.0");
  CHECK(again.find("acme.three") == nullptr);
  CHECK_THROWS_AS(parse_lock("lock = 2\n", "x"), Error);
  CHECK_THROWS_AS(parse_lock("lock = 1\n[[plugin]]\nid = \"a.b\"\n", "x"), Error);
}

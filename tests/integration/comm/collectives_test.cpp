// Collective ops of programs, among ranks that are threads of this process.
#include <functional>
#include <thread>

#include "core/base/host.h"
#include "core/config/attr_list.h"
#include "core/program/executable.h"
#include "core/program/passes.h"
#include "core/session/compiled.h"
#include "core/session/run.h"
#include "tests/catch_compat.hpp"

namespace gestalt::core {

namespace {

const Registry& plugins() {
  static Registry* registry = [] {
    publish_interfaces();
    auto* r = new Registry;
    r->discover({GESTALT_BUILD_DIR "/lib/gestalt/plugins"});
    r->load({"gestalt.comm_threads", "gestalt.device_cpu", "gestalt.device_sim", "gestalt.kernels_cpu"});
    return r;
  }();
  return *registry;
}

Instance comm_of(const std::string& room, int64_t rank, int64_t size) {
  ConfigNode config = ConfigNode::table();
  config.insert("rank", ConfigNode::integer(rank));
  config.insert("room", ConfigNode::string(room));
  config.insert("size", ConfigNode::integer(size));
  const AttrList attrs = to_attrs(config);
  return Instance(plugins().component("comm/1", "gestalt.threads"), attrs.data(), attrs.size());
}

// One rank of a mesh on a device of its own.
struct Rank {
  int64_t rank;
  Instance comm;
  Mesh mesh;
  std::unique_ptr<Groups> groups;
  std::unique_ptr<Device> device;
  std::vector<Stream> streams;
  KernelPolicy policy;
  OpRegistry ops;

  Rank(const std::string& room, const std::string& mesh_text, int64_t r, int64_t size, const char* device_name)
      : rank(r), comm(comm_of(room, r, size)), mesh(Config::from_text("[mesh]\n" + mesh_text, "test"), r, size) {
    const ComponentRef component = plugins().component("device/1", device_name);
    const AttrList none;
    auto instance = std::make_shared<Instance>(component, none.data(), none.size());
    device = std::make_unique<Device>(component.host, instance->table<gestalt_device_1>(), instance->self(), instance);
    streams.push_back(device->open_stream());
  }

  // Runs what `record` makes of an f32 matrix; the values of its result.
  std::vector<float> run(std::vector<float> x, int64_t rows, const std::function<Value*(Builder&, Value*)>& record) {
    if (!groups) {
      groups = std::make_unique<Groups>(comm, mesh);
      policy.groups = groups.get();
    }
    const auto columns = static_cast<int64_t>(x.size()) / rows;
    Compiled compiled(
        ops, plugins(), *device, policy, 1, [](Program&) {},
        [&](Program& p) {
          Builder b(p, {}, GESTALT_PHASE_EVAL);
          p.outputs["y"] = record(b, p.input("flat:x", TensorType(GESTALT_F32, {rows, columns})));
        });
    Buffer memory = device->alloc(x.size() * sizeof(float), Category::kOther);
    device->copy_to_device(memory.data(), x.data(), x.size() * sizeof(float));
    compiled.executable().bind_input("flat:x", memory.data());
    ArenaSet arenas(*device);
    compiled.attach(arenas);
    compiled.run(*device, streams, false, false);
    device->sync();
    const Tensor& y = compiled.executable().output("y");
    std::vector<float> out(num_bytes(y.view) / sizeof(float));
    device->copy_to_host(out.data(), y.view.data, out.size() * sizeof(float));
    return out;
  }
};

using Body = std::function<std::vector<float>(Rank&)>;

// What each rank's body gives.
std::vector<std::vector<float>> on_ranks(const std::string& mesh, int64_t size, const char* device, const Body& body) {
  static int rooms = 0;
  const std::string room = "collectives " + std::to_string(rooms++);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int64_t r = 0; r < size; ++r) ranks.push_back(std::make_unique<Rank>(room, mesh, r, size, device));
  std::vector<std::vector<float>> results(static_cast<size_t>(size));
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        results[r] = body(*ranks[r]);
      } catch (const Error& e) {
        errors[r] = e.message();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& e : errors) CHECK(e == "");
  // Groups close with their ranks, one after the other: no rank waits for another there.
  return results;
}

Attrs along(const char* axis, int64_t dim) { return {{"axis", std::string(axis)}, {"dim", dim}}; }

using Rows = std::vector<std::vector<float>>;

}  // namespace

TEST_CASE("all_reduce sums over the ranks of its axis only, on every device") {
  for (const char* device : {"cpu", "sim"}) {
    auto over = [&](const char* axis) {
      return on_ranks("tp = 2\ndp = 2", 4, device, [&](Rank& r) {
        const auto x = static_cast<float>(r.rank);
        return r.run({x, 10 * x}, 1, [&](Builder& b, Value* v) {
          return b.op("core.all_reduce", {v}, {{"axis", std::string(axis)}});
        });
      });
    };
    CHECK(over("tp") == Rows{{1, 10}, {1, 10}, {5, 50}, {5, 50}});
    CHECK(over("dp") == Rows{{2, 20}, {4, 40}, {2, 20}, {4, 40}});
    CHECK(over("pp") == Rows{{0, 0}, {1, 10}, {2, 20}, {3, 30}});  // an axis of one rank
  }
}

TEST_CASE("gathers and scatters along any dimension put the parts in order of the ranks") {
  for (const char* device : {"cpu", "sim"}) {
    auto gather = [&](int64_t dim) {
      return on_ranks("tp = 2", 2, device, [&](Rank& r) {
        const auto x = static_cast<float>(4 * r.rank);
        return r.run({x, x + 1, x + 2, x + 3}, 2,
                     [&](Builder& b, Value* v) { return b.op("core.all_gather", {v}, along("tp", dim)); });
      });
    };
    const std::vector<float> rows = {0, 1, 2, 3, 4, 5, 6, 7}, columns = {0, 1, 4, 5, 2, 3, 6, 7};
    CHECK(gather(0) == Rows{rows, rows});
    CHECK(gather(-1) == Rows{columns, columns});
    auto scatter = [&](int64_t dim) {
      return on_ranks("tp = 2", 2, device, [&](Rank& r) {
        const auto x = static_cast<float>(r.rank);
        return r.run({x, x + 1, x + 2, x + 3}, 2,
                     [&](Builder& b, Value* v) { return b.op("core.reduce_scatter", {v}, along("tp", dim)); });
      });
    };
    CHECK(scatter(0) == Rows{{1, 3}, {5, 7}});
    CHECK(scatter(1) == Rows{{1, 5}, {3, 7}});
  }
}

TEST_CASE("parts go round the ring and to all") {
  const auto round = on_ranks("cp = 4", 4, "sim", [](Rank& r) {
    return r.run({static_cast<float>(r.rank)}, 1, [](Builder& b, Value* v) {
      return b.op("core.ring_shift", {v}, {{"axis", std::string("cp")}, {"shift", int64_t{-1}}});
    });
  });
  CHECK(round == Rows{{1}, {2}, {3}, {0}});
  const auto all = on_ranks("tp = 2", 2, "cpu", [](Rank& r) {
    const auto x = static_cast<float>(10 * r.rank);
    return r.run({x, x + 1}, 2, [](Builder& b, Value* v) {
      return b.op("core.all_to_all", {v}, {{"axis", std::string("tp")}});
    });
  });
  CHECK(all == Rows{{0, 10}, {1, 11}});
  const auto root = on_ranks("tp = 2", 2, "cpu", [](Rank& r) {
    return r.run({static_cast<float>(r.rank)}, 1, [](Builder& b, Value* v) {
      return b.op("core.broadcast_rank", {v}, {{"axis", std::string("tp")}, {"root", int64_t{1}}});
    });
  });
  CHECK(root == Rows{{1}, {1}});
}

TEST_CASE("a dimension that does not divide over the ranks is refused with the numbers") {
  static std::vector<std::string> messages(2);
  on_ranks("tp = 2", 2, "cpu", [](Rank& r) {
    try {
      return r.run({1, 2, 3}, 3, [](Builder& b, Value* v) { return b.op("core.reduce_scatter", {v}, along("tp", 0)); });
    } catch (const Error& e) {
      messages[static_cast<size_t>(r.rank)] = e.message();
      return std::vector<float>();
    }
  });
  for (const std::string& m : messages) CHECK_THAT(m, Catch::Contains("does not divide over tp = 2"));
}

}  // namespace gestalt::core

// Settings that choose kernels and components, and what is said about those that do nothing.
#include <cstring>
#include <limits>

#include "tests/catch_compat.hpp"
#include "tests/integration/training/training_run.h"
#include "tests/thrown_error.h"

namespace gestalt::test {

namespace {

using Sets = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_refused(const Sets& sets, const std::vector<std::string>& parts) {
  const core::Error e = thrown_by([&] { TrainingRun run(sets); });
  INFO(e.message());
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  for (const std::string& part : parts) {
    INFO("expected: " << part);
    CHECK(contains(e.message(), part));
  }
}

// Backend of every node of an op, by module path.
std::map<std::string, std::string> backends(TrainingRun& run, const std::string& op) {
  std::map<std::string, std::string> out;
  for (const core::BoundNode& b : run.executable().binding().nodes())
    if (b.node->op->name() == op) out[b.node->path] = std::string(b.kernel->backend.data, b.kernel->backend.size);
  return out;
}

}  // namespace

TEST_CASE("two recordings of a run are the same program") {
  if (!plugins_built()) return;
  const Sets sets = {"model.dropout=0.1", "run.streams=2", "model.recompute.ops=[\"norm\"]"};
  TrainingRun a(sets), b(sets);
  CHECK(a.program().text() == b.program().text());
  CHECK(a.trainer().update_program().program().text() == b.trainer().update_program().program().text());
  CHECK(contains(a.program().text(), "core.attention"));
  CHECK(contains(a.program().text(), "model.layers.1.mlp"));
  TrainingRun other({"model.layers=1"});
  CHECK(other.program().text() != a.program().text());
}

TEST_CASE("a pin moves every node of an op to another backend") {
  if (!plugins_built()) return;
  TrainingRun run({"kernels.pin={\"core.linear\" = \"gestalt.cpu_ref\"}"});
  const auto chosen = backends(run, "core.linear");
  CHECK(chosen.size() >= 5);
  for (const auto& [path, backend] : chosen) {
    INFO(path);
    CHECK(backend == "gestalt.cpu_ref");
  }
  for (const auto& [path, backend] : backends(run, "core.matmul")) CHECK(backend == "gestalt.cpu");
  const std::string table = run.executable().binding().table();
  INFO(table);
  bool found = false;
  for (size_t at = 0; at < table.size(); at = table.find('\n', at) + 1) {
    const std::string line = table.substr(at, table.find('\n', at) - at);
    if (line.rfind("core.linear ", 0) == 0) {
      CHECK(contains(line, "gestalt.cpu_ref"));
      CHECK(contains(line, "gestalt.kernels_cpu"));
      CHECK(contains(line, " pin "));
      found = true;
    }
  }
  CHECK(found);
  run.steps(2);
}

TEST_CASE("a rule moves the nodes of one layer to another backend") {
  if (!plugins_built()) return;
  TrainingRun run(
      {"kernels.rule=[{where = \"model.layers.1.**\", op = \"core.linear\", backend = \"gestalt.cpu_ref\"}]"});
  int moved = 0;
  for (const auto& [path, backend] : backends(run, "core.linear")) {
    INFO(path);
    const bool second = path.rfind("model.layers.1.", 0) == 0;
    CHECK(backend == (second ? "gestalt.cpu_ref" : "gestalt.cpu"));
    moved += second;
  }
  CHECK(moved == 2);  // attention and mlp, each with several products
  const std::string table = run.executable().binding().table();
  INFO(table);
  CHECK(contains(table, "rule --set"));
  CHECK(contains(table, "gestalt.cpu_ref"));
}

TEST_CASE("a rule or pin without effect, or of an unknown backend, is refused") {
  if (!plugins_built()) return;
  check_refused(
      {"kernels.rule=[{where = \"model.layers.7.**\", op = \"core.linear\", backend = \"gestalt.cpu_ref\"}]"},
      {"[kernels.rule] at --set", "no op 'core.linear' lies at 'model.layers.7.**', so the rule has no effect"});
  check_refused({"kernels.rule=[{op = \"core.silu\", backend = \"gestalt.cpu\"}]"}, {"no op 'core.silu' lies at '**'"});
  check_refused({"kernels.pin={\"core.swiglu\" = \"gestalt.cpu\"}"},
                {"[kernels] pin 'core.swiglu': no program uses the op, so the pin has no effect"});
  check_refused({"kernels.pin={\"core.linear\" = \"acme.fast\"}"},
                {"[kernels.pin \"core.linear\"] backend 'acme.fast' is of no loaded plugin",
                 "loaded backends: gestalt.cpu, gestalt.cpu_ref"});
  check_refused({"kernels.rule=[{where = \"model.**\", op = \"core.linear\", backend = \"gestalt.cpu\"}, "
                 "{where = \"model.layers.0.**\", op = \"core.linear\", backend = \"gestalt.cpu_ref\"}]"},
                {"core.linear at 'model.layers.0.", "is claimed twice"});
}

TEST_CASE("an unknown slot, component or key of a slot is refused") {
  if (!plugins_built()) return;
  check_refused({"model.slots={mpl = \"gestalt.mlp\"}"},
                {"[model.slots] 'mpl' has no effect: no module of the model has such a slot", "nearest: 'mlp'"});
  check_refused({"model.slots={\"layers.5.mlp\" = \"gestalt.mlp\"}"}, {"[model.slots] 'layers.5.mlp' has no effect"});
  check_refused({"model.slots={mlp = \"gestalt.mpl\"}"}, {"gestalt.mpl", "gestalt.mlp"});
  check_refused({"model.slots={mlp = {type = \"gestalt.mlp\", fnn = 32}}"},
                {"model.layers.0.mlp (gestalt.mlp)", "fnn", "ffn"});
  check_refused({"model.slots={mlp = 3}"}, {"[model.slots] 'mlp'", "expected a component name or a table"});
}

TEST_CASE("a slot's table changes one layer") {
  if (!plugins_built()) return;
  TrainingRun run({"model.slots={\"layers.1.mlp\" = {ffn = 48, activation = \"silu\"}}"});
  const auto& tree = run.session().tree();
  CHECK(tree.find("model.layers.0.mlp.up.weight")->global_shape == std::vector<int64_t>{64, 32});
  CHECK(tree.find("model.layers.1.mlp.up.weight")->global_shape == std::vector<int64_t>{48, 32});
  CHECK(contains(run.program().text(), "core.silu"));
  CHECK(contains(run.program().text(), "core.gelu"));
}

TEST_CASE("a mesh that does not fit one rank is refused") {
  if (!plugins_built()) return;
  check_refused({"mesh.tp=2"}, {"[mesh]", "1 ranks cannot be arranged as tp=2", "product of the axes is 2"});
  check_refused({"mesh.dp=3"}, {"[mesh]", "dp=3"});
}

TEST_CASE("micro-batches that do not divide the global batch, and a group without parameters, are refused") {
  if (!plugins_built()) return;
  check_refused({"train.micro_batch=3"}, {"[train] global_batch 4 is not a multiple of micro_batch 3"});
  check_refused({"optimizer.groups=[{where = \"model.nothing.*\", lr_scale = 0.5}]"},
                {"where = 'model.nothing.*' has no effect"});
}

TEST_CASE("a training that diverges skips the update, and node by node says where") {
  if (!plugins_built()) return;
  for (const Sets& machine : {Sets{}, Sets{"run.device=sim", "run.streams=2", "device.max_delay_us=0"}}) {
    Sets sets = machine;
    sets.insert(sets.end(), {"optimizer.lr=1e30", "optimizer.warmup_steps=0"});
    {
      TrainingRun run(sets);
      CHECK(run.steps(1)[0].skipped == 0);
      const Bytes before = run.all_state();
      CHECK(run.steps(1)[0].skipped == 1);
      CHECK(differing(before, run.all_state()) == std::vector<std::string>{});
    }
    sets.push_back("run.debug=eager");
    TrainingRun run(sets);
    run.steps(1);
    const core::Error e = thrown_by([&] { run.steps(1); });
    INFO(e.message());
    CHECK(e.code() == GESTALT_VALIDATION);
    CHECK(e.message().rfind("[core.", 0) == 0);
    CHECK(contains(e.message(), " at model."));
    CHECK(contains(e.message(), "expected a finite number"));
  }
}

TEST_CASE("node by node, the op and the module where a NaN appears first are named") {
  if (!plugins_built()) return;
  for (const Sets& machine : {Sets{}, Sets{"run.device=sim", "run.streams=2", "device.max_delay_us=0"}}) {
    for (const bool eager : {false, true}) {
      Sets sets = machine;
      if (eager) sets.push_back("run.debug=eager");
      TrainingRun run(sets);
      const core::Parameter* p = run.session().tree().find("model.layers.1.mlp.up.weight");
      const auto at = run.store().weight(*p);
      std::vector<char> bytes = run.store().read(at);
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(bytes.data() + 4 * (3 * 32 + 7), &nan, 4);  // row 3: column 3 of the product
      run.store().write(at, bytes.data(), bytes.size());
      if (!eager) {
        const Bytes before = run.all_state();
        CHECK(run.steps(1)[0].skipped == 1);
        CHECK(differing(before, run.all_state()) == std::vector<std::string>{});
        continue;
      }
      const core::Error e = thrown_by([&] { run.steps(1); });
      INFO(e.message());
      CHECK(e.code() == GESTALT_VALIDATION);
      CHECK(contains(e.message(), "[core.linear at model.layers.1.mlp] output 'y' element 3 is "));
      CHECK(contains(e.message(), "nan, expected a finite number (forward)"));
    }
  }
}

}  // namespace gestalt::test

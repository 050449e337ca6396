// gestalt explain config|kernels|plan|program CONFIG
#include <fmt/format.h>

#include "core/base/text.h"
#include "core/session/session.h"
#include "launcher/options.h"

#include <nlohmann/json.hpp>

namespace gestalt::launcher {
namespace {

constexpr const char* kUsage =
    "gestalt explain config|kernels|plan|program CONFIG|MODEL [--set KEY=VALUE]... [--program train|update] [--json]";

struct Explained {
  core::Run& run;
  core::Session& session;
  const core::Compiled& compiled;
  std::string name;
};

std::string kernels(const Explained& e) { return e.compiled.executable().binding().table(); }
std::string program(const Explained& e) { return e.compiled.program().text(); }

nlohmann::ordered_json plan_json(const Explained& e) {
  const core::MemoryPlan& p = e.compiled.executable().plan();
  nlohmann::ordered_json j;
  j["program"] = e.name;
  j["nodes"] = e.compiled.executable().binding().nodes().size();
  j["streams"] = e.compiled.executable().num_streams();
  j["arena_bytes"] = p.arena_bytes;
  j["bytes_without_sharing"] = p.sum_bytes;
  j["overlays"] = p.num_overlays;
  return j;
}

nlohmann::ordered_json memory_json(core::Session& s) {
  nlohmann::ordered_json j;
  uint64_t weights = 0, gradients = 0, master = 0, states = 0;
  for (const auto& f : s.store().flats()) {
    weights += f.weights.bytes();
    gradients += f.gradients.bytes();
    master += f.master.bytes();
    for (const auto& b : f.states) states += b.bytes();
    states += f.segment_table.bytes() + f.segment_hyper.bytes();
  }
  j["weights"] = weights;
  j["gradients"] = gradients;
  j["master"] = master;
  j["optimizer"] = states;
  return j;
}

int run_explain(const Arguments& arguments) {
  Options options(kUsage);
  options.add()("what", po::value<std::string>(), "config, kernels, plan or program")(
      "target", po::value<std::string>(), "CONFIG or MODEL")("set", po::value<Arguments>(), "KEY=VALUE")(
      "program", po::value<std::string>()->default_value("train"), "train or update")("json", "one JSON object");
  options.positional("what", 1);
  options.positional("target", 1);
  if (!options.parse(arguments)) return 0;
  if (!options.has("what") || !options.has("target")) throw UsageError("explain what of which run file?");
  const std::string what = options.text("what"), which = options.text("program", "train");
  if (what != "config" && what != "kernels" && what != "plan" && what != "program")
    throw UsageError(fmt::format("unknown subject '{}', expected config, kernels, plan or program", what));
  if (which != "train" && which != "update")
    throw UsageError(fmt::format("unknown program '{}', expected train or update", which));

  core::RunOptions run_options;
  run_options.target = options.text("target");
  run_options.sets = options.list("set");
  run_options.environment = core::process_environment();
  core::Run run(run_options);
  int code = 0;
  {
    if (what == "config") {
      if (options.has("json")) {
        nlohmann::ordered_json j;
        for (const auto& [path, node] : run.config().leaves())
          j[path] = {{"value", node->text()}, {"origin", node->origin.describe()}};
        std::puts(j.dump(2).c_str());
      } else {
        std::fputs(run.config().explain().c_str(), stdout);
      }
      return 0;
    }
    core::SessionOptions from_nothing;
    from_nothing.resume = "none";
    core::Session session(run, {}, from_nothing);
    session.open_optimizer();
    const core::Compiled& compiled =
        which == "train" ? session.trainer().loss_program().compiled() : session.trainer().update_program();
    const Explained e{run, session, compiled, which};
    if (what == "plan") {
      nlohmann::ordered_json j;
      j["device"] = session.machine().device().name();
      j["mesh"] = session.machine().mesh().text();
      j["parameters"] = session.tree().num_parameters();
      j["memory"] = memory_json(session);
      j["programs"] = {plan_json({run, session, session.trainer().loss_program().compiled(), "train"}),
                       plan_json({run, session, session.trainer().update_program(), "update"})};
      if (options.has("json")) {
        std::puts(j.dump(2).c_str());
      } else {
        std::string out = fmt::format("device {}   mesh {}   parameters {}\n", j["device"].get<std::string>(),
                                      j["mesh"].get<std::string>(), j["parameters"].get<int64_t>());
        for (const auto& [name, bytes] : j["memory"].items())
          out += fmt::format("{:<12} {:>14}\n", name, core::format_bytes(bytes.get<uint64_t>()));
        for (const auto& p : j["programs"]) {
          uint64_t arena = 0;
          for (const auto& b : p["arena_bytes"]) arena += b.get<uint64_t>();
          out += fmt::format("program {:<8} {} nodes on {} stream(s): arena {} bytes ({}; {} without sharing, {} overlays)\n",
                             p["program"].get<std::string>(), p["nodes"].get<uint64_t>(), p["streams"].get<int>(), arena,
                             core::format_bytes(arena), core::format_bytes(p["bytes_without_sharing"].get<uint64_t>()),
                             p["overlays"].get<uint64_t>());
        }
        if (!session.trainer().loss_program().unused_parameters().empty())
          out += "parameters without gradient: " +
                 core::join(session.trainer().loss_program().unused_parameters(), ", ") + "\n";
        std::fputs(out.c_str(), stdout);
      }
    } else {
      std::fputs((what == "kernels" ? kernels(e) : program(e)).c_str(), stdout);
    }
  }
  run.shutdown();
  return code;
}

const Verb kExplain("explain", kUsage, "what a run would do: configuration, kernels, memory plan, program", run_explain);

}  // namespace
}  // namespace gestalt::launcher

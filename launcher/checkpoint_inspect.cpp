// gestalt checkpoint inspect|verify|diff. DIR is a checkpoint or the output folder of a run, which means its newest one.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/folder.h"
#include "core/checkpoint/reader.h"
#include "core/config/config.h"
#include "core/config/toml_reader.h"
#include "core/tensor/dtype.h"
#include "launcher/checkpoint_verb.h"

namespace gestalt::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using core::CheckpointManifest;
using core::StoredTensor;

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }
void print(const Json& json) { print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); }

fs::path checkpoint_of(const std::string& text) {
  std::error_code ec;
  const fs::path folder = fs::path(text) / "checkpoints";
  if (!fs::is_directory(folder, ec)) return text;
  const std::vector<core::Committed> all = core::committed(folder);
  if (all.empty()) core::fail(GESTALT_NOT_FOUND, "[checkpoint] no checkpoint below '{}'", text);
  return all.back().path;
}

std::string shape_text(const StoredTensor& t) {
  std::string text = std::string(core::dtype_name(t.dtype)) + "[";
  for (size_t i = 0; i < t.shape.size(); ++i) text += (i ? ", " : "") + std::to_string(t.shape[i]);
  return text + "]";
}

int run_inspect(const Options& options) {
  const fs::path folder = checkpoint_of(options.get<std::string>("folder"));
  const CheckpointManifest m = core::read_checkpoint_manifest(folder);
  uint64_t bytes = 0;
  for (const core::StoredFile& f : m.files) bytes += f.bytes;
  if (!options.has("json")) {
    print(fmt::format("{}\n  step {}, {} samples, state {}\n  {}, {} files, {}, {} tensors, seed {}, attempt {}{}\n", folder.native(),
                      m.state.step, m.state.samples, m.digest, m.component, m.files.size(), core::format_bytes(bytes),
                      m.tensors.size(), m.seed, m.attempt, m.previous >= 0 ? fmt::format(", after step {}", m.previous) : ""));
    for (const StoredTensor& t : m.tensors)
      print(fmt::format("  {}  {}  {}{}\n", t.digest, t.name, shape_text(t),
                        t.pieces.size() > 1 ? fmt::format(" in {} pieces", t.pieces.size()) : ""));
    return 0;
  }
  Json out{{"folder", folder.native()}, {"step", m.state.step}, {"samples", m.state.samples}, {"state", m.digest},
           {"component", m.component}, {"seed", m.seed}, {"attempt", m.attempt}, {"previous", m.previous},
           {"data_digest", m.state.data_digest}, {"tokenizer", m.state.tokenizer}, {"bytes", bytes}};
  out["files"] = Json::array();
  for (const core::StoredFile& f : m.files) out["files"].push_back({{"name", f.name}, {"bytes", f.bytes}, {"sha256", f.sha256}});
  out["tensors"] = Json::array();
  for (const StoredTensor& t : m.tensors) {
    Json pieces = Json::array();
    for (const core::StoredPiece& p : t.pieces)
      pieces.push_back({{"file", m.files[p.file].name}, {"offset", p.offset}, {"shape", p.shape}});
    out["tensors"].push_back({{"name", t.name}, {"dtype", std::string(core::dtype_name(t.dtype))}, {"shape", t.shape}, {"xxh3", t.digest}, {"pieces", pieces}});
  }
  print(out);
  return 0;
}

// Damage of the manifest itself is one problem more.
std::vector<core::Problem> problems_of(const fs::path& folder) {
  core::Registry registry;
  try {
    const CheckpointManifest m = core::read_checkpoint_manifest(folder);
    registry.discover(core::plugin_search({}, core::Trust::kNamed));
    for (const auto& found : registry.found())
      if (found.manifest.component("checkpoint/1", m.component)) registry.load({found.manifest.id});
    std::vector<core::Problem> problems = core::find_damage(registry, folder, m);
    registry.shutdown();
    return problems;
  } catch (const core::Error& e) {
    if (e.code() != GESTALT_DATA_ERROR) throw;
    return {{core::kManifestFile, "", e.message()}};
  }
}

int run_verify(const Options& options) {
  const fs::path folder = checkpoint_of(options.get<std::string>("folder"));
  const std::vector<core::Problem> problems = problems_of(folder);
  if (options.has("json")) {
    Json list = Json::array();
    for (const core::Problem& p : problems) list.push_back({{"file", p.file}, {"tensor", p.tensor}, {"reason", p.reason}});
    print(Json{{"folder", folder.native()}, {"ok", problems.empty()}, {"problems", list}});
  } else if (problems.empty()) {
    print(fmt::format("{}: every file and every tensor is as it was written\n", folder.native()));
  } else {
    print(fmt::format("{} is damaged:{}\n", folder.native(), core::describe(problems, problems.size())));
  }
  return problems.empty() ? 0 : core::exit_code(GESTALT_DATA_ERROR);
}

int run_diff(const Options& options) {
  const Arguments names = options.list("folders");
  if (names.size() != 2) throw UsageError(fmt::format("got {} folders, expected two", names.size()));
  const fs::path folders[2] = {checkpoint_of(names[0]), checkpoint_of(names[1])};
  const CheckpointManifest a = core::read_checkpoint_manifest(folders[0]), b = core::read_checkpoint_manifest(folders[1]);
  Json tensors = Json::array();
  auto differs = [&](const std::string& name, const std::string& reason) { tensors.push_back({{"tensor", name}, {"reason", reason}}); };
  for (const StoredTensor& t : a.tensors) {
    const StoredTensor* other = b.find(t.name);
    if (!other)
      differs(t.name, "only in the first");
    else if (shape_text(t) != shape_text(*other))
      differs(t.name, shape_text(t) + " -> " + shape_text(*other));
    else if (t.digest != other->digest)
      differs(t.name, "other values");
  }
  for (const StoredTensor& t : b.tensors)
    if (!a.find(t.name)) differs(t.name, "only in the second");
  const std::vector<std::string> settings =
      core::config_differences(core::read_toml_file(folders[0] / "run.toml"), core::read_toml_file(folders[1] / "run.toml"));
  const bool same = a.digest == b.digest;
  if (options.has("json")) {
    print(Json{{"same_state", same}, {"step", {a.state.step, b.state.step}}, {"tensors", tensors}, {"settings", settings}});
  } else {
    print(fmt::format("state {} at step {}, {} at step {}: {}\n", a.digest, a.state.step, b.digest, b.state.step,
                      same ? "the same" : "different"));
    for (const Json& t : tensors) print(fmt::format("  {}: {}\n", t["tensor"].get<std::string>(), t["reason"].get<std::string>()));
    for (const std::string& s : settings) print("  " + s + "\n");
  }
  return same ? 0 : 1;
}

void one_folder(Options& o) {
  o.add()("folder", po::value<std::string>()->required(), "a checkpoint, or the output folder of a run");
  o.positional("folder", 1);
}

const CheckpointCommand kInspect("inspect", "gestalt checkpoint inspect DIR [--json]", one_folder, run_inspect);
const CheckpointCommand kVerify("verify", "gestalt checkpoint verify DIR [--json]", one_folder, run_verify);
const CheckpointCommand kDiff(
    "diff", "gestalt checkpoint diff DIR DIR [--json]",
    [](Options& o) {
      o.add()("folders", po::value<Arguments>(), "two checkpoints, or output folders of runs");
      o.positional("folders", 2);
    },
    run_diff);

}  // namespace
}  // namespace gestalt::launcher

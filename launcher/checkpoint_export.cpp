// gestalt checkpoint export: a model in the form of another program.
#include <cstdio>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/config/config.h"
#include "core/session/export_model.h"
#include "launcher/checkpoint_verb.h"

#include <nlohmann/json.hpp>

namespace gestalt::launcher {
namespace {

void add_options(Options& options) {
  options.add()("model", po::value<std::string>(), "checkpoint folder, or any MODEL")(
      "folder", po::value<std::string>(), "where to write, empty or not there")(
      "format", po::value<std::string>()->default_value("hf"), "hf, or the name of a format component")(
      "family", po::value<std::string>(),
      "llama, qwen2, ...; without it the one that the model came from, or the first that fits")(
      "shard-size", po::value<int64_t>()->default_value(int64_t{5} << 30), "largest file of tensors, bytes")(
      "set", po::value<Arguments>(), "KEY=VALUE");
  options.positional("model", 1);
  options.positional("folder", 1);
}

int run(const Options& options) {
  if (!options.has("model") || !options.has("folder")) throw UsageError("export which model into which folder?");
  core::ExportOptions o;
  o.model = options.text("model");
  o.folder = options.text("folder");
  o.format = options.text("format", "hf");
  o.family = options.text("family");
  o.shard_bytes = options.get<int64_t>("shard-size");
  if (o.shard_bytes < 1) throw UsageError(fmt::format("--shard-size is {}, expected 1 or more", o.shard_bytes));
  o.sets = options.list("set");
  o.environment = core::process_environment();
  const core::ExportReport report = core::export_model(o);
  if (options.has("json")) {
    const nlohmann::ordered_json j = {{"folder", o.folder.native()},
                                      {"tensors", report.num_tensors},
                                      {"bytes", report.bytes},
                                      {"checked_tokens", report.num_tokens},
                                      {"logit_difference", report.difference}};
    std::puts(j.dump(2).c_str());
  } else {
    std::fputs(
        fmt::format("'{}': {} tensors, {}; logits of {} tokens, read back, differ by {:.3g}\n", o.folder.native(),
                    report.num_tensors, core::format_bytes(report.bytes), report.num_tokens, report.difference)
            .c_str(),
        stdout);
  }
  return 0;
}

const CheckpointCommand kExport("export",
                                "gestalt checkpoint export CHECKPOINT|MODEL FOLDER [--format hf] [--family NAME] "
                                "[--shard-size BYTES] [--set KEY=VALUE]... [--json]",
                                add_options, run);

}  // namespace
}  // namespace gestalt::launcher

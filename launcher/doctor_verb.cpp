// gestalt doctor: what this machine and this installation have, and what is missing.
#include <thread>

#include <fmt/format.h>

#include "core/base/host.h"
#include "core/base/text.h"
#include "core/config/attr_list.h"
#include "core/runtime/parallel.h"
#include "core/session/run.h"
#include "launcher/options.h"

namespace gestalt::launcher {
namespace {

constexpr const char* kUsage = "gestalt doctor";

int run_doctor(const Arguments& arguments) {
  Options options(kUsage);
  if (!options.parse(arguments)) return 0;
  core::publish_interfaces();
  std::string out = fmt::format("gestalt {}, plugin ABI {}.{}\n", GESTALT_VERSION, GESTALT_ABI_MAJOR, GESTALT_ABI_MINOR);
  out += fmt::format("processors: {}, compute threads: {}\n", std::thread::hardware_concurrency(),
                     core::parallel()->num_threads(core::parallel()->self));
  core::Registry registry;
  registry.discover(core::plugin_search({}, core::Trust::kNamed));
  out += "plugin folders searched:\n";
  for (const auto& p : registry.searched()) out += fmt::format("  {}\n", p.native());
  int problems = 0;
  out += fmt::format("plugins found: {}\n", registry.found().size());
  for (const auto& f : registry.found()) {
    std::string state = "loads";
    try {
      registry.load({f.manifest.id});
    } catch (const core::Error& e) {
      state = "REFUSED: " + e.message();
      ++problems;
    }
    out += fmt::format("  {:<28} {:<8} {}\n", f.manifest.id, f.manifest.version, state);
  }
  for (const auto& u : registry.unreadable()) {
    out += fmt::format("  unreadable: {}: {}\n", u.folder.native(), u.reason);
    ++problems;
  }
  out += "devices:\n";
  for (const std::string& name : registry.component_names("device/1")) {
    try {
      const core::ComponentRef c = registry.component("device/1", name);
      core::Config own = core::Config::from_text("", "device");
      own.root().insert("device", core::ConfigNode::table());
      std::vector<core::KeySpec> keys;
      for (uint64_t i = 0; i < c.component->num_keys; ++i) keys.push_back(core::key_spec(c.component->keys[i]));
      core::ConfigSchema schema;
      schema.extend("device", name, keys);
      core::check(own, schema);
      const core::ConfigNode* complete = own.find("device");
      const core::AttrList attrs = core::to_attrs(complete ? *complete : core::ConfigNode::table());
      auto instance = std::make_shared<core::Instance>(c, attrs.data(), attrs.size());
      core::Device device(c.host, instance->table<gestalt_device_1>(), instance->self(), instance);
      out += fmt::format("  {:<8} {} (kernels of '{}', memory {})\n", name, device.name(), device.kernels_of(),
                         device.total_bytes() ? core::format_bytes(device.total_bytes()) : "of the host");
    } catch (const core::Error& e) {
      out += fmt::format("  {:<8} unavailable because {}\n", name, e.message());
    }
  }
  out += problems ? fmt::format("{} problem(s)\n", problems) : "no problem found\n";
  std::fputs(out.c_str(), stdout);
  registry.shutdown();
  return problems ? core::exit_code(GESTALT_CONFIG_ERROR) : 0;
}

const Verb kDoctor("doctor", kUsage, "check this machine, the installation and every plugin", run_doctor);

}  // namespace
}  // namespace gestalt::launcher

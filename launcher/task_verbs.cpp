// Verbs served by task components: train, eval, generate and whatever else a plugin brings. The command line names the
// task, so its plugin is loaded even where [plugins] use does not list it.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "core/base/host.h"
#include "core/base/log.h"
#include "core/session/session.h"
#include "gestalt/abi/session.h"
#include "launcher/verb.h"

namespace gestalt::launcher {
namespace {

using core::str_of;
using core::view_of;

// Flags of the host; everything else goes to the task as given.
struct HostFlags {
  std::string target;
  std::vector<std::string> sets;
  core::SessionOptions session;
  bool help = false;
  Arguments rest;
};

HostFlags split_flags(const Arguments& arguments, bool takes_run) {
  HostFlags f;
  auto value = [&](size_t& i, const std::string& name) -> std::string {
    const size_t eq = arguments[i].find('=');
    if (name != "--set" && eq != std::string::npos) return arguments[i].substr(eq + 1);
    if (name == "--set" && arguments[i].rfind("--set=", 0) == 0) return arguments[i].substr(6);
    if (i + 1 >= arguments.size()) throw UsageError(fmt::format("{} needs a value", name));
    return arguments[++i];
  };
  auto is = [&](const std::string& a, const char* flag) { return a == flag || a.rfind(std::string(flag) + "=", 0) == 0; };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& a = arguments[i];
    if (a == "--help" || a == "-h")
      f.help = true;
    else if (takes_run && is(a, "--set"))
      f.sets.push_back(value(i, "--set"));
    else if (takes_run && is(a, "--resume"))
      f.session.resume = value(i, "--resume");
    else if (takes_run && a == "--allow-older")
      f.session.allow_older = true;
    else if (takes_run && is(a, "--device"))
      f.sets.push_back("run.device=" + value(i, "--device"));
    else if (takes_run && is(a, "--debug"))
      f.sets.push_back("run.debug=" + value(i, "--debug"));
    else if (takes_run && f.target.empty() && !a.empty() && a[0] != '-')
      f.target = a;
    else
      f.rest.push_back(a);
  }
  return f;
}

core::RunOptions options_of(const HostFlags& f, bool uses_data) {
  core::RunOptions o;
  o.target = f.target;
  o.sets = f.sets;
  o.environment = core::process_environment();
  o.uses_data = uses_data;
  return o;
}

class TaskVerbs : public VerbSource {
 public:
  bool late() const override { return true; }

  std::vector<VerbLine> verbs() const override {
    std::vector<VerbLine> lines;
    for (const auto& found : registry().found())
      for (const auto& c : found.manifest.components)
        if (c.kind == "task/1")
          lines.push_back({c.name, fmt::format("gestalt {} --help", c.name), found.manifest.description});
    return lines;
  }

  int run(std::string_view verb, const Arguments& arguments) const override {
    const std::string plugin = plugin_of(verb);
    // The task's own table says whether a run file is needed; loading it runs nothing.
    core::Registry& known = registry();
    known.load({plugin});
    const core::ComponentRef task = known.component("task/1", verb);
    const auto* table = static_cast<const gestalt_task_1*>(task.component->table);
    const std::string usage(view_of(table->usage));
    const bool may_take_run = table->flags & GESTALT_TASK_MAY_TAKE_RUN;
    bool takes_run = (table->flags & GESTALT_TASK_TAKES_RUN) || may_take_run;
    HostFlags flags = split_flags(arguments, takes_run);
    if (flags.help) {
      std::fputs(fmt::format("usage: {}\n", usage).c_str(), stdout);
      return 0;
    }
    if (may_take_run && !flags.target.empty()) {
      takes_run = core::is_run(flags.target);
      if (!takes_run && !(flags.sets.empty() && flags.session.resume.empty()))
        throw UsageError(fmt::format("--set, --device, --debug and --resume need a model, '{}' is none", flags.target));
      flags.rest.insert(flags.rest.begin(), flags.target);
    }
    if (takes_run && flags.target.empty())
      throw UsageError(fmt::format("no CONFIG or MODEL given\nusage: {}", usage));
    core::install_signal_handlers();
    if (!takes_run) return run_bare(verb, plugin, flags);
    core::RunOptions options = options_of(flags, table->flags & GESTALT_TASK_USES_DATA);
    options.defaults = std::string(view_of(table->defaults));
    core::Run run(options);
    if (!run.registry().plugin(plugin)) run.registry().load({plugin});
    return execute(run, verb, flags);
  }

 private:
  // A task without a run: an empty configuration, so that arguments() and print() are there.
  static int run_bare(std::string_view verb, const std::string& plugin, const HostFlags& flags) {
    core::Run run{plugin};
    return execute(run, verb, flags);
  }

  static int execute(core::Run& run, std::string_view verb, const HostFlags& flags) {
    int code = 0;
    {
      core::SessionOptions options = flags.session;
      options.saver_command = "/proc/self/exe";
      core::Session session(run, flags.rest, options);
      core::Instance task(run.registry().component("task/1", verb), nullptr, 0);
      gestalt_status* status = task.table<gestalt_task_1>()->run(task.self(), session.abi());
      if (status) {
        const core::Error e = core::take(status);
        code = core::exit_code(e.code());
        std::fputs(fmt::format("gestalt: {}{}\n", e.code() == GESTALT_INTERRUPTED ? "" : "error: ", e.message()).c_str(),
                   stderr);
      }
    }
    run.shutdown();
    return code;
  }

  static core::Registry& registry() {
    static auto* r = [] {
      auto* made = new core::Registry;
      core::publish_interfaces();
      made->discover(core::plugin_search({}, core::Trust::kNamed));
      return made;
    }();
    return *r;
  }

  static std::string plugin_of(std::string_view verb) {
    for (const auto& found : registry().found())
      if (found.manifest.component("task/1", verb)) return found.manifest.id;
    throw UsageError(fmt::format("no plugin serves the verb '{}'", verb));
  }
};

const TaskVerbs kTaskVerbs;

}  // namespace
}  // namespace gestalt::launcher

// The verb "parity": what is in the folder says what is compared.
#include <filesystem>

#include <fmt/format.h>

#include "gestalt/plugin.hpp"
#include "gestalt/task.hpp"
#include "plugins/task_data/parity_report.h"
#include "support/flags.h"

namespace gestalt::task_parity {

class ParityTask : public Task {
 public:
  static constexpr std::string_view name = "parity";
  static constexpr std::string_view usage = "gestalt parity DIR [--json]";
  static constexpr uint64_t flags = 0;

  ParityTask(Host, Attrs) {}

  void run(Session& session) override {
    const support::Flags f(session.arguments(), {}, {"json"});
    if (f.words().size() != 1) throw InvalidArgument(fmt::format("[parity] expected one folder; usage: {}", usage));
    const std::string& folder = f.words()[0];
    if (!std::filesystem::exists(folder + "/cases.json"))
      throw Error(GESTALT_NOT_FOUND, fmt::format("[parity] {} holds no cases.json, the list of data cases", folder));
    const task_data::ParityReport report = task_data::compare_cases(folder);
    session.print(f.has("json") ? write_json(report.json) + "\n" : report.text);
    if (report.num_different)
      throw Error(GESTALT_VALIDATION,
                  fmt::format("[parity] {} arrays differ, expected all to be equal", report.num_different));
  }
};

GESTALT_COMPONENT(ParityTask)

}  // namespace gestalt::task_parity

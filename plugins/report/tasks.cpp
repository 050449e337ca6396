// The verbs `report` and `diff`.
#include <string>

#include "gestalt/plugin.hpp"
#include "plugins/report/diff.h"
#include "plugins/report/page.h"
#include "support/file.h"
#include "support/flags.h"

namespace gestalt::report {

class Report : public Task {
 public:
  static constexpr std::string_view name = "report";
  static constexpr std::string_view usage = "gestalt report RUN [--output FILE] [--svg FILE] [--sample FILE]...";
  static constexpr uint64_t flags = 0;
  Report(Host, Attrs) {}

  void run(Session& s) override {
    const support::Flags f(s.arguments(), {"output", "sample", "svg"}, {});
    if (f.words().size() != 1)
      throw Error(GESTALT_USAGE_ERROR, "[report] got " + std::to_string(f.words().size()) + " folders, expected one; usage: " + std::string(usage));
    RunData run = read_run(f.words()[0]);
    const int64_t step = run.of("loss").empty() ? 0 : run.of("loss").back().step;
    for (const std::string& file : f.all("sample")) run.samples.push_back({step, support::ReadFile(file).read_all()});
    if (f.has("svg")) {
      support::AtomicFile svg(f.str("svg"));
      svg.write(loss_picture(run));
      svg.commit();
    }
    s.print(write_page(run, f.str("output", "")) + "\n");
  }
};
GESTALT_COMPONENT(Report)

class Diff : public Task {
 public:
  static constexpr std::string_view name = "diff";
  static constexpr std::string_view usage = "gestalt diff RUN RUN [--json]";
  static constexpr uint64_t flags = 0;
  Diff(Host, Attrs) {}

  void run(Session& s) override {
    const support::Flags f(s.arguments(), {}, {"json"});
    if (f.words().size() != 2)
      throw Error(GESTALT_USAGE_ERROR, "[diff] got " + std::to_string(f.words().size()) + " folders, expected two; usage: " + std::string(usage));
    const RunData a = read_run(f.words()[0]), b = read_run(f.words()[1]);
    const Difference d = difference_of(a, b);
    s.print(f.has("json") ? support::write_json(json_of(d)) + "\n" : text_of(d, a, b));
  }
};
GESTALT_COMPONENT(Diff)

}  // namespace gestalt::report

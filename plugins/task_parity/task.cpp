// The verb "parity": what is in the folder says what is compared.
#include <fmt/format.h>

#include "plugins/task_parity/comparison.h"

namespace gestalt::task_parity {
namespace {

const Comparison& comparison_of(const std::string& path, const support::Flags& flags) {
  std::string known;
  for (const Comparison* c : comparisons()) {
    if (c->applies(path, flags)) return *c;
    known += (known.empty() ? "" : ", ") + std::string(c->what);
  }
  throw Error(GESTALT_NOT_FOUND, fmt::format("[parity] {} holds nothing to compare with, expected one of: {}", path, known));
}

}  // namespace

class ParityTask : public Task {
 public:
  static constexpr std::string_view name = "parity";
  static constexpr std::string_view usage =
      "gestalt parity DIR|MODEL [--golden FILE] [--losses FILE] [--json] [--set KEY=VALUE]... [--device NAME]";
  static constexpr uint64_t flags = GESTALT_TASK_MAY_TAKE_RUN | GESTALT_TASK_USES_DATA;
  // The training of the reference curves.
  static constexpr std::string_view defaults = R"([plugins]
use = ["gestalt.adam"]
[optimizer]
type = "gestalt.adamw"
lr = 1e-3
min_lr = 1e-4
schedule = "cosine"
warmup_steps = 5
weight_decay = 0.1
clip = 1.0
beta1 = 0.9
beta2 = 0.95
eps = 1e-8
[train]
steps = 20
global_batch = 1
)";

  ParityTask(Host, Attrs) {}

  void run(Session& session) override {
    const support::Flags f(session.arguments(), {"golden", "losses"}, {"json"});
    if (f.words().size() != 1)
      throw Error(GESTALT_USAGE_ERROR, fmt::format("[parity] expected one folder; usage: {}", usage));
    const std::string& path = f.words()[0];
    const Outcome outcome = comparison_of(path, f).run(session, path, f);
    session.print(f.has("json") ? write_json(outcome.json) + "\n" : outcome.text);
    if (!outcome.failed.empty()) throw Error(GESTALT_VALIDATION, "[parity] " + outcome.failed);
  }
};

GESTALT_COMPONENT(ParityTask)

}  // namespace gestalt::task_parity

// Data cases: corpora, splits and mixtures, bit for bit.
#include <fmt/format.h>

#include <filesystem>

#include "support/indexed/parity_report.h"
#include "plugins/task_parity/comparison.h"

namespace gestalt::task_parity {
namespace {

bool applies(const std::string& path, const support::Flags&) { return std::filesystem::exists(path + "/cases.json"); }

Outcome run(Session&, const std::string& path, const support::Flags&) {
  const support::indexed::ParityReport report = support::indexed::compare_cases(path);
  Outcome out{report.json, report.text, {}};
  if (report.num_different) out.failed = fmt::format("{} arrays differ, expected all to be equal", report.num_different);
  return out;
}

constexpr Comparison kComparison = {"data cases in cases.json", applies, run};
GESTALT_COMPARISON(kComparison)

}  // namespace
}  // namespace gestalt::task_parity

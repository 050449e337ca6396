#include "support/indexed/parity_report.h"

#include <fmt/format.h>

#include "support/indexed/parity.h"

namespace gestalt::support::indexed {

using support::Json;

ParityReport compare_cases(const std::string& folder) {
  ParityReport report;
  Json cases = Json::array();
  for (const ParityCase& c : compare_data_cases(folder)) {
    Json one = Json::object();
    one.set("case", c.tag);
    one.set("arrays", c.num_arrays);
    Json list = Json::array();
    report.text += fmt::format("{:<20}{} arrays, {} differ\n", c.tag, c.num_arrays, c.differences.size());
    for (const std::string& d : c.differences) {
      list.push(d);
      report.text += "  " + d + "\n";
    }
    one.set("differences", list);
    cases.push(std::move(one));
    report.num_different += c.differences.size();
  }
  report.json = Json::object({{"cases", cases}});
  return report;
}

}  // namespace gestalt::support::indexed

#include <set>

#include "core/base/host.h"
#include "tests/harness/checks.h"

namespace gestalt::harness {

using namespace core;

void check_complete(const Environment& e, Report& report) {
  std::set<std::string> described;
  for (const Family& family : families()) {
    for (const Description& d : family.make()) {
      report.begin("complete " + d.op);
      report.expect(described.insert(d.op).second ? "" : "described twice");
      report.expect(e.ops.find(d.op) ? "" : "described, but no such op");
      report.expect(d.cases.empty() ? "has no case" : "");
    }
  }
  for (const OpDef* op : e.ops.all()) {
    report.begin("complete " + op->name());
    report.expect(described.contains(op->name()) ? "" : "has no description");
    const bool kernel = !e.registry.find_kernels(op->name(), e.tested().device->kernels_of()).empty();
    if (op->view)
      report.expect(kernel ? "is a view, but has a kernel" : "");
    else
      report.expect(kernel || op->decompose ? "" : "has no kernel for the device and is not made of other ops");
  }
  std::set<std::string> seen;
  for (const KernelRef& k : e.registry.kernels()) {
    const std::string op(view_of(k.kernel->op));
    report.begin(fmt::format("complete {} of {}", op, k.plugin));
    report.expect(e.ops.find(op) ? "" : "a kernel of an op that nobody defines");
    report.expect(seen.insert(fmt::format("{} {} {}", op, view_of(k.kernel->device), view_of(k.kernel->backend))).second
                      ? ""
                      : "two kernels of one op, device and backend");
  }
}

}  // namespace gestalt::harness

#include <algorithm>
#include <set>

#include "core/base/host.h"
#include "tests/harness/checks.h"

namespace gestalt::harness {

using namespace core;

namespace {

const Description* find(const std::vector<Description>& all, const std::string& op) {
  auto it = std::find_if(all.begin(), all.end(), [&](const Description& d) { return d.op == op; });
  return it == all.end() ? nullptr : &*it;
}

std::string gradient_of(const OpDef& op) {
  if (op.vjp) return "rule";
  if (op.decompose) return "decomposition";
  return "none";
}

}  // namespace

std::string support_matrix(const Environment& e) {
  std::vector<Description> all;
  for (const Family& family : families())
    for (Description& d : family.make()) all.push_back(std::move(d));

  std::string out =
      "# Ops\n\n"
      "Made by `gestalt_harness --matrix`; a test compares. The schema is the one source of names, defaults and "
      "marks:\n"
      "`name?` may be absent, `name!mut` is written, `!inplace(x)` may take the place of x, `!acc(f32)` may be written "
      "or\n"
      "added to in f32, `!saved` is kept for the backward, `!nograd` passes no gradient, `!view` shares storage.\n\n"
      "| group | op | gradient |\n|---|---|---|\n";
  std::vector<const OpDef*> ops = e.ops.all();
  std::stable_sort(ops.begin(), ops.end(), [](const OpDef* a, const OpDef* b) { return a->group < b->group; });
  for (const OpDef* op : ops) out += fmt::format("| {} | `{}` | {} |\n", op->group, op->text, gradient_of(*op));

  std::set<std::pair<std::string, std::string>> backends;
  for (const KernelRef& k : e.registry.kernels())
    backends.emplace(std::string(view_of(k.kernel->device)), std::string(view_of(k.kernel->backend)));
  out +=
      "\n## Kernels\n\nWhich element types each backend takes (the first operand's; sums over 16-bit types are in "
      "f32). View "
      "ops need no\nkernel, and ops with a decomposition run without one. The device `sim` runs the kernels of "
      "`cpu`.\n\n| op |";
  for (const auto& [device, backend] : backends) out += fmt::format(" {}: {} |", device, backend);
  out += "\n|---|";
  for (size_t i = 0; i < backends.size(); ++i) out += "---|";
  out += "\n";
  for (const OpDef* op : ops) {
    const Description* d = find(all, op->name());
    if (op->view || !d) continue;
    out += fmt::format("| `{}` |", op->name());
    for (const auto& [device, backend] : backends) {
      std::string cell;
      for (const KernelRef& k : e.registry.find_kernels(op->name(), device)) {
        if (view_of(k.kernel->backend) != backend) continue;
        if (d->cases.at(0).in.empty()) {  // the result's dtype is an attribute
          for (const Case& c : d->cases) {
            std::string reason;
            const std::string name(dtype_name(infer_outputs(e, *op, c, GESTALT_F32).at(0).dtype));
            if ((" " + cell + " ").find(" " + name + " ") == std::string::npos &&
                accepts(e, k, *op, c, GESTALT_F32, &reason))
              cell += (cell.empty() ? "" : " ") + name;
          }
          continue;
        }
        for (uint32_t dtype : {GESTALT_F64, GESTALT_F32, GESTALT_BF16, GESTALT_F16, GESTALT_I64, GESTALT_I32,
                               GESTALT_U8, GESTALT_BOOL}) {
          std::string reason;
          const bool listed = std::find(d->dtypes.begin(), d->dtypes.end(), dtype) != d->dtypes.end();
          if (listed && accepts(e, k, *op, d->cases.at(0), dtype, &reason))
            cell += (cell.empty() ? "" : " ") + std::string(dtype_name(dtype));
        }
      }
      out += cell.empty() ? " - |" : " " + cell + " |";
    }
    out += "\n";
  }
  return out;
}

}  // namespace gestalt::harness

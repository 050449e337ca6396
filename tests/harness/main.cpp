// The op harness: checks every described op on every backend. See description.h for what a description says and
// checks.h for what is checked.

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "core/base/text.h"
#include "core/runtime/parallel.h"
#include "tests/harness/checks.h"

namespace gestalt::harness {

namespace {

struct Options {
  std::set<std::string> ops, families;
  std::string backend, compare, device = "cpu";
  std::vector<std::string> search, plugins = {"gestalt.device_cpu", "gestalt.device_sim", "gestalt.kernels_cpu"};
  std::set<std::string> checks;
  uint64_t seed = 20251;
  bool small = false, list = false, matrix = false, speed = false, large = false, complete = false;
};

constexpr const char* kUsage =
    "gestalt_harness [--op NAME]... [--family NAME]... [--backend NAME] [--check NAME]... [--seed N] [--small]\n"
    "                [--device cpu|cuda] [--plugins DIR]... [--use PLUGIN]...\n"
    "                [--list | --matrix | --compare FILE | --complete | --speed | --speed-large]\n"
    "checks: kernel, program, gradient, bad\n";

Options parse(int argc, char** argv) {
  Options o;
  auto value = [&](int& i) {
    if (i + 1 >= argc) core::fail(GESTALT_INVALID_ARGUMENT, "[{}] needs a value\n{}", argv[i], kUsage);
    return std::string(argv[++i]);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--op")
      o.ops.insert(value(i));
    else if (a == "--family")
      o.families.insert(value(i));
    else if (a == "--device")
      o.device = value(i);
    else if (a == "--backend")
      o.backend = value(i);
    else if (a == "--check")
      o.checks.insert(value(i));
    else if (a == "--seed")
      o.seed = std::stoull(value(i));
    else if (a == "--plugins")
      o.search.push_back(value(i));
    else if (a == "--use")
      o.plugins.push_back(value(i));
    else if (a == "--compare")
      o.compare = value(i);
    else if (a == "--small")
      o.small = true;
    else if (a == "--list")
      o.list = true;
    else if (a == "--matrix")
      o.matrix = true;
    else if (a == "--complete")
      o.complete = true;
    else if (a == "--speed")
      o.speed = true;
    else if (a == "--speed-large")
      o.large = true;
    else
      core::fail(GESTALT_INVALID_ARGUMENT, "[{}] unknown option\n{}", a, kUsage);
  }
  if (o.device != "cpu")
    for (const char* kind : {"gestalt.device_", "gestalt.kernels_"}) o.plugins.push_back(kind + o.device);
  return o;
}

bool contains(const std::set<std::string>& wanted, const std::string& name) {
  return wanted.empty() || wanted.contains(name) || wanted.contains("core." + name) ||
         (name.starts_with("core.") && wanted.contains(name.substr(5)));
}

int compare_file(const std::string& path, const std::string& text) {
  std::ifstream file(path, std::ios::binary);
  const std::string have((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (have == text) {
    std::printf("%s is up to date\n", path.c_str());
    return 0;
  }
  std::printf("FAILED %s differs from the registry; write it anew with gestalt_harness --matrix\n", path.c_str());
  return 1;
}

void check_op(const Environment& e, const Options& o, const Description& d, Report& report) {
  const core::OpDef& op = e.ops.get(d.op);
  const CheckContext c{e, d, op, o.backend, report, o.seed, o.small};
  if (o.speed) return print_speed(c);
  core::set_num_threads(1);
  if (op.view) {
    if (contains(o.checks, "kernel")) check_views(c);
  } else if (op.decompose && c.kernels().empty()) {
    if (contains(o.checks, "kernel")) check_decomposed(c);
  } else {
    if (contains(o.checks, "kernel")) check_kernels(c);
    core::set_num_threads(1);
    if (contains(o.checks, "program")) check_programs(c);
  }
  core::set_num_threads(1);
  if (contains(o.checks, "gradient")) check_gradient(c);
  if (contains(o.checks, "bad")) check_bad_inputs(c);
}

int run(int argc, char** argv) {
  const Options o = parse(argc, argv);
  if (o.list) {
    for (const Family& family : families())
      for (const Description& d : family.make()) std::printf("%s %s\n", family.name.c_str(), d.op.c_str());
    return 0;
  }
  Environment e(o.search, o.plugins, o.seed, o.device);
  if (o.matrix) {
    std::fputs(support_matrix(e).c_str(), stdout);
    return 0;
  }
  if (!o.compare.empty()) return compare_file(o.compare, support_matrix(e));
  if (o.large) {
    print_large_speeds(e, o.ops);
    return 0;
  }
  Report report;
  size_t ops = 0;
  if (o.complete) check_complete(e, report);
  for (const Family& family : families()) {
    if (o.complete || !contains(o.families, family.name)) continue;
    for (const Description& d : family.make()) {
      if (!contains(o.ops, d.op)) continue;
      ++ops;
      const int64_t before = report.failed();
      check_op(e, o, d, report);
      if (report.failed() > before)
        std::printf("again: gestalt_harness --device %s --op %s --seed %llu\n", o.device.c_str(), d.op.c_str(),
                    static_cast<unsigned long long>(o.seed));
    }
  }
  if (o.speed) return 0;
  if (!o.complete && ops == 0) core::fail(GESTALT_INVALID_ARGUMENT, "[--op, --family] no such op; see --list");
  std::printf("%zu ops, %lld checks passed, %lld failed, seed %llu\n", ops, static_cast<long long>(report.passed()),
              static_cast<long long>(report.failed()), static_cast<unsigned long long>(o.seed));
  return report.failed() ? 1 : 0;
}

}  // namespace

}  // namespace gestalt::harness

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return gestalt::harness::run(argc, argv);
  } catch (const gestalt::core::Error& e) {
    std::fprintf(stderr, "gestalt_harness: %s\n", e.what());
    return 2;
  }
}

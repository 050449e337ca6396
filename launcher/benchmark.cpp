#include "launcher/benchmark.h"

#include <cstring>

namespace gestalt::launcher {

namespace {
std::vector<const Benchmark*>& benchmarks() {
  static std::vector<const Benchmark*> list;
  return list;
}
}  // namespace

Benchmark::Benchmark(const char* name, const char* summary, Run run) : name_(name), summary_(summary), run_(run) {
  benchmarks().push_back(this);
}

std::vector<const Benchmark*> Benchmark::all() {
  std::vector<const Benchmark*> list = benchmarks();
  std::sort(list.begin(), list.end(),
            [](const Benchmark* a, const Benchmark* b) { return std::strcmp(a->name(), b->name()) < 0; });
  return list;
}

}  // namespace gestalt::launcher

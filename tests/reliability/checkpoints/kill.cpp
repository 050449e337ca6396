// SIGKILL at random times: of the trainer, its saver, one of the writers, or all of them. After each the newest
// checkpoint must be whole and no older than the last that was acknowledged.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "tests/reliability/checkpoints/faults.h"

namespace gestalt::test {

namespace {

std::vector<int> children_of(int pid) {
  std::ifstream in(fmt::format("/proc/{0}/task/{0}/children", pid));
  std::vector<int> list;
  for (int child = 0; in >> child;) list.push_back(child);
  return list;
}

// The trainer and all below it.
std::vector<int> family_of(int pid) {
  std::vector<int> list = {pid};
  for (size_t i = 0; i < list.size(); ++i)
    for (const int child : children_of(list[i])) list.push_back(child);
  return list;
}

}  // namespace

int run_kill(const Options& given) {
  Options o = given;
  o.process = true;
  o.steps = 1'000'000;
  Plugins plugins(o.component);
  std::mt19937_64 random(o.seed);
  int64_t newest = check_newest(plugins.registry(), o), acknowledged = newest, saves = 0;
  int64_t counts[4] = {};
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t kills = 0; kills < o.runs;) {
    Child trainer({}, arguments_of("train", o));
    while (true) {
      // Mostly from a moment at which it works, not while it starts.
      if (random() % 4 != 0) trainer.wait_for_ack(10'000);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 250'000));
      const std::vector<int> family = family_of(trainer.pid());
      const uint64_t kind = random() % 4;  // trainer, saver, a writer, all
      ++counts[kind];
      ++kills;
      if (kind == 3)
        for (const int pid : family) ::kill(pid, SIGKILL);
      else if (kind == 0 || family.size() < 2)
        ::kill(trainer.pid(), SIGKILL);
      else
        ::kill(kind == 1 ? family[1] : family[1 + random() % (family.size() - 1)], SIGKILL);
      if (kind == 0 || kind == 3 || family.size() < 2 || kills >= o.runs) break;
    }
    ::kill(trainer.pid(), SIGKILL);
    const Ended ended = trainer.wait();
    for (const int64_t step : ended.acknowledged()) {
      acknowledged = std::max(acknowledged, step);
      ++saves;
    }
    newest = check_newest(plugins.registry(), o);
    if (newest < acknowledged)
      core::fail(GESTALT_DATA_ERROR, "seed {}, kill {}: step {} was acknowledged, the newest is {}", o.seed, kills, acknowledged, newest);
    if (ended.output.find("trained") != std::string::npos) core::fail(GESTALT_INTERNAL, "the trainer came to its end");
  }
  std::printf("seed %llu: %lld kills (%lld trainer, %lld saver, %lld any below, %lld all), %lld acknowledged saves, none lost, newest step %lld, %.0f s\n",
              static_cast<unsigned long long>(o.seed), static_cast<long long>(o.runs), static_cast<long long>(counts[0]),
              static_cast<long long>(counts[1]), static_cast<long long>(counts[2]), static_cast<long long>(counts[3]),
              static_cast<long long>(saves), static_cast<long long>(newest),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return saves > 0 ? 0 : 1;
}

}  // namespace gestalt::test

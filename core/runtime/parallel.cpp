#include "core/runtime/parallel.h"

#include <omp.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "core/base/host.h"

namespace gestalt::core {

namespace {

int64_t threads_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (!text || !*text) return 0;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  // OMP_NUM_THREADS may be a list, one number a nesting level: the first counts.
  if (end == text || (*end && *end != ',') || value < 1 || value > 4096)
    fail(GESTALT_CONFIG_ERROR, "[{}] wrong number of threads, got \"{}\", expected 1 to 4096", name, text);
  return value;
}

int64_t initial_threads() {
  for (const char* name : {"GESTALT_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const int64_t n = threads_from_environment(name)) return n;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, omp_get_num_procs());
}

struct Team {
  std::atomic<int64_t> threads{initial_threads()};
  std::atomic<bool> busy{false};
  gestalt_parallel_1 table{};
};

int64_t num_threads(void* self) noexcept { return static_cast<Team*>(self)->threads.load(std::memory_order_relaxed); }

// One parallel_for. The two atomics order nothing that the OpenMP runtime does not; they show ThreadSanitizer, which
// does not see into that runtime, where a region begins and ends.
struct Job {
  Partition ranges;
  void (*fn)(void*, int64_t, int64_t);
  void* ctx;
  std::atomic<bool> begun{false};
  std::atomic<int> ended{0};

  void run(int64_t member, int64_t members) {
    for (int64_t i = member; i < ranges.num_ranges; i += members) fn(ctx, ranges.begin(i), ranges.begin(i + 1));
  }
  void run_on_team(int threads) {
    Job* job = this;
    begun.store(true, std::memory_order_release);
#pragma omp parallel num_threads(threads) firstprivate(job)
    {
      if (job->begun.load(std::memory_order_acquire)) job->run(omp_get_thread_num(), omp_get_num_threads());
      job->ended.fetch_add(1, std::memory_order_release);
    }
    ended.load(std::memory_order_acquire);
  }
};

void run_ranges(void* self, int64_t n, int64_t grain, void (*fn)(void*, int64_t, int64_t), void* ctx) noexcept {
  if (n <= 0) return;
  auto& team = *static_cast<Team*>(self);
  const int64_t threads = num_threads(self);
  Job job{Partition(n, grain, threads), fn, ctx};
  if (job.ranges.num_ranges == 1) return fn(ctx, 0, n);
  // One team: a nested call, and a call from another host thread meanwhile, walks the same ranges by itself.
  if (team.busy.exchange(true, std::memory_order_acquire)) return job.run(0, 1);
  // Always the whole team, even for fewer ranges: the OpenMP runtime keeps a team for reuse only while its size stays.
  job.run_on_team(static_cast<int>(threads));
  team.busy.store(false, std::memory_order_release);
}

Team& team() {
  // Never destroyed: plugins keep the table.
  static Team* made = [] {
    auto* t = new Team;
    t->table = gestalt_parallel_1{sizeof(gestalt_parallel_1), t, num_threads, run_ranges};
    register_interface("gestalt.parallel/1", &t->table);
    return t;
  }();
  return *made;
}

}  // namespace

const gestalt_parallel_1* parallel() { return &team().table; }

void set_num_threads(int64_t threads) {
  if (threads < 1 || threads > 4096)
    fail(GESTALT_CONFIG_ERROR, "[threads] wrong number of threads, got {}, expected 1 to 4096", threads);
  team().threads.store(threads, std::memory_order_relaxed);
}

}  // namespace gestalt::core

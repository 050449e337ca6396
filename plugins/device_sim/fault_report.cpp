#include "plugins/device_sim/fault_report.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace gestalt::device_sim {

namespace {

constexpr int kMaxDevices = 64;
constinit std::atomic<const Memory*> g_memories[kMaxDevices] = {};
constinit std::mutex g_mutex;
constinit int g_devices = 0;
constinit struct sigaction g_previous = {};

void report(int, siginfo_t* fault, void*) {
  char where[128], line[384];
  for (const auto& entry : g_memories) {
    const Memory* memory = entry.load();
    if (!memory || !memory->describe(reinterpret_cast<uintptr_t>(fault->si_addr), where, sizeof where)) continue;
    const int size =
        std::snprintf(line, sizeof line,
                      "[sim] closed device memory was touched: %s; no running work holds it. A missing copy, a "
                      "kernel outside its views, or memory used after it was freed.\n",
                      where);
    if (write(STDERR_FILENO, line, static_cast<size_t>(size)) < 0) break;
  }
  // Back at the fault, whoever was responsible before decides: a debugger, a sanitizer, or the default, which ends it.
  sigaction(SIGSEGV, &g_previous, nullptr);
}

}  // namespace

void start_fault_report(const Memory* memory) {
  std::lock_guard lock(g_mutex);
  for (auto& entry : g_memories)
    if (!entry.load()) {
      entry = memory;
      break;
    }
  if (g_devices++ > 0) return;
  struct sigaction action = {};
  action.sa_sigaction = report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &g_previous);
}

void stop_fault_report(const Memory* memory) {
  std::lock_guard lock(g_mutex);
  for (auto& entry : g_memories)
    if (entry.load() == memory) entry = nullptr;
  if (--g_devices > 0) return;
  // Only if nobody has put another handler on top.
  struct sigaction current = {};
  sigaction(SIGSEGV, nullptr, &current);
  if (current.sa_sigaction == report) sigaction(SIGSEGV, &g_previous, nullptr);
}

}  // namespace gestalt::device_sim

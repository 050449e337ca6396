#include <atomic>
#include <csignal>
#include <unistd.h>

#include "core/session/session.h"

namespace gestalt::core {

namespace {

std::atomic<int> g_stop{0};
std::atomic<int> g_save{0};

// Only async-signal-safe work: a flag, or the end of the process.
extern "C" void on_stop(int signal) {
  if (g_stop.exchange(1) != 0) _exit(128 + signal);
}
extern "C" void on_save(int) { g_save.store(1); }

}  // namespace

void install_signal_handlers() {
  struct sigaction stop {};
  stop.sa_handler = on_stop;
  sigaction(SIGTERM, &stop, nullptr);
  sigaction(SIGINT, &stop, nullptr);
  struct sigaction save {};
  save.sa_handler = on_save;
  save.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &save, nullptr);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
}

int32_t stop_requested() {
  if (g_stop.load() != 0) return 1;
  return g_save.exchange(0) != 0 ? 2 : 0;
}

}  // namespace gestalt::core

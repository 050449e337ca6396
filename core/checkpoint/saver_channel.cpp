#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "core/base/error.h"
#include "core/checkpoint/saver_process.h"

namespace gestalt::core {

namespace {

constexpr uint64_t kMaxMessage = uint64_t{1} << 30;
constexpr int kAboveFixed = 10;  // descriptors are moved up here first, so that the fixed numbers do not meet them

bool send_all(int descriptor, const void* data, size_t bytes) {
  auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(descriptor, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool receive_all(int descriptor, void* data, size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::recv(descriptor, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

[[noreturn]] void fail_start(const char* what, int error) {
  fail(GESTALT_IO_ERROR, "[checkpoint] cannot start the saver process: {}: {}", what, std::strerror(error));
}

}  // namespace

Channel::~Channel() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Channel::send(const support::Json& message) const {
  const std::string text = support::write_json(message);
  const uint64_t bytes = text.size();
  return send_all(descriptor_, &bytes, sizeof(bytes)) && send_all(descriptor_, text.data(), text.size());
}

std::optional<support::Json> Channel::receive() const {
  uint64_t bytes = 0;
  if (!receive_all(descriptor_, &bytes, sizeof(bytes)) || bytes > kMaxMessage) return std::nullopt;
  std::string text(bytes, '\0');
  if (!receive_all(descriptor_, text.data(), text.size())) return std::nullopt;
  return support::parse_json(text, "saver message", {kMaxMessage, 64});
}

bool Channel::has_message(int timeout_ms) const {
  pollfd one{descriptor_, POLLIN, 0};
  return ::poll(&one, 1, timeout_ms) > 0;
}

Served::Served(const std::string& command, int memory, int lock) : channel_(-1) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail_start("socketpair", errno);
  channel_ = Channel(ends[0]);
  const Channel theirs(ends[1]);
  int high[3] = {-1, -1, -1};
  const int from[3] = {ends[1], memory, lock}, to[3] = {kSocket, kMemory, kLock};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  // A group of its own: an interrupt from the terminal is the trainer's to handle.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  int error = 0;
  for (int i = 0; i < 3 && error == 0; ++i) {
    if (from[i] < 0) continue;
    high[i] = ::fcntl(from[i], F_DUPFD_CLOEXEC, kAboveFixed);
    error = high[i] < 0 ? errno : posix_spawn_file_actions_adddup2(&actions, high[i], to[i]);
  }
  char* argv[] = {const_cast<char*>("gestalt"), const_cast<char*>("_saver"), nullptr};
  if (error == 0) error = ::posix_spawn(&pid_, command.c_str(), &actions, &attributes, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  for (const int descriptor : high)
    if (descriptor >= 0) ::close(descriptor);
  if (error != 0) {
    pid_ = -1;
    fail_start(command.c_str(), error);
  }
}

Served::~Served() {
  channel_ = Channel(-1);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

std::string Served::ending() {
  int status = 0;
  if (pid_ <= 0 || ::waitpid(std::exchange(pid_, -1), &status, 0) < 0) return "an unknown cause";
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace gestalt::core

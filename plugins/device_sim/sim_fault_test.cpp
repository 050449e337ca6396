// Touching closed memory ends the process, so each case runs a hidden case of this executable as a child and looks at
// how it ended and what it said.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "plugins/device_sim/sim_test_device.h"
#include "tests/catch_compat.hpp"

namespace gestalt::device_sim {

using core::Buffer;
using core::Category;
using core::Stream;
using core::Tensor;

namespace {

struct Ended {
  bool died;
  std::string said;
};

Ended run_case(const char* name) {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    close(pipe_ends[0]);
    execl("/proc/self/exe", "child", name, static_cast<char*>(nullptr));
    _exit(0);
  }
  close(pipe_ends[1]);
  Ended ended{};
  char text[4096];
  for (ssize_t n; (n = ::read(pipe_ends[0], text, sizeof text)) > 0;) ended.said.append(text, static_cast<size_t>(n));
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ended.died = WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
  return ended;
}

void expect_fault(const char* name, const char* what) {
  const Ended ended = run_case(name);
  CAPTURE(ended.said);
  CHECK(ended.died);
  CHECK_THAT(ended.said, Catch::Contains("[sim] closed device memory was touched: " + std::string(what)));
}

void start(SimUnderTest& sim, Launch& kernel) {
  Stream stream = sim.device->open_stream();
  kernel(sim, stream);
  sim.device->sync();
}

}  // namespace

TEST_CASE("child: host read", "[.child]") {
  SimUnderTest sim;
  Buffer a = sim.device->alloc(4, Category::kOther);
  sim.device->fill(a.data(), 0, 4);
  CHECK(*static_cast<volatile float*>(a.data()) == 0);
}

TEST_CASE("the host cannot read device memory without a copy") {
  expect_fault("child: host read", "byte 0 of the live allocation 1 (4 bytes)");
}

TEST_CASE("child: host write in arena", "[.child]") {
  SimUnderTest sim;
  Buffer a = sim.device->alloc(3 * sim.device->alignment(), Category::kOther);
  static_cast<volatile char*>(a.data())[2 * sim.device->alignment()] = 1;
}

TEST_CASE("the host cannot write device memory without a copy") {
  expect_fault("child: host write in arena", "byte 8192 of the live allocation 1");
}

TEST_CASE("child: kernel beyond its pages", "[.child]") {
  SimUnderTest sim;
  const auto page = static_cast<int64_t>(sim.device->alignment());
  Buffer arena = sim.device->alloc(static_cast<uint64_t>(3 * page), Category::kActivations);
  auto overrun = [](void*, const gestalt_call* call) -> gestalt_status* {
    static_cast<volatile float*>(call->out[0]->data)[1024] = 1;
    return nullptr;
  };
  Launch kernel(overrun, {}, {floats(arena, page / 4)});
  start(sim, kernel);
}

TEST_CASE("a kernel cannot write beyond the pages of its output, though the arena goes on") {
  expect_fault("child: kernel beyond its pages", "byte 4096 of the live allocation 1");
}

TEST_CASE("child: kernel past the allocation", "[.child]") {
  SimUnderTest sim;
  Buffer a = sim.device->alloc(sim.device->alignment(), Category::kActivations);
  auto overrun = [](void*, const gestalt_call* call) -> gestalt_status* {
    static_cast<volatile char*>(call->out[0]->data)[-1] = 1;
    return nullptr;
  };
  Launch kernel(overrun, {}, {floats(a, 4)});
  start(sim, kernel);
}

TEST_CASE("guard pages catch a kernel that leaves its allocation") {
  expect_fault("child: kernel past the allocation", "byte -1 of the live allocation 1");
}

TEST_CASE("child: kernel keeps a pointer", "[.child]") {
  SimUnderTest sim;
  Buffer a = sim.device->alloc(4, Category::kOther), b = sim.device->alloc(4, Category::kOther);
  auto hidden = [](void* state, const gestalt_call*) -> gestalt_status* {
    *static_cast<volatile float*>(state) = 1;
    return nullptr;
  };
  Launch kernel(hidden, {}, {floats(b, 1)}, a.data());
  start(sim, kernel);
}

TEST_CASE("a kernel cannot touch memory that is not among its views") {
  expect_fault("child: kernel keeps a pointer", "byte 0 of the live allocation 1");
}

TEST_CASE("child: use after free", "[.child]") {
  SimUnderTest sim;
  Buffer pinned = sim.device->alloc_pinned(4);
  auto* data = static_cast<volatile float*>(pinned.data());
  *data = 1;
  pinned = Buffer();
  // Many allocations later the address is still nobody's.
  for (int i = 0; i < 100; ++i) pinned = sim.device->alloc_pinned(4);
  *data = 2;
}

TEST_CASE("memory cannot be used after it was freed, not even pinned memory") {
  expect_fault("child: use after free", "byte 0 of the FREED allocation 1");
}

TEST_CASE("child: two devices", "[.child]") {
  SimUnderTest first;
  { SimUnderTest second; }
  Buffer a = first.device->alloc(4, Category::kOther);
  *static_cast<volatile char*>(a.data()) = 1;
}

TEST_CASE("the report still works after another device of the process was closed") {
  expect_fault("child: two devices", "byte 0 of the live allocation 1");
}

}  // namespace gestalt::device_sim

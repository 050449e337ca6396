#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gestalt/abi/base.h"

// A host for the tests and the benchmark of this plugin: statuses and gestalt.parallel/1 on threads of its own.
namespace gestalt::kernels_cpu {

class LocalHost {
 public:
  explicit LocalHost(int64_t num_threads) : num_threads_(num_threads) {
    host_ = {sizeof(gestalt_host), GESTALT_ABI_MAJOR, GESTALT_ABI_MINOR, this, status_new, status_free, status_get, log,
             get_interface};
    parallel_ = {sizeof(gestalt_parallel_1), this, count, parallel_for};
    for (int64_t i = 1; i < num_threads; ++i) threads_.emplace_back([this, i] { work(i); });
  }
  LocalHost(const LocalHost&) = delete;
  LocalHost& operator=(const LocalHost&) = delete;
  ~LocalHost() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  const gestalt_host* get() const { return &host_; }

 private:
  struct Status {
    int32_t code;
    std::string message;
  };
  using Work = void (*)(void* ctx, int64_t begin, int64_t end);

  static gestalt_status* status_new(void*, int32_t code, gestalt_str message) noexcept {
    return reinterpret_cast<gestalt_status*>(new Status{code, std::string(message.data, message.size)});
  }
  static void status_free(void*, gestalt_status* status) noexcept { delete reinterpret_cast<Status*>(status); }
  static int32_t status_get(void*, const gestalt_status* status, gestalt_str* message) noexcept {
    const Status* s = reinterpret_cast<const Status*>(status);
    *message = {s->message.data(), s->message.size()};
    return s->code;
  }
  static void log(void*, int32_t, gestalt_str) noexcept {}
  static const void* get_interface(void* self, gestalt_str id) noexcept {
    if (std::string(id.data, id.size) != "gestalt.parallel/1") return nullptr;
    return &static_cast<LocalHost*>(self)->parallel_;
  }
  static int64_t count(void* self) noexcept { return static_cast<LocalHost*>(self)->num_threads_; }
  static void parallel_for(void* self, int64_t n, int64_t grain, Work fn, void* ctx) noexcept {
    static_cast<LocalHost*>(self)->share(n, grain, fn, ctx);
  }

  void share(int64_t n, int64_t grain, Work fn, void* ctx) {
    int64_t parts = grain > 0 ? n / grain : n;
    parts = parts < 1 ? 1 : parts > num_threads_ ? num_threads_ : parts;
    if (parts == 1) return fn(ctx, 0, n);
    {
      const std::lock_guard lock(mutex_);
      fn_ = fn;
      ctx_ = ctx;
      n_ = n;
      parts_ = parts;
      running_.store(num_threads_ - 1);
      ++round_;
    }
    wake_.notify_all();
    fn(ctx, 0, n / parts);
    while (running_.load() != 0) std::this_thread::yield();
  }
  void work(int64_t index) {
    for (int64_t seen = 0;;) {
      for (int spin = 0; spin < 20000 && round_.load() == seen; ++spin) {
      }
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || round_.load() != seen; });
        if (stopping_) return;
        seen = round_.load();
      }
      if (index < parts_) fn_(ctx_, n_ * index / parts_, n_ * (index + 1) / parts_);
      --running_;
    }
  }

  gestalt_host host_;
  gestalt_parallel_1 parallel_;
  int64_t num_threads_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::atomic<int64_t> round_{0}, running_{0};
  Work fn_ = nullptr;
  void* ctx_ = nullptr;
  int64_t n_ = 0, parts_ = 0;
};

}  // namespace gestalt::kernels_cpu

// Ranks as threads of one process, for tests: every rank has a run of its own, and collectives read each other's memory
// directly. They run at the call, so they are in order on devices whose streams call them (cpu, sim).
#include "plugins/comm_threads/threads_comm.h"

#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "gestalt/comm.hpp"
#include "plugins/comm_threads/meeting.h"
#include "plugins/comm_threads/reduce.h"

namespace gestalt::comm_threads {

namespace {

struct Group {
  std::shared_ptr<Meeting> meeting;
  std::vector<int64_t> ranks;
  size_t member;  // this rank's place
};

Call call_of(View in, View out) {
  return {in.raw()->data, out.raw()->data, in.numel(), in.dtype(), {}};
}

void expect(bool holds, const char* what, const std::string& message) {
  if (!holds) throw InvalidArgument(std::string("[") + what + "] " + message);
}

void expect_reduction(const char* what, int32_t op) {
  expect(op >= GESTALT_REDUCE_SUM && op <= GESTALT_REDUCE_MIN, what,
         "unknown reduction, got " + std::to_string(op) + ", expected 0 to 2");
}

void expect_elements(const char* what, View in, View out, int64_t in_times, int64_t out_times) {
  expect(in.dtype() == out.dtype() && in.numel() * in_times == out.numel() * out_times, what,
         "in and out do not fit, got " + describe(in) + " and " + describe(out));
  for (View v : {in, out})
    expect(v.raw()->device_type == GESTALT_DEVICE_CPU || v.raw()->device_type == GESTALT_DEVICE_SIM, what,
           "works on host memory, got a view on device type " + std::to_string(v.raw()->device_type));
}

class ThreadsComm : public Comm {
 public:
  static constexpr std::string_view name = "gestalt.threads";
  static constexpr ConfigKey keys[] = {
      {.name = "rank", .type = "i64", .default_value = "0", .min = "0", .doc = "this run's place among the ranks"},
      {.name = "size", .type = "i64", .default_value = "1", .min = "1", .doc = "number of ranks"},
      {.name = "room", .type = "str", .default_value = "\"\"", .doc = "runs of one process in one room are one world"}};

  ThreadsComm(Host, Attrs config)
      : rank_(config.i64("rank")), world_(World::enter(std::string(config.str("room")), rank_, config.i64("size"))) {}
  ~ThreadsComm() { world_->leave(rank_); }

  void world(int64_t& rank, int64_t& size) override {
    rank = rank_;
    size = world_->size();
  }

  void* group_open(std::span<const int64_t> ranks) override {
    auto group = std::make_unique<Group>();
    group->ranks.assign(ranks.begin(), ranks.end());
    group->member = ranks.size();
    for (size_t i = 0; i < ranks.size(); ++i) {
      expect(ranks[i] >= 0 && ranks[i] < world_->size(), "group_open",
             "rank outside of the world, got " + std::to_string(ranks[i]) + ", expected 0 to " +
                 std::to_string(world_->size() - 1));
      for (size_t k = 0; k < i; ++k)
        expect(ranks[k] != ranks[i], "group_open", "rank " + std::to_string(ranks[i]) + " given twice");
      if (ranks[i] == rank_) group->member = i;
    }
    if (ranks.empty()) return nullptr;
    expect(group->member < ranks.size(), "group_open", "the list is without this rank, " + std::to_string(rank_));
    group->meeting = world_->meeting(rank_, group->ranks);
    groups_.push_back(std::move(group));
    return groups_.back().get();
  }
  void group_close(void* group) override {
    std::erase_if(groups_, [&](const auto& g) { return g.get() == group; });
  }

  void all_reduce(void* group, View in, View out, int32_t op, void*) override {
    expect_reduction("all_reduce", op);
    expect_elements("all_reduce", in, out, 1, 1);
    together(group, call_of(in, out), [&](const Group& g, const std::vector<Call>& calls) {
      std::vector<const void*> from;
      std::vector<void*> to;
      for (const Call& c : calls) {
        from.push_back(c.in);
        to.push_back(c.out);
      }
      // Each member reduces its own run of elements, for everybody.
      const auto size = static_cast<int64_t>(calls.size()), at = static_cast<int64_t>(g.member);
      reduce_elements(in.dtype(), op, from, to, in.numel() * at / size, in.numel() * (at + 1) / size);
    });
  }

  void all_gather(void* group, View in, View out, void*) override {
    expect_elements("all_gather", in, out, size_of_group(group), 1);
    together(group, call_of(in, out), [&](const Group&, const std::vector<Call>& calls) {
      const int64_t bytes = in.numel() * size_of(in.dtype());
      for (size_t k = 0; k < calls.size(); ++k)
        copy(static_cast<char*>(out.raw()->data) + static_cast<int64_t>(k) * bytes, calls[k].in, bytes);
    });
  }

  void reduce_scatter(void* group, View in, View out, int32_t op, void*) override {
    expect_reduction("reduce_scatter", op);
    expect_elements("reduce_scatter", in, out, 1, size_of_group(group));
    // `out` may lie inside `in`, which the others still read: the result waits until all have read.
    std::vector<char> result(static_cast<size_t>(out.numel() * size_of(out.dtype())));
    together(group, call_of(in, out), [&](const Group& g, const std::vector<Call>& calls) {
      const int64_t begin = static_cast<int64_t>(g.member) * out.numel();
      std::vector<const void*> from;
      for (const Call& c : calls) from.push_back(static_cast<const char*>(c.in) + begin * size_of(in.dtype()));
      reduce_elements(in.dtype(), op, from, {result.data()}, 0, out.numel());
    });
    copy(out.raw()->data, result.data(), static_cast<int64_t>(result.size()));
  }

  void all_to_all(void* group, View in, const int64_t* send_counts, View out, const int64_t* recv_counts,
                  void*) override {
    Call call = call_of(in, out);
    call.num_in = -1;  // ranks send different numbers of elements
    call.send_counts.assign(send_counts, send_counts + size_of_group(group));
    together(group, call,
             [&](const Group& g, const std::vector<Call>& calls) {
               const int64_t element = size_of(in.dtype());
               int64_t to = 0;
               for (size_t k = 0; k < calls.size(); ++k) {
                 int64_t from = 0;
                 for (size_t j = 0; j < g.member; ++j) from += calls[k].send_counts[j];
                 const int64_t count = calls[k].send_counts[g.member];
                 expect(count == recv_counts[k] && to + count <= out.numel(),
                        "all_to_all",
                        "counts do not fit, got " + std::to_string(count) + " sent by member " + std::to_string(k) +
                            ", expected " + std::to_string(recv_counts[k]) + ", within the view");
                 copy(static_cast<char*>(out.raw()->data) + to * element,
                      static_cast<const char*>(calls[k].in) + from * element, count * element);
                 to += count;
               }
             });
  }

  void broadcast(void* group, View in, View out, int64_t root, void*) override {
    expect(root >= 0 && root < size_of_group(group), "broadcast",
           "rank outside of the group, got " + std::to_string(root) + ", expected 0 to " +
               std::to_string(size_of_group(group) - 1));
    expect_elements("broadcast", in, out, 1, 1);
    together(group, call_of(in, out), [&](const Group&, const std::vector<Call>& calls) {
      copy(out.raw()->data, calls[static_cast<size_t>(root)].in, in.numel() * size_of(in.dtype()));
    });
  }

  void send(void* group, View in, int64_t to, void*) override {
    Group& g = *static_cast<Group*>(group);
    expect_member("send", g, to);
    auto letter = std::make_unique<Letter>(Letter{in.raw()->data, bytes_of(in)});
    g.meeting->post(g.member, static_cast<size_t>(to), *letter);
    if (in_batch_)
      sent_.push_back({&g, std::move(letter)});
    else
      g.meeting->wait_taken(*letter);
  }
  void recv(void* group, View out, int64_t from, void*) override {
    Group& g = *static_cast<Group*>(group);
    expect_member("recv", g, from);
    if (in_batch_)
      received_.push_back({&g, static_cast<size_t>(from), out.raw()->data, bytes_of(out)});
    else
      g.meeting->take(static_cast<size_t>(from), g.member, out.raw()->data, bytes_of(out));
  }
  void batch(bool begin) override {
    expect(in_batch_ != begin, "batch", begin ? "a batch is open already" : "no batch is open");
    in_batch_ = begin;
    const auto sent = std::exchange(sent_, {});
    const auto received = std::exchange(received_, {});
    if (begin) return;
    for (const Received& r : received) r.group->meeting->take(r.from, r.group->member, r.data, r.bytes);
    for (const Sent& s : sent) s.group->meeting->wait_taken(*s.letter);
  }

  void barrier(void* group) override { static_cast<Group*>(group)->meeting->wait(); }
  void progress() override {
    const std::lock_guard lock(world_->alarm()->mutex);
    if (world_->alarm()->rung) throw Error(GESTALT_UNAVAILABLE, "[comm] the communicator was aborted");
  }
  void abort() noexcept override {
    const std::lock_guard lock(world_->alarm()->mutex);
    world_->alarm()->rung = true;
    world_->alarm()->changed.notify_all();
  }

 private:
  struct Sent {
    Group* group;
    std::unique_ptr<Letter> letter;
  };
  struct Received {
    Group* group;
    size_t from;
    void* data;
    uint64_t bytes;
  };

  static int64_t size_of_group(void* group) { return static_cast<int64_t>(static_cast<Group*>(group)->ranks.size()); }
  static uint64_t bytes_of(View v) { return static_cast<uint64_t>(v.numel() * size_of(v.dtype())); }
  static void copy(void* to, const void* from, int64_t bytes) {
    if (to != from && bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  static void expect_member(const char* what, const Group& g, int64_t rank) {
    expect(rank >= 0 && rank < static_cast<int64_t>(g.ranks.size()) && rank != static_cast<int64_t>(g.member), what,
           "no other member of the group, got " + std::to_string(rank) + " of " + std::to_string(g.ranks.size()));
  }

  // All members meet, do their part with what everybody brought, and part when all are done. A member whose part fails
  // ends the world afterwards: the others would wait for it at the next call.
  template <class F>
  void together(void* group, const Call& call, F part) {
    Group& g = *static_cast<Group*>(group);
    const std::vector<Call>& calls = g.meeting->bring(g.member, call);
    std::exception_ptr error;
    try {
      for (const Call& c : calls)
        if (c.num_in != call.num_in || c.dtype != call.dtype)
          throw InvalidArgument("[comm] ranks disagree, got " + std::to_string(c.num_in) + " elements of " +
                                std::string(name_of(c.dtype)) + " and " + std::to_string(call.num_in) + " of " +
                                std::string(name_of(call.dtype)));
      part(g, calls);
    } catch (...) {
      error = std::current_exception();
    }
    g.meeting->wait();
    if (!error) return;
    abort();
    std::rethrow_exception(error);
  }

  const int64_t rank_;
  const std::shared_ptr<World> world_;
  std::vector<std::unique_ptr<Group>> groups_;
  bool in_batch_ = false;
  std::vector<Sent> sent_;
  std::vector<Received> received_;
};

}  // namespace

GESTALT_COMPONENT(ThreadsComm)

const gestalt_component& threads_component() { return detail::component_entry<ThreadsComm>; }
const gestalt_comm_1& threads_table() { return *static_cast<const gestalt_comm_1*>(ThreadsComm::table<ThreadsComm>()); }

}  // namespace gestalt::comm_threads

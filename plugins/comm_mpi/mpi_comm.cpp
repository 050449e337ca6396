// Ranks as processes, over MPI. Collectives run at the call and work on host memory; what lies on another device is
// copied there and back, after the work before on its stream.
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gestalt/comm.hpp"
#include "plugins/comm_mpi/mpi_world.h"
#include "plugins/comm_mpi/staging.h"

namespace gestalt::comm_mpi {

namespace {

struct Group {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 0, member = 0;
};

void expect(bool holds, const char* what, const std::string& message) {
  if (!holds) throw InvalidArgument(std::string("[") + what + "] " + message);
}

// MPI counts in int. Larger tensors travel as rows.
int count_of(const char* what, int64_t n) {
  expect(n >= 0 && n <= INT32_MAX, what, "got " + std::to_string(n) + " elements in one call, expected at most 2^31 - 1");
  return static_cast<int>(n);
}

void expect_fit(const char* what, View in, View out, int64_t in_times, int64_t out_times) {
  expect(in.dtype() == out.dtype() && in.numel() * in_times == out.numel() * out_times, what,
         "in and out do not fit, got " + describe(in) + " and " + describe(out));
}

class MpiComm : public Comm {
 public:
  static constexpr std::string_view name = "gestalt.mpi";

  MpiComm(Host host, Attrs) : staging_(host) { join_mpi(); }
  ~MpiComm() {
    for (auto& g : groups_)
      if (!aborted_) MPI_Comm_free(&g->comm);
  }

  void world(int64_t& rank, int64_t& size) override {
    int r = 0, n = 1;
    check_mpi("world", MPI_Comm_rank(MPI_COMM_WORLD, &r));
    check_mpi("world", MPI_Comm_size(MPI_COMM_WORLD, &n));
    rank = r;
    size = n;
  }

  void* group_open(std::span<const int64_t> ranks) override {
    int64_t rank = 0, size = 1;
    world(rank, size);
    int place = -1;
    for (size_t i = 0; i < ranks.size(); ++i) {
      expect(ranks[i] >= 0 && ranks[i] < size, "group_open",
             "rank outside of the world, got " + std::to_string(ranks[i]) + ", expected 0 to " + std::to_string(size - 1));
      for (size_t k = 0; k < i; ++k)
        expect(ranks[k] != ranks[i], "group_open", "rank " + std::to_string(ranks[i]) + " given twice");
      if (ranks[i] == rank) place = static_cast<int>(i);
    }
    expect(ranks.empty() || place >= 0, "group_open", "the list is without this rank, " + std::to_string(rank));
    auto group = std::make_unique<Group>();
    const std::lock_guard lock(mutex_);
    const int color = ranks.empty() ? MPI_UNDEFINED : static_cast<int>(*std::min_element(ranks.begin(), ranks.end()));
    check_mpi("group_open", MPI_Comm_split(MPI_COMM_WORLD, color, std::max(place, 0), &group->comm));
    if (ranks.empty()) return nullptr;
    MPI_Comm_set_errhandler(group->comm, MPI_ERRORS_RETURN);
    group->size = static_cast<int>(ranks.size());
    group->member = place;
    groups_.push_back(std::move(group));
    return groups_.back().get();
  }
  void group_close(void* group) override {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].get() != group) continue;
      MPI_Comm_free(&groups_[i]->comm);
      groups_.erase(groups_.begin() + static_cast<ptrdiff_t>(i));
      return;
    }
  }

  void all_reduce(void* group, View in, View out, int32_t op, void* stream) override {
    expect_fit("all_reduce", in, out, 1, 1);
    const std::lock_guard lock(mutex_);
    const void* from = staging_.read(in, true, 0, stream);
    void* to = staging_.prepare(out, true, 1);
    check_mpi("all_reduce", MPI_Allreduce(from == to ? MPI_IN_PLACE : from, to, count_of("all_reduce", in.numel()),
                                          mpi_type(in.dtype()), mpi_op(op), of(group).comm));
    staging_.write(out, true, 1, stream);
  }

  void all_gather(void* group, View in, View out, void* stream) override {
    expect_fit("all_gather", in, out, of(group).size, 1);
    const std::lock_guard lock(mutex_);
    const void* from = staging_.read(in, false, 0, stream);
    char* to = static_cast<char*>(staging_.prepare(out, false, 1));
    const int bytes = bytes_of("all_gather", in);
    const bool in_place = from == to + static_cast<int64_t>(of(group).member) * bytes;
    check_mpi("all_gather",
              MPI_Allgather(in_place ? MPI_IN_PLACE : from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, of(group).comm));
    staging_.write(out, false, 1, stream);
  }

  void reduce_scatter(void* group, View in, View out, int32_t op, void* stream) override {
    expect_fit("reduce_scatter", in, out, 1, of(group).size);
    const std::lock_guard lock(mutex_);
    const char* from = static_cast<const char*>(staging_.read(in, true, 0, stream));
    char* to = static_cast<char*>(staging_.prepare(out, true, 1));
    // MPI wants the two apart, or the result at the start; ours may be this rank's part of `in`.
    const bool inside = to >= from && to < from + in.numel() * size_of(in.dtype());
    if (inside) {
      scratch_.resize(static_cast<size_t>(out.numel() * size_of(out.dtype())));
      to = scratch_.data();
    }
    check_mpi("reduce_scatter", MPI_Reduce_scatter_block(from, to, count_of("reduce_scatter", out.numel()),
                                                         mpi_type(in.dtype()), mpi_op(op), of(group).comm));
    if (inside)
      std::copy(scratch_.begin(), scratch_.end(), out.data<char>());
    else
      staging_.write(out, true, 1, stream);
  }

  void all_to_all(void* group, View in, const int64_t* send_counts, View out, const int64_t* recv_counts,
                  void* stream) override {
    const std::lock_guard lock(mutex_);
    const auto size = static_cast<size_t>(of(group).size);
    std::vector<int> counts[2], offsets[2];
    for (size_t k = 0; k < 2; ++k) {
      int64_t at = 0;
      for (size_t i = 0; i < size; ++i) {
        const int64_t n = (k ? recv_counts : send_counts)[i] * size_of(in.dtype());
        counts[k].push_back(count_of("all_to_all", n));
        offsets[k].push_back(count_of("all_to_all", at));
        at += n;
      }
      const View v = k ? out : in;
      expect(at <= v.numel() * size_of(v.dtype()), "all_to_all",
             "counts do not fit, got " + std::to_string(at / size_of(v.dtype())) + " elements in " + describe(v));
    }
    const void* from = staging_.read(in, false, 0, stream);
    void* to = staging_.prepare(out, false, 1);
    check_mpi("all_to_all", MPI_Alltoallv(from, counts[0].data(), offsets[0].data(), MPI_BYTE, to, counts[1].data(),
                                          offsets[1].data(), MPI_BYTE, of(group).comm));
    staging_.write(out, false, 1, stream);
  }

  void broadcast(void* group, View in, View out, int64_t root, void* stream) override {
    expect(root >= 0 && root < of(group).size, "broadcast",
           "rank outside of the group, got " + std::to_string(root) + ", expected 0 to " +
               std::to_string(of(group).size - 1));
    expect_fit("broadcast", in, out, 1, 1);
    const std::lock_guard lock(mutex_);
    const int bytes = bytes_of("broadcast", in);
    void* to = staging_.prepare(out, false, 1);
    if (of(group).member == root) {
      const void* from = staging_.read(in, false, 0, stream);
      if (from != to) std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to));
    }
    check_mpi("broadcast", MPI_Bcast(to, bytes, MPI_BYTE, static_cast<int>(root), of(group).comm));
    staging_.write(out, false, 1, stream);
  }

  void send(void* group, View in, int64_t to, void* stream) override { post("send", group, in, to, stream, true); }
  void recv(void* group, View out, int64_t from, void* stream) override { post("recv", group, out, from, stream, false); }

  void batch(bool begin) override {
    const std::lock_guard lock(mutex_);
    expect(in_batch_ != begin, "batch", begin ? "a batch is open already" : "no batch is open");
    in_batch_ = begin;
    std::vector<Message> messages = std::exchange(messages_, {});
    if (!begin) exchange(std::move(messages));
  }

  void barrier(void* group) override { check_mpi("barrier", MPI_Barrier(of(group).comm)); }
  void progress() override {
    if (aborted_) throw Error(GESTALT_UNAVAILABLE, "[comm] the communicator was aborted");
  }
  // MPI has no way to end a call that waits: it ends the processes.
  void abort() noexcept override {
    aborted_ = true;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

 private:
  struct Message {
    Group* group;
    gestalt_view kept;  // a call's view lives as long as the call only
    std::vector<int64_t> shape;
    int peer;
    bool sends;
    void* stream;
  };

  static Group& of(void* group) { return *static_cast<Group*>(group); }
  static int bytes_of(const char* what, View v) { return count_of(what, v.numel() * size_of(v.dtype())); }

  void post(const char* what, void* group, View view, int64_t peer, void* stream, bool sends) {
    expect(peer >= 0 && peer < of(group).size && peer != of(group).member, what,
           "no other member of the group, got " + std::to_string(peer) + " of " + std::to_string(of(group).size));
    const std::lock_guard lock(mutex_);
    Message m{&of(group), *view.raw(), {}, static_cast<int>(peer), sends, stream};
    m.shape = {view.numel()};
    messages_.push_back(std::move(m));
    if (in_batch_) return;
    exchange(std::exchange(messages_, {}));
  }

  void exchange(std::vector<Message> messages) {
    std::vector<MPI_Request> requests;
    std::vector<Staging> rooms(messages.size(), staging_);
    std::vector<gestalt_view> views;
    int64_t one = 1;
    views.reserve(messages.size());
    for (size_t i = 0; i < messages.size(); ++i) {
      Message& m = messages[i];
      gestalt_view& v = views.emplace_back(m.kept);
      v.ndim = 1;
      v.shape = m.shape.data();
      v.strides = &one;
      const View view(&v);
      MPI_Request& request = requests.emplace_back();
      const int bytes = bytes_of(m.sends ? "send" : "recv", view);
      check_mpi(m.sends ? "send" : "recv",
                m.sends ? MPI_Isend(rooms[i].read(view, false, 0, m.stream), bytes, MPI_BYTE, m.peer, 0, m.group->comm, &request)
                        : MPI_Irecv(rooms[i].prepare(view, false, 0), bytes, MPI_BYTE, m.peer, 0, m.group->comm, &request));
    }
    check_mpi("batch", MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    for (size_t i = 0; i < messages.size(); ++i)
      if (!messages[i].sends) rooms[i].write(View(&views[i]), false, 0, messages[i].stream);
  }

  std::mutex mutex_;  // one call of MPI at a time
  Staging staging_;
  std::vector<char> scratch_;
  std::vector<std::unique_ptr<Group>> groups_;
  bool in_batch_ = false;
  std::vector<Message> messages_;
  bool aborted_ = false;
};

}  // namespace

GESTALT_COMPONENT(MpiComm)

}  // namespace gestalt::comm_mpi

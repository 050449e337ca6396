// A world of one rank. Every collective is a copy from in to out, or nothing when they are the same memory; the
// reduction makes no difference. Copies go through the host's "gestalt.copy/1", so that they are in order on any
// device's stream.
#include "plugins/comm_self/comm_self.h"

#include <atomic>
#include <string>
#include <vector>

#include "gestalt/comm.hpp"

namespace gestalt::comm_self {

namespace {

// A send or receive of an open batch: views are borrowed, so what is kept is the view as one row of `count` elements.
struct Message {
  gestalt_view view;
  int64_t count;
  void* stream;
};

void expect_rank_zero(const char* what, int64_t rank) {
  if (rank != 0)
    throw InvalidArgument(std::string("[") + what + "] rank outside of the group, got " + std::to_string(rank) +
                          ", expected 0");
}

void expect_reduction(const char* what, int32_t op) {
  if (op < GESTALT_REDUCE_SUM || op > GESTALT_REDUCE_MIN)
    throw InvalidArgument(std::string("[") + what + "] unknown reduction, got " + std::to_string(op) +
                          ", expected 0 to 2");
}

class SelfComm : public Comm {
 public:
  static constexpr std::string_view name = "gestalt.self";

  SelfComm(Host host, Attrs) : host_(host.raw()), copies_(host.interface<gestalt_copy_1>("gestalt.copy/1")) {
    if (!copies_) throw Error(GESTALT_UNAVAILABLE, "[comm] the host has no \"gestalt.copy/1\"; open a device first");
    // Room for the batches of a pipeline stage, so that a step does not allocate.
    sends_.reserve(64);
    receives_.reserve(64);
  }

  void world(int64_t& rank, int64_t& size) override {
    expect_alive();
    rank = 0;
    size = 1;
  }

  void* group_open(std::span<const int64_t> ranks) override {
    expect_alive();
    for (int64_t rank : ranks) expect_rank_zero("group_open", rank);
    if (ranks.size() > 1)
      throw InvalidArgument("[group_open] rank 0 given twice, got " + std::to_string(ranks.size()) +
                            " ranks, expected at most 1");
    // Groups have no state; a handle only needs to differ from NULL.
    return ranks.empty() ? nullptr : this;
  }
  void group_close(void*) override {}

  void all_reduce(void*, View in, View out, int32_t op, void* stream) override {
    expect_reduction("all_reduce", op);
    copy("all_reduce", *in.raw(), *out.raw(), stream);
  }
  void all_gather(void*, View in, View out, void* stream) override {
    copy("all_gather", *in.raw(), *out.raw(), stream);
  }
  void reduce_scatter(void*, View in, View out, int32_t op, void* stream) override {
    expect_reduction("reduce_scatter", op);
    copy("reduce_scatter", *in.raw(), *out.raw(), stream);
  }
  void all_to_all(void*, View in, const int64_t* send_counts, View out, const int64_t* recv_counts,
                  void* stream) override {
    // The counts may be less than what the views hold: buffers are sized for the worst case.
    const int64_t count = send_counts[0];
    if (count != recv_counts[0] || count < 0 || count > in.numel() || count > out.numel())
      throw InvalidArgument("[all_to_all] counts do not fit, got " + std::to_string(count) + " to send and " +
                            std::to_string(recv_counts[0]) + " to receive, expected the same number, at most " +
                            std::to_string(in.numel()) + " and " + std::to_string(out.numel()));
    copy_rows("all_to_all", {*in.raw(), count, stream}, {*out.raw(), count, stream});
  }
  void broadcast(void*, View in, View out, int64_t root, void* stream) override {
    expect_rank_zero("broadcast", root);
    copy("broadcast", *in.raw(), *out.raw(), stream);
  }

  void send(void*, View in, int64_t to, void* stream) override { post("send", sends_, in, to, stream); }
  void recv(void*, View out, int64_t from, void* stream) override { post("recv", receives_, out, from, stream); }
  void batch(bool begin) override;

  void barrier(void*) override { expect_alive(); }
  void progress() override { expect_alive(); }
  void abort() noexcept override { aborted_.store(true); }

 private:
  void expect_alive() const {
    if (aborted_.load()) throw Error(GESTALT_UNAVAILABLE, "[comm] the communicator was aborted");
  }
  void copy(const char* what, const gestalt_view& in, const gestalt_view& out, void* stream);
  void copy_rows(const char* what, Message from, Message to);
  void post(const char* what, std::vector<Message>& list, View view, int64_t rank, void* stream);

  const gestalt_host* host_;
  const gestalt_copy_1* copies_;
  std::atomic<bool> aborted_{false};
  bool in_batch_ = false;
  std::vector<Message> sends_, receives_;
};

void SelfComm::copy(const char* what, const gestalt_view& in, const gestalt_view& out, void* stream) {
  expect_alive();
  const int64_t from = View(&in).numel(), to = View(&out).numel();
  if (from != to || in.dtype != out.dtype)
    throw InvalidArgument(std::string("[") + what + "] in and out differ, got " + std::to_string(from) + " and " +
                          std::to_string(to) + " elements" + (in.dtype != out.dtype ? " of different types" : ""));
  if (from == 0 || in.data == out.data) return;
  check(host_, copies_->copy(copies_->self, &in, &out, stream));
}

void SelfComm::copy_rows(const char* what, Message from, Message to) {
  int64_t stride = 1;
  from.view.ndim = to.view.ndim = 1;
  from.view.shape = &from.count;
  to.view.shape = &to.count;
  from.view.strides = to.view.strides = &stride;
  copy(what, from.view, to.view, to.stream);
}

void SelfComm::post(const char* what, std::vector<Message>& list, View view, int64_t rank, void* stream) {
  expect_alive();
  expect_rank_zero(what, rank);
  if (!in_batch_)
    throw InvalidArgument(std::string("[") + what +
                          "] to or from this rank itself would wait for ever; put both into one batch");
  list.push_back({*view.raw(), view.numel(), stream});
}

void SelfComm::batch(bool begin) {
  expect_alive();
  if (in_batch_ == begin) throw InvalidArgument(begin ? "[batch] a batch is open already" : "[batch] no batch is open");
  in_batch_ = begin;
  if (begin) {
    // Messages of a batch that failed must not leak into the next.
    sends_.clear();
    receives_.clear();
    return;
  }
  if (sends_.size() != receives_.size())
    throw InvalidArgument("[batch] sends and receives do not match, got " + std::to_string(sends_.size()) + " and " +
                          std::to_string(receives_.size()));
  for (size_t i = 0; i < sends_.size(); ++i) {
    if (sends_[i].stream != receives_[i].stream)
      throw InvalidArgument("[batch] send and receive number " + std::to_string(i) +
                            " are on different streams, expected one");
    copy_rows("recv", sends_[i], receives_[i]);
  }
}

}  // namespace

GESTALT_COMPONENT(SelfComm)

const gestalt_component& self_component() { return detail::component_entry<SelfComm>; }
const gestalt_comm_1& self_table() { return *static_cast<const gestalt_comm_1*>(SelfComm::table<SelfComm>()); }

}  // namespace gestalt::comm_self

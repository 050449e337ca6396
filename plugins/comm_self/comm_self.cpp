// A world of one rank. Every collective is a copy from in to out, or nothing when they are the same memory; the reduction
// makes no difference. Copies go through the host's "gestalt.copy/1", so that they are in order on any device's stream.
#include "plugins/comm_self/comm_self.h"

#include <atomic>
#include <string>
#include <vector>

#include "gestalt/error.hpp"

namespace gestalt::comm_self {

namespace {

// A send or receive of an open batch: the view is borrowed, so its shape is kept as one number.
struct Message {
  gestalt_view view;
  int64_t count;
  void* stream;
};

struct Comm {
  const gestalt_host* host = nullptr;
  const gestalt_copy_1* copies = nullptr;
  std::atomic<bool> aborted{false};
  bool in_batch = false;
  std::vector<Message> sends, receives;
};

Comm& comm(void* self) { return *static_cast<Comm*>(self); }

// Groups have no state; a handle only needs to differ from NULL.
char g_group;

int64_t num_elements(const gestalt_view& view) {
  int64_t n = 1;
  for (int i = 0; i < view.ndim; ++i) n *= view.shape[i];
  return n;
}

void expect_rank_zero(const char* what, int64_t rank) {
  if (rank != 0)
    throw Error(GESTALT_INVALID_ARGUMENT,
                std::string("[") + what + "] rank outside of the group, got " + std::to_string(rank) + ", expected 0");
}

void expect_reduction(const char* what, int32_t op) {
  if (op < GESTALT_REDUCE_SUM || op > GESTALT_REDUCE_MIN)
    throw Error(GESTALT_INVALID_ARGUMENT,
                std::string("[") + what + "] unknown reduction, got " + std::to_string(op) + ", expected 0 to 2");
}

void copy(Comm& c, const char* what, const gestalt_view& in, const gestalt_view& out, void* stream) {
  const int64_t from = num_elements(in), to = num_elements(out);
  if (from != to || in.dtype != out.dtype)
    throw Error(GESTALT_INVALID_ARGUMENT, std::string("[") + what + "] in and out differ, got " + std::to_string(from) +
                                              " and " + std::to_string(to) + " elements" +
                                              (in.dtype != out.dtype ? " of different types" : ""));
  if (from == 0 || in.data == out.data) return;
  check(c.host, c.copies->copy(c.copies->self, &in, &out, stream));
}

// Calls f(comm) and turns what it throws into a status; after an abort every call fails.
template <class F>
gestalt_status* with(void* self, F&& f) noexcept {
  return guard(comm(self).host, [&] {
    if (comm(self).aborted.load()) throw Error(GESTALT_UNAVAILABLE, "[comm] the communicator was aborted");
    f(comm(self));
  });
}

gestalt_status* world(void* self, int64_t* rank, int64_t* size) noexcept {
  return with(self, [&](Comm&) {
    *rank = 0;
    *size = 1;
  });
}

gestalt_status* group_open(void* self, const int64_t* ranks, uint64_t num, void** group) noexcept {
  return with(self, [&](Comm&) {
    *group = nullptr;
    for (uint64_t i = 0; i < num; ++i) expect_rank_zero("group_open", ranks[i]);
    if (num > 1)
      throw Error(GESTALT_INVALID_ARGUMENT, "[group_open] rank 0 given twice, got " + std::to_string(num) +
                                                " ranks, expected at most 1");
    if (num == 1) *group = &g_group;
  });
}

void group_close(void*, void*) noexcept {}

gestalt_status* all_reduce(void* self, void*, const gestalt_view* in, const gestalt_view* out, int32_t op,
                           void* stream) noexcept {
  return with(self, [&](Comm& c) {
    expect_reduction("all_reduce", op);
    copy(c, "all_reduce", *in, *out, stream);
  });
}

gestalt_status* all_gather(void* self, void*, const gestalt_view* in, const gestalt_view* out, void* stream) noexcept {
  return with(self, [&](Comm& c) { copy(c, "all_gather", *in, *out, stream); });
}

gestalt_status* reduce_scatter(void* self, void*, const gestalt_view* in, const gestalt_view* out, int32_t op,
                               void* stream) noexcept {
  return with(self, [&](Comm& c) {
    expect_reduction("reduce_scatter", op);
    copy(c, "reduce_scatter", *in, *out, stream);
  });
}

gestalt_status* all_to_all(void* self, void*, const gestalt_view* in, const int64_t* send_counts,
                           const gestalt_view* out, const int64_t* recv_counts, void* stream) noexcept {
  return with(self, [&](Comm& c) {
    // The counts may be less than what the views hold: buffers are sized for the worst case.
    const int64_t count = send_counts[0];
    if (count != recv_counts[0] || count < 0 || count > num_elements(*in) || count > num_elements(*out))
      throw Error(GESTALT_INVALID_ARGUMENT,
                  "[all_to_all] counts do not fit, got " + std::to_string(count) + " to send and " +
                      std::to_string(recv_counts[0]) + " to receive, expected the same number, at most " +
                      std::to_string(num_elements(*in)) + " and " + std::to_string(num_elements(*out)));
    int64_t shape = count, stride = 1;
    gestalt_view from = *in, to = *out;
    from.ndim = to.ndim = 1;
    from.shape = to.shape = &shape;
    from.strides = to.strides = &stride;
    copy(c, "all_to_all", from, to, stream);
  });
}

gestalt_status* broadcast(void* self, void*, const gestalt_view* in, const gestalt_view* out, int64_t root,
                          void* stream) noexcept {
  return with(self, [&](Comm& c) {
    expect_rank_zero("broadcast", root);
    copy(c, "broadcast", *in, *out, stream);
  });
}

void post(Comm& c, const char* what, std::vector<Message>& list, const gestalt_view& view, int64_t rank, void* stream) {
  expect_rank_zero(what, rank);
  if (!c.in_batch)
    throw Error(GESTALT_INVALID_ARGUMENT,
                std::string("[") + what + "] to or from this rank itself would wait for ever; put both into one batch");
  list.push_back({view, num_elements(view), stream});
}

gestalt_status* send(void* self, void*, const gestalt_view* in, int64_t to, void* stream) noexcept {
  return with(self, [&](Comm& c) { post(c, "send", c.sends, *in, to, stream); });
}

gestalt_status* recv(void* self, void*, const gestalt_view* out, int64_t from, void* stream) noexcept {
  return with(self, [&](Comm& c) { post(c, "recv", c.receives, *out, from, stream); });
}

void finish_batch(Comm& c) {
  if (c.sends.size() != c.receives.size())
    throw Error(GESTALT_INVALID_ARGUMENT, "[batch] sends and receives do not match, got " +
                                              std::to_string(c.sends.size()) + " and " +
                                              std::to_string(c.receives.size()));
  for (size_t i = 0; i < c.sends.size(); ++i) {
    Message &from = c.sends[i], &to = c.receives[i];
    if (from.stream != to.stream)
      throw Error(GESTALT_INVALID_ARGUMENT, "[batch] send and receive number " + std::to_string(i) +
                                                " are on different streams, expected one");
    int64_t stride = 1;
    from.view.ndim = to.view.ndim = 1;
    from.view.shape = &from.count;
    to.view.shape = &to.count;
    from.view.strides = to.view.strides = &stride;
    copy(c, "recv", from.view, to.view, to.stream);
  }
}

gestalt_status* batch(void* self, int32_t begin) noexcept {
  return with(self, [&](Comm& c) {
    if (c.in_batch == (begin != 0))
      throw Error(GESTALT_INVALID_ARGUMENT, begin ? "[batch] a batch is open already" : "[batch] no batch is open");
    c.in_batch = begin != 0;
    // Messages of a batch that failed must not leak into the next.
    struct Clear {
      Comm& comm;
      ~Clear() {
        comm.sends.clear();
        comm.receives.clear();
      }
    } clear{c};
    if (!begin) finish_batch(c);
  });
}

gestalt_status* barrier(void* self, void*) noexcept {
  return with(self, [](Comm&) {});
}

gestalt_status* progress(void* self) noexcept {
  return with(self, [](Comm&) {});
}

void abort(void* self) noexcept { comm(self).aborted.store(true); }

gestalt_status* create(const gestalt_host* host, const gestalt_attr*, uint64_t, void** self) noexcept {
  return guard(host, [&] {
    const auto* copies = static_cast<const gestalt_copy_1*>(host->get_interface(host->self, str_of("gestalt.copy/1")));
    if (!copies) throw Error(GESTALT_UNAVAILABLE, "[comm] the host has no \"gestalt.copy/1\"; open a device first");
    auto* c = new Comm;
    c->host = host;
    c->copies = copies;
    *self = c;
    // Room for the batches of a pipeline stage, so that a step does not allocate.
    c->sends.reserve(64);
    c->receives.reserve(64);
  });
}

void destroy(void* self) noexcept { delete &comm(self); }

}  // namespace

constexpr gestalt_comm_1 kSelfTable = {sizeof(gestalt_comm_1),
                                       world,
                                       group_open,
                                       group_close,
                                       all_reduce,
                                       all_gather,
                                       reduce_scatter,
                                       all_to_all,
                                       broadcast,
                                       send,
                                       recv,
                                       batch,
                                       barrier,
                                       progress,
                                       abort};

constexpr gestalt_component kSelfComponent = {
    sizeof(gestalt_component), str_of("comm/1"), str_of("gestalt.self"), nullptr, 0, create, destroy, &kSelfTable};

}  // namespace gestalt::comm_self

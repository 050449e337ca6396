// Component kind "comm/1": groups of ranks and collectives.
#pragma once

#include <span>

#include "gestalt/abi/comm.h"
#include "gestalt/component.hpp"
#include "gestalt/view.hpp"

namespace gestalt {

// Each function is explained in gestalt/abi/comm.h. Views are contiguous; all but world, groups, barrier, progress and
// abort only enqueue on the stream.
class Comm : public detail::ComponentOf<Comm> {
 public:
  virtual void world(int64_t& rank, int64_t& size) = 0;
  virtual void* group_open(std::span<const int64_t> ranks) = 0;  // NULL at ranks outside
  virtual void group_close(void* group) = 0;
  virtual void all_reduce(void* group, View in, View out, int32_t op, void* stream) = 0;
  virtual void all_gather(void* group, View in, View out, void* stream) = 0;
  virtual void reduce_scatter(void* group, View in, View out, int32_t op, void* stream) = 0;
  virtual void all_to_all(void* group, View in, const int64_t* send_counts, View out, const int64_t* recv_counts,
                          void* stream) = 0;
  virtual void broadcast(void* group, View in, View out, int64_t root, void* stream) = 0;
  virtual void send(void* group, View in, int64_t to, void* stream) = 0;
  virtual void recv(void* group, View out, int64_t from, void* stream) = 0;
  virtual void batch(bool begin) = 0;
  virtual void barrier(void* group) = 0;
  virtual void progress() = 0;
  virtual void abort() noexcept = 0;

  static constexpr std::string_view kKind = "comm/1";
  template <class>
  static constexpr const void* table();
};

namespace detail {

inline constexpr gestalt_comm_1 comm_table = {
    sizeof(gestalt_comm_1),
    [](void* self, int64_t* rank, int64_t* size) noexcept {
      return with<Comm>(self, [&](Comm& c) { c.world(*rank, *size); });
    },
    [](void* self, const int64_t* ranks, uint64_t num, void** group) noexcept {
      return with<Comm>(self, [&](Comm& c) { *group = c.group_open({ranks, static_cast<size_t>(num)}); });
    },
    [](void* self, void* group) noexcept {
      value_or([&] { return held<Comm>(self).object->group_close(group), 0; }, 0);
    },
    [](void* self, void* group, const gestalt_view* in, const gestalt_view* out, int32_t op, void* stream) noexcept {
      return with<Comm>(self, [&](Comm& c) { c.all_reduce(group, View(in), View(out), op, stream); });
    },
    [](void* self, void* group, const gestalt_view* in, const gestalt_view* out, void* stream) noexcept {
      return with<Comm>(self, [&](Comm& c) { c.all_gather(group, View(in), View(out), stream); });
    },
    [](void* self, void* group, const gestalt_view* in, const gestalt_view* out, int32_t op, void* stream) noexcept {
      return with<Comm>(self, [&](Comm& c) { c.reduce_scatter(group, View(in), View(out), op, stream); });
    },
    [](void* self, void* group, const gestalt_view* in, const int64_t* send_counts, const gestalt_view* out,
       const int64_t* recv_counts, void* stream) noexcept {
      return with<Comm>(self,
                        [&](Comm& c) { c.all_to_all(group, View(in), send_counts, View(out), recv_counts, stream); });
    },
    [](void* self, void* group, const gestalt_view* in, const gestalt_view* out, int64_t root, void* stream) noexcept {
      return with<Comm>(self, [&](Comm& c) { c.broadcast(group, View(in), View(out), root, stream); });
    },
    [](void* self, void* group, const gestalt_view* in, int64_t to, void* stream) noexcept {
      return with<Comm>(self, [&](Comm& c) { c.send(group, View(in), to, stream); });
    },
    [](void* self, void* group, const gestalt_view* out, int64_t from, void* stream) noexcept {
      return with<Comm>(self, [&](Comm& c) { c.recv(group, View(out), from, stream); });
    },
    [](void* self, int32_t begin) noexcept { return with<Comm>(self, [&](Comm& c) { c.batch(begin != 0); }); },
    [](void* self, void* group) noexcept { return with<Comm>(self, [&](Comm& c) { c.barrier(group); }); },
    [](void* self) noexcept { return with<Comm>(self, [](Comm& c) { c.progress(); }); },
    [](void* self) noexcept { held<Comm>(self).object->abort(); }};

}  // namespace detail

template <class>
constexpr const void* Comm::table() {
  return &detail::comm_table;
}

}  // namespace gestalt

#pragma once

#include <vector>

#include "gestalt/abi/comm.h"
#include "gestalt/host.hpp"
#include "gestalt/view.hpp"

namespace gestalt::comm_mpi {

// Host memory that MPI may read or write for a view: the view's own where the host sees it, else a copy. bf16 and f16
// that are to be reduced become f32, so that sums are rounded once.
class Staging {
 public:
  explicit Staging(Host host) : host_(host.raw()), copies_(host.interface<gestalt_copy_1>("gestalt.copy/1")) {}

  // What `view` holds, after the work before on `stream`. `room`: which of the buffers to use, 0 or 1.
  const void* read(View view, bool reduced, int room, void* stream);
  // Room for what is to come into `view`; the view's own memory where that can be.
  void* prepare(View view, bool reduced, int room);
  // Puts what came into prepare()'s memory into the view.
  void write(View view, bool reduced, int room, void* stream);

 private:
  static bool direct(View view, bool reduced);

  const gestalt_host* host_;
  const gestalt_copy_1* copies_;
  struct Room {
    std::vector<char> raw, converted;
  } rooms_[2];
};

}  // namespace gestalt::comm_mpi

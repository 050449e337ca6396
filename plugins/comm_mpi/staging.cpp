#include "plugins/comm_mpi/staging.h"

#include "support/convert.h"

namespace gestalt::comm_mpi {

namespace {

bool on_host(View view) {
  return view.raw()->device_type == GESTALT_DEVICE_CPU || view.raw()->device_type == GESTALT_DEVICE_SIM;
}

bool converts(View view, bool reduced) { return reduced && (view.is(kBF16) || view.is(kF16)); }

size_t bytes_of(View view) { return static_cast<size_t>(view.numel() * size_of(view.dtype())); }

}  // namespace

bool Staging::direct(View view, bool reduced) { return on_host(view) && !converts(view, reduced); }

const void* Staging::read(View view, bool reduced, int room, void* stream) {
  if (direct(view, reduced)) return view.data<void>();
  Room& r = rooms_[room];
  const void* raw = view.data<void>();
  if (!on_host(view)) {
    r.raw.resize(bytes_of(view));
    check(host_, copies_->to_host(copies_->self, view.raw(), r.raw.data(), stream));
    raw = r.raw.data();
  }
  if (!converts(view, reduced)) return raw;
  r.converted.resize(static_cast<size_t>(view.numel()) * sizeof(float));
  support::convert_elements(raw, view.dtype(), r.converted.data(), kF32, static_cast<uint64_t>(view.numel()));
  return r.converted.data();
}

void* Staging::prepare(View view, bool reduced, int room) {
  if (direct(view, reduced)) return view.data<void>();
  Room& r = rooms_[room];
  if (!on_host(view)) r.raw.resize(bytes_of(view));
  if (!converts(view, reduced)) return r.raw.data();
  r.converted.resize(static_cast<size_t>(view.numel()) * sizeof(float));
  return r.converted.data();
}

void Staging::write(View view, bool reduced, int room, void* stream) {
  if (direct(view, reduced)) return;
  Room& r = rooms_[room];
  void* raw = on_host(view) ? view.data<void>() : r.raw.data();
  if (converts(view, reduced))
    support::convert_elements(r.converted.data(), kF32, raw, view.dtype(), static_cast<uint64_t>(view.numel()));
  if (!on_host(view)) check(host_, copies_->from_host(copies_->self, raw, view.raw(), stream));
}

}  // namespace gestalt::comm_mpi

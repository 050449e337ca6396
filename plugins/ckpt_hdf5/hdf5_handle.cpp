#include "plugins/ckpt_hdf5/hdf5_handle.h"

#include <utility>

#include "gestalt/error.hpp"

namespace gestalt::ckpt_hdf5 {

std::string hdf5_problem(std::string_view doing) {
  std::string said;
  // Innermost first: that is where the cause stands.
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* error, void* out) -> herr_t {
        if (n == 0 && error->desc) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &said);
  H5Eclear2(H5E_DEFAULT);
  return std::string(doing) + " failed" + (said.empty() ? "" : ": " + said);
}

int64_t checked(int64_t result, int32_t code, std::string_view where, std::string_view doing) {
  if (result < 0) throw Error(code, std::string(where) + hdf5_problem(doing));
  return result;
}

Handle::Handle(hid_t id, Close close, int32_t code, std::string_view where, std::string_view doing) : id_(id), close_(close) {
  checked(id, code, where, doing);
}

Handle::Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}

Handle& Handle::operator=(Handle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}

Handle::~Handle() {
  if (id_ >= 0 && close_(id_) < 0) H5Eclear2(H5E_DEFAULT);
}

void Handle::close(int32_t code, std::string_view where, std::string_view doing) {
  if (id_ >= 0) checked(close_(std::exchange(id_, -1)), code, where, doing);
}

void prepare_library() {
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

}  // namespace gestalt::ckpt_hdf5

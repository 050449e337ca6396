// HDF5 handles whose every close is checked. The library keeps data in memory until a close, and closes report failed
// writes, so a close that nobody looks at loses data silently.
#pragma once

#include <hdf5.h>

#include <string>
#include <string_view>

namespace gestalt::ckpt_hdf5 {

// "problem: what HDF5 says", from its innermost error; the error stack is cleared.
std::string hdf5_problem(std::string_view doing);

// Throws an Error of `code` that starts with `where` when `result` is negative; else gives it back.
int64_t checked(int64_t result, int32_t code, std::string_view where, std::string_view doing);

class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close close, int32_t code, std::string_view where, std::string_view doing);
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&& other) noexcept;
  ~Handle();  // after a failure only: the result is not looked at

  operator hid_t() const { return id_; }
  void close(int32_t code, std::string_view where, std::string_view doing);

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// Switches off what the library would do on its own: printing, and closing files at exit (after a full disk that crashes).
void prepare_library();

}  // namespace gestalt::ckpt_hdf5

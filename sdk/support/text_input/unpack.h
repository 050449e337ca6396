// The formats behind InputStream; each is there when its library was found.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/text_input/input.h"

namespace gestalt::support::text_input {

class InputStream::Unpacker {
 public:
  struct Step {
    const unsigned char* in;
    uint64_t num_in;  // left at return
    unsigned char* out;
    uint64_t num_out;  // left at return
    bool last;         // nothing comes after `in`
  };
  virtual ~Unpacker() = default;
  virtual bool step(Step* step) = 0;  // false: damaged
  virtual bool whole() const = 0;     // no packed stream is open
};

// By the first bytes; NULL for bytes that are not packed. UNSUPPORTED for a format whose library this build lacks.
std::unique_ptr<InputStream::Unpacker> make_unpacker(const unsigned char* head, uint64_t size, const std::string& path);

}  // namespace gestalt::support::text_input

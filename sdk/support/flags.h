// The arguments of a verb: "--name VALUE", "--name=VALUE", switches, and words.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gestalt/abi/base.h"

namespace gestalt::support {

class Flags {
 public:
  // `valued` may be given with a value, any number of times, `switches` without. Anything else that starts with "--" is
  // an INVALID_ARGUMENT that lists what is known; after "--" everything is a word.
  Flags(std::span<const gestalt_str> arguments, std::initializer_list<std::string_view> valued,
        std::initializer_list<std::string_view> switches);

  const std::vector<std::string>& words() const { return words_; }
  bool has(std::string_view name) const;
  // The last value given; INVALID_ARGUMENT when there is none and no default.
  std::string str(std::string_view name) const;
  std::string str(std::string_view name, std::string_view otherwise) const;
  int64_t i64(std::string_view name, int64_t otherwise) const;
  std::vector<std::string> all(std::string_view name) const;

 private:
  struct Value {
    std::string name, value;
  };
  std::vector<Value> values_;
  std::vector<std::string> words_;
};

}  // namespace gestalt::support

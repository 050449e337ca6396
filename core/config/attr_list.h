#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/config/node.h"
#include "gestalt/abi/base.h"

namespace gestalt::core {

// An owning, sorted array of gestalt_attr: how a component gets its configuration.
class AttrList {
 public:
  AttrList();
  AttrList(AttrList&&) noexcept;
  AttrList& operator=(AttrList&&) noexcept;
  ~AttrList();

  // A name that is there already is an internal error.
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(std::string_view name, T value) {
    if constexpr (std::is_same_v<T, bool>)
      add_bool(name, value);
    else if constexpr (std::is_integral_v<T>)
      add_i64(name, value);
    else
      add_f64(name, value);
  }
  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, const char* value) { add(name, std::string_view(value)); }
  void add(std::string_view name, std::vector<int64_t> values);
  void add(std::string_view name, std::vector<double> values);
  void add(std::string_view name, std::vector<std::string> values);

  const gestalt_attr* data() const { return attrs_.data(); }
  uint64_t size() const { return attrs_.size(); }
  const gestalt_attr* find(std::string_view name) const;

 private:
  struct Owned;
  Owned& insert(std::string_view name, uint64_t kind, gestalt_attr** attr);
  void add_bool(std::string_view name, bool value);
  void add_i64(std::string_view name, int64_t value);
  void add_f64(std::string_view name, double value);

  std::vector<std::unique_ptr<Owned>> owned_;  // same order as attrs_
  std::vector<gestalt_attr> attrs_;
};

// The leaves of a table by path from it ("lr", "corpora[0].path"). Lists of mixed integers and floats are f64 lists,
// lists of booleans i64 lists of 0 and 1, other mixed lists one attribute an element.
AttrList to_attrs(const ConfigNode& table);

}  // namespace gestalt::core

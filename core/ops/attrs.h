#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gestalt/abi/base.h"

namespace gestalt::core {

using AttrValue =
    std::variant<int64_t, double, std::string, bool, std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;

// Kind of each alternative, in order: GESTALT_ATTR_.
inline constexpr uint64_t kAttrKinds[] = {GESTALT_ATTR_I64,      GESTALT_ATTR_F64,      GESTALT_ATTR_STR, GESTALT_ATTR_BOOL,
                                          GESTALT_ATTR_I64_LIST, GESTALT_ATTR_F64_LIST, GESTALT_ATTR_STR_LIST};

// The attributes of one op instance, by name.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> list) : values_(list) {}
  // Copies what crossed the ABI.
  Attrs(const gestalt_attr* attrs, uint64_t num);

  void set(std::string_view name, AttrValue value) { values_.insert_or_assign(std::string(name), std::move(value)); }
  const AttrValue* find(std::string_view name) const;
  // Throw internal errors when absent or of another type: the schema was checked before.
  int64_t i64(std::string_view name) const;
  double f64(std::string_view name) const;
  bool boolean(std::string_view name) const;
  const std::string& str(std::string_view name) const;
  const std::vector<int64_t>& i64_list(std::string_view name) const;

  const std::map<std::string, AttrValue, std::less<>>& values() const { return values_; }
  std::string text() const;  // "eps=1e-05, dims=[0]"
  bool operator==(const Attrs&) const = default;

 private:
  std::map<std::string, AttrValue, std::less<>> values_;
};

// The C form of Attrs: sorted by name, borrowing nothing.
class AttrArray {
 public:
  explicit AttrArray(const Attrs& attrs);
  AttrArray(const AttrArray&) = delete;
  const gestalt_attr* data() const { return array_.data(); }
  uint64_t size() const { return array_.size(); }

 private:
  Attrs attrs_;
  std::vector<std::vector<gestalt_str>> string_lists_;
  std::vector<gestalt_attr> array_;
};

}  // namespace gestalt::core

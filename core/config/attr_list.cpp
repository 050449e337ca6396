#include "core/config/attr_list.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/host.h"

namespace gestalt::core {

struct AttrList::Owned {
  std::string name, text;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::vector<std::string> strings;
  std::vector<gestalt_str> views;
};

AttrList::AttrList() = default;
AttrList::AttrList(AttrList&&) noexcept = default;
AttrList& AttrList::operator=(AttrList&&) noexcept = default;
AttrList::~AttrList() = default;

AttrList::Owned& AttrList::insert(std::string_view name, uint64_t kind, gestalt_attr** attr) {
  const auto at = std::lower_bound(owned_.begin(), owned_.end(), name,
                                   [](const std::unique_ptr<Owned>& o, std::string_view n) { return o->name < n; });
  if (at != owned_.end() && (*at)->name == name) fail(GESTALT_INTERNAL, "[{}] attribute given twice", name);
  const auto offset = at - owned_.begin();
  Owned& owned = **owned_.insert(at, std::make_unique<Owned>());
  owned.name = name;
  gestalt_attr fresh{};
  fresh.name = str_of(owned.name);
  fresh.kind = kind;
  *attr = &*attrs_.insert(attrs_.begin() + offset, fresh);
  return owned;
}

void AttrList::add_i64(std::string_view name, int64_t value) {
  gestalt_attr* attr;
  insert(name, GESTALT_ATTR_I64, &attr);
  attr->value.i = value;
}

void AttrList::add_f64(std::string_view name, double value) {
  gestalt_attr* attr;
  insert(name, GESTALT_ATTR_F64, &attr);
  attr->value.f = value;
}

void AttrList::add_bool(std::string_view name, bool value) {
  gestalt_attr* attr;
  insert(name, GESTALT_ATTR_BOOL, &attr);
  attr->value.i = value;
}

void AttrList::add(std::string_view name, std::string_view value) {
  gestalt_attr* attr;
  Owned& owned = insert(name, GESTALT_ATTR_STR, &attr);
  owned.text = value;
  attr->value.s = str_of(owned.text);
}

void AttrList::add(std::string_view name, std::vector<int64_t> values) {
  gestalt_attr* attr;
  Owned& owned = insert(name, GESTALT_ATTR_I64_LIST, &attr);
  owned.integers = std::move(values);
  attr->value.list = {owned.integers.data(), owned.integers.size()};
}

void AttrList::add(std::string_view name, std::vector<double> values) {
  gestalt_attr* attr;
  Owned& owned = insert(name, GESTALT_ATTR_F64_LIST, &attr);
  owned.reals = std::move(values);
  attr->value.list = {owned.reals.data(), owned.reals.size()};
}

void AttrList::add(std::string_view name, std::vector<std::string> values) {
  gestalt_attr* attr;
  Owned& owned = insert(name, GESTALT_ATTR_STR_LIST, &attr);
  owned.strings = std::move(values);
  for (const std::string& s : owned.strings) owned.views.push_back(str_of(s));
  attr->value.list = {owned.views.data(), owned.views.size()};
}

const gestalt_attr* AttrList::find(std::string_view name) const {
  const auto at = std::lower_bound(owned_.begin(), owned_.end(), name,
                                   [](const std::unique_ptr<Owned>& o, std::string_view n) { return o->name < n; });
  return at != owned_.end() && (*at)->name == name ? &attrs_[static_cast<size_t>(at - owned_.begin())] : nullptr;
}

namespace {

void flatten(const ConfigNode& node, const std::string& path, AttrList& out);

// False when the elements share no list kind of the ABI.
bool add_list(const ConfigNode& node, const std::string& path, AttrList& out) {
  using Kind = ConfigNode::Kind;
  const auto& elements = node.elements();
  const auto all = [&](auto test) { return std::all_of(elements.begin(), elements.end(), test); };
  Kind kind = elements.empty() ? node.element_kind : elements.front().kind();
  if (kind == Kind::kInteger && !all([](const ConfigNode& e) { return e.is_integer(); })) kind = Kind::kFloat;
  if (kind == Kind::kString && all([](const ConfigNode& e) { return e.is_string(); })) {
    std::vector<std::string> values;
    for (const ConfigNode& e : elements) values.push_back(e.as_string());
    out.add(path, std::move(values));
  } else if (kind == Kind::kFloat && all([](const ConfigNode& e) { return e.is_number(); })) {
    std::vector<double> values;
    for (const ConfigNode& e : elements) values.push_back(e.as_real());
    out.add(path, std::move(values));
  } else if (kind == Kind::kInteger ||
             (kind == Kind::kBoolean && all([](const ConfigNode& e) { return e.is_boolean(); }))) {
    std::vector<int64_t> values;
    for (const ConfigNode& e : elements) values.push_back(e.is_boolean() ? e.as_boolean() : e.as_integer());
    out.add(path, std::move(values));
  } else {
    return false;
  }
  return true;
}

void flatten(const ConfigNode& node, const std::string& path, AttrList& out) {
  switch (node.kind()) {
    case ConfigNode::Kind::kTable:
      for (const ConfigMember& m : node.members()) flatten(m.value, join_path(path, m.key), out);
      break;
    case ConfigNode::Kind::kArray:
      if (!add_list(node, path, out))
        for (size_t i = 0; i < node.elements().size(); ++i) flatten(node.elements()[i], join_index(path, i), out);
      break;
    case ConfigNode::Kind::kString:
      out.add(path, node.as_string());
      break;
    case ConfigNode::Kind::kInteger:
      out.add(path, node.as_integer());
      break;
    case ConfigNode::Kind::kFloat:
      out.add(path, node.as_real());
      break;
    case ConfigNode::Kind::kBoolean:
      out.add(path, node.as_boolean());
      break;
  }
}

}  // namespace

AttrList to_attrs(const ConfigNode& table) {
  AttrList out;
  flatten(table, "", out);
  return out;
}

}  // namespace gestalt::core

#include "support/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "gestalt/error.hpp"
#include "support/utf8.h"

namespace gestalt::support {

namespace {

[[noreturn]] void wrong_kind(std::string_view wanted, const Json& got) {
  throw Error(GESTALT_DATA_ERROR, "expected " + std::string(wanted) + ", got " + std::string(got.kind()));
}

// Runs a getter and puts the key in front of what it complains about.
template <class Get>
auto keyed(std::string_view key, Get get) -> decltype(get()) {
  try {
    return get();
  } catch (const Error& error) {
    throw Error(error.code, "[" + std::string(key) + "] " + error.what());
  }
}

}  // namespace

Json::Json() noexcept : value_(nullptr) {}
Json::Json(std::nullptr_t) noexcept : value_(nullptr) {}
Json::Json(bool value) noexcept : value_(value) {}
Json::Json(int value) noexcept : value_(int64_t{value}) {}
Json::Json(int64_t value) noexcept : value_(value) {}
Json::Json(uint64_t value) noexcept : value_(nullptr) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    value_ = static_cast<int64_t>(value);  // one representation per number, so that equality is by value
  } else {
    value_ = value;
  }
}
Json::Json(double value) noexcept : value_(value) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(std::string value) noexcept : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(Array value) noexcept : value_(std::move(value)) {}
Json::Json(Object value) noexcept : value_(std::move(value)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json Json::array(std::initializer_list<Json> items) { return Json(Array(items)); }

Json Json::object(std::initializer_list<JsonMember> members) {
  Json result{Object{}};
  for (const JsonMember& member : members) result.set(member.key, member.value);
  return result;
}

bool Json::is_null() const noexcept { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_bool() const noexcept { return std::holds_alternative<bool>(value_); }
bool Json::is_integer() const noexcept {
  return std::holds_alternative<int64_t>(value_) || std::holds_alternative<uint64_t>(value_);
}
bool Json::is_number() const noexcept { return is_integer() || std::holds_alternative<double>(value_); }
bool Json::is_string() const noexcept { return std::holds_alternative<std::string>(value_); }
bool Json::is_array() const noexcept { return std::holds_alternative<Array>(value_); }
bool Json::is_object() const noexcept { return std::holds_alternative<Object>(value_); }

std::string_view Json::kind() const noexcept {
  constexpr std::string_view kNames[] = {"null",   "boolean", "integer", "integer",
                                         "number", "string",  "array",   "object"};
  return kNames[value_.index()];
}

bool Json::boolean() const {
  if (!is_bool()) wrong_kind("a boolean", *this);
  return std::get<bool>(value_);
}

int64_t Json::i64() const {
  if (std::holds_alternative<uint64_t>(value_)) {
    throw Error(GESTALT_DATA_ERROR, "integer out of range, got " + std::to_string(std::get<uint64_t>(value_)) +
                                        ", expected at most 9223372036854775807");
  }
  if (!std::holds_alternative<int64_t>(value_)) wrong_kind("an integer", *this);
  return std::get<int64_t>(value_);
}

uint64_t Json::u64() const {
  if (std::holds_alternative<uint64_t>(value_)) return std::get<uint64_t>(value_);
  const int64_t value = i64();
  if (value < 0) {
    throw Error(GESTALT_DATA_ERROR, "integer out of range, got " + std::to_string(value) + ", expected at least 0");
  }
  return static_cast<uint64_t>(value);
}

double Json::f64() const {
  if (std::holds_alternative<int64_t>(value_)) return static_cast<double>(std::get<int64_t>(value_));
  if (std::holds_alternative<uint64_t>(value_)) return static_cast<double>(std::get<uint64_t>(value_));
  if (!std::holds_alternative<double>(value_)) wrong_kind("a number", *this);
  return std::get<double>(value_);
}

const std::string& Json::str() const {
  if (!is_string()) wrong_kind("a string", *this);
  return std::get<std::string>(value_);
}

const Json::Array& Json::items() const {
  if (!is_array()) wrong_kind("an array", *this);
  return std::get<Array>(value_);
}

const Json::Object& Json::members() const {
  if (!is_object()) wrong_kind("an object", *this);
  return std::get<Object>(value_);
}

Json::Array& Json::items() { return const_cast<Array&>(std::as_const(*this).items()); }
Json::Object& Json::members() { return const_cast<Object&>(std::as_const(*this).members()); }

uint64_t Json::size() const { return is_array() ? items().size() : members().size(); }

const Json* Json::find(std::string_view key) const {
  for (const JsonMember& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) throw Error(GESTALT_DATA_ERROR, "[" + std::string(key) + "] is missing");
  return *value;
}

bool Json::boolean(std::string_view key) const {
  return keyed(key, [&] { return at(key).boolean(); });
}
int64_t Json::i64(std::string_view key) const {
  return keyed(key, [&] { return at(key).i64(); });
}
double Json::f64(std::string_view key) const {
  return keyed(key, [&] { return at(key).f64(); });
}
const std::string& Json::str(std::string_view key) const {
  return keyed(key, [&]() -> const std::string& { return at(key).str(); });
}
bool Json::boolean(std::string_view key, bool absent) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? absent : boolean(key);
}
int64_t Json::i64(std::string_view key, int64_t absent) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? absent : i64(key);
}
double Json::f64(std::string_view key, double absent) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? absent : f64(key);
}
std::string Json::str(std::string_view key, std::string_view absent) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? std::string(absent) : str(key);
}

std::vector<int64_t> Json::i64_list(std::string_view key) const {
  return keyed(key, [&] {
    std::vector<int64_t> result;
    for (const Json& item : at(key).items()) result.push_back(item.i64());
    return result;
  });
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object{};
  for (JsonMember& member : members()) {
    if (member.key == key) return member.value = std::move(value);
  }
  members().push_back({std::string(key), std::move(value)});
  return members().back().value;
}

void Json::push(Json value) {
  if (is_null()) value_ = Array{};
  items().push_back(std::move(value));
}

bool Json::operator==(const Json& other) const { return value_ == other.value_; }

void append_json_string(std::string* out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out->push_back('"');
  for (uint64_t pos = 0; pos < text.size();) {
    const auto byte = static_cast<unsigned char>(text[pos]);
    if (byte >= 0x80) {
      const CodePoint point = next_code_point(text, pos);
      if (point.valid) {
        out->append(text.substr(pos, point.size));
      } else {
        out->append("\xEF\xBF\xBD");
      }
      pos += point.size;
      continue;
    }
    ++pos;
    switch (byte) {
      case '"':
        out->append("\\\"");
        break;
      case '\\':
        out->append("\\\\");
        break;
      case '\b':
        out->append("\\b");
        break;
      case '\f':
        out->append("\\f");
        break;
      case '\n':
        out->append("\\n");
        break;
      case '\r':
        out->append("\\r");
        break;
      case '\t':
        out->append("\\t");
        break;
      default:
        if (byte < 0x20) {
          out->append("\\u00");
          out->push_back(kHex[byte >> 4]);
          out->push_back(kHex[byte & 15]);
        } else {
          out->push_back(static_cast<char>(byte));
        }
    }
  }
  out->push_back('"');
}

void append_json_number(std::string* out, double value) {
  if (!std::isfinite(value)) {
    throw Error(GESTALT_INVALID_ARGUMENT, "JSON has no such number, got " + std::string(std::isnan(value) ? "nan"
                                                                                        : value < 0       ? "-inf"
                                                                                                          : "inf"));
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out->append(buffer, end);
  if (std::find_if(buffer, end, [](char c) { return c == '.' || c == 'e'; }) == end) out->append(".0");
}

void append_json_number(std::string* out, int64_t value) {
  char buffer[24];
  out->append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

namespace {

void write_value(const Json& value, int indent, int depth, std::string* out) {
  const auto new_line = [&](int level) {
    if (indent < 0) return;
    out->push_back('\n');
    out->append(static_cast<size_t>(indent) * static_cast<size_t>(level), ' ');
  };
  if (value.is_object()) {
    out->push_back('{');
    bool first = true;
    for (const JsonMember& member : value.members()) {
      if (!first) out->push_back(',');
      first = false;
      new_line(depth + 1);
      append_json_string(out, member.key);
      out->append(indent < 0 ? ":" : ": ");
      write_value(member.value, indent, depth + 1, out);
    }
    if (!first) new_line(depth);
    out->push_back('}');
  } else if (value.is_array()) {
    out->push_back('[');
    bool first = true;
    for (const Json& item : value.items()) {
      if (!first) out->push_back(',');
      first = false;
      new_line(depth + 1);
      write_value(item, indent, depth + 1, out);
    }
    if (!first) new_line(depth);
    out->push_back(']');
  } else if (value.is_string()) {
    append_json_string(out, value.str());
  } else if (value.is_integer()) {
    const double approximate = value.f64();
    out->append(approximate < 0 ? std::to_string(value.i64()) : std::to_string(value.u64()));
  } else if (value.is_number()) {
    append_json_number(out, value.f64());
  } else if (value.is_bool()) {
    out->append(value.boolean() ? "true" : "false");
  } else {
    out->append("null");
  }
}

}  // namespace

std::string write_json(const Json& value, int indent) {
  std::string out;
  write_value(value, indent, 0, &out);
  return out;
}

}  // namespace gestalt::support

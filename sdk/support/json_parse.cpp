// The reader: nlohmann's tokenizer and grammar drive a handler that adds what the library lets through.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gestalt/error.hpp"
#include "support/file.h"
#include "support/json.h"

namespace gestalt::support {

namespace {

// Counts what the lexer has taken, because the library gives positions only for errors of its own.
class CountingIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** mark) : at_(at), mark_(mark) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *mark_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** mark_;
};

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(std::string_view text, std::string_view origin, int max_depth, const char** mark)
      : text_(text), origin_(origin), max_depth_(max_depth), mark_(mark) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override { return put(uint64_t{value}); }
  bool number_float(number_float_t value, const string_t& spelled) override {
    if (spelled.find_first_of(".eE") == std::string::npos) {
      refuse("integer out of range, got " + spelled.substr(0, 40) +
             ", expected -9223372036854775808 to 18446744073709551615");
    }
    return put(value);
  }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::Object{}); }
  bool start_array(std::size_t) override { return open(Json::Array{}); }
  bool key(string_t& value) override {
    open_.back()->members().push_back({std::move(value), Json()});
    return true;
  }
  bool end_object() override {
    check_unique(open_.back()->members());
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string reason = error.what();
    const size_t colon = reason.find(": ");
    if (colon != std::string::npos) reason.erase(0, colon + 2);
    const size_t dash = reason.find(" - ");
    if (dash != std::string::npos) reason.erase(0, dash + 3);
    refuse_at(position == 0 ? 0 : position - 1, reason);
    return false;
  }

  Json take() { return std::move(root_); }

 private:
  [[noreturn]] void refuse_at(uint64_t byte, const std::string& problem) const {
    throw Error(GESTALT_DATA_ERROR, "[" + std::string(origin_) + "] " + problem + ", at byte " + std::to_string(byte));
  }
  [[noreturn]] void refuse(const std::string& problem) const {
    refuse_at(static_cast<uint64_t>(*mark_ - text_.data()), problem);
  }

  // Where the next value goes: the root, a new array item, or the member whose key came last.
  Json* slot() {
    if (open_.empty()) return &root_;
    Json* parent = open_.back();
    if (parent->is_object()) return &parent->members().back().value;
    parent->items().emplace_back();
    return &parent->items().back();
  }
  template <class T>
  bool put(T&& value) {
    *slot() = Json(std::forward<T>(value));
    return true;
  }
  template <class T>
  bool open(T value) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      refuse("nested too deep, expected at most " + std::to_string(max_depth_) + " levels");
    }
    Json* at = slot();
    *at = Json(std::move(value));
    open_.push_back(at);  // stays put: a parent's vector does not grow while a child is open
    return true;
  }
  void check_unique(const Json::Object& members) {
    sorted_.clear();
    for (const JsonMember& member : members) sorted_.push_back(member.key);
    std::sort(sorted_.begin(), sorted_.end());
    const auto twice = std::adjacent_find(sorted_.begin(), sorted_.end());
    if (twice != sorted_.end())
      refuse("duplicate key \"" + std::string(twice->substr(0, 200)) + "\" in the object that ends");
  }

  std::string_view text_, origin_;
  int max_depth_;
  const char** mark_;
  Json root_;
  std::vector<Json*> open_;
  std::vector<std::string_view> sorted_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view origin, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    throw Error(GESTALT_DATA_ERROR, "[" + std::string(origin) + "] too large, got " + std::to_string(text.size()) +
                                        " bytes, expected at most " + std::to_string(limits.max_bytes));
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    throw Error(GESTALT_DATA_ERROR,
                "[" + std::string(origin) + "] starts with a byte order mark, expected JSON at byte 0");
  }
  const char* mark = text.data();
  Handler handler(text, origin, limits.max_depth, &mark);
  nlohmann::json::sax_parse(CountingIterator(text.data(), &mark), CountingIterator(text.data() + text.size(), &mark),
                            &handler);
  return handler.take();
}

Json read_json_file(const std::string& path, const JsonLimits& limits) {
  const ReadFile file(path);
  if (file.size() > limits.max_bytes) {
    throw Error(GESTALT_DATA_ERROR, "[" + path + "] too large, got " + std::to_string(file.size()) +
                                        " bytes, expected at most " + std::to_string(limits.max_bytes));
  }
  return parse_json(file.read_all(), path, limits);
}

}  // namespace gestalt::support

#include "support/npy.h"

#include <charconv>
#include <cstring>

#include "gestalt/error.hpp"

namespace gestalt::support {

namespace {

struct TypeInfo {
  std::string_view name;
  uint64_t bytes;
};

constexpr TypeInfo kTypes[] = {{"<f4", 4}, {"<f8", 8}, {"|i1", 1}, {"<i2", 2}, {"<i4", 4}, {"<i8", 8},
                               {"|u1", 1}, {"<u2", 2}, {"<u4", 4}, {"<u8", 8}, {"|b1", 1}};
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kMaxHeader = uint64_t{1} << 20;
constexpr uint64_t kMaxDims = 32;  // NumPy's own limit

// The header is a Python dictionary literal; this reads exactly the three entries NumPy writes, in any order.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  NpyArray parse() {
    NpyArray array;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        array.type = type();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        const std::string_view value = word();
        if (value == "True") refuse("is in Fortran order, expected C order");
        if (value != "False") refuse("fortran_order is neither True nor False");
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        array.shape = shape();
      } else {
        refuse("unexpected or repeated key '" + std::string(key.substr(0, 40)) + "'");
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (pos_ != text_.size()) refuse("text after the header's dictionary");
    if (!has_descr || !has_order || !has_shape) refuse("lacks one of descr, fortran_order, shape");
    return array;
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error(GESTALT_DATA_ERROR,
                "[" + std::string(origin_) + "] .npy header " + problem + ", at header byte " + std::to_string(pos_));
  }
  void skip_spaces() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n')) ++pos_;
  }
  bool take(char c) {
    skip_spaces();
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(std::string("lacks '") + c + "'");
  }
  std::string_view quoted() {
    skip_spaces();
    const char quote = pos_ < text_.size() ? text_[pos_] : '\0';
    if (quote != '\'' && quote != '"') refuse("lacks a quoted string");
    const size_t end = text_.find(quote, pos_ + 1);
    if (end == std::string_view::npos) refuse("has a string without end");
    const std::string_view value = text_.substr(pos_ + 1, end - pos_ - 1);
    if (value.find('\\') != std::string_view::npos) refuse("has an escape in a string");
    pos_ = end + 1;
    return value;
  }
  std::string_view word() {
    skip_spaces();
    const size_t start = pos_;
    while (pos_ < text_.size() && ((text_[pos_] | 32) >= 'a' && (text_[pos_] | 32) <= 'z')) ++pos_;
    return text_.substr(start, pos_ - start);
  }
  NpyType type() {
    const std::string_view name = quoted();
    for (size_t i = 0; i < std::size(kTypes); ++i) {
      // One byte has no order; NumPy accepts either spelling.
      if (name == kTypes[i].name ||
          (kTypes[i].bytes == 1 && name.size() == 3 && name.substr(1) == kTypes[i].name.substr(1) && name[0] == '<')) {
        return static_cast<NpyType>(i);
      }
    }
    refuse("has a type that is not read, got '" + std::string(name.substr(0, 40)) +
           "', expected one of <f4 <f8 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8 |b1");
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> dims;
    expect('(');
    bool comma = true;
    while (!take(')')) {
      if (!comma) refuse("lacks ',' in the shape");
      skip_spaces();
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) refuse("has no dimension of 0 to 9223372036854775807 in the shape");
      pos_ = static_cast<size_t>(end - text_.data());
      dims.push_back(value);
      if (dims.size() > kMaxDims) refuse("has more than 32 dimensions");
      comma = take(',');
    }
    if (dims.size() == 1 && !comma) refuse("lacks the ',' of a one-dimensional shape");
    return dims;
  }

  std::string_view text_, origin_;
  size_t pos_ = 0;
};

[[noreturn]] void refuse(std::string_view origin, const std::string& problem) {
  throw Error(GESTALT_DATA_ERROR, "[" + std::string(origin) + "] " + problem);
}

}  // namespace

uint64_t size_of(NpyType type) noexcept { return kTypes[static_cast<size_t>(type)].bytes; }
std::string_view name_of(NpyType type) noexcept { return kTypes[static_cast<size_t>(type)].name; }

void NpyArray::check_type(NpyType wanted) const {
  if (type != wanted) {
    throw Error(GESTALT_DATA_ERROR, ".npy array of another type, got " + std::string(name_of(type)) + ", expected " +
                                        std::string(name_of(wanted)));
  }
}

std::vector<int64_t> NpyArray::to_i64() const {
  const auto widen = [&](auto zero) {
    const auto values = as<decltype(zero)>();
    return std::vector<int64_t>(values.begin(), values.end());
  };
  switch (type) {
    case NpyType::kI1:
      return widen(int8_t{});
    case NpyType::kI2:
      return widen(int16_t{});
    case NpyType::kI4:
      return widen(int32_t{});
    case NpyType::kI8:
      return widen(int64_t{});
    case NpyType::kU1:
      return widen(uint8_t{});
    case NpyType::kU2:
      return widen(uint16_t{});
    case NpyType::kU4:
      return widen(uint32_t{});
    default:
      throw Error(GESTALT_DATA_ERROR, ".npy array that does not fit int64, got " + std::string(name_of(type)));
  }
}

NpyArray parse_npy(std::string_view bytes, std::string_view origin) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic) refuse(origin, "is not .npy: no magic at byte 0");
  const auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])); };
  const uint64_t major = byte(6);
  if (byte(7) != 0 || major < 1 || major > 3) {
    refuse(origin,
           ".npy version, got " + std::to_string(major) + "." + std::to_string(byte(7)) + ", expected 1.0 to 3.0");
  }
  const size_t start = major == 1 ? 10 : 12;
  if (bytes.size() < start) refuse(origin, ".npy ends inside its header");
  const uint64_t length =
      major == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > kMaxHeader || length > bytes.size() - start) {
    refuse(origin, ".npy header of " + std::to_string(length) + " bytes in " + std::to_string(bytes.size()));
  }
  NpyArray array = HeaderParser(bytes.substr(start, length), origin).parse();
  uint64_t expected = size_of(array.type);
  for (int64_t dim : array.shape) {
    if (__builtin_mul_overflow(expected, static_cast<uint64_t>(dim), &expected)) {
      refuse(origin, ".npy shape overflows 64 bits");
    }
  }
  const std::string_view data = bytes.substr(start + length);
  if (data.size() != expected) {
    refuse(origin,
           ".npy holds " + std::to_string(data.size()) + " bytes of data, expected " + std::to_string(expected));
  }
  if (array.type == NpyType::kB1) {
    for (char value : data) {
      if (value != 0 && value != 1) refuse(origin, ".npy holds a boolean that is neither 0 nor 1");
    }
  }
  array.data.resize(data.size());
  if (!data.empty()) std::memcpy(array.data.data(), data.data(), data.size());
  return array;
}

NpyArray read_npy(const std::string& path) { return parse_npy(ReadFile(path).read_all(), path); }

std::string format_npy(NpyType type, std::span<const int64_t> shape, const void* data) {
  std::string header = "{'descr': '" + std::string(name_of(type)) + "', 'fortran_order': False, 'shape': (";
  uint64_t bytes = size_of(type);
  for (size_t i = 0; i < shape.size(); ++i) {
    header += (i == 0 ? "" : " ") + std::to_string(shape[i]) + (i + 1 < shape.size() || shape.size() == 1 ? "," : "");
    if (shape[i] < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(shape[i]), &bytes)) {
      throw Error(GESTALT_INVALID_ARGUMENT, ".npy shape, got dimension " + std::to_string(shape[i]));
    }
  }
  header += "), }";
  // NumPy pads so that the data starts at a multiple of 64.
  const size_t total = (10 + header.size() + 1 + 63) / 64 * 64;
  header.resize(total - 11, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  if (bytes > 0) out.append(static_cast<const char*>(data), bytes);
  return out;
}

void write_npy(const std::string& path, NpyType type, std::span<const int64_t> shape, const void* data) {
  AtomicFile file(path);
  file.write(format_npy(type, shape, data));
  file.commit();
}

}  // namespace gestalt::support

// NumPy's .npy arrays and .npz archives of them. C order and little endian only; object arrays (pickles) are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/file.h"

namespace gestalt::support {

enum class NpyType : uint8_t { kF4, kF8, kI1, kI2, kI4, kI8, kU1, kU2, kU4, kU8, kB1 };

uint64_t size_of(NpyType type) noexcept;
std::string_view name_of(NpyType type) noexcept;  // "<f4"

template <class T>
constexpr NpyType npy_type() {
  if constexpr (std::is_same_v<T, float>)
    return NpyType::kF4;
  else if constexpr (std::is_same_v<T, double>)
    return NpyType::kF8;
  else if constexpr (std::is_same_v<T, bool>)
    return NpyType::kB1;
  else if constexpr (std::is_same_v<T, int8_t>)
    return NpyType::kI1;
  else if constexpr (std::is_same_v<T, int16_t>)
    return NpyType::kI2;
  else if constexpr (std::is_same_v<T, int32_t>)
    return NpyType::kI4;
  else if constexpr (std::is_same_v<T, int64_t>)
    return NpyType::kI8;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return NpyType::kU1;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return NpyType::kU2;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return NpyType::kU4;
  else {
    static_assert(std::is_same_v<T, uint64_t>, "no NumPy type");
    return NpyType::kU8;
  }
}

struct NpyArray {
  NpyType type = NpyType::kF4;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  uint64_t size() const { return data.size() / size_of(type); }
  // The elements; DATA_ERROR when the type is another.
  template <class T>
  std::span<const T> as() const {
    check_type(npy_type<T>());
    return {reinterpret_cast<const T*>(data.data()), size()};
  }
  // Any integer type widened to 64 bits; DATA_ERROR for others.
  std::vector<int64_t> to_i64() const;

 private:
  void check_type(NpyType wanted) const;
};

NpyArray parse_npy(std::string_view bytes, std::string_view origin);
NpyArray read_npy(const std::string& path);
std::string format_npy(NpyType type, std::span<const int64_t> shape, const void* data);
void write_npy(const std::string& path, NpyType type, std::span<const int64_t> shape, const void* data);

// Members stored or deflated (np.savez, np.savez_compressed); checksums are verified.
class NpzReader {
 public:
  explicit NpzReader(std::string path, uint64_t max_member_bytes = uint64_t{1} << 32);

  std::vector<std::string> names() const;  // without ".npy"
  bool has(std::string_view name) const noexcept;
  NpyArray read(std::string_view name) const;  // NOT_FOUND when absent

 private:
  struct Member {
    std::string name;
    uint32_t method, crc;
    uint64_t packed, unpacked, header_offset;
  };
  const Member* find(std::string_view name) const noexcept;

  ReadFile file_;
  std::vector<Member> members_;
};

}  // namespace gestalt::support

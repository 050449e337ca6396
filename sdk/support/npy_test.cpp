#include "support/npy.h"

#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support {

using namespace std::string_literals;

namespace {

std::string npy(std::string_view header, std::string_view data, int major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + std::string(header) + std::string(data);
}

std::string refusal(std::string_view bytes) {
  return error_of([&] { parse_npy(bytes, "t"); });
}

std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// A zip archive of one stored member.
std::string zip(std::string_view name, std::string_view data, uint64_t crc) {
  const std::string sizes = little(data.size(), 4) + little(data.size(), 4);
  const std::string local = "PK\3\4" + little(20, 2) + little(0, 2) + little(0, 2) + little(0, 4) + little(crc, 4) +
                            sizes + little(name.size(), 2) + little(0, 2) + std::string(name) + std::string(data);
  const std::string central = "PK\1\2" + little(20, 2) + little(20, 2) + little(0, 2) + little(0, 2) + little(0, 4) +
                              little(crc, 4) + sizes + little(name.size(), 2) + std::string(16, 0) + std::string(name);
  // 46 bytes up to the name: the last field is the local header's offset, 0.
  return local + central + "PK\5\6" + little(0, 4) + little(1, 2) + little(1, 2) + little(central.size(), 4) +
         little(local.size(), 4) + little(0, 2);
}

}  // namespace

TEST_CASE("arrays come back as they were written") {
  const float values[6] = {1, 2, 3, 4, 5, 6};
  for (const auto& shape : std::vector<std::vector<int64_t>>{{6}, {2, 3}, {1, 2, 3}}) {
    const std::string bytes = format_npy(NpyType::kF4, shape, values);
    CHECK(bytes.size() == 128 + 24);
    const NpyArray array = parse_npy(bytes, "t");
    CHECK(array.shape == shape);
    CHECK(array.as<float>()[5] == 6);
  }
  CHECK(parse_npy(format_npy(NpyType::kF4, {}, values), "t").size() == 1);
  const int64_t empty[] = {0, 3};
  CHECK(parse_npy(format_npy(NpyType::kI8, empty, nullptr), "t").size() == 0);
  CHECK(contains(error_of([&] { parse_npy(format_npy(NpyType::kF4, {}, values), "t").as<double>(); }),
                 "got <f4, expected <f8"));
}

TEST_CASE("headers of versions 1 and 2 are read") {
  const std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }    \n";
  CHECK(parse_npy(npy(header, "\1\0\2\0"s, 1), "t").to_i64() == std::vector<int64_t>{1, 2});
  CHECK(parse_npy(npy(header, "\1\0\2\0"s, 2), "t").to_i64() == std::vector<int64_t>{1, 2});
}

TEST_CASE("headers that say something else are refused with the reason") {
  const auto with = [](std::string_view descr, std::string_view order, std::string_view shape) {
    return npy("{'descr': " + std::string(descr) + ", 'fortran_order': " + std::string(order) +
                   ", 'shape': " + std::string(shape) + ", }\n",
               "12345678");
  };
  CHECK(refusal(with("'<f8'", "False", "(1,)")).empty());
  CHECK(contains(refusal(with("'>f8'", "False", "(1,)")), "got '>f8'"));
  CHECK(contains(refusal(with("'|O'", "False", "(1,)")), "got '|O'"));
  CHECK(contains(refusal(with("[('a', '<f8')]", "False", "(1,)")), "lacks a quoted string"));
  CHECK(contains(refusal(with("'<f8'", "True", "(1,)")), "Fortran order"));
  CHECK(contains(refusal(with("'<f8'", "False", "(2,)")), "holds 8 bytes of data, expected 16"));
  CHECK(contains(refusal(with("'<f8'", "False", "(1)")), "lacks the ','"));
  CHECK(contains(refusal(with("'<f8'", "False", "(-1,)")), "no dimension"));
  CHECK(contains(refusal(with("'<f8'", "False", "(4611686018427387904, 4)")), "overflows"));
  CHECK(contains(refusal(with("'|b1'", "False", "(8,)")), "neither 0 nor 1"));
  CHECK(contains(refusal(npy("{'descr': '<f8', 'shape': ()}", "12345678")), "lacks one of"));
  CHECK(contains(refusal("\x93NUMPY\1\0\xff\xff{}"s), "header of 65535 bytes"));
  CHECK(contains(refusal("PK\3\4 not an array"), "no magic"));
  CHECK(contains(refusal(npy("{}", "", 4)), "version, got 4.0"));
}

TEST_CASE("a stored member is read and its checksum verified") {
  const TestFolder folder;
  const int32_t value = 7;
  const std::string bytes = format_npy(NpyType::kI4, {}, &value);
  const std::string wrong = folder.write("a.npz", zip("x.npy", bytes, 1));
  CHECK(NpzReader(wrong).names() == std::vector<std::string>{"x"});
  CHECK(contains(error_of([&] { NpzReader(wrong).read("x"); }), "a.npz: x] fails its checksum"));
  CHECK(contains(error_of([&] { NpzReader(wrong).read("y"); }), "no array \"y\""));
  CHECK(contains(error_of([&] { NpzReader(folder.write("b.npz", std::string(100, 'x'))); }), "no zip end record"));
  CHECK(contains(error_of([&] { NpzReader(wrong, 10); }), "claims "));
}

// GESTALT_GOLDEN names a folder with megatron-data/*.npz as numpy.savez_compressed wrote them.
TEST_CASE("archives that NumPy wrote are read") {
  const char* golden = std::getenv("GESTALT_GOLDEN");
  if (golden == nullptr) {
    WARN("skipped: GESTALT_GOLDEN names no folder");
    return;
  }
  int num_arrays = 0;
  for (const auto& item : std::filesystem::directory_iterator(std::filesystem::path(golden) / "megatron-data")) {
    if (item.path().extension() != ".npz") continue;
    INFO(item.path().string());
    const NpzReader reader(item.path().string());
    for (const std::string& name : reader.names()) {
      INFO(name);
      const NpyArray array = reader.read(name);
      // NumPy's own writer and ours agree byte for byte.
      CHECK(parse_npy(format_npy(array.type, array.shape, array.data.data()), name).data == array.data);
      ++num_arrays;
    }
  }
  CHECK(num_arrays > 0);
}

}  // namespace gestalt::support

#include "support/safetensors.h"

#include <cstring>

#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support {

namespace {

std::string file_bytes(std::string_view header, std::string_view data) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  return bytes + std::string(header) + std::string(data);
}

std::string refusal(std::string_view bytes, const SafetensorsLimits& limits = {}) {
  const TestFolder folder;
  const std::string path = folder.write("x.safetensors", bytes);
  const std::string message = error_of([&] { SafetensorsReader(path, limits); });
  if (!message.empty()) CHECK(contains(message, "5: [" + path));
  return message;
}

const std::string kTwo =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";

std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return "{\"t\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":" + std::string(shape) +
         ",\"data_offsets\":" + std::string(offsets) + "}}";
}

const std::string kEight(8, 'x');

}  // namespace

TEST_CASE("tensors of the honest file are found and read") {
  const TestFolder folder;
  const SafetensorsReader reader(folder.write("x", file_bytes(kTwo, "12345678abc")));
  REQUIRE(reader.entries().size() == 2);
  char bytes[3];
  reader.read(reader.at("b"), bytes, 3);
  CHECK(std::memcmp(bytes, "abc", 3) == 0);
  reader.read_part(reader.at("b"), 1, bytes, 2);
  CHECK(std::memcmp(bytes, "bc", 2) == 0);
  CHECK(reader.at("a").type->dtype == GESTALT_F32);
  CHECK(contains(error_of([&] { reader.at("c"); }), "c] no such tensor among 2"));
  CHECK(contains(error_of([&] { reader.read(reader.at("b"), bytes, 2); }), "room for 2 bytes, expected 3"));
  CHECK(contains(error_of([&] { reader.read_part(reader.at("b"), 2, bytes, 2); }), "expected to lie within 3"));
}

TEST_CASE("scalars, empty tensors, no tensors and padding are honest") {
  CHECK(refusal(file_bytes(one("F32", "[]", "[0,4]"), "1234")).empty());
  CHECK(refusal(file_bytes(one("F32", "[0,5]", "[0,0]"), "")).empty());
  CHECK(refusal(file_bytes("{}", "")).empty());
  CHECK(refusal(file_bytes("{}      ", "")).empty());
  CHECK(refusal(file_bytes(R"({"__metadata__":{"format":"pt"},"e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},)"
                           R"("t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                           "xy"))
            .empty());
}

TEST_CASE("a file shorter than its length field is refused") { CHECK(contains(refusal("1234567"), "too short")); }

TEST_CASE("a header larger than the limit is refused before it is allocated") {
  std::string bytes = file_bytes("{}", "");
  bytes[7] = '\x7f';
  CHECK(contains(refusal(bytes), "header too large"));
  CHECK(refusal(file_bytes("{}", ""), {2, 10, 16}).empty());
  CHECK(contains(refusal(file_bytes("{} ", ""), {2, 10, 16}), "header too large, got 3 bytes, expected at most 2"));
}

TEST_CASE("a header beyond the end of the file is refused") {
  std::string bytes = file_bytes("{}", "");
  bytes[0] = 100;
  CHECK(contains(refusal(bytes), "header ends after the file, got a header of 100 bytes in a file of 10"));
}

TEST_CASE("a header that is not a JSON object is refused") {
  CHECK(contains(refusal(file_bytes(" {}", "")), "does not start with '{'"));
  CHECK(contains(refusal(file_bytes("", "")), "does not start with '{'"));
  CHECK(contains(refusal(file_bytes("{\"a\":", "")), "at byte"));
  CHECK(contains(refusal(file_bytes("{} {}", "")), "at byte"));
  CHECK(contains(refusal(file_bytes("{\"a\":7}", "")), ": a] expected an object, got integer"));
}

TEST_CASE("a name that occurs twice is refused") {
  CHECK(contains(refusal(file_bytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                    R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                                    kEight)),
                 "duplicate key \"a\""));
}

TEST_CASE("an unknown type or field, and one that is missing, are refused") {
  CHECK(contains(refusal(file_bytes(one("F33", "[2]", "[0,8]"), kEight)), ": t] unknown dtype, got \"F33\""));
  CHECK(contains(refusal(file_bytes(R"({"t":{"dtype":"F32","shape":[2]}})", kEight)), "[data_offsets] is missing"));
  CHECK(contains(refusal(file_bytes(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", kEight)),
                 "unknown field \"x\""));
}

TEST_CASE("a shape that overflows, is negative, fractional or too deep is refused") {
  CHECK(contains(refusal(file_bytes(one("U8", "[4294967296,4294967296,2]", "[0,8]"), kEight)), "overflows 64 bits"));
  CHECK(contains(refusal(file_bytes(one("F64", "[2305843009213693953]", "[0,8]"), kEight)), "overflows 64 bits"));
  CHECK(contains(refusal(file_bytes(one("U8", "[-8,-1]", "[0,8]"), kEight)), "negative dimension, got -8"));
  CHECK(contains(refusal(file_bytes(one("U8", "[8.0]", "[0,8]"), kEight)), "[shape] expected an integer, got number"));
  CHECK(refusal(file_bytes(one("U8", "[8,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,8]"), kEight)).empty());
  CHECK(contains(refusal(file_bytes(one("U8", "[8,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,8]"), kEight)),
                 "too many dimensions, got 17, expected at most 16"));
}

TEST_CASE("elements below a byte must fill whole bytes") {
  CHECK(refusal(file_bytes(one("F4", "[16]", "[0,8]"), kEight)).empty());
  CHECK(contains(refusal(file_bytes(one("F4", "[15]", "[0,8]"), kEight)), "do not fill whole bytes"));
  CHECK(contains(refusal(file_bytes(one("F6_E2M3", "[3]", "[0,2]"), "ab")), "do not fill whole bytes"));
}

TEST_CASE("byte ranges that do not match dtype and shape, or run backwards, are refused") {
  CHECK(contains(refusal(file_bytes(one("F32", "[2]", "[0,7]"), kEight)), "hold 7 bytes, expected 8"));
  CHECK(contains(refusal(file_bytes(one("F32", "[2]", "[8,0]"), kEight)), "0 <= begin <= end"));
  CHECK(contains(refusal(file_bytes(one("F32", "[2]", "[-8,0]"), kEight)), "0 <= begin <= end"));
  CHECK(contains(refusal(file_bytes(one("F32", "[2]", "[0,8,8]"), kEight)), "0 <= begin <= end"));
}

TEST_CASE("a tensor beyond the end of the file is refused as a truncated file") {
  CHECK(contains(refusal(file_bytes(one("F32", "[2]", "[0,8]"), "1234567")), "is the file truncated?"));
}

TEST_CASE("a hole, an overlap and bytes after the last tensor are refused") {
  CHECK(contains(refusal(file_bytes(one("U8", "[7]", "[1,8]"), kEight)), ": t] leaves a hole before it"));
  CHECK(contains(refusal(file_bytes(R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},)"
                                    R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                                    kEight)),
                 ": b] overlaps the tensor before it, got data offset 4, expected 5"));
  CHECK(contains(refusal(file_bytes(kTwo, "12345678abcd")), "has 1 bytes after the last tensor"));
}

TEST_CASE("metadata that is not strings is refused") {
  CHECK(contains(refusal(file_bytes(R"({"__metadata__":{"step":1}})", "")), "\"step\" is not a string, got integer"));
}

TEST_CASE("too many tensors are refused") {
  CHECK(refusal(file_bytes(kTwo, "12345678abc"), {1000, 2, 16}).empty());
  CHECK(contains(refusal(file_bytes(R"({"a":{},"b":{},"c":{}})", ""), {1000, 1, 16}), "too many tensors"));
}

TEST_CASE("the writer orders by type and name, pads the header and replaces the file whole") {
  const TestFolder folder;
  const std::string path = folder.write("x.safetensors", "old");
  const float f[2] = {1, 2};
  const uint8_t u[3] = {1, 2, 3};
  const int64_t i = -1;
  SafetensorsWriter writer(path);
  writer.set_metadata("format", "pt");
  writer.add("z", *safetensors_type(GESTALT_F32), {2}, f);
  writer.add("b", *safetensors_type(GESTALT_U8), {3}, u);
  writer.add("a", *safetensors_type(GESTALT_F32), {2, 0}, nullptr);
  writer.add("y\"\n", *safetensors_type(GESTALT_I64), {}, &i);
  CHECK(ReadFile(path).read_all() == "old");
  writer.commit();
  const std::string bytes = ReadFile(path).read_all();
  const uint64_t header = static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
  CHECK(header % 8 == 0);
  CHECK(bytes.substr(8).rfind(
            R"({"__metadata__":{"format":"pt"},"y\"\n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
            R"("a":{"dtype":"F32","shape":[2,0],"data_offsets":[8,8]},)"
            R"("z":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
            R"("b":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}})",
            0) == 0);
  CHECK(folder.num_files() == 1);
  const SafetensorsReader reader(path);
  CHECK(*reader.metadata("format") == "pt");
  float back[2];
  reader.read(reader.at("z"), back, 8);
  CHECK(back[1] == 2);
}

TEST_CASE("the writer refuses a name twice, the reserved name and missing data") {
  const TestFolder folder;
  const uint8_t u = 1;
  SafetensorsWriter writer(folder.file("x"));
  writer.add("a", *safetensors_type(GESTALT_U8), {1}, &u);
  CHECK_THROWS(writer.add("__metadata__", *safetensors_type(GESTALT_U8), {1}, &u));
  CHECK_THROWS(writer.add("b", *safetensors_type(GESTALT_U8), {1}, nullptr));
  writer.add("a", *safetensors_type(GESTALT_U8), {1}, &u);
  CHECK(contains(error_of([&] { writer.commit(); }), "a] was added twice"));
  CHECK(folder.num_files() == 0);
}

// GESTALT_GOLDEN names a folder with hf/*/*.safetensors as the reference library wrote them.
TEST_CASE("files of the reference writer are read, and saving them again gives the same bytes") {
  const char* golden = std::getenv("GESTALT_GOLDEN");
  if (golden == nullptr) {
    WARN("skipped: GESTALT_GOLDEN names no folder");
    return;
  }
  const TestFolder folder;
  int num_files = 0;
  for (const auto& item : std::filesystem::recursive_directory_iterator(std::filesystem::path(golden) / "hf")) {
    if (item.path().extension() != ".safetensors") continue;
    INFO(item.path().string());
    const SafetensorsReader reader(item.path().string());
    std::vector<std::string> data;
    SafetensorsWriter writer(folder.file("copy"));
    for (const auto& [key, value] : reader.metadata()) writer.set_metadata(key, value);
    for (const SafetensorsEntry& entry : reader.entries()) {
      std::string& bytes = data.emplace_back(entry.bytes, '\0');
      reader.read(entry, bytes.data(), bytes.size());
    }
    for (size_t i = data.size(); i-- > 0;) {
      const SafetensorsEntry& entry = reader.entries()[i];
      writer.add(entry.name, *entry.type, entry.shape, data[i].data());
    }
    writer.commit();
    CHECK(ReadFile(folder.file("copy")).read_all() == ReadFile(item.path().string()).read_all());
    ++num_files;
  }
  CHECK(num_files > 0);
}

}  // namespace gestalt::support

// Seeded mutations of honest inputs: a reader either takes the result or refuses it with an Error of its own. Sanitizer
// builds turn everything else into a failure. GESTALT_FUZZ_RUNS sets the number of mutations a format.
#include <cstring>
#include <random>

#include "support/json.h"
#include "support/npy.h"
#include "support/safetensors.h"
#include "support/test_folder.h"
#include "support/utf8.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support {

namespace {

int64_t num_runs() {
  const char* runs = std::getenv("GESTALT_FUZZ_RUNS");
  return runs == nullptr ? 3000 : std::atoll(runs);
}

std::string mutated(std::string bytes, std::mt19937_64& random, uint64_t header_bytes) {
  constexpr const char* kPieces[] = {"{",
                                     "}",
                                     "[",
                                     "]",
                                     ",",
                                     ":",
                                     "\"",
                                     "-1",
                                     "0",
                                     "1e9",
                                     "18446744073709551616",
                                     "9223372036854775807",
                                     "null",
                                     "\\ud800",
                                     "\xFF",
                                     "\xE2\x82",
                                     "(",
                                     ")",
                                     "'",
                                     "true"};
  const auto below = [&](uint64_t limit) { return limit == 0 ? 0 : random() % limit; };
  const uint64_t changes = 1 + below(4);
  for (uint64_t i = 0; i < changes; ++i) {
    // Mostly near the start, where the structure is.
    const uint64_t at = below(below(4) == 0 ? bytes.size() : std::min<uint64_t>(header_bytes, bytes.size()));
    switch (below(6)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(random());
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 3:
        bytes.erase(at, 1 + below(8));
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(40)));
        break;
      default:
        if (below(4) == 0) bytes.resize(at);
        break;
    }
  }
  return bytes;
}

// Runs `use` on mutations; only gestalt::Error may come out.
template <class Use>
void fuzz(const std::string& seed, uint64_t header_bytes, Use use) {
  std::mt19937_64 random(20240917);
  int64_t num_accepted = 0;
  for (int64_t run = 0; run < num_runs(); ++run) {
    const std::string input = mutated(seed, random, header_bytes);
    try {
      use(input);
      ++num_accepted;
    } catch (const Error& error) {
      if (error.code != GESTALT_DATA_ERROR && error.code != GESTALT_NOT_FOUND)
        FAIL("code " << error.code << ": " << error.what());
    }
  }
  CHECK(num_accepted > 0);
  CHECK(num_accepted < num_runs());
}

}  // namespace

TEST_CASE("mutated JSON is taken or refused, and what is taken can be written and read again") {
  fuzz(R"({"a":[1,-2,2.5e3,true,null,"x\n\u00e9"],"b":{"c":18446744073709551615,"d":[]},"vocab":{"q":1,"w":2,"e":3}})",
       1000, [](const std::string& input) {
         const Json value = parse_json(input, "t");
         if (!(parse_json(write_json(value), "t") == value)) FAIL("not the same after writing: " << input);
       });
}

TEST_CASE("mutated safetensors files are taken or refused") {
  const TestFolder folder;
  const float f[4] = {1, 2, 3, 4};
  SafetensorsWriter writer(folder.file("seed"));
  writer.set_metadata("format", "pt");
  writer.add("model.a", *safetensors_type(GESTALT_F32), {2, 2}, f);
  writer.add("model.b", *safetensors_type(GESTALT_BF16), {5}, f);
  writer.add("model.c", *safetensors_type(GESTALT_U8), {0, 3}, nullptr);
  writer.commit();
  const std::string path = folder.file("x");
  fuzz(ReadFile(folder.file("seed")).read_all(), 260, [&](std::string input) {
    // Half of the time the length field is made right, or every change of the header's size would stop at the door.
    if (input.size() % 2 == 0 && input.size() > 40) {
      const uint64_t length = input.size() - 8 - 26;
      for (size_t i = 0; i < 8; ++i) input[i] = static_cast<char>(length >> (8 * i));
    }
    std::filesystem::remove(path);  // file systems flush at the close of a file that was truncated, not of a new one
    folder.write("x", input);
    const SafetensorsReader reader(path);
    for (const SafetensorsEntry& entry : reader.entries()) {
      std::string bytes(entry.bytes, '\0');
      reader.read(entry, bytes.data(), bytes.size());
    }
  });
}

TEST_CASE("mutated .npy arrays are taken or refused") {
  const double values[4] = {1, 2, 3, 4};
  const int64_t shape[] = {2, 2};
  fuzz(format_npy(NpyType::kF8, shape, values), 128, [](const std::string& input) {
    const NpyArray array = parse_npy(input, "t");
    if (array.data.size() > input.size()) FAIL("more data than bytes");
  });
}

TEST_CASE("the splitter gives valid UTF-8 for any bytes, however they are cut") {
  std::mt19937_64 random(7);
  for (int64_t run = 0; run < num_runs(); ++run) {
    std::string text, whole, pieces;
    for (uint64_t i = random() % 24; i > 0; --i) {
      if (random() % 2 == 0) {
        append_utf8(&text, static_cast<uint32_t>(random() % 0x110000));
      } else {
        text += static_cast<char>(random());
      }
    }
    Utf8Splitter once, often;
    once.push(text, &whole);
    once.finish(&whole);
    for (uint64_t pos = 0; pos < text.size();) {
      const uint64_t step = 1 + random() % 3;
      often.push(std::string_view(text).substr(pos, step), &pieces);
      pos += step;
    }
    often.finish(&pieces);
    if (whole != pieces || !valid_utf8(whole)) FAIL("cut differently at run " << run);
    if (valid_utf8(text) && whole != text) FAIL("valid text changed at run " << run);
  }
}

}  // namespace gestalt::support

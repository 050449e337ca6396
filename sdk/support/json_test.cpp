#include "support/json.h"

#include <limits>

#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support {

namespace {

std::string refusal(std::string_view text, JsonLimits limits = {}) {
  return error_of([&] { parse_json(text, "t", limits); });
}

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

}  // namespace

TEST_CASE("JSON values come back as they were written") {
  const std::string text = R"({"a":[1,-2,2.5,1e3,true,false,null,"x\ny \" \\ é \u0001"],"b":{},"c":[]})";
  const Json value = parse_json(text, "t");
  CHECK(parse_json(write_json(value), "t") == value);
  CHECK(parse_json(write_json(value, 2), "t") == value);
  CHECK(value.at("a").items()[2].f64() == 2.5);
  CHECK(value.at("a").items()[7].str() == "x\ny \" \\ \xC3\xA9 \x01");
  CHECK(write_json(Json::object({{"k", Json::array({1, "s"})}}), 2) == "{\n  \"k\": [\n    1,\n    \"s\"\n  ]\n}");
}

TEST_CASE("integers are exact over the whole range of 64 bits, and refused outside it") {
  CHECK(parse_json("9223372036854775807", "t").i64() == std::numeric_limits<int64_t>::max());
  CHECK(parse_json("-9223372036854775808", "t").i64() == std::numeric_limits<int64_t>::min());
  CHECK(parse_json("18446744073709551615", "t").u64() == std::numeric_limits<uint64_t>::max());
  CHECK(write_json(parse_json("[18446744073709551615,-9223372036854775808]", "t")) ==
        "[18446744073709551615,-9223372036854775808]");
  CHECK(contains(error_of([] { parse_json("18446744073709551615", "t").i64(); }), "18446744073709551615"));
  CHECK(contains(error_of([] { parse_json("-1", "t").u64(); }), "got -1"));
  CHECK(contains(refusal("18446744073709551616"), "integer out of range, got 18446744073709551616"));
  CHECK(contains(refusal("-9223372036854775809"), "integer out of range"));
}

TEST_CASE("a float keeps its value and stays a float") {
  for (double value : {0.1, 1.0, -0.0, 5e-324, 1.7976931348623157e308, 123456789012345680.0}) {
    const Json back = parse_json(write_json(Json(value)), "t");
    CHECK(back.f64() == value);
    CHECK_FALSE(back.is_integer());
  }
  CHECK(contains(refusal("1e999"), "overflow"));
  CHECK_THROWS(write_json(Json(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("depth is accepted at the limit and refused one beyond") {
  CHECK(refusal(nested(64)).empty());
  CHECK(contains(refusal(nested(65)), "nested too deep, expected at most 64 levels, at byte 65"));
  CHECK(contains(refusal(nested(1'000'000)), "nested too deep"));
}

TEST_CASE("size is accepted at the limit and refused one beyond") {
  CHECK(refusal("[1]", {3, 64}).empty());
  CHECK(contains(refusal("[1]", {2, 64}), "got 3 bytes, expected at most 2"));
}

TEST_CASE("duplicate keys are refused, also through escapes") {
  CHECK(contains(refusal(R"({"a":1,"b":{"x":1,"x":2}})"), "duplicate key \"x\""));
  CHECK(contains(refusal(R"({"a":1,"\u0061":2})"), "duplicate key \"a\""));
  CHECK(refusal(R"({"a":{"a":1},"b":{"a":1}})").empty());
}

TEST_CASE("what is not JSON is refused with the byte") {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[1,]",
                           "{\"a\":1,}",
                           "nan",
                           "NaN",
                           "[Infinity]",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "'a'",
                           "{a:1}",
                           "// c\n1",
                           "1 2",
                           "\"\t\"",
                           "\"\\x\"",
                           "\"\\ud800\"",
                           "\"\xFF\"",
                           "\"\xC0\x80\"",
                           "\"\xED\xA0\x80\"",
                           "\xEF\xBB\xBF{}",
                           "tru"}) {
    INFO(text);
    const std::string message = refusal(text);
    CHECK(contains(message, "5: [t] "));
    CHECK(contains(message, "at byte "));
  }
  CHECK(contains(refusal("[1, x]"), "at byte 4"));
}

TEST_CASE("getters name the key that is missing or of the wrong kind") {
  const Json value = parse_json(R"({"n":"x","l":[1,"y"],"z":null})", "t");
  CHECK(contains(error_of([&] { value.i64("n"); }), "[n] expected an integer, got string"));
  CHECK(contains(error_of([&] { value.f64("q"); }), "[q] is missing"));
  CHECK(contains(error_of([&] { value.i64_list("l"); }), "[l] expected an integer, got string"));
  CHECK(value.i64("q", 7) == 7);
  CHECK(value.i64("z", 7) == 7);
  CHECK(contains(error_of([&] { value.i64("n", 7); }), "[n]"));
}

TEST_CASE("invalid UTF-8 is written as the replacement character") {
  CHECK(write_json(Json("a\xFF"
                        "b\xE2\x82")) ==
        "\"a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD\"");
}

TEST_CASE("a JSON file that is absent or too large is refused before it is read") {
  const TestFolder folder;
  CHECK(contains(error_of([&] { read_json_file(folder.file("none.json")); }), "4: ["));
  const std::string path = folder.write("a.json", "[1,2]");
  CHECK(read_json_file(path).size() == 2);
  CHECK(contains(error_of([&] { read_json_file(path, {4, 64}); }), "got 5 bytes"));
}

}  // namespace gestalt::support

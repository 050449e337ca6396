#include "core/base/text.h"

#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;

TEST_CASE("The edit distance counts inserts, deletes, replacements and swaps of neighbours") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("steps", "steps") == 0);
  CHECK(edit_distance("steps", "stesp") == 1);
  CHECK(edit_distance("steps", "step") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("", "abc") == 3);
}

TEST_CASE("The nearest name is the closest candidate within a third of the length") {
  const std::vector<std::string> keys = {"steps", "global_batch", "micro_batch", "lr"};
  CHECK(nearest("stesp", keys) == "steps");
  CHECK(nearest("globalbatch", keys) == "global_batch");
  CHECK(nearest("lx", keys) == "lr");
  CHECK(nearest("zz", keys) == "");
  CHECK(nearest("temperature", keys) == "");
  CHECK(nearest(std::string(1000, 'a'), keys) == "");
}

TEST_CASE("A star stands for text within one component") {
  CHECK(glob_match("model.layers.*.mlp", "model.layers.3.mlp"));
  CHECK_FALSE(glob_match("model.layers.*.mlp", "model.layers.3.deep.mlp"));
  CHECK(glob_match("model.*_norm.weight", "model.final_norm.weight"));
  CHECK(glob_match("a*b*c", "aXbYbZc"));
  CHECK_FALSE(glob_match("a*b*c", "aXbYbZ"));
  CHECK(glob_match("*", "model"));
}

TEST_CASE("A last star and two stars reach any depth") {
  CHECK(glob_match("model.layers.0.*", "model.layers.0.mlp.up.weight"));
  CHECK_FALSE(glob_match("model.layers.0.*", "model.layers.0"));
  CHECK(glob_match("**.weight", "model.layers.0.mlp.weight"));
  CHECK(glob_match("model.**.weight", "model.weight"));
  CHECK(glob_match("**", "a.b.c"));
  CHECK_FALSE(glob_match("**.bias", "model.weight"));
}

TEST_CASE("A range matches a whole number") {
  CHECK(glob_match("model.layers.[0-3].*", "model.layers.2.mlp"));
  CHECK_FALSE(glob_match("model.layers.[0-3].*", "model.layers.4.mlp"));
  CHECK_FALSE(glob_match("model.layers.[0-3].*", "model.layers.12.mlp"));
  CHECK(glob_match("layers.[8-12]", "layers.10"));
  CHECK(glob_match("layer[7].w", "layer7.w"));
  CHECK_FALSE(glob_match("layers.*[2-3]", "layers.12"));
  CHECK_FALSE(glob_match("layers.[0-3]", "layers.x"));
  CHECK_FALSE(glob_match("layers.[0-3]", "layers.99999999999999999999999"));
}

TEST_CASE("A malformed pattern is refused with its text") {
  for (const char* pattern : {"a.[0-", "a.[x]", "a.[3-1]", "a..b", "", "a.]", "a.[]", "a.[1-2-3]"}) {
    const auto e = gestalt::test::thrown_by([&] { glob_match(pattern, "a.b"); });
    CHECK(e.code() == GESTALT_CONFIG_ERROR);
    CHECK_THAT(e.message(), Catch::Contains(fmt::format("[{}] malformed path pattern", pattern)));
  }
}

TEST_CASE("A pattern of many stars stays fast") {
  std::string pattern, path;
  for (int i = 0; i < 200; ++i) {
    pattern += "**.*a*.";
    path += "aaaaaaaaaaaaaaaa.";
  }
  CHECK_FALSE(glob_match(pattern + "x", path + "y"));
}

TEST_CASE("Split and join are inverse") {
  CHECK(split("a.b.c", '.') == std::vector<std::string>{"a", "b", "c"});
  CHECK(split("", '.') == std::vector<std::string>{""});
  CHECK(split(".a.", '.') == std::vector<std::string>{"", "a", ""});
  CHECK(join({"a", "", "c"}, ", ") == "a, , c");
  CHECK(join({}, ", ") == "");
}

TEST_CASE("Bytes and durations are printed in the unit that fits") {
  CHECK(format_bytes(12) == "12 B");
  CHECK(format_bytes(1536) == "1.50 KiB");
  CHECK(format_bytes(uint64_t{3} << 30) == "3.00 GiB");
  CHECK(format_bytes(UINT64_MAX) == "16.00 EiB");
  CHECK(format_duration(0.0000123) == "12.3 us");
  CHECK(format_duration(0.0123) == "12.3 ms");
  CHECK(format_duration(12.34) == "12.3 s");
  CHECK(format_duration(125) == "2 m 05 s");
  CHECK(format_duration(3725) == "1 h 02 m");
  CHECK(format_duration(-1) == "-1 s");
}

TEST_CASE("Control bytes and invalid UTF-8 are escaped, letters are not") {
  CHECK(escape_controls("a\x1b[31m\n") == "a\\x1b[31m\\x0a");
  CHECK(escape_controls("gr\xC3\xBC\xC3\x9F") == "gr\xC3\xBC\xC3\x9F");
  CHECK(escape_controls("\xC2\x9B") == "\\xc2\\x9b");
  CHECK(escape_controls("\xFF\xC0\x80") == "\\xff\\xc0\\x80");
}

TEST_CASE("A JSON string is quoted and valid UTF-8") {
  CHECK(json_quote("a\"b\\c\n\t\x01") == R"("a\"b\\c\n\t\u0001")");
  CHECK(json_quote("\xFF") == "\"\xEF\xBF\xBD\"");
}

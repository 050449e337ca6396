#include "core/config/toml_reader.h"

#include "tests/catch_compat.hpp"
#include "tests/temporary_folder.h"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using gestalt::test::thrown_by;

namespace {

std::string problem(std::string_view text) {
  const Error e = thrown_by([&] { read_toml_text(text, "x.toml"); });
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  return e.message();
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("Values carry file, line and column, and tables keep the order of the file") {
  const auto root = read_toml_text("zebra = 1\n\n[train]\n  steps = 5\n  batch = [1,\n    2]\n[apple]\n", "x.toml");
  REQUIRE(root.members().size() == 3);
  CHECK(root.members()[0].key == "zebra");
  CHECK(root.members()[1].key == "train");
  CHECK(root.members()[2].key == "apple");
  const auto* steps = find_path(root, "train.steps");
  CHECK(steps->origin.describe() == "x.toml:4");
  CHECK(steps->origin.position() == "x.toml:4:3");
  CHECK(find_path(root, "train.batch[1]")->origin.position() == "x.toml:6:5");
  CHECK(find_path(root, "train")->origin.line == 3);
}

TEST_CASE("All kinds are read") {
  const auto root = read_toml_text("s = 'a'\ni = 0x10\nf = 1e-3\nb = true\na = [1, 'x']\nt = {x = 1}\n", "x");
  CHECK(root.find("s")->as_string() == "a");
  CHECK(root.find("i")->as_integer() == 16);
  CHECK(root.find("f")->as_real() == 1e-3);
  CHECK(root.find("b")->as_boolean());
  CHECK(root.find("a")->elements().size() == 2);
  CHECK(root.find("t")->is_table());
}

TEST_CASE("Syntax errors name file, line and column") {
  CHECK_THAT(problem("a = 1\nb = = 2\n"), Catch::StartsWith("x.toml:2:5: "));
  CHECK_THAT(problem("a = 1\na = 2\n"), Catch::StartsWith("x.toml:2:"));
  CHECK_THAT(problem("a = \"open\n"), Catch::StartsWith("x.toml:1:"));
  CHECK_THAT(problem("a = 9223372036854775808\n"), Catch::StartsWith("x.toml:1:"));
  CHECK_THAT(problem("[a]\n[a]\n"), Catch::StartsWith("x.toml:2:"));
  CHECK_THAT(problem("a = [1, 2\n"), Catch::StartsWith("x.toml:"));
}

TEST_CASE("A date is refused with the way out") {
  CHECK_THAT(problem("a = 1979-05-27\n"), Catch::StartsWith("x.toml:1:1: a date or time") && Catch::EndsWith("quotes"));
}

TEST_CASE("A control byte, invalid UTF-8 and a foreign letter outside quotes are refused at their place") {
  CHECK(problem("a = 1\nb\x0b = 2") == "x.toml:2:2: control byte 0x0b, expected text");
  CHECK(problem(std::string_view("a\0", 2)) == "x.toml:1:2: control byte 0x00, expected text");
  CHECK(problem("a = '\x7f'") == "x.toml:1:6: control byte 0x7f, expected text");
  CHECK(problem("a = '\xFF'") == "x.toml:1:6: not valid UTF-8");
  CHECK_THAT(problem("\t\xE2\xBF\xBB"), Catch::StartsWith("x.toml:1:2: a letter that is not ASCII"));
  CHECK_THAT(problem("gr\xC3\xBC\xC3\x9F = 1"), Catch::StartsWith("x.toml:1:3: a letter that is not ASCII"));
}

TEST_CASE("Foreign letters inside quotes and comments are text") {
  const auto root =
      read_toml_text("# gr\xC3\xBC\xC3\x9F\na = 'gr\xC3\xBC'\n\"\xC3\xBC\" = \"\"\"\n\xC3\xBC\"\"\"\"\"\nb = 1", "x");
  CHECK(root.find("a")->as_string() == "gr\xC3\xBC");
  CHECK(root.find("\xC3\xBC")->as_string() == "\xC3\xBC\"\"");
  CHECK(root.find("b")->as_integer() == 1);
}

TEST_CASE("The filter follows every form of string") {
  const char* text = "a = \"\\\"[[[\"\nb = '\\'\nc = '''[[['['''\nd = \"\"\n e = ''\nf = \"\"\"a\\\"\"\"\"\n# [[[ \"\n";
  const auto root = read_toml_text(text, "x", {.depth = 1});
  CHECK(root.find("a")->as_string() == "\"[[[");
  CHECK(root.find("b")->as_string() == "\\");
  CHECK(root.find("c")->as_string() == "[[['[");
  CHECK(root.find("f")->as_string() == "a\"");
}

TEST_CASE("The two bytes that abort the bare parser are an ordinary error") {
  CHECK_THAT(problem("[\x0b"), Catch::Contains("control byte 0x0b"));
  CHECK_THAT(problem("["), Catch::StartsWith("x.toml:"));
}

TEST_CASE("A foreign letter after a line-ending backslash is text, right after the backslash an ordinary error") {
  const auto root = read_toml_text("a = \"\"\"x\\\n  \xE2\xBF\xBB\xC3\xBCy\"\"\"", "x");
  CHECK(root.find("a")->as_string() == "x\xE2\xBF\xBB\xC3\xBCy");
  CHECK_THAT(problem("a = \"\"\"x\\\xE2\xBF\xBB\"\"\""), Catch::StartsWith("x.toml:1:10: "));
}

TEST_CASE("Limits hold at the limit and one above it") {
  SECTION("bytes") {
    const std::string text = "a = 1\n#" + std::string(93, 'x');
    CHECK_NOTHROW(read_toml_text(text, "x", {.file_bytes = 100}));
    CHECK(thrown_by([&] { read_toml_text(text + "x", "x", {.file_bytes = 100}); }).message() ==
          "x: too large, got 101 bytes, expected at most 100");
  }
  SECTION("nested arrays") {
    CHECK_NOTHROW(read_toml_text("a = " + repeated("[", 64) + repeated("]", 64), "x"));
    CHECK_THAT(problem("a = " + repeated("[", 65) + repeated("]", 65)),
               Catch::Contains("x.toml:1:69: nested too deeply"));
    CHECK_THAT(problem("a = " + repeated("[", 100000)), Catch::Contains("nested too deeply"));
  }
  SECTION("parts of a key") {
    CHECK_NOTHROW(read_toml_text(repeated("a.", 63) + "a = 1", "x"));
    CHECK_THAT(problem(repeated("a.", 64) + "a = 1"), Catch::Contains("a key of too many parts, expected at most 64"));
    CHECK_THAT(problem("[" + repeated("a.", 400000) + "a]"), Catch::Contains("a key of too many parts"));
    CHECK_THAT(problem(repeated("\"a\" . ", 64) + "a = 1"), Catch::Contains("a key of too many parts"));
    CHECK_NOTHROW(read_toml_text("a = [" + repeated("0.5, ", 1000) + "]", "x"));
  }
  SECTION("tables by dotted keys inside tables") {
    CHECK_THAT(problem("[" + repeated("a.", 40) + "a]\n" + repeated("b.", 40) + "b = 1"),
               Catch::Contains("nested too deeply"));
  }
  SECTION("strings") {
    CHECK_NOTHROW(read_toml_text("a = '" + std::string(4096, 'x') + "'", "x"));
    CHECK(problem("a = '" + std::string(4097, 'x') + "'") ==
          "x.toml:1:1: a string of 4097 bytes, expected at most 4096");
    CHECK_THAT(problem(std::string(4097, 'x') + " = 1"), Catch::Contains("a key of 4097 bytes"));
  }
}

TEST_CASE("A zero byte written as an escape is refused") {
  CHECK(problem("a = \"x\\u0000y\"") == "x.toml:1:1: a string with a zero byte inside");
}

TEST_CASE("The mark that some editors write is skipped") {
  CHECK(read_toml_text("\xEF\xBB\xBF"
                       "a = 1",
                       "x")
            .find("a")
            ->as_integer() == 1);
}

TEST_CASE("A file that is absent or too large says so") {
  CHECK(thrown_by([] { read_toml_file("/nonexistent.toml"); }).code() == GESTALT_NOT_FOUND);
  gestalt::test::TemporaryFolder folder;
  const auto path = folder.write("x.toml", std::string((1 << 20) + 1, '#'));
  const Error e = thrown_by([&] { read_toml_file(path); });
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  CHECK_THAT(e.message(), Catch::Contains("got 1048577 bytes, expected at most 1048576"));
}

TEST_CASE("A single value is one value") {
  CHECK(read_toml_value("[1, 2]", "v").elements().size() == 2);
  CHECK_THAT(thrown_by([] { read_toml_value("1\nb = 2", "v"); }).message(),
             Catch::StartsWith("v: more than one value"));
  CHECK_THROWS_AS(read_toml_value("", "v"), Error);
}

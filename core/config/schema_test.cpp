#include "core/config/schema.h"

#include "core/config/attr_list.h"
#include "tests/catch_compat.hpp"
#include "tests/temporary_folder.h"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using gestalt::test::message_of;
using gestalt::test::thrown_by;

namespace {

ConfigSchema example() {
  ConfigSchema s;
  s.extend("train", "core",
           {{.name = "steps", .type = "i64", .min = "1", .max = "100", .doc = "updates"},
            {.name = "lr", .type = "f64", .default_value = "1", .min = "0.0"},
            {.name = "mode", .type = "str", .default_value = "'fast'", .choices = "fast|slow"},
            {.name = "wait", .type = "i64", .default_value = "3", .when = "mode=slow"},
            {.name = "names", .type = "str[]", .choices = "a|b"},
            {.name = "ids", .type = "i64[]", .min = "0"},
            {.name = "rates", .type = "f64[]", .default_value = "[]"},
            {.name = "shuffle", .type = "bool"},
            {.name = "split.size", .type = "i64|str", .min = "1", .choices = "rest"},
            {.name = "open", .type = "table"}},
           Presence::kIfPresent);
  s.extend("data", "acme.data",
           {{.name = "corpora[].path", .type = "str", .doc = "text file", .required = true},
            {.name = "corpora[].weight", .type = "f64", .default_value = "1.0"},
            {.name = "corpora[].kind", .type = "str", .default_value = "'text'"},
            {.name = "corpora[].column", .type = "str", .when = "kind=csv"}},
           Presence::kIfPresent);
  s.extend("kernels", "core", {{.name = "*", .type = "str[]"}, {.name = "pin", .type = "table"}}, Presence::kIfPresent);
  return s;
}

Config checked(std::string_view text, const std::vector<std::string>& sets = {}) {
  Config c = Config::from_text(text, "x.toml", sets);
  check(c, example());
  return c;
}

std::string problem(std::string_view text, const std::vector<std::string>& sets = {}) {
  const Error e = thrown_by([&] { checked(text, sets); });
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  return e.message();
}

std::string bad_spec(KeySpec spec) {
  const Error e = thrown_by([&] { check_key_spec(spec, "acme.x"); });
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  return e.message();
}

}  // namespace

TEST_CASE("An unknown key is refused with file, line and the nearest valid key") {
  CHECK(problem("[train]\nstesp = 5\n") == "x.toml:2: unknown key 'train.stesp'; nearest valid key 'train.steps'");
  CHECK(problem("[train]\n[train.split]\nsiez = 5\n") ==
        "x.toml:3: unknown key 'train.split.siez'; nearest valid key 'train.split.size'");
  CHECK(problem("[trian]\nsteps = 5\n") == "x.toml:1: unknown key 'trian'; nearest valid key 'train'");
  CHECK(problem("[[data.corpora]]\npath = 'a'\npaht = 'b'\n") ==
        "x.toml:3: unknown key 'data.corpora[0].paht'; nearest valid key 'data.corpora[0].path'");
  CHECK(problem("", {"train.stesp=5"}) == "--set: unknown key 'train.stesp'; nearest valid key 'train.steps'");
}

TEST_CASE("A key of another section is found there") {
  CHECK(problem("[data]\nlr = 1.0\n") == "x.toml:2: unknown key 'data.lr'; nearest valid key 'train.lr'");
  CHECK(problem("steps = 5\n") == "x.toml:1: unknown key 'steps'; nearest valid key 'train.steps'");
  CHECK(problem("[TRAIN]\nx = 1\n") == "x.toml:1: unknown key 'TRAIN'; valid sections: data, kernels, train");
}

TEST_CASE("A key far from any other is refused with the keys there") {
  CHECK(problem("[data]\ntemperature = 1\n") == "x.toml:2: unknown key 'data.temperature'; valid keys there: corpora");
}

TEST_CASE("A wrong type is refused with value and type") {
  CHECK(problem("[train]\nsteps = 'five'\n") ==
        "x.toml:2: [train.steps] wrong type, got string \"five\", expected i64");
  CHECK(problem("[train]\nsteps = 5.0\n") == "x.toml:2: [train.steps] wrong type, got float 5.0, expected i64");
  CHECK(problem("[train]\nlr = true\n") == "x.toml:2: [train.lr] wrong type, got boolean true, expected f64");
  CHECK(problem("[train]\nnames = 'a'\n") == "x.toml:2: [train.names] wrong type, got string \"a\", expected str[]");
  CHECK(problem("[train]\nnames = ['a', 1]\n") ==
        "x.toml:2: [train.names] wrong type, got array [\"a\", 1], expected str[]");
  CHECK(problem("[train]\nshuffle = 1\n") == "x.toml:2: [train.shuffle] wrong type, got integer 1, expected bool");
  CHECK(problem("[train]\nsplit = 1\n") == "x.toml:2: [train.split] wrong type, got integer 1, expected a table");
  CHECK(problem("[train]\nsteps = {a = 1}\n") ==
        "x.toml:2: [train.steps] wrong type, got table { a = 1 }, expected i64");
  CHECK(problem("[data]\ncorpora = 'a'\n") ==
        "x.toml:2: [data.corpora] wrong type, got string \"a\", expected a list of tables");
  CHECK(problem("[data]\ncorpora = {path = 'a'}\n") ==
        "x.toml:2: [data.corpora] wrong type, got table { path = \"a\" }, expected a list of tables");
  CHECK(problem("[data]\ncorpora = ['a']\n") ==
        "x.toml:2: [data.corpora[0]] wrong type, got string \"a\", expected a table");
  CHECK(problem("train = 5\n") == "x.toml:1: [train] wrong type, got integer 5, expected a table");
  CHECK(problem("train = []\n") == "x.toml:1: [train] wrong type, got array [], expected a table");
  CHECK(problem("[train]\nsplit = []\n") == "x.toml:2: [train.split] wrong type, got array [], expected a table");
  CHECK(problem("[train]\nopen = 1\n") == "x.toml:2: [train.open] wrong type, got integer 1, expected table");
}

TEST_CASE("A value out of range or not among the choices is refused with the valid ones") {
  CHECK(problem("[train]\nsteps = 0\n") ==
        "x.toml:2: [train.steps] out of range, got 0, expected at least 1 and at most 100");
  CHECK(problem("[train]\nsteps = 101\n") ==
        "x.toml:2: [train.steps] out of range, got 101, expected at least 1 and at most 100");
  CHECK(problem("[train]\nlr = -0.1\n") == "x.toml:2: [train.lr] out of range, got -0.1, expected at least 0.0");
  CHECK(problem("[train]\nlr = nan\n") == "x.toml:2: [train.lr] out of range, got nan, expected at least 0.0");
  CHECK(problem("[train]\nids = [1, -1]\n") == "x.toml:2: [train.ids] out of range, got -1, expected at least 0");
  CHECK(problem("[train]\nmode = 'fats'\n") ==
        "x.toml:2: [train.mode] unknown value, got \"fats\", expected one of fast, slow; nearest 'fast'");
  CHECK(problem("[train]\nnames = ['c']\n") ==
        "x.toml:2: [train.names] unknown value, got \"c\", expected one of a, b; nearest 'a'");
  CHECK(problem("[train]\nsplit.size = 'rset'\n") ==
        "x.toml:2: [train.split.size] unknown value, got \"rset\", expected one of rest; nearest 'rest'");
  CHECK(problem("[train]\nsplit.size = 0\n") ==
        "x.toml:2: [train.split.size] out of range, got 0, expected at least 1");
}

TEST_CASE("Values at the bounds and both alternatives pass") {
  CHECK(checked("[train]\nsteps = 1\n").i64("train.steps") == 1);
  CHECK(checked("[train]\nsteps = 100\nsplit.size = 'rest'\n").str("train.split.size") == "rest");
  CHECK(checked("[train]\nsplit.size = 4\nnames = ['a', 'b']\n").i64("train.split.size") == 4);
}

TEST_CASE("A missing key is refused with its owner and meaning, in every table that lacks it") {
  CHECK(problem("[data]\n[[data.corpora]]\npath = 'a'\n[[data.corpora]]\nweight = 2\n") ==
        "x.toml:4: [data.corpora[1].path] missing, expected str for acme.data: text file");
}

TEST_CASE("A section that is not there demands nothing, unless a task needs it") {
  CHECK_NOTHROW(checked(""));
  ConfigSchema s = example();
  s.require_section("data", "the task train reads batches");
  Config c = Config::from_text("", "x.toml");
  CHECK(message_of([&] { check(c, s); }) == "[data] is missing: the task train reads batches");
}

TEST_CASE("A key without effect is refused with the reason") {
  CHECK(problem("[train]\nmode = 'fast'\nwait = 5\n") ==
        "x.toml:3: [train.wait] has no effect because 'train.mode' is \"fast\" (x.toml:2); it counts only when "
        "mode=slow");
  CHECK(problem("[train]\nwait = 5\n") ==
        "x.toml:2: [train.wait] has no effect because 'train.mode' is \"fast\" (default of core); it counts only when "
        "mode=slow");
  CHECK(problem("[[data.corpora]]\npath = 'a'\ncolumn = 'b'\n") ==
        "x.toml:3: [data.corpora[0].column] has no effect because 'data.corpora[0].kind' is \"text\" (default of "
        "acme.data); it "
        "counts only when kind=csv");
  CHECK_NOTHROW(checked("[[data.corpora]]\npath = 'a'\nkind = 'csv'\ncolumn = 'b'\n"));
}

TEST_CASE("Defaults are filled in where they count, with their owner") {
  const Config c = checked("[train]\nsteps = 5\n[[data.corpora]]\npath = 'a'\n");
  CHECK(c.f64("train.lr") == 1.0);
  CHECK(c.find("train.lr")->kind() == ConfigNode::Kind::kFloat);
  CHECK(c.find("train.lr")->origin.describe() == "default of core");
  CHECK(c.f64("data.corpora[0].weight") == 1.0);
  CHECK_FALSE(c.has("train.wait"));
  CHECK(checked("[train]\nmode = 'slow'\n").i64("train.wait") == 3);
  CHECK_FALSE(checked("").has("train"));
}

TEST_CASE("Integers become floats where the key is one, and empty lists know their kind") {
  const Config c = checked("[train]\nlr = 2\nrates = [1, 2]\nids = []\n");
  const AttrList attrs = to_attrs(*c.find("train"));
  CHECK(attrs.find("lr")->kind == GESTALT_ATTR_F64);
  CHECK(attrs.find("rates")->kind == GESTALT_ATTR_F64_LIST);
  CHECK(attrs.find("ids")->kind == GESTALT_ATTR_I64_LIST);
  CHECK(c.find("train.lr")->origin.describe() == "x.toml:2");
  const AttrList defaults = to_attrs(*checked("[train]\n").find("train"));
  CHECK(defaults.find("rates")->kind == GESTALT_ATTR_F64_LIST);
}

TEST_CASE("All problems come at once, one a line") {
  CHECK(problem("[train]\nstesp = 5\nlr = -1.0\nmode = 1\n") ==
        "x.toml:2: unknown key 'train.stesp'; nearest valid key 'train.steps'\n"
        "x.toml:3: [train.lr] out of range, got -1.0, expected at least 0.0\n"
        "x.toml:4: [train.mode] wrong type, got integer 1, expected str");
}

TEST_CASE("Very many problems are cut") {
  std::string text = "[train]\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("unknown{} = 1\n", i);
  CHECK_THAT(problem(text), Catch::EndsWith("\nand 10 more"));
}

TEST_CASE("Open tables and keys by any name take what the schema says") {
  CHECK_NOTHROW(checked("[train.open]\nx = 1\ny = {z = [1, 'a']}\n"));
  CHECK_NOTHROW(checked("[kernels]\ncpu = ['gestalt.cpu']\nsim = []\npin = {'core.matmul' = 'x'}\n"));
  CHECK(problem("[kernels]\ncpu = 'gestalt.cpu'\n") ==
        "x.toml:2: [kernels.cpu] wrong type, got string \"gestalt.cpu\", expected str[]");
}

TEST_CASE("A section under an open one is closed once somebody claims it") {
  ConfigSchema s;
  s.extend("metrics", "core", {{.name = "*", .type = "table"}});
  s.extend("metrics.\"gestalt.jsonl\"", "gestalt.jsonl",
           {{.name = "path", .type = "str", .default_value = "'m.jsonl'"},
            {.name = "every", .type = "i64", .when = "path=all"}});
  Config good = Config::from_text("[metrics.other]\nx = 1\n", "x.toml");
  check(good, s);
  CHECK(good.str("metrics.\"gestalt.jsonl\".path") == "m.jsonl");
  Config bad = Config::from_text("[metrics.'gestalt.jsonl']\npaht = 'a'\nevery = 1\n", "x.toml");
  CHECK(message_of([&] { check(bad, s); }) ==
        "x.toml:2: unknown key 'metrics.\"gestalt.jsonl\".paht'; nearest valid key 'metrics.\"gestalt.jsonl\".path'\n"
        "x.toml:3: [metrics.\"gestalt.jsonl\".every] has no effect because 'metrics.\"gestalt.jsonl\".path' is "
        "\"m.jsonl\" (default of gestalt.jsonl); it counts only when path=all");
}

TEST_CASE("What only a checkpoint says is dropped when it means nothing any more") {
  Config c = Config::from_text("[train]\nsteps = 5\n", "x.toml");
  c.merge_checkpoint(Config::from_text("[train]\ngone = 1\nwait = 9\nsteps = 7\n[old]\nx = 1\n", "saved").root(),
                     "step_3");
  check(c, example());
  CHECK(c.i64("train.steps") == 5);
  CHECK_FALSE(c.has("train.gone"));
  CHECK_FALSE(c.has("train.wait"));
  CHECK_FALSE(c.has("old"));
}

TEST_CASE("A file key names an existing file") {
  gestalt::test::TemporaryFolder folder;
  ConfigSchema s;
  s.extend("data", "acme.data", {{.name = "vocab", .type = "file"}});
  Config good = Config::from_text("", "x.toml", {"data.vocab=" + folder.write("v", "").string()});
  CHECK_NOTHROW(check(good, s));
  Config bad = Config::from_text("[data]\nvocab = '/no/such'\n", "x.toml");
  CHECK_THAT(message_of([&] { check(bad, s); }),
             Catch::StartsWith("x.toml:2: [data.vocab] no such file, got \"/no/such\""));
}

TEST_CASE("A quote in the name of a key is refused") {
  CHECK_THAT(bad_spec({.name = "\"a.b\"", .type = "i64"}), Catch::Contains("malformed name"));
  CHECK_THAT(bad_spec({.name = "a\"b", .type = "i64"}), Catch::Contains("malformed name"));
}

TEST_CASE("A component may restate a key of its section with its own default, not with another type") {
  ConfigSchema s = example();
  s.extend("train", "acme.train", {{.name = "lr", .type = "f64", .default_value = "0.5"}});
  Config c = Config::from_text("[train]\n", "x.toml");
  check(c, s);
  CHECK(c.f64("train.lr") == 0.5);
  CHECK(c.find("train.lr")->origin.describe() == "default of acme.train");
  CHECK(message_of([&] { s.extend("train", "acme.train", {{.name = "steps", .type = "str"}}); }) ==
        "acme.train: schema of key 'steps': [train.steps] belongs to core as i64, got str");
}

TEST_CASE("A specification that contradicts itself is refused with owner and key") {
  CHECK(bad_spec({.name = "a", .type = "int"}) ==
        "acme.x: schema of key 'a': unknown type, got 'int', expected i64, f64, str, bool, file (each also with []) or "
        "table");
  CHECK_THAT(bad_spec({.name = "a", .type = "table[]"}), Catch::Contains("unknown type"));
  CHECK_THAT(bad_spec({.name = "a", .type = ""}), Catch::Contains("unknown type"));
  CHECK_THAT(bad_spec({.name = "", .type = "i64"}), Catch::Contains("malformed name"));
  CHECK_THAT(bad_spec({.name = "a..b", .type = "i64"}), Catch::Contains("malformed name"));
  CHECK_THAT(bad_spec({.name = "a[]", .type = "i64"}), Catch::Contains("malformed name"));
  CHECK_THAT(bad_spec({.name = "a b", .type = "i64"}), Catch::Contains("malformed name"));
  CHECK_THAT(bad_spec({.name = std::string(300, 'a'), .type = "i64"}), Catch::Contains("malformed name"));
  CHECK_THAT(bad_spec({.name = "a", .type = "i64", .default_value = "x"}),
             Catch::Contains("default is no TOML value, got 'x'"));
  CHECK_THAT(bad_spec({.name = "a", .type = "i64", .default_value = "'x'"}), Catch::Contains("default: wrong type"));
  CHECK_THAT(bad_spec({.name = "a", .type = "i64", .default_value = "0", .min = "1"}),
             Catch::Contains("default: out of range"));
  CHECK_THAT(bad_spec({.name = "a", .type = "i64", .min = "2", .max = "1"}), Catch::Contains("min 2 is above max 1"));
  CHECK_THAT(bad_spec({.name = "a", .type = "str", .min = "2"}), Catch::Contains("min needs a number"));
  CHECK_THAT(bad_spec({.name = "a", .type = "i64", .min = "'2'"}), Catch::Contains("min needs a number"));
  CHECK_THAT(bad_spec({.name = "a", .type = "str", .default_value = "'c'", .choices = "a|b"}),
             Catch::Contains("default: unknown value"));
  CHECK_THAT(bad_spec({.name = "a", .type = "i64", .choices = "a|b"}),
             Catch::Contains("choices need a key of type str"));
  CHECK_THAT(bad_spec({.name = "a", .type = "i64", .when = "b"}), Catch::Contains("malformed condition, got 'b'"));
  CHECK_THAT(bad_spec({.name = "a", .type = "i64", .when = "b..c=1"}), Catch::Contains("malformed key"));
  CHECK_THAT(bad_spec({.name = "a", .type = "i64", .default_value = "1", .required = true}),
             Catch::Contains("required and with a default"));
  CHECK_THAT(bad_spec({.name = "*", .type = "i64", .default_value = "1"}), Catch::Contains("a default without a name"));
}

TEST_CASE("A key of the C contract becomes the same specification") {
  const auto text = [](const char* s) { return gestalt_str{s, std::char_traits<char>::length(s)}; };
  const gestalt_config_key key{text("dropout"), text("f64"),       text("0.0"),  text("0.0"),         text("1.0"),
                               text(""),        text("mode=slow"), text("rate"), GESTALT_KEY_REQUIRED};
  const KeySpec spec = key_spec(key);
  CHECK(spec.name == "dropout");
  CHECK(spec.type == "f64");
  CHECK(spec.max == "1.0");
  CHECK(spec.when == "mode=slow");
  CHECK(spec.doc == "rate");
  CHECK(spec.required);
}

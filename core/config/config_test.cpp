#include "core/config/config.h"

#include "core/config/toml_reader.h"
#include "tests/catch_compat.hpp"
#include "tests/temporary_folder.h"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using gestalt::test::message_of;
using gestalt::test::TemporaryFolder;
using gestalt::test::thrown_by;

namespace {

std::string origin(const Config& c, std::string_view path) { return c.find(path)->origin.describe(); }

Config with_set(const std::string& assignment) { return Config::from_text("[a]\nx = 1\n", "t.toml", {assignment}); }

}  // namespace

TEST_CASE("Flags win over environment, file, extended files, checkpoint and default, in this order") {
  TemporaryFolder folder;
  folder.write("base.toml", "[t]\nflag = 'extended'\nenv = 'extended'\nfile = 'extended'\nextended = 'extended'\n");
  const auto file =
      folder.write("run.toml", "extends = ['base.toml']\n[t]\nflag = 'file'\nenv = 'file'\nfile = 'file'\n");
  Config c = Config::load(file, {"t.flag=flag"}, {"GESTALT_SET_t__flag=env", "GESTALT_SET_t__env=env", "OTHER=1"});
  c.merge_checkpoint(read_toml_text("[t]\nfile = 'saved'\nextended = 'saved'\ncheckpoint = 'saved'\n", "c"), "step_5");
  const Origin builtin = Origin::of(Origin::Kind::kDefault, "core");
  for (const char* key : {"t.extended", "t.checkpoint", "t.builtin"})
    c.set_default(key, ConfigNode::string("builtin"), builtin);
  CHECK(c.str("t.flag") == "flag");
  CHECK(c.str("t.env") == "env");
  CHECK(c.str("t.file") == "file");
  CHECK(c.str("t.extended") == "extended");
  CHECK(c.str("t.checkpoint") == "saved");
  CHECK(c.str("t.builtin") == "builtin");
  CHECK(origin(c, "t.flag") == "--set");
  CHECK(origin(c, "t.env") == "environment GESTALT_SET_t__env");
  CHECK(origin(c, "t.file") == file.string() + ":5");
  CHECK(origin(c, "t.extended") == (folder.path() / "base.toml").string() + ":5");
  CHECK(origin(c, "t.checkpoint") == "checkpoint step_5");
  CHECK(origin(c, "t.builtin") == "default of core");
  CHECK_FALSE(c.has("extends"));
}

TEST_CASE("Later extended files win over earlier ones, tables merge and arrays are replaced") {
  TemporaryFolder folder;
  folder.write("a.toml", "[t]\nx = 1\ny = 1\nlist = [1, 2, 3]\n");
  folder.write("sub/b.toml", "extends = '../c.toml'\n[t]\nx = 2\n");
  folder.write("c.toml", "[t]\nz = 3\nx = 3\n");
  const auto file = folder.write("run.toml", "extends = ['a.toml', 'sub/b.toml']\n[t]\nlist = [9]\n");
  const Config c = Config::load(file);
  CHECK(c.i64("t.x") == 2);
  CHECK(c.i64("t.y") == 1);
  CHECK(c.i64("t.z") == 3);
  CHECK(c.i64_list("t.list") == std::vector<int64_t>{9});
}

TEST_CASE("A file may be extended by two files") {
  TemporaryFolder folder;
  folder.write("base.toml", "x = 1\n");
  folder.write("a.toml", "extends = 'base.toml'\n");
  folder.write("b.toml", "extends = 'base.toml'\n");
  CHECK(Config::load(folder.write("run.toml", "extends = ['a.toml', 'b.toml']\n")).i64("x") == 1);
}

TEST_CASE("Faulty extends are refused with the chain of files") {
  TemporaryFolder folder;
  SECTION("cycle") {
    folder.write("a.toml", "extends = ['b.toml']\n");
    folder.write("b.toml", "\nextends = ['./a.toml']\n");
    const Error e = thrown_by([&] { Config::load(folder.path() / "a.toml"); });
    CHECK(e.code() == GESTALT_CONFIG_ERROR);
    CHECK_THAT(e.message(), Catch::Contains("a.toml:1: [extends]") && Catch::Contains("b.toml:2: [extends]") &&
                                Catch::EndsWith("a file extends itself, got a.toml -> b.toml -> a.toml"));
  }
  SECTION("absent file") {
    const Error e = thrown_by([&] { Config::load(folder.write("a.toml", "\n\nextends = ['none.toml']\n")); });
    CHECK(e.code() == GESTALT_NOT_FOUND);
    CHECK_THAT(e.message(), Catch::Contains("a.toml:3: [extends] cannot open") && Catch::Contains("none.toml"));
  }
  SECTION("wrong type") {
    CHECK_THAT(message_of([&] { Config::load(folder.write("a.toml", "extends = [1]\n")); }),
               Catch::Contains("a.toml:1: [extends] wrong type, got [1], expected a list of file names"));
  }
  SECTION("too deep") {
    for (int i = 0; i < 20; ++i) folder.write(fmt::format("{}.toml", i), fmt::format("extends = ['{}.toml']\n", i + 1));
    CHECK_THAT(message_of([&] { Config::load(folder.path() / "0.toml"); }), Catch::Contains("too many files"));
  }
  SECTION("too many") {
    for (int i = 0; i < 15; ++i)
      folder.write(fmt::format("{}.toml", i), fmt::format("extends = ['{0}.toml', '{0}.toml']\n", i + 1));
    folder.write("15.toml", "x = 1\n");
    CHECK_THAT(message_of([&] { Config::load(folder.path() / "0.toml"); }), Catch::Contains("256 files"));
  }
}

TEST_CASE("A set value is TOML, or the text itself") {
  CHECK(with_set("a.x=5").i64("a.x") == 5);
  CHECK(with_set("a.x=-2.5e-3").f64("a.x") == -2.5e-3);
  CHECK(with_set("a.x=true").boolean("a.x"));
  CHECK(with_set("a.x=[1, 2]").i64_list("a.x") == std::vector<int64_t>{1, 2});
  CHECK(with_set("a.x={y = 'z'}").str("a.x.y") == "z");
  CHECK(with_set("a.x='5'").str("a.x") == "5");
  CHECK(with_set("a.x=plain text").str("a.x") == "plain text");
  CHECK(with_set("a.x=runs/a=b").str("a.x") == "runs/a=b");
  CHECK(with_set("a.x=").str("a.x") == "");
  CHECK(with_set("a.x=5#x").str("a.x") == "5#x");
  CHECK(with_set("a.x=2024-01-01").str("a.x") == "2024-01-01");
  CHECK(with_set("b.c.d=1").i64("b.c.d") == 1);
  CHECK(with_set("b.\"c=d.e\"=1").i64("b.\"c=d.e\"") == 1);
}

TEST_CASE("Half a list is a slip and not a text") {
  CHECK_THAT(message_of([] { with_set("a.x=[1, 2"); }), Catch::Contains("--set a.x:1:"));
  CHECK_THAT(message_of([] { with_set("a.x='open"); }), Catch::Contains("--set a.x:1:"));
}

TEST_CASE("A set without '=', with a malformed key or through a value is refused") {
  CHECK(message_of([] { with_set("a.x"); }) == "[--set] no '=', got 'a.x', expected a.b=value");
  CHECK_THAT(message_of([] { with_set("a..x=1"); }), Catch::Contains("[a..x] malformed key"));
  CHECK(message_of([] { with_set("a.x.y=1"); }) == "--set: [a.x.y] 'y' lies in a integer, expected a table");
  CHECK_THAT(message_of([] { with_set("a.x[0]=1"); }), Catch::Contains("no element 0, got a integer"));
  CHECK_THAT(message_of([] { with_set("a.x=b\x01"); }), Catch::Contains("not plain text"));
}

TEST_CASE("An element of a list can be set, a new one cannot") {
  const std::string text = "[[corpora]]\npath = 'a'\n[[corpora]]\npath = 'b'\n";
  const Config c = Config::from_text(text, "t", {"corpora[1].path=c", "corpora[0]={path = 'd'}"});
  CHECK(c.str("corpora[1].path") == "c");
  CHECK(c.str("corpora[0].path") == "d");
  CHECK_THAT(message_of([&] { Config::from_text(text, "t", {"corpora[2].path=c"}); }),
             Catch::Contains("no element 2, got a array of 2"));
}

TEST_CASE("An environment variable with a malformed name is refused with its name") {
  CHECK_THAT(message_of([] { Config::from_text("", "t", {}, {"GESTALT_SET_=1"}); }), Catch::Contains("malformed key"));
}

TEST_CASE("Typed access names key, value, place and type") {
  const Config c = Config::from_text("[a]\nx = 'five'\nn = 3\nlist = ['a', 1]\n", "t.toml");
  CHECK(c.f64("a.n") == 3.0);
  CHECK(c.i64("a.none", 7) == 7);
  CHECK(c.str("a.none", "d") == "d");
  CHECK(c.str_list("a.none").empty());
  CHECK(message_of([&] { c.i64("a.x"); }) == "t.toml:2: [a.x] wrong type, got string \"five\", expected i64");
  CHECK(message_of([&] { c.i64("a.x", 3); }) == "t.toml:2: [a.x] wrong type, got string \"five\", expected i64");
  CHECK(message_of([&] { c.boolean("a.n"); }) == "t.toml:3: [a.n] wrong type, got integer 3, expected bool");
  CHECK_THAT(message_of([&] { c.str_list("a.list"); }),
             Catch::Contains("[a.list] wrong type, got integer 1, expected str"));
  CHECK_THAT(message_of([&] { c.str_list("a.n"); }), Catch::Contains("expected a list"));
  CHECK_THAT(message_of([&] { c.i64("a.none"); }), Catch::StartsWith("[a.none] missing"));
}

TEST_CASE("Leaves come in the order of the file, elements by index") {
  const Config c = Config::from_text("z = 1\n[b]\nx = [1, 2]\n[[a]]\np = 'q'\n[e]\n", "t.toml");
  std::vector<std::string> paths;
  for (const auto& [path, node] : c.leaves()) paths.push_back(path);
  CHECK(paths == std::vector<std::string>{"z", "b.x", "a[0].p"});
}

TEST_CASE("Explain prints each value with its origin") {
  Config c = Config::from_text("[train]\nsteps = 5\n", "x.toml", {"train.lr=0.5"});
  c.set_default("run.seed", ConfigNode::integer(1), Origin::of(Origin::Kind::kDefault, "core"));
  CHECK(c.explain() == "train.steps = 5  # x.toml:2\ntrain.lr = 0.5  # --set\nrun.seed = 1  # default of core\n");
}

TEST_CASE("The resolved configuration is a run file with the same values") {
  const Config c = Config::from_text("[a]\nx = 1\n[[a.b]]\ny = [0.5, 2]\n", "t", {"a.z=text", "k.\"x.y\"=1"});
  CHECK(same_value(Config::from_text(c.to_toml(), "again").root(), c.root()));
}

TEST_CASE("Differences name the key and both values") {
  const auto before = read_toml_text("a = 1\nb = 'x'\nsame = 1\n", "t"),
             after = read_toml_text("a = 2\nc = []\nsame = 1\n", "t");
  CHECK(config_differences(before, after) ==
        std::vector<std::string>{"a: 1 -> 2", "b: \"x\" -> (none)", "c: (none) -> []"});
}

TEST_CASE("Defaults fill in what is not said, and add to the plugins in use") {
  Config c = Config::from_text("[plugins]\nuse = ['a']\n[train]\nsteps = 5\n", "t");
  c.merge_defaults("[plugins]\nuse = ['a', 'b']\n[train]\nsteps = 20\nglobal_batch = 1\n", "the task");
  CHECK(c.str_list("plugins.use") == std::vector<std::string>{"a", "b"});
  CHECK(c.i64("train.steps") == 5);
  CHECK(c.find("train.global_batch")->origin.describe() == "default of the task");
}

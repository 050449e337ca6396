#include "core/plugin/manifest.h"

#include "core/base/error.h"
#include "tests/catch_compat.hpp"

using namespace gestalt::core;

namespace {

const std::string kText = R"toml(manifest = 1
id = "acme.kernels"
version = "1.4.0"
publisher = "Acme"

[abi]
major = 1
min_minor = 0

[library.linux-x86_64]
path = "lib/libacme.so"
sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
needs = { glibc = ">=2.28", sm = ["80", "90"] }

[[provides.op]]
schema = "acme.twice(x) -> (y)"

[[provides.kernel]]
op = "core.rms_norm"
device = "cuda"
backend = "acme.cuda"
flags = ["deterministic", "bit40"]

[[provides.component]]
kind = "tokenizer/1"
name = "acme.bpe"
config.vocab = { type = "file", required = true }
config.dropout = { type = "f64", default = 0.0, min = 0.0, max = 1.0, doc = "share of \"dropped\" merges" }
config."corpora[].path" = { type = "str", default = "a" }
)toml";

// The message with which a changed text is refused.
std::string refusal(const std::string& find, const std::string& replace) {
  std::string text = kText;
  const size_t at = text.find(find);
  REQUIRE(at != std::string::npos);
  text.replace(at, find.size(), replace);
  try {
    parse_manifest(text, "x.toml");
  } catch (const Error& e) {
    CHECK(e.code() == GESTALT_CONFIG_ERROR);
    return e.message();
  }
  return "accepted";
}

void has(const std::string& message, const std::string& part) {
  INFO(message);
  CHECK(message.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("a manifest is read") {
  const Manifest m = parse_manifest(kText, "x.toml");
  CHECK(m.id == "acme.kernels");
  CHECK(m.publisher == "Acme");
  CHECK(m.library == "lib/libacme.so");
  REQUIRE(m.needs.size() == 2);
  CHECK(m.needs[0].range == ">=2.28");
  CHECK(m.needs[1].list == std::vector<std::string>{"80", "90"});
  REQUIRE(m.kernels.size() == 1);
  CHECK(m.kernels[0].flags == (GESTALT_KERNEL_DETERMINISTIC | uint64_t{1} << 40));
  REQUIRE(m.component("tokenizer/1", "acme.bpe"));
  const auto& keys = m.component("tokenizer/1", "acme.bpe")->keys;
  REQUIRE(keys.size() == 3);
  CHECK(keys[0].name == "corpora[].path");
  CHECK(keys[1].name == "dropout");
  CHECK(keys[1].max == "1.0");
  CHECK(keys[2].required);
  CHECK(m.component("tokenizer/1", "acme.bpf") == nullptr);
}

TEST_CASE("a manifest written as text is read back the same") {
  const Manifest m = parse_manifest(kText, "x.toml");
  const std::string text = to_toml(m);
  const Manifest again = parse_manifest(text, "y.toml");
  CHECK(to_toml(again) == text);
  CHECK(promises(again) == promises(m));
}

TEST_CASE("a key that no manifest has is refused with its line and the nearest key") {
  has(refusal("publisher =", "publsher ="), "x.toml:4:");
  has(refusal("publisher =", "publsher ="), "did you mean 'publisher'?");
  has(refusal("min_minor = 0", "min_minor = 0\nmax = 3"), "x.toml:9:");
  has(refusal("backend =", "back_end ="), "backend");
  has(refusal("device = \"cuda\"", "device = \"cuda\"\ndtypes = [\"f32\"]"), "unknown key, got 'dtypes'");
  has(refusal("required = true", "require = true"), "[config.vocab] unknown key, got 'require'");
}

TEST_CASE("a missing key is refused by name") {
  has(refusal("version = \"1.4.0\"\n", ""), "key 'version' is missing");
  has(refusal("[abi]\nmajor = 1\nmin_minor = 0\n", ""), "key 'abi' is missing");
  has(refusal("linux-x86_64", "linux-aarch64"), "not built for this platform");
}

TEST_CASE("a value of the wrong type is refused with the value") {
  has(refusal("major = 1", "major = \"1\""), "[abi] major: expected an integer, got \"1\"");
  has(refusal("major = 1", "major = -1"), "got -1");
  has(refusal("id = \"acme.kernels\"", "id = 5"), "id: expected a string, got 5");
  has(refusal("id = \"acme.kernels\"", "id = \"acme\""), "got 'acme'");
  has(refusal("manifest = 1", "manifest = 2"), "format 2, expected 1");
  has(refusal("0123456789abcdef\"", "0123456789abcdeF\""), "64 lower-case hexadecimal digits");
  has(refusal("glibc = \">=2.28\"", "glibc = \"2.28\""), "version range '2.28'");
  has(refusal("glibc = \">=2.28\"", "glibc = 2"), "expected a version range");
  has(refusal("\"deterministic\"", "\"deterministik\""), "got 'deterministik'");
  has(refusal("type = \"file\"", "type = \"fil\""), "vocab");
}

TEST_CASE("what is listed twice is refused") {
  const std::string kernel =
      "[[provides.kernel]]\nop = \"core.rms_norm\"\ndevice = \"cuda\"\nbackend = \"acme.cuda\"\n";
  has(refusal("[[provides.component]]", kernel + "[[provides.component]]"), "listed twice");
  const std::string component = "[[provides.component]]\nkind = \"tokenizer/1\"\nname = \"acme.bpe\"\n";
  has(refusal("[[provides.component]]", component + "[[provides.component]]"), "listed twice");
}

TEST_CASE("the hand-written part may not claim what the binary says") {
  CHECK(parse_authored("license = \"MIT\"\n[needs]\nglibc = \">=2.1\"\n", "a.toml").needs.size() == 1);
  CHECK_THROWS_AS(parse_authored("[[provides.kernel]]\nop = \"a.b\"\n", "a.toml"), Error);
}

TEST_CASE("version ranges compare number by number") {
  CHECK(version_in_range("2.36", ">=2.4"));
  CHECK(!version_in_range("2.4", ">=2.36"));
  CHECK(version_in_range("13.0", ">=12.4,<14"));
  CHECK(!version_in_range("14.0", ">=12.4,<14"));
  CHECK(version_in_range("13", "==13.0"));
  CHECK_THROWS_AS(version_in_range("13", "~13"), Error);
  CHECK_THROWS_AS(version_in_range("13", ""), Error);
  CHECK_THROWS_AS(version_in_range("13", ">=99999999999999999999999"), Error);
}

TEST_CASE("ids are dotted lower-case words") {
  for (const char* good : {"acme.kernels", "a.b.c", "acme.rope_2d"}) CHECK(valid_id(good));
  for (const char* bad : {"", "acme", "acme.", ".acme", "Acme.x", "acme..x", "acme/x.y", "1.2", "acme.k\n"})
    CHECK(!valid_id(bad));
}

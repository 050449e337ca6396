// Run files and manifests, damaged at random: whatever the bytes, reading them gives a value or an Error, never another
// exception, a crash or undefined behaviour (run it under the sanitizers). What was read must also survive being
// written and read again. Each round depends on (seed, round) only, so that one can be repeated: --seed S --first N
// --count 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/attr_list.h"
#include "core/config/config.h"
#include "core/config/schema.h"
#include "core/config/toml_reader.h"
#include "core/plugin/manifest.h"
#include "tests/temporary_folder.h"

namespace {

using namespace gestalt::core;

constexpr const char* kRunFile = R"toml(# A run of every section.
extends = []
[run]
name = "demo"   # a comment with "quotes" and grüße
seed = 0x10
dtype = 'bf16'
[plugins]
search = ["plugins", "more/plugins"]
use = ["gestalt.decoder", "gestalt.adam", "acme.kernels"]
[kernels]
cpu = ["acme.cpu", "gestalt.cpu"]
pin = { "core.attention" = "gestalt.cpu" }
[[kernels.rule]]
where = "model.layers.[0-3].*"
op = "core.matmul"
backend = "acme.cpu"
[mesh]
tp = 2
dp = "rest"
order = ["tp", "dp"]
[model]
type = "gestalt.decoder"
seq_len = 1_024
recompute.ops = ["core.rms_norm"]
[model.slots]
mlp = "acme.mlp"
"odd key.with dots" = { deep = [[1, 2], [3.5, -inf]], text = """
several "lines" of text\
   joined""" }
[tokenizer]
type = "gestalt.byte"
[data]
type = "gestalt.text"
path = "text.txt"
holdout = { run = 31, every = 20, at = 7 }
[[data.corpora]]
path = "a"
weight = 1
[[data.corpora]]
path = "b"
[optimizer]
type = "gestalt.adamw"
lr = 3e-4
min_lr = 0.00003
schedule = "wsd"
wsd_decay_steps = 100
groups = [{ where = "**.bias", weight_decay = 0.0 }, { where = "**.norm.*" }]
[train]
steps = 1000
global_batch = 8
[metrics]
trackers = ["gestalt.jsonl"]
[metrics.gestalt.jsonl]
path = '''metrics.jsonl'''
)toml";

constexpr const char* kManifest = R"toml(manifest = 1
id = "acme.kernels"
version = "1.4.0"
publisher = "Acme"
license = "Apache-2.0"
[abi]
major = 1
min_minor = 0
[library.linux-x86_64]
path = "lib/libacme_kernels.so"
sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
needs = { cuda = ">=12.4,<14", sm = ["80", "90"], glibc = ">=2.28" }
[[provides.op]]
schema = "acme.rope_2d(x, pos, w?, *, base: f64 = 1e4, half: bool = true) -> (y, aux!saved)"
[[provides.kernel]]
op = "core.rms_norm"
device = "cuda"
backend = "acme.cuda"
[[provides.component]]
kind = "dataset/1"
name = "gestalt.text"
config.path = { type = "str", required = true, doc = "text file" }
config."holdout.run" = { type = "i64", default = 1, min = 1 }
config."holdout.every" = { type = "i64", min = 1, max = 1000 }
config."holdout.at" = { type = "i64", default = 0 }
config."corpora[].path" = { type = "str" }
config."corpora[].weight" = { type = "f64", default = 1.0, min = 0.0 }
config.mode = { type = "str", default = "plain", choices = "plain|csv" }
config.column = { type = "str", when = "mode=csv" }
)toml";

// Pieces that mean something to a TOML parser, or that parsers have tripped over.
constexpr std::string_view kPieces[] = {"[",
                                        "]",
                                        "[[",
                                        "]]",
                                        "{",
                                        "}",
                                        "=",
                                        ",",
                                        ".",
                                        "#",
                                        "\"",
                                        "'",
                                        "\"\"\"",
                                        "'''",
                                        "\\",
                                        "\n",
                                        "\r\n",
                                        "\r",
                                        "\t",
                                        "\x0b",
                                        "\x7f",
                                        "\xE2\xBF\xBB",
                                        "\xC3",
                                        "\xEF\xBB\xBF",
                                        "\\u0000",
                                        "\\uD800",
                                        "\\U0010FFFF",
                                        "inf",
                                        "-nan",
                                        "1e999",
                                        "-0",
                                        "0x",
                                        "0b1",
                                        "1_",
                                        "9223372036854775808",
                                        "1979-05-27T07:32:00Z",
                                        "07:32",
                                        "true",
                                        "a.b.c.d.e.f",
                                        "[a.b]\n",
                                        "[[a.b]]\n",
                                        "a = 1\n",
                                        "extends = ['mutated.toml']\n",
                                        "type = \"table\"",
                                        "when = \"a=b\"",
                                        "min = nan",
                                        "[]",
                                        "*",
                                        "<run.name>",
                                        "\\\n",
                                        "\\\n \xE2\xBF\xBB"};

// splitmix64: its whole state is one number, so a round starts at once.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(next() % n); }

 private:
  uint64_t state_;
};

std::string damaged(std::string text, const std::vector<std::string>& corpus, Random& random) {
  for (size_t i = 0, n = 1 + random.below(1 + random.below(6)); i < n; ++i) {
    const size_t at = random.below(text.size() + 1), length = 1 + random.below(random.below(8) == 0 ? 200 : 12);
    switch (random.below(8)) {
      case 0:
        if (at < text.size())
          text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1u << random.below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random.next());
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(random.below(text.size() + 1), text.substr(at, length));
        break;
      case 4: {
        const std::string& other = corpus[random.below(corpus.size())];
        text.insert(at, other.substr(random.below(other.size()), length));
        break;
      }
      case 5:
        text.resize(at);
        break;
      case 6: {
        const std::string_view piece = kPieces[random.below(std::size(kPieces))];
        const size_t times = random.below(16) == 0 ? 1 + random.below(200) : 1;
        for (size_t k = 0; k < times; ++k) text.insert(at, piece);
        break;
      }
      default: {
        const std::string_view piece = kPieces[random.below(std::size(kPieces))];
        text.replace(at, std::min(length, text.size() - at), piece);
        break;
      }
    }
  }
  return text;
}

[[noreturn]] void give_up(const std::string& problem) { throw std::runtime_error(problem); }

// Only what a wrong file may cause: INTERNAL, say, is a mistake of ours.
template <class Function>
bool accepted(Function&& function) {
  try {
    function();
    return true;
  } catch (const Error& e) {
    const bool fair = e.code() == GESTALT_CONFIG_ERROR || e.code() == GESTALT_NOT_FOUND || e.code() == GESTALT_IO_ERROR;
    if (!fair) give_up(fmt::format("an Error of code {} came out: {}", status_name(e.code()), e.message()));
    for (const char c : e.message())
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n')
        give_up("a message with control bytes came out: " + escape_controls(e.message()));
    return false;
  }
}

class Rounds {
 public:
  Rounds() : corpus_{kRunFile, kManifest}, schema_(core_schema()) {
    for (const auto& entry : std::filesystem::directory_iterator(GESTALT_SOURCE_DIR "/configs"))
      if (entry.path().extension() == ".toml") corpus_.push_back(read(entry.path()));
    const Manifest manifest = parse_manifest(kManifest, "corpus");
    schema_.extend("data", "gestalt.text", manifest.components.at(0).keys, Presence::kIfPresent);
    Config config = Config::from_text(kRunFile, "corpus");
    check(config, schema_);
  }

  void round(uint64_t seed, uint64_t number) {
    Random random(seed * 0x9E3779B97F4A7C15u + number);
    if (random.below(32) == 0) {
      run(kRunFile, {damaged("data.corpora[0].path='x'", corpus_, random)},
          {damaged("GESTALT_SET_train__steps=5", corpus_, random)}, random);
      return;
    }
    const size_t source = random.below(corpus_.size());
    const std::string text = damaged(corpus_[source], corpus_, random);
    if (source == 1 || random.below(16) == 0) manifest(text, random);
    if (source != 1) configuration(text, random);
  }

  uint64_t num_accepted = 0;

 private:
  static std::string read(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void configuration(const std::string& text, Random& random) {
    ConfigNode root;
    if (!accepted([&] { root = read_toml_text(text, "mutated.toml"); })) return;
    ConfigNode again;
    const std::string written = to_toml(root);
    if (!accepted([&] { again = read_toml_text(written, "again"); }))
      give_up("written text is not read back:\n" + written);
    if (!same_value(root, again)) give_up("written text is read back as something else:\n" + written);
    run(text, {}, {}, random);
  }

  void run(const std::string& text, std::vector<std::string> sets, std::vector<std::string> environment,
           Random& random) {
    if (random.below(4) == 0) sets.push_back("train.steps=5");
    if (random.below(4) == 0) environment.push_back("GESTALT_SET_train__steps=5");
    num_accepted += accepted([&] {
      Config config = Config::from_text(text, (folder_.path() / "run.toml").string(), sets, environment);
      check(config, schema_);
      to_attrs(config.root());
      config.explain();
    });
  }

  // What a damaged manifest still promises is then the schema of a run file.
  void manifest(const std::string& text, Random& random) {
    if (random.below(4) == 0) accepted([&] { parse_authored(text, "mutated"); });
    Manifest m;
    if (!accepted([&] { m = parse_manifest(text, "mutated"); })) return;
    ++num_accepted;
    if (!accepted([&] { parse_manifest(to_toml(m), "again"); }))
      give_up("a written manifest is not read back:\n" + to_toml(m));
    promises(m);
    if (random.below(8) != 0 || m.components.empty()) return;
    accepted([&] {
      ConfigSchema schema = core_schema();
      for (const ComponentEntry& c : m.components) schema.extend("data", c.name, c.keys);
      Config config = Config::from_text(kRunFile, "run");
      check(config, schema);
    });
  }

  std::vector<std::string> corpus_;
  ConfigSchema schema_;
  gestalt::test::TemporaryFolder folder_;
};

uint64_t number_after(int argc, char** argv, std::string_view flag, uint64_t fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (flag == argv[i]) return std::strtoull(argv[i + 1], nullptr, 10);
  return fallback;
}

uint64_t g_seed = 0, g_round = 0;

}  // namespace

int main(int argc, char** argv) {
  g_seed = number_after(argc, argv, "--seed", 1);
  const uint64_t first = number_after(argc, argv, "--first", 0), count = number_after(argc, argv, "--count", 5000);
  std::printf("seed %llu, rounds %llu to %llu\n", static_cast<unsigned long long>(g_seed),
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(first + count));
  std::set_terminate([] {
    std::fprintf(stderr, "terminated in seed %llu round %llu\n", static_cast<unsigned long long>(g_seed),
                 static_cast<unsigned long long>(g_round));
    std::abort();
  });
  try {
    Rounds rounds;
    for (g_round = first; g_round < first + count; ++g_round) {
      if (g_round % 1000 == 0) {  // so that a crash can be found
        std::printf("round %llu\n", static_cast<unsigned long long>(g_round));
        std::fflush(stdout);
      }
      rounds.round(g_seed, g_round);
    }
    std::printf("%llu rounds, %llu texts were still valid\n", static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(rounds.num_accepted));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "seed %llu round %llu: %s\n", static_cast<unsigned long long>(g_seed),
                 static_cast<unsigned long long>(g_round), e.what());
    return 1;
  }
  return 0;
}

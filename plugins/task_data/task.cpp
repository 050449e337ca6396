// The verb "data".
#include <fmt/format.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "gestalt/plugin.hpp"
#include "gestalt/task.hpp"
#include "plugins/task_data/corpus_verbs.h"
#include "plugins/task_data/rearrange.h"
#include "plugins/task_data/tokenize.h"
#include "support/bpe/open.h"
#include "support/flags.h"
#include "support/indexed/parity_report.h"
#include "support/sha256.h"

namespace gestalt::task_data {
namespace {

using support::Flags;
using support::Json;

constexpr std::string_view kUsage =
    "gestalt data tokenize|inspect|verify|stats|index|merge|split|parity ...\n"
    "  tokenize --input FILE... --output PREFIX (--ranks FILE | --vocab FILE --merges FILE | --bytes) [--pattern "
    "NAME]\n"
    "           [--format text|jsonl] [--document file|paragraph|line] [--key text] [--workers N] [--no-eod]\n"
    "           [--bad skip|fail] [--specials text|allow|refuse]\n"
    "  inspect PREFIX...    verify PREFIX... [--vocab-size N]    stats PREFIX... --seq-len L [--samples N]\n"
    "  index --out DIR --seq-len L [--seed S] [--split 969,30,1] [--samples TRAIN,VALID,TEST] PREFIX | WEIGHT PREFIX "
    "...\n"
    "  merge --out PREFIX PREFIX...    split --out PREFIX (--split 969,30,1 | --documents N) PREFIX\n"
    "  parity DIR           each also with --json";

// An object as lines "name  value".
std::string lines_of(const Json& object) {
  std::string out;
  for (const auto& [key, value] : object.members()) {
    if (value.is_array()) {
      for (const Json& item : value.items())
        out += fmt::format("  {}\n", item.is_string() ? item.str() : write_json(item));
      continue;
    }
    out += fmt::format("{:<26}{}\n", key, value.is_string() ? value.str() : write_json(value));
  }
  return out;
}

int64_t choice(const Flags& flags, std::string_view name, std::initializer_list<std::string_view> values) {
  const std::string got = flags.str(name, *values.begin());
  int64_t i = 0;
  std::string all;
  for (const std::string_view v : values) {
    if (got == v) return i;
    all += (i++ ? ", " : "") + std::string(v);
  }
  throw InvalidArgument(fmt::format("[--{}] got \"{}\", expected one of {}", name, got, all));
}

support::bpe::Tokenizer open_tokenizer(const Flags& flags) {
  if (!flags.has("bytes")) {
    support::bpe::Source source;
    source.ranks = flags.str("ranks", "");
    source.vocab = flags.str("vocab", "");
    source.merges = flags.str("merges", "");
    source.file = flags.str("tokenizer", "");
    source.pattern = flags.str("pattern", "");
    return support::bpe::open_tokenizer(source);
  }
  // Without merges every byte is its own id, as in gestalt.byte with its eos.
  support::bpe::Loaded loaded;
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    loaded.vocabulary.add({&c, 1}, b);
  }
  loaded.vocabulary.merges_by_rank();
  loaded.specials = {{"<|endoftext|>", 256}};
  return {std::move(loaded), "gpt2"};
}

}  // namespace

class DataTask : public Task {
 public:
  static constexpr std::string_view name = "data";
  static constexpr std::string_view usage = kUsage;
  static constexpr uint64_t flags = 0;

  DataTask(Host host, Attrs) : host_(host) {}

  void run(Session& session) override {
    const auto arguments = session.arguments();
    if (arguments.empty()) throw InvalidArgument(fmt::format("usage: {}", kUsage));
    const std::string_view verb = view_of(arguments[0]);
    const auto rest = arguments.subspan(1);
    if (verb == "tokenize") return tokenize_verb(session, rest);
    if (verb == "inspect") {
      const Flags f(rest, {}, {"json"});
      return each(session, f, [](const std::string& prefix) { return inspect_corpus(prefix); });
    }
    if (verb == "verify") {
      const Flags f(rest, {"vocab-size"}, {"json"});
      const int64_t vocab_size = f.i64("vocab-size", 0);
      return each(session, f, [&](const std::string& prefix) { return verify_corpus(prefix, vocab_size); });
    }
    if (verb == "stats") {
      const Flags f(rest, {"seq-len", "samples"}, {"json"});
      f.str("seq-len");
      return each(session, f, [&](const std::string& prefix) {
        return count_samples(prefix, f.i64("seq-len", 0), f.i64("samples", -1));
      });
    }
    if (verb == "index") return index_verb(session, rest);
    if (verb == "merge") {
      const Flags f(rest, {"out"}, {"json"});
      return print(session, f, merge_corpora(f.words(), f.str("out")));
    }
    if (verb == "split") return split_verb(session, rest);
    if (verb == "parity") return parity_verb(session, rest);
    throw InvalidArgument(fmt::format("[data] got \"{}\"; usage: {}", verb, kUsage));
  }

 private:
  static void print(Session& session, const Flags& flags, const Json& object) {
    session.print(flags.has("json") ? write_json(object) + "\n" : lines_of(object));
  }

  template <class F>
  static void each(Session& session, const Flags& flags, F&& report) {
    if (flags.words().empty())
      throw InvalidArgument("[data] no PREFIX given: the path of a corpus without .bin or .idx");
    Json all = Json::array();
    for (const std::string& prefix : flags.words()) {
      Json object = report(prefix);
      if (!flags.has("json")) session.print(lines_of(object));
      all.push(std::move(object));
    }
    if (flags.has("json")) session.print(write_json(Json::object({{"corpora", all}})) + "\n");
  }

  static void print_all(Session& session, const Flags& flags, const Json& corpora) {
    if (flags.has("json")) return session.print(write_json(Json::object({{"corpora", corpora}})) + "\n");
    for (const Json& object : corpora.items()) session.print(lines_of(object));
  }

  void tokenize_verb(Session& session, std::span<const gestalt_str> rest) {
    const Flags f(rest,
                  {"input", "output", "ranks", "vocab", "merges", "tokenizer", "pattern", "format", "document", "key", "workers",
                   "bad", "specials"},
                  {"bytes", "no-eod", "json"});
    TokenizeOptions options;
    options.inputs = f.all("input");
    options.inputs.insert(options.inputs.end(), f.words().begin(), f.words().end());
    options.output = f.str("output");
    options.format = static_cast<Format>(choice(f, "format", {"auto", "text", "jsonl"}));
    options.unit = static_cast<Unit>(choice(f, "document", {"file", "paragraph", "line"}));
    options.key = f.str("key", "text");
    options.num_workers = f.i64("workers", std::max(1u, std::thread::hardware_concurrency()));
    options.append_eod = !f.has("no-eod");
    options.fail_on_bad = choice(f, "bad", {"skip", "fail"}) == 1;
    options.specials = static_cast<support::bpe::Specials>(choice(f, "specials", {"text", "allow", "refuse"}));
    const support::bpe::Tokenizer tokenizer = open_tokenizer(f);

    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const TokenizeCounts counts = tokenize(tokenizer, options, [&](const TokenizeProgress& p) {
      const double done = static_cast<double>(p.read_bytes), all = static_cast<double>(p.all_bytes), s = seconds();
      host_.info(all > 0 ? fmt::format("tokenize: {:.1f} of {:.1f} MB read, {} tokens, {:.0f} s left", done / 1e6,
                                       all / 1e6, p.counts->tokens, s * (all - done) / std::max(done, 1.0))
                         : fmt::format("tokenize: {:.1f} MB read, {} tokens", done / 1e6, p.counts->tokens));
    });
    Json out = Json::object();
    out.set("output", options.output);
    out.set("documents", counts.documents);
    out.set("tokens", counts.tokens);
    out.set("text_bytes", counts.text_bytes);
    out.set("empty_documents", counts.empty);
    out.set("bad_lines", counts.bad);
    Json bad = Json::array();
    for (const std::string& line : counts.first_bad) bad.push(line);
    if (counts.bad) out.set("first_bad_lines", bad);
    out.set("vocabulary", tokenizer.vocab_size());
    out.set("type", support::indexed::name_of(support::indexed::type_for_vocabulary(tokenizer.vocab_size())));
    out.set("tokenizer", support::hex(tokenizer.fingerprint()));
    out.set("seconds", seconds());
    print(session, f, out);
  }

  static void index_verb(Session& session, std::span<const gestalt_str> rest) {
    const Flags f(rest, {"out", "seq-len", "seed", "split", "samples"}, {"json"});
    support::indexed::CorpusConfig config;
    config.paths = f.words();
    f.str("seq-len");
    config.seq_len = f.i64("seq-len", 0);
    config.seed = f.i64("seed", 1234);
    config.split = f.str("split", "969,30,1");
    std::stringstream samples(f.str("samples", ""));
    size_t s = 0;
    for (std::string item; std::getline(samples, item, ','); ++s) {
      if (s == support::indexed::kNumSplits)
        throw InvalidArgument(fmt::format("[--samples] got \"{}\", expected up to three numbers", f.str("samples")));
      const std::string flag = "--n=" + item;
      const gestalt_str one = str_of(flag);
      config.num_samples[s] = Flags({&one, 1}, {"n"}, {}).i64("n", -1);
    }
    print(session, f, export_indices(config, f.str("out")));
  }

  static void split_verb(Session& session, std::span<const gestalt_str> rest) {
    const Flags f(rest, {"out", "split", "documents"}, {"json"});
    if (f.words().size() != 1 || f.has("split") == f.has("documents"))
      throw InvalidArgument("[data split] expected one PREFIX, and either --split or --documents");
    print_all(session, f,
              f.has("split") ? split_corpus(f.words()[0], f.str("out"), f.str("split"))
                             : cut_corpus(f.words()[0], f.str("out"), f.i64("documents", 0)));
  }

  static void parity_verb(Session& session, std::span<const gestalt_str> rest) {
    const Flags f(rest, {}, {"json"});
    if (f.words().size() != 1) throw InvalidArgument("[parity] expected one folder that holds cases.json");
    support::indexed::ParityReport report = support::indexed::compare_cases(f.words()[0]);
    session.print(f.has("json") ? write_json(report.json) + "\n" : report.text);
    if (report.num_different)
      throw Error(GESTALT_VALIDATION,
                  fmt::format("[parity] {} arrays differ, expected all to be equal", report.num_different));
  }

  Host host_;
};

GESTALT_COMPONENT(DataTask)

}  // namespace gestalt::task_data

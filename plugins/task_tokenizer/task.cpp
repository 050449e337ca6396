// The verb "tokenizer".
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "gestalt/plugin.hpp"
#include "gestalt/task.hpp"
#include "plugins/task_tokenizer/golden.h"
#include "plugins/task_tokenizer/training.h"
#include "support/bpe/open.h"
#include "support/flags.h"
#include "support/json.h"
#include "support/sha256.h"
#include "support/text_input/input.h"

namespace gestalt::task_tokenizer {
namespace {

using support::Flags;
using support::Json;

constexpr std::string_view kUsage =
    "gestalt tokenizer train|encode|decode|info|speed|verify ...\n"
    "  train --input FILE... --output FILE --vocab-size N [--pattern NAME] [--special TEXT]... [--no-special]\n"
    "  encode (--ranks FILE | --vocab FILE --merges FILE | --tokenizer FILE) [--pattern NAME]\n"
    "         [--specials text|allow|refuse] (TEXT | --file FILE)\n"
    "  decode (--ranks FILE | --vocab FILE --merges FILE | --tokenizer FILE) [--pattern NAME] ID...\n"
    "  info   (--ranks FILE | --vocab FILE --merges FILE | --tokenizer FILE) [--pattern NAME]\n"
    "  speed  (--ranks FILE | --vocab FILE --merges FILE | --tokenizer FILE) [--pattern NAME] [--rounds N] --file FILE\n"
    "  verify --golden FILE.jsonl --files DIR           each also with --json";

support::bpe::Tokenizer open_tokenizer(const Flags& flags) {
  support::bpe::Source source;
  source.ranks = flags.str("ranks", "");
  source.vocab = flags.str("vocab", "");
  source.merges = flags.str("merges", "");
  source.file = flags.str("tokenizer", "");
  source.pattern = flags.str("pattern", "");
  return support::bpe::open_tokenizer(source);
}

std::string lines_of(const Json& object) {
  std::string out;
  for (const auto& [key, value] : object.members())
    out += fmt::format("{:<26}{}\n", key, value.is_string() ? value.str() : write_json(value));
  return out;
}

}  // namespace

class TokenizerTask : public Task {
 public:
  static constexpr std::string_view name = "tokenizer";
  static constexpr std::string_view usage = kUsage;
  static constexpr uint64_t flags = 0;

  TokenizerTask(Host, Attrs) {}

  void run(Session& session) override {
    const auto arguments = session.arguments();
    if (arguments.empty()) throw InvalidArgument(fmt::format("usage: {}", kUsage));
    const std::string_view verb = view_of(arguments[0]);
    const auto rest = arguments.subspan(1);
    if (verb == "train") return train(session, rest);
    if (verb == "encode") return encode(session, rest);
    if (verb == "decode") return decode(session, rest);
    if (verb == "info") return info(session, rest);
    if (verb == "speed") return speed(session, rest);
    if (verb == "verify") return verify(session, rest);
    throw InvalidArgument(fmt::format("[tokenizer] got \"{}\"; usage: {}", verb, kUsage));
  }

 private:
  static void print(Session& session, const Flags& flags, const Json& object) {
    session.print(flags.has("json") ? write_json(object) + "\n" : lines_of(object));
  }

  static void train(Session& session, std::span<const gestalt_str> rest) {
    const Flags f(rest, {"input", "output", "vocab-size", "pattern", "special"}, {"no-special", "json"});
    TrainOptions options;
    options.inputs = f.all("input");
    options.inputs.insert(options.inputs.end(), f.words().begin(), f.words().end());
    options.output = f.str("output");
    f.str("vocab-size");
    options.vocab_size = f.i64("vocab-size", 0);
    options.pattern = f.str("pattern", "gpt2");
    if (f.has("special")) options.specials = f.all("special");
    if (f.has("no-special")) options.specials.clear();
    print(session, f, train_tokenizer(options));
  }

  static void encode(Session& session, std::span<const gestalt_str> rest) {
    const Flags f(rest, {"ranks", "vocab", "merges", "tokenizer", "pattern", "specials", "file"}, {"json"});
    if (f.has("file") == !f.words().empty() || f.words().size() > 1)
      throw InvalidArgument("[encode] expected one TEXT or --file FILE (- is standard input)");
    const std::string mode = f.str("specials", "text");
    if (mode != "text" && mode != "allow" && mode != "refuse")
      throw InvalidArgument(fmt::format("[--specials] got \"{}\", expected text, allow or refuse", mode));
    const support::bpe::Tokenizer tokenizer = open_tokenizer(f);
    const std::string text = f.has("file") ? support::text_input::read_input(f.str("file")) : f.words()[0];
    auto scratch = tokenizer.make_scratch();
    std::vector<int32_t> ids;
    tokenizer.encode(text,
                     mode == "allow"    ? support::bpe::Specials::kAllow
                     : mode == "refuse" ? support::bpe::Specials::kRefuse
                                        : support::bpe::Specials::kAsText,
                     &scratch, &ids);
    if (!f.has("json")) return session.print(fmt::format("{}\n", fmt::join(ids, " ")));
    Json list = Json::array();
    for (const int32_t id : ids) list.push(static_cast<int64_t>(id));
    session.print(write_json(Json::object({{"ids", list}})) + "\n");
  }

  static void decode(Session& session, std::span<const gestalt_str> rest) {
    const Flags f(rest, {"ranks", "vocab", "merges", "tokenizer", "pattern"}, {"json"});
    std::vector<int32_t> ids;
    for (const std::string& word : f.words()) {
      int32_t id = -1;
      const char* end = word.data() + word.size();
      const auto result = std::from_chars(word.data(), end, id);
      if (result.ec != std::errc() || result.ptr != end)
        throw InvalidArgument(fmt::format("[decode] got \"{}\", expected ids", word));
      ids.push_back(id);
    }
    std::string bytes;
    open_tokenizer(f).decode(ids, &bytes);
    // JSON can hold no stray bytes: they are replaced there, and kept in plain output.
    session.print(f.has("json") ? write_json(Json::object({{"text", Json(bytes)}})) + "\n" : bytes + "\n");
  }

  static void info(Session& session, std::span<const gestalt_str> rest) {
    const Flags f(rest, {"ranks", "vocab", "merges", "tokenizer", "pattern"}, {"json"});
    const support::bpe::Tokenizer tokenizer = open_tokenizer(f);
    Json out = Json::object();
    out.set("vocabulary", tokenizer.vocab_size());
    out.set("tokens", tokenizer.vocabulary().num_tokens());
    out.set("pattern", tokenizer.pattern().regex());
    Json specials = Json::object();
    for (const auto& s : tokenizer.specials()) specials.set(s.text, static_cast<int64_t>(s.id));
    out.set("special_tokens", specials);
    out.set("eos", tokenizer.special("eos"));
    out.set("fingerprint", support::hex(tokenizer.fingerprint()));
    print(session, f, out);
  }

  // Bytes of text a second on one thread: the best of the rounds.
  static void speed(Session& session, std::span<const gestalt_str> rest) {
    const Flags f(rest, {"ranks", "vocab", "merges", "tokenizer", "pattern", "file", "rounds"}, {"json"});
    const int64_t rounds = f.i64("rounds", 5);
    if (rounds < 1) throw InvalidArgument(fmt::format("[--rounds] got {}, expected 1 or more", rounds));
    const support::bpe::Tokenizer tokenizer = open_tokenizer(f);
    const std::string text = support::text_input::read_input(f.str("file"));
    auto scratch = tokenizer.make_scratch();
    std::vector<int32_t> ids;
    double best = 0;
    for (int64_t r = 0; r < rounds; ++r) {
      ids.clear();
      const auto begin = std::chrono::steady_clock::now();
      tokenizer.encode(text, support::bpe::Specials::kAsText, &scratch, &ids);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      best = std::max(best, static_cast<double>(text.size()) / 1e6 / std::max(seconds, 1e-9));
    }
    Json out = Json::object();
    out.set("text_bytes", static_cast<int64_t>(text.size()));
    out.set("tokens", static_cast<int64_t>(ids.size()));
    out.set("mb_per_second", best);
    out.set("sha256_of_uint32le_ids",
            support::hex(support::sha256({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t)})));
    print(session, f, out);
  }

  static void verify(Session& session, std::span<const gestalt_str> rest) {
    const Flags f(rest, {"golden", "files"}, {"json"});
    const GoldenCounts counts = check_golden(f.str("golden"), f.str("files"));
    Json out = Json::object();
    out.set("equal", counts.equal);
    Json different = Json::array(), others = Json::array();
    for (const std::string& d : counts.different) different.push(d);
    for (const std::string& n : counts.not_ours) others.push(n);
    out.set("different", different);
    out.set("other_tokenizers", others);
    out.set("lines_of_others", counts.num_not_ours);
    print(session, f, out);
    if (!counts.different.empty())
      throw Error(GESTALT_VALIDATION, fmt::format("[verify] {} lines differ, expected none; the first: {}",
                                                  counts.different.size(), counts.different[0]));
    if (counts.equal == 0)
      throw Error(GESTALT_NOT_FOUND,
                  fmt::format("[verify] no line of {} is for a tokenizer under {}", f.str("golden"), f.str("files")));
  }
};

GESTALT_COMPONENT(TokenizerTask)

}  // namespace gestalt::task_tokenizer

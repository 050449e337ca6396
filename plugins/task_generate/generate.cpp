// The verb `generate`: continues a prompt and shows the text as it comes.
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gestalt/plugin.hpp"
#include "support/generation/continuation.h"
#include "support/generation/text_stream.h"
#include "support/json.h"

namespace gestalt::generate {

namespace {

struct Options {
  std::string prompt = "\n";
  int64_t max_tokens = 200;
  support::Sampling sampling;
  std::vector<std::string> stops;
  bool json = false;
};

template <class T>
T number(std::string_view flag, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw Error(GESTALT_USAGE_ERROR, "[" + std::string(flag) + "] got '" + std::string(text) + "', expected a number");
  return value;
}

std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) throw Error(GESTALT_NOT_FOUND, "[--prompt-file] cannot read '" + path + "'");
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

// A flag with a value: what it does with it.
struct Flag {
  std::string_view name;
  void (*set)(Options& o, std::string_view flag, std::string_view value);
};
constexpr Flag kFlags[] = {
    {"--prompt", [](Options& o, std::string_view, std::string_view v) { o.prompt = v; }},
    {"--prompt-file", [](Options& o, std::string_view, std::string_view v) { o.prompt = content_of(std::string(v)); }},
    {"--max-tokens", [](Options& o, std::string_view f, std::string_view v) { o.max_tokens = number<int64_t>(f, v); }},
    {"--temperature", [](Options& o, std::string_view f, std::string_view v) { o.sampling.temperature = number<double>(f, v); }},
    {"--top-k", [](Options& o, std::string_view f, std::string_view v) { o.sampling.top_k = number<int64_t>(f, v); }},
    {"--top-p", [](Options& o, std::string_view f, std::string_view v) { o.sampling.top_p = number<double>(f, v); }},
    {"--min-p", [](Options& o, std::string_view f, std::string_view v) { o.sampling.min_p = number<double>(f, v); }},
    {"--seed", [](Options& o, std::string_view f, std::string_view v) { o.sampling.seed = number<uint64_t>(f, v); }},
    {"--stop", [](Options& o, std::string_view, std::string_view v) { o.stops.emplace_back(v); }}};

Options parse(std::span<const gestalt_str> args) {
  Options o;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string_view given = view_of(args[i]);
    if (given == "--json") {
      o.json = true;
      continue;
    }
    const size_t equals = given.starts_with("--") ? given.find('=') : std::string_view::npos;
    const std::string_view name = given.substr(0, equals);
    const Flag* flag = nullptr;
    for (const Flag& f : kFlags)
      if (f.name == name) flag = &f;
    if (!flag) throw Error(GESTALT_USAGE_ERROR, "[generate] unknown argument '" + std::string(given) + "'");
    if (equals == std::string_view::npos && i + 1 >= args.size())
      throw Error(GESTALT_USAGE_ERROR, "[" + std::string(name) + "] needs a value");
    flag->set(o, name, equals == std::string_view::npos ? view_of(args[++i]) : given.substr(equals + 1));
  }
  const support::Sampling& s = o.sampling;
  if (o.max_tokens < 1 || !(s.temperature >= 0) || s.top_k < 0 || !(s.top_p > 0 && s.top_p <= 1) ||
      !(s.min_p >= 0 && s.min_p <= 1))
    throw Error(GESTALT_USAGE_ERROR,
                "[generate] expected --max-tokens >= 1, --temperature >= 0, --top-k >= 0, 0 < --top-p <= 1 and "
                "0 <= --min-p <= 1");
  return o;
}

}  // namespace

class Generate : public Task {
 public:
  static constexpr std::string_view name = "generate";
  static constexpr std::string_view usage =
      "gestalt generate MODEL [--prompt T|--prompt-file F] [--max-tokens N] [--temperature X] [--top-k K] [--top-p P] "
      "[--min-p P] [--seed S] [--stop TEXT]... [--json]";
  static constexpr uint64_t flags = GESTALT_TASK_TAKES_RUN;
  Generate(Host, Attrs) {}

  void run(Session& s) override {
    const Options o = parse(s.arguments());
    s.open_model();
    TokenizerRef tokenizer = s.tokenizer();
    const std::vector<int32_t> prompt = tokenizer.encode(o.prompt);
    if (prompt.empty()) throw Error(GESTALT_USAGE_ERROR, "[--prompt] encodes to no token, expected at least one");
    const int64_t eos = tokenizer.special("eos");
    support::Continuation continuation(s, o.sampling);
    continuation.put(prompt);
    support::TextStream stream(o.stops);
    auto show = [&](const std::string& text) {
      if (!o.json && !text.empty()) s.print(text);
    };
    show(o.prompt);
    std::vector<int32_t> made;
    const char* reason = "length";
    while (static_cast<int64_t>(made.size()) < o.max_tokens && s.stop_requested() != 1) {
      const int32_t id = continuation.next();
      if (id == eos) {
        reason = "eos";
        break;
      }
      made.push_back(id);
      show(stream.push(tokenizer.decode({&id, 1})));
      if (stream.stopped()) {
        reason = "stop";
        break;
      }
    }
    show(stream.finish());
    if (!o.json) return s.print("\n");
    support::Json::Array ids;
    for (int32_t id : made) ids.emplace_back(static_cast<int64_t>(id));
    s.print(support::write_json(support::Json::object({{"prompt", o.prompt},
                                                       {"text", stream.text()},
                                                       {"ids", std::move(ids)},
                                                       {"reason", reason}})) +
            "\n");
  }
};
GESTALT_COMPONENT(Generate)

}  // namespace gestalt::generate

// The verb `generate`: continues a prompt, greedily or by sampling, with a full forward pass for each token.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "gestalt/philox.h"
#include "gestalt/plugin.hpp"

namespace gestalt::generate {

struct Options {
  std::string prompt = "\n";
  int64_t max_tokens = 200, top_k = 0, seed = 1;
  double temperature = 1.0, top_p = 1.0;
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

Options parse(std::span<const gestalt_str> args) {
  Options o;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string_view flag = view_of(args[i]);
    if (flag == "--json") {
      o.json = true;
      continue;
    }
    if (i + 1 >= args.size())
      throw Error(GESTALT_USAGE_ERROR, "[generate] unknown argument or missing value: '" + std::string(flag) + "'");
    const std::string_view value = view_of(args[++i]);
    if (flag == "--prompt") {
      o.prompt = value;
    } else if (flag == "--prompt-file") {
      std::ifstream file{std::string(value), std::ios::binary};
      if (!file) throw Error(GESTALT_NOT_FOUND, "[--prompt-file] cannot read '" + std::string(value) + "'");
      std::ostringstream all;
      all << file.rdbuf();
      o.prompt = all.str();
    } else if (flag == "--max-tokens") {
      o.max_tokens = number<int64_t>(flag, value);
    } else if (flag == "--temperature") {
      o.temperature = number<double>(flag, value);
    } else if (flag == "--top-k") {
      o.top_k = number<int64_t>(flag, value);
    } else if (flag == "--top-p") {
      o.top_p = number<double>(flag, value);
    } else if (flag == "--seed") {
      o.seed = number<int64_t>(flag, value);
    } else {
      throw Error(GESTALT_USAGE_ERROR, "[generate] unknown argument '" + std::string(flag) + "'");
    }
  }
  if (o.max_tokens < 1 || o.temperature < 0 || o.top_k < 0 || !(o.top_p > 0 && o.top_p <= 1))
    throw Error(GESTALT_USAGE_ERROR,
                "[generate] expected --max-tokens >= 1, --temperature >= 0, --top-k >= 0 and 0 < --top-p <= 1");
  return o;
}

// Temperature 0 takes the largest logit, the first of equals. Else the token of a softmax over the top k within the
// smallest set whose probability reaches top p; u is uniform in [0, 1).
int32_t pick(std::span<const float> logits, const Options& o, double u) {
  const auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (o.temperature == 0) return best;
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (o.top_k > 0 && static_cast<size_t>(o.top_k) < order.size()) order.resize(static_cast<size_t>(o.top_k));
  std::vector<double> p;
  for (int32_t id : order) p.push_back(std::exp((static_cast<double>(logits[id]) - logits[best]) / o.temperature));
  double total = std::accumulate(p.begin(), p.end(), 0.0), sum = 0;
  size_t keep = 0;
  while (keep < p.size() && (keep == 0 || sum < o.top_p * total)) sum += p[keep++];
  double at = u * sum;
  for (size_t i = 0; i < keep; ++i)
    if ((at -= p[i]) < 0) return order[i];
  return order[keep - 1];
}

std::string escaped(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

class Generate : public Task {
 public:
  static constexpr std::string_view name = "generate";
  static constexpr std::string_view usage =
      "gestalt generate MODEL [--prompt T|--prompt-file F] [--max-tokens N] [--temperature X] [--top-k K] [--top-p P] "
      "[--seed S] [--json]";
  static constexpr uint64_t flags = GESTALT_TASK_TAKES_RUN;
  Generate(Host, Attrs) {}

  void run(Session& s) override {
    const Options o = parse(s.arguments());
    s.open_model();
    TokenizerRef tokenizer = s.tokenizer();
    std::vector<int32_t> ids = tokenizer.encode(o.prompt);
    if (ids.empty()) throw Error(GESTALT_USAGE_ERROR, "[--prompt] encodes to no token, expected at least one");
    const int64_t eos = tokenizer.special("eos"), window = s.i64("model.seq_len");
    const size_t prompt_size = ids.size();
    const int64_t known = tokenizer.vocab_size();
    if (!o.json) s.print(o.prompt);
    for (int64_t i = 0; i < o.max_tokens && s.stop_requested() != 1; ++i) {
      // Beyond the model's length the oldest tokens fall out of sight.
      const size_t from = ids.size() > static_cast<size_t>(window) ? ids.size() - static_cast<size_t>(window) : 0;
      int64_t vocab = 0;
      const std::vector<float> all = s.logits(std::span(ids).subspan(from), &vocab);
      // A padded vocabulary has rows that no token stands for.
      const auto usable = static_cast<size_t>(std::min(vocab, known));
      const PhiloxBlock random = philox_token(static_cast<uint64_t>(o.seed), 0, 0, static_cast<uint32_t>(i), 0, 0);
      const int32_t id = pick(std::span(all).last(static_cast<size_t>(vocab)).first(usable), o,
                              static_cast<double>(philox_uniform(random.word[0])));
      if (id == eos) break;
      ids.push_back(id);
      if (!o.json) s.print(tokenizer.decode(std::span(ids).last(1)));
    }
    const std::vector<int32_t> made(ids.begin() + static_cast<std::ptrdiff_t>(prompt_size), ids.end());
    if (!o.json) return s.print("\n");
    std::string list;
    for (int32_t id : made) list += (list.empty() ? "" : ",") + std::to_string(id);
    s.print("{\"prompt\":" + escaped(o.prompt) + ",\"text\":" + escaped(tokenizer.decode(made)) + ",\"ids\":[" + list + "]}\n");
  }
};
GESTALT_COMPONENT(Generate)

}  // namespace gestalt::generate

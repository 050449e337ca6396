// The verb `eval`: loss, perplexity and bits per byte on a split of the run's data.
#include <cmath>
#include <cstdio>
#include <string>

#include "gestalt/plugin.hpp"

namespace gestalt::eval {

class Eval : public Task {
 public:
  static constexpr std::string_view name = "eval";
  static constexpr std::string_view usage =
      "gestalt eval CONFIG|MODEL [--split valid] [--samples N] [--json] [--set KEY=VALUE]... [--device NAME]";
  Eval(Host, Attrs) {}

  void run(Session& s) override {
    std::string split = "valid";
    int64_t samples = -1;
    bool json = false;
    const auto args = s.arguments();
    for (size_t i = 0; i < args.size(); ++i) {
      const std::string_view a = view_of(args[i]);
      const bool value = i + 1 < args.size();
      if (a == "--split" && value)
        split = view_of(args[++i]);
      else if (a == "--samples" && value)
        samples = std::stoll(std::string(view_of(args[++i])));
      else if (a == "--json")
        json = true;
      else
        throw Error(GESTALT_USAGE_ERROR, "[eval] unknown argument or missing value: '" + std::string(a) + "'");
    }
    s.open_model();
    s.open_data();
    const gestalt_step_result r = s.evaluate(split, 0, samples);
    const int64_t bytes = samples < 0 ? s.bytes_of_text(split) : -1;
    const double bpb = bytes > 0 ? r.loss * r.weight / std::log(2.0) / static_cast<double>(bytes) : -1;
    const double perplexity = std::exp(std::min(r.loss, 20.0));
    char line[512];
    std::snprintf(line, sizeof line,
                  json ? "{\"split\":\"%s\",\"loss\":%.9g,\"perplexity\":%.9g,\"trained_tokens\":%.0f"
                       : "split %s  loss %.6f  perplexity %.4f  tokens %.0f",
                  split.c_str(), r.loss, perplexity, r.weight);
    std::string out = line;
    if (bpb >= 0) {
      std::snprintf(line, sizeof line, json ? ",\"bits_per_byte\":%.9g" : "  bits_per_byte %.4f", bpb);
      out += line;
    }
    s.print(out + (json ? "}\n" : "\n"));
  }
};
GESTALT_COMPONENT(Eval)

}  // namespace gestalt::eval

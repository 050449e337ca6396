#include "plugins/report/page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "plugins/report/chart.h"
#include "support/file.h"

namespace gestalt::report {

namespace {

constexpr const char* kBlue = "#2f6fde";
constexpr const char* kOrange = "#d9772b";

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--fg:#1c2330;--bg:#fff;--soft:#f3f5f8;--line:#d8dde5;--dim:#667085}
@media(prefers-color-scheme:dark){:root{--fg:#e4e8ef;--bg:#14181f;--soft:#1d232d;--line:#333c4a;--dim:#98a2b3}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:1340px;margin:0 auto;padding:24px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:17px;margin:32px 0 10px}
.dim{color:var(--dim)}
.cards{display:flex;flex-wrap:wrap;gap:10px;margin-top:18px}
.card{background:var(--soft);border-radius:8px;padding:10px 16px}.card b{display:block;font-size:20px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(480px,1fr));gap:14px}
.charts div{background:var(--soft);border-radius:8px;padding:10px}
svg{width:100%;height:auto}svg text{fill:var(--fg);font:12px system-ui,sans-serif}svg .title{font-weight:600}
svg .small{font-size:11px;fill:var(--dim)}svg .end{text-anchor:end}svg .middle{text-anchor:middle}
svg .grid{stroke:var(--line);stroke-width:1}
pre{background:var(--soft);border-radius:8px;padding:12px;overflow-x:auto;font-size:12.5px;line-height:1.45}
blockquote{background:var(--soft);border-left:3px solid #2f6fde;border-radius:4px;margin:0 0 10px;padding:10px 14px;white-space:pre-wrap}
summary{cursor:pointer;font-weight:600;font-size:17px;margin:22px 0 8px}
)";

std::string number(const char* format, double x) {
  char out[64];
  std::snprintf(out, sizeof out, format, x);
  return out;
}

const double* last_value(const Series& s) { return s.empty() ? nullptr : &s.back().value; }

double mean(const Series& s) {
  double sum = 0;
  for (const Point& p : s) sum += p.value;
  return s.empty() ? 0 : sum / static_cast<double>(s.size());
}

const Point* lowest(const Series& s) {
  const Point* best = nullptr;
  for (const Point& p : s)
    if (std::isfinite(p.value) && (!best || p.value < best->value)) best = &p;
  return best;
}

std::string card(const std::string& name, const std::string& value) {
  return "<div class=\"card\"><b>" + escaped(value) + "</b><span class=\"dim\">" + escaped(name) + "</span></div>";
}

std::string cards(const RunData& run) {
  std::string out;
  const Series& loss = run.of("loss");
  if (!loss.empty()) out += card("updates", number("%.0f", static_cast<double>(loss.back().step)));
  if (const double* v = last_value(loss)) out += card("training loss, last", number("%.4f", *v));
  if (const Point* p = lowest(run.of("valid_loss")))
    out += card("validation loss, best, at step " + std::to_string(p->step), number("%.4f", p->value));
  if (const Point* p = lowest(run.of("valid_bits_per_byte"))) out += card("bits per byte, best", number("%.4f", p->value));
  if (const Series& s = run.of("tokens_per_second"); !s.empty()) out += card("tokens/s, mean", short_number(mean(s)));
  if (const Series& s = run.of("tflops"); !s.empty() && mean(s) > 0) out += card("TFLOP/s, mean", number("%.3g", mean(s)));
  if (const Series& s = run.of("mfu"); !s.empty()) out += card("MFU, mean", number("%.1f%%", 100 * mean(s)));
  if (const double* v = last_value(run.of("memory_peak_bytes"))) out += card("memory", number("%.2f GB", *v / 1e9));
  if (const double* v = last_value(run.of("skipped")); v && *v > 0) out += card("skipped updates", number("%.0f", *v));
  return "<div class=\"cards\">" + out + "</div>\n";
}

double smoothing_of(const Series& s) { return std::max(5.0, static_cast<double>(s.size()) / 40); }

Chart loss_chart(const RunData& run) {
  const Series& loss = run.of("loss");
  return {"Loss", "nats a token",
          {{"", loss, kBlue, true}, {"training", smoothed(loss, smoothing_of(loss)), kBlue}, {"validation", run.of("valid_loss"), kOrange, false, true}}};
}

std::string charts(const RunData& run) {
  const double width = smoothing_of(run.of("loss"));
  std::vector<Chart> all = {
      loss_chart(run),
      {"Validation", "bits per byte", {{"validation", run.of("valid_bits_per_byte"), kOrange, false, true}}},
      {"Learning rate", "", {{"learning rate", run.of("lr"), kBlue}}},
      {"Gradient norm, before clipping", "", {{"", run.of("grad_norm_preclip"), kBlue, true}, {"norm", smoothed(run.of("grad_norm_preclip"), width), kBlue}}},
      {"Throughput", "tokens/s", {{"tokens/s", run.of("tokens_per_second"), kBlue}}},
      {"Memory, peak", "bytes", {{"memory", run.of("memory_peak_bytes"), kBlue}}}};
  // What other tasks and modules report has a chart each.
  for (const auto& [name, points] : run.series) {
    bool known = name == "step_seconds" || name == "data_seconds" || name == "tflops" || name == "mfu" || name == "skipped";
    for (const char* k : {"loss", "valid_loss", "valid_bits_per_byte", "lr", "grad_norm_preclip", "tokens_per_second", "memory_peak_bytes"})
      known = known || name == k;
    if (!known) all.push_back({name, "", {{name, points, kBlue}}});
  }
  std::string out;
  for (const Chart& c : all)
    if (const std::string svg = svg_of(c); !svg.empty()) out += "<div>" + svg + "</div>\n";
  return "<div class=\"charts\">\n" + out + "</div>\n";
}

std::string folded(const RunData& run, const std::string& name, const std::string& title) {
  const auto it = run.texts.find(name);
  if (it == run.texts.end()) return {};
  return "<details><summary>" + title + "</summary><pre>" + escaped(it->second) + "</pre></details>\n";
}

}  // namespace

std::string page_of(const RunData& run) {
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                    "<meta name=\"viewport\" content=\"width=device-width\"><title>" + escaped(run.name) +
                    "</title><style>" + kStyle + "</style></head><body>\n";
  out += "<h1>" + escaped(run.name) + "</h1><div class=\"dim\">" + escaped(run.folder) + "</div>\n";
  out += cards(run) + "<h2>Curves</h2>\n" + charts(run);
  if (!run.samples.empty()) {
    out += "<h2>Samples</h2>\n";
    // The newest first; a long run has many.
    constexpr size_t kMost = 12;
    const size_t count = std::min(run.samples.size(), kMost);
    for (size_t i = 0; i < count; ++i) {
      const Sample& s = run.samples[run.samples.size() - 1 - i];
      out += "<div class=\"dim\">step " + std::to_string(s.step) + "</div><blockquote>" + escaped(s.text) + "</blockquote>\n";
    }
  }
  out += folded(run, "config", "Configuration") + folded(run, "plugins", "Plugins") + folded(run, "kernels", "Kernels");
  return out + "</body></html>\n";
}

std::string loss_picture(const RunData& run) {
  // Grey reads on light and dark grounds.
  constexpr const char* kOwnStyle =
      "<style>text{fill:#6b7280;font:12px system-ui,sans-serif}.title{font-weight:600}.small{font-size:11px}"
      ".end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#9ca3af;stroke-opacity:.35}</style>";
  std::string svg = svg_of(loss_chart(run));
  const size_t end = svg.find('>');
  return end == std::string::npos ? svg : svg.insert(end + 1, kOwnStyle);
}

std::string write_page(const RunData& run, const std::string& file) {
  const std::string path = file.empty() ? run.folder + "/report.html" : file;
  support::AtomicFile out(path);
  out.write(page_of(run));
  out.commit();
  return path;
}

}  // namespace gestalt::report

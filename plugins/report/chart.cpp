#include "plugins/report/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace gestalt::report {

namespace {

constexpr double kWidth = 640, kHeight = 260, kLeft = 62, kRight = 12, kTop = 34, kBottom = 30;

template <class... A>
std::string text(const char* format, A... args) {
  char line[512];
  std::snprintf(line, sizeof line, format, args...);
  return line;
}

// A range of numbers with ticks at 1, 2 or 5 times a power of ten.
struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void see(double x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  void widen() {
    if (high > low) return;
    const double by = low != 0 ? std::abs(low) * 0.1 : 1;
    low -= by;
    high += by;
  }
  double step() const {
    const double raw = (high - low) / 5, power = std::pow(10, std::floor(std::log10(raw)));
    for (double f : {1.0, 2.0, 5.0})
      if (raw <= f * power) return f * power;
    return 10 * power;
  }
  double place(double x) const { return (x - low) / (high - low); }
};

// At most this many points are drawn; each stands for the mean of a stretch.
constexpr size_t kMaxPoints = 800;

Series finite_points(const Series& points) {
  Series out;
  for (const Point& p : points)
    if (std::isfinite(p.value)) out.push_back(p);
  if (out.size() <= kMaxPoints) return out;
  Series thin;
  for (size_t i = 0; i < kMaxPoints; ++i) {
    const size_t from = out.size() * i / kMaxPoints, to = out.size() * (i + 1) / kMaxPoints;
    double sum = 0;
    for (size_t k = from; k < to; ++k) sum += out[k].value;
    thin.push_back({out[to - 1].step, sum / static_cast<double>(to - from)});
  }
  return thin;
}

}  // namespace

std::string escaped(const std::string& plain) {
  std::string out;
  for (const char c : plain) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string short_number(double x) {
  if (!std::isfinite(x)) return std::isnan(x) ? "NaN" : x > 0 ? "infinity" : "-infinity";
  const double size = std::abs(x);
  if (size >= 1e9) return text("%.4gG", x / 1e9);
  if (size >= 1e6) return text("%.4gM", x / 1e6);
  if (size >= 1e4) return text("%.4gk", x / 1e3);
  if (size != 0 && size < 1e-3) return text("%.2e", x);
  return text("%.4g", x);
}

Series smoothed(const Series& points, double width) {
  Series out;
  const double keep = 1 - 1 / std::max(width, 1.0);
  double sum = 0, weight = 0;
  for (const Point& p : points) {
    if (!std::isfinite(p.value)) continue;
    sum = keep * sum + p.value;
    weight = keep * weight + 1;
    out.push_back({p.step, sum / weight});
  }
  return out;
}

std::string svg_of(const Chart& chart) {
  Axis x, y;
  std::vector<std::pair<const Line*, Series>> drawn;
  for (const Line& l : chart.lines) {
    drawn.emplace_back(&l, finite_points(l.points));
    for (const Point& p : drawn.back().second) {
      x.see(static_cast<double>(p.step));
      y.see(p.value);
    }
  }
  if (!std::isfinite(x.low)) return {};
  x.widen();
  y.widen();
  auto px = [&](double v) { return kLeft + x.place(v) * (kWidth - kLeft - kRight); };
  auto py = [&](double v) { return kHeight - kBottom - y.place(v) * (kHeight - kTop - kBottom); };

  std::string out = text("<svg viewBox=\"0 0 %.0f %.0f\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">", kWidth, kHeight);
  out += text("<text x=\"%.0f\" y=\"16\" class=\"title\">", kLeft) + escaped(chart.title) + "</text>";
  double at = kLeft;
  for (const auto& [line, points] : drawn) {
    if (line->faint || points.empty()) continue;
    out += text("<rect x=\"%.0f\" y=\"22\" width=\"10\" height=\"3\" fill=\"", at) + line->color + "\"/>";
    out += text("<text x=\"%.0f\" y=\"27\" class=\"small\">", at + 14) + escaped(line->name) + "</text>";
    at += 34 + 6.2 * static_cast<double>(line->name.size());
  }
  for (double v = std::ceil(y.low / y.step()) * y.step(); v <= y.high; v += y.step()) {
    const double shown = std::abs(v) < y.step() * 1e-6 ? 0 : v;
    out += text("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>", kLeft, kWidth - kRight, py(v), py(v));
    out += text("<text x=\"%.1f\" y=\"%.1f\" class=\"small end\">", kLeft - 6, py(v) + 4) + short_number(shown) + "</text>";
  }
  for (double v = std::ceil(x.low / x.step()) * x.step(); v <= x.high; v += x.step())
    out += text("<text x=\"%.1f\" y=\"%.1f\" class=\"small middle\">", px(v), kHeight - kBottom + 16) + short_number(v) + "</text>";
  if (!chart.unit.empty())
    out += text("<text x=\"%.1f\" y=\"16\" class=\"small end\">", kWidth - kRight) + escaped(chart.unit) + "</text>";
  for (const auto& [line, points] : drawn) {
    if (points.empty()) continue;
    std::string path;
    for (const Point& p : points)
      path += text("%s%.1f %.1f", path.empty() ? "M" : "L", px(static_cast<double>(p.step)), py(p.value));
    out += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + line->color +
           (line->faint ? "\" stroke-width=\"1\" opacity=\"0.3\"/>" : "\" stroke-width=\"1.8\"/>");
    if (line->dots || points.size() == 1)
      for (const Point& p : points)
        out += text("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"", px(static_cast<double>(p.step)), py(p.value)) +
               line->color + text("\"><title>step %lld: ", static_cast<long long>(p.step)) + short_number(p.value) +
               "</title></circle>";
  }
  return out + "</svg>\n";
}

}  // namespace gestalt::report

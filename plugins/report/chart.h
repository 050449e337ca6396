// Line charts as SVG text.
#pragma once

#include <string>
#include <vector>

#include "plugins/report/run_data.h"

namespace gestalt::report {

struct Line {
  std::string name;
  Series points;
  std::string color;  // a CSS color
  bool faint = false;
  bool dots = false;  // points marked
};

struct Chart {
  std::string title, unit;
  std::vector<Line> lines;
};

// Values that are not finite are left out. Empty when no line has a finite point.
std::string svg_of(const Chart& chart);

// A running mean that follows over about `width` points.
Series smoothed(const Series& points, double width);

// A number for people: 3 or 4 digits, with k, M or G.
std::string short_number(double x);
std::string escaped(const std::string& text);  // for HTML

}  // namespace gestalt::report

#include "plugins/device_cuda/architectures.h"

#include <cstdlib>
#include <vector>

namespace gestalt::device_cuda {

namespace {

struct Architecture {
  int major = 0, minor = 0;
  bool exact = false;  // 90a
  bool newer = false;  // has intermediate code
};

std::vector<Architecture> parse(std::string_view list) {
  std::vector<Architecture> out;
  while (!list.empty()) {
    const size_t end = list.find(',');
    const std::string_view item = list.substr(0, end);
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
    size_t digits = 0;
    while (digits < item.size() && item[digits] >= '0' && item[digits] <= '9') ++digits;
    if (digits == 0) continue;
    const int number = std::atoi(std::string(item.substr(0, digits)).c_str());
    Architecture a;
    a.major = number / 10;
    a.minor = number % 10;
    a.exact = digits < item.size() && item[digits] == 'a';
    a.newer = !a.exact && item.find("-real") == std::string_view::npos;
    out.push_back(a);
  }
  return out;
}

}  // namespace

bool code_runs_on(std::string_view list, int major, int minor) {
  for (const Architecture& a : parse(list)) {
    if (a.exact ? a.major == major && a.minor == minor : a.major == major && a.minor <= minor) return true;
    if (a.newer && (a.major < major || (a.major == major && a.minor <= minor))) return true;
  }
  return false;
}

std::string readable(std::string_view list) {
  std::string text;
  for (const Architecture& a : parse(list)) {
    text += (text.empty() ? "" : ", ") + std::to_string(a.major) + "." + std::to_string(a.minor);
    if (a.exact) text += "a";
    if (a.newer) text += " and newer";
  }
  return text;
}

}  // namespace gestalt::device_cuda

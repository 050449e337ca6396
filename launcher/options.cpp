#include "launcher/options.h"

#include <cstdio>
#include <sstream>

#include <fmt/format.h>

#include "core/base/text.h"

namespace gestalt::launcher {

bool Options::parse(const Arguments& arguments) {
  try {
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(arguments).options(described_).positional(positional_).style(style).run(),
              values_);
    if (has("help")) {
      std::ostringstream text;
      text << described_;
      std::fputs(fmt::format("{}\n\n{}", usage_, text.str()).c_str(), stdout);
      return false;
    }
    po::notify(values_);
  } catch (const po::unknown_option& e) {
    std::vector<std::string> names;
    for (const auto& option : described_.options()) names.push_back("--" + option->long_name());
    const std::string near = core::nearest(e.get_option_name(), names);
    throw UsageError(fmt::format("{}{}", e.what(), near.empty() ? "" : fmt::format("; did you mean '{}'?", near)),
                     usage_);
  } catch (const po::error& e) {
    throw UsageError(e.what(), usage_);
  }
  return true;
}

}  // namespace gestalt::launcher

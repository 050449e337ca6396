// gestalt new run NAME: a commented run file to change, out of those that were installed with the command.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "launcher/options.h"

namespace gestalt::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsage = "gestalt new run NAME [--output FILE] [--force] | gestalt new run";

// Run files beside the command: <command>/../share/gestalt/configs.
fs::path folder() {
  std::error_code ec;
  const fs::path command = fs::read_symlink("/proc/self/exe", ec);
  return command.parent_path().parent_path() / "share" / "gestalt" / "configs";
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  std::error_code ec;
  for (const auto& e : fs::directory_iterator(folder(), ec))
    if (e.path().extension() == ".toml") out.push_back(e.path().stem().native());
  std::sort(out.begin(), out.end());
  return out;
}

// The comment at the top, up to its first full stop.
std::string summary_of(const fs::path& file) {
  std::ifstream in(file);
  std::string text;
  for (std::string line; std::getline(in, line) && line.rfind("#", 0) == 0;) text += (text.empty() ? "" : " ") + line.substr(std::min<size_t>(line.size(), 2));
  return text.substr(0, text.find(". "));
}

int list() {
  std::string text;
  for (const std::string& n : names()) text += fmt::format("  {:<14} {}\n", n, summary_of(folder() / (n + ".toml")));
  if (text.empty()) core::fail(GESTALT_NOT_FOUND, "[new] no run files in '{}'", folder().native());
  std::fputs(fmt::format("usage: {}\n\nrun files:\n{}", kUsage, text).c_str(), stdout);
  return 0;
}

int run_new(const Arguments& arguments) {
  Options options(kUsage);
  options.add()("what", po::value<std::string>(), "run")("name", po::value<std::string>(), "which run file")(
      "output", po::value<std::string>(), "where to write it; default: NAME.toml here")("force", "replace a file");
  options.positional("what", 1);
  options.positional("name", 1);
  if (!options.parse(arguments)) return 0;
  if (options.text("what") != "run") throw UsageError("new what? expected 'run'");
  if (!options.has("name")) return list();
  const std::string name = options.text("name");
  const std::vector<std::string> known = names();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string near = core::nearest(name, known);
    throw UsageError(fmt::format("no run file '{}', expected one of {}{}", core::escape_controls(name),
                                 core::join(known, ", "), near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }
  const fs::path to = options.has("output") ? fs::path(options.text("output")) : fs::path(name + ".toml");
  std::error_code ec;
  if (fs::exists(to, ec) && !options.has("force"))
    throw UsageError(fmt::format("'{}' is there already; --force replaces it", to.native()));
  std::ifstream in(folder() / (name + ".toml"), std::ios::binary);
  core::write_file_atomic(to, std::string(std::istreambuf_iterator<char>(in), {}));
  std::fputs(fmt::format("{}\nrun it with: gestalt train {}\n", to.native(), to.native()).c_str(), stdout);
  return 0;
}

const Verb kNew("new", kUsage, "a commented run file to start from", run_new);

}  // namespace
}  // namespace gestalt::launcher

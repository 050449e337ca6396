#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gestalt::launcher {

using Arguments = std::vector<std::string>;  // what follows the verb

// A wrong command line: exit 2 with the message and a usage line, the verb's own unless one is given.
class UsageError : public std::exception {
 public:
  explicit UsageError(std::string message, std::string usage = {})
      : message_(std::move(message)), usage_(std::move(usage)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& usage() const { return usage_; }

 private:
  std::string message_, usage_;
};

struct VerbLine {
  std::string name, usage, summary;
};

// Serves one or many verbs. A file that adds some defines one static object: being there is the registration.
//   const Verb kPlugin("plugin", "gestalt plugin list|show|...", "plugins on disk", run_plugin);
class VerbSource {
 public:
  VerbSource();
  VerbSource(const VerbSource&) = delete;
  virtual ~VerbSource() = default;
  virtual std::vector<VerbLine> verbs() const = 0;
  // Returns the exit code. The verb is one of verbs().
  virtual int run(std::string_view verb, const Arguments& arguments) const = 0;
  // Sources whose list costs something (task components of plugins) are asked only when no other has the verb.
  virtual bool late() const { return false; }

  static std::vector<const VerbSource*> all();  // early ones first
};

class Verb : public VerbSource {
 public:
  using Run = int (*)(const Arguments&);
  Verb(const char* name, const char* usage, const char* summary, Run run)
      : name_(name), usage_(usage), summary_(summary), run_(run) {}
  std::vector<VerbLine> verbs() const override { return {{name_, usage_, summary_}}; }
  int run(std::string_view, const Arguments& arguments) const override { return run_(arguments); }

 private:
  const char *name_, *usage_, *summary_;
  Run run_;
};

}  // namespace gestalt::launcher

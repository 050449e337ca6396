#pragma once

#include <string>

#include <boost/program_options.hpp>

#include "launcher/verb.h"

namespace gestalt::launcher {

namespace po = boost::program_options;

// The options of one verb. `--help` is added; abbreviations are not accepted, so that adding an option never changes
// what a script means.
class Options {
 public:
  explicit Options(std::string usage) : usage_(std::move(usage)), described_("options") {
    described_.add_options()("help", "print this");
  }
  po::options_description_easy_init add() { return described_.add_options(); }
  // Words without a dash: `count` of them (-1: any number) under `name`, which must also be an option.
  void positional(const char* name, int count) { positional_.add(name, count); }

  // Throws UsageError. False: help was asked for and printed.
  bool parse(const Arguments& arguments);
  bool has(const char* name) const { return values_.count(name) != 0; }
  template <class T>
  const T& get(const char* name) const {
    return values_[name].as<T>();
  }
  // A repeatable text option; empty when absent.
  Arguments list(const char* name) const { return has(name) ? get<Arguments>(name) : Arguments(); }
  std::string text(const char* name, const char* otherwise = "") const {
    return has(name) ? get<std::string>(name) : otherwise;
  }

 private:
  std::string usage_;
  po::options_description described_;
  po::positional_options_description positional_;
  po::variables_map values_;
};

}  // namespace gestalt::launcher

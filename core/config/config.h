#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/config/node.h"

namespace gestalt::core {

// The configuration of one run: the values of flags, environment, file, extended files, checkpoint and defaults, in
// this order of precedence, each with its origin.
//
// extends = ["base.toml"]: files relative to this one; later ones win over earlier ones, this file over all. Tables
// merge, everything else is replaced. --set a.b=VALUE: VALUE is a TOML value, or a string when it is not one.
// Environment: GESTALT_SET_a__b=VALUE, two underscores for a dot.
class Config {
 public:
  // `environment` are "NAME=VALUE" lines of which only GESTALT_SET_ ones are read; `sets` are "a.b=VALUE".
  static Config load(const std::filesystem::path& file, const std::vector<std::string>& sets = {},
                     const std::vector<std::string>& environment = {});
  // `name` stands for the file in messages; its folder is where `extends` looks.
  static Config from_text(std::string_view text, const std::string& name, const std::vector<std::string>& sets = {},
                          const std::vector<std::string>& environment = {});

  const ConfigNode& root() const { return root_; }
  ConfigNode& root() { return root_; }
  const ConfigNode* find(std::string_view path) const { return find_path(root_, path); }
  ConfigNode* find_mutable(std::string_view path) { return const_cast<ConfigNode*>(find(path)); }
  bool has(std::string_view path) const { return find(path) != nullptr; }

  // Without fallback an absent key is a CONFIG_ERROR; another type always is.
  int64_t i64(std::string_view path) const;
  int64_t i64(std::string_view path, int64_t fallback) const;
  double f64(std::string_view path) const;  // an integer is accepted
  double f64(std::string_view path, double fallback) const;
  std::string str(std::string_view path) const;
  std::string str(std::string_view path, std::string_view fallback) const;
  bool boolean(std::string_view path) const;
  bool boolean(std::string_view path, bool fallback) const;
  // Absent: empty.
  std::vector<std::string> str_list(std::string_view path) const;
  std::vector<int64_t> i64_list(std::string_view path) const;
  std::vector<double> f64_list(std::string_view path) const;

  // Sets a value, making tables on the way; every value below gets the origin.
  void set(std::string_view path, ConfigNode value, const Origin& origin);
  // As --set does; `flag` names the origin ("--set", "--nproc").
  void set_text(std::string_view path, std::string_view text, const std::string& flag);
  // Only if absent. True if it was.
  bool set_default(std::string_view path, ConfigNode value, const Origin& origin);
  // Everything the configuration does not have yet. `name` is the checkpoint's, for messages.
  void merge_checkpoint(const ConfigNode& saved, const std::string& name);
  // The same from TOML text, as defaults; [plugins] use is added to instead.
  void merge_defaults(std::string_view text, const std::string& name);

  // Every leaf with its path, in the order of the files.
  std::vector<std::pair<std::string, const ConfigNode*>> leaves() const;
  std::string to_toml() const { return core::to_toml(root_); }
  std::string explain() const;  // "train.steps = 5  # configs/x.toml:12" lines

 private:
  void apply_environment(const std::vector<std::string>& environment);
  void apply_sets(const std::vector<std::string>& sets);

  ConfigNode root_;
};

// The process's environment as "NAME=VALUE" lines.
std::vector<std::string> process_environment();

// "train.steps: 5 -> 6" lines; "(none)" stands for an absent value.
std::vector<std::string> config_differences(const ConfigNode& before, const ConfigNode& after);

}  // namespace gestalt::core

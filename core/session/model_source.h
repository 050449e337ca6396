#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/registry.h"
#include "core/session/parameter_store.h"
#include "gestalt/abi/format.h"

namespace gestalt::core {

// Tensors under the names of one foreign model: its own, or a second set of them.
class ForeignTensors {
 public:
  ForeignTensors(const gestalt_format_1* table, const gestalt_host* host, void* model, std::string where)
      : table_(table), host_(host), model_(model, table->close), where_(std::move(where)) {}

  // The run file that describes the model.
  std::string config_text() const;
  // Fills a whole logical tensor. False when nothing stored gives it.
  bool read(const std::string& name, gestalt_view& out) const;
  // Gives the parameters of a model their values and logs the key report. Missing tensors, other shapes and tensors
  // that nobody asked for are an error that lists them all.
  void load(const ModelTree& tree, ParameterStore& store) const;
  // Settings of the model that the format does not understand and that are not allowed by name are an error that lists
  // them all: they may change what the model computes.
  void check_settings(const std::vector<std::string>& allowed) const;
  const std::string& where() const { return where_; }

 private:
  // Lines of the format by kind, GESTALT_KEY_...
  struct KeyReport {
    std::array<std::vector<std::string>, GESTALT_KEY_SETTING + 1> lines;
  };

  KeyReport report() const;
  void check_report(const KeyReport& keys) const;

  const gestalt_format_1* table_;
  const gestalt_host* host_;
  std::shared_ptr<void> model_;
  std::string where_;
};

// A model of another program that the command line or the run file names: a file or folder that a format plugin
// recognises.
class ForeignModel {
 public:
  // NULL when no format knows the content. Loads the format plugins that the registry has found.
  static std::unique_ptr<ForeignModel> detect(Registry& registry, const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::string& plugin() const { return plugin_; }
  ForeignTensors open(const std::string& tensors_file = {}, const std::string& prefix = {}) const;

 private:
  ForeignModel() = default;

  std::filesystem::path path_;
  std::string plugin_;
  Instance format_;
};

}  // namespace gestalt::core

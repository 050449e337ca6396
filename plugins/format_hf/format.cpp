// The format component: finds the family that config.json names.
#include <fmt/format.h>

#include <filesystem>

#include "gestalt/plugin.hpp"
#include "plugins/format_hf/export.h"
#include "plugins/format_hf/hf_model.h"
#include "support/json.h"

namespace gestalt::format_hf {

namespace {

std::string config_file(std::string_view folder) { return std::string(folder) + "/config.json"; }

}  // namespace

class HfFormat : public Format {
 public:
  static constexpr std::string_view name = "gestalt.hf";
  HfFormat(Host, Attrs) {}

  bool detect(std::string_view path) const override { return std::filesystem::is_regular_file(config_file(path)); }

  std::unique_ptr<FormatModel> open(std::string_view path, std::string_view tensors_file,
                                    std::string_view prefix) override {
    support::Json config = support::read_json_file(config_file(path));
    const std::string type = config.str("model_type", "");
    const Family* family = find_family(type);
    if (!family) {
      const std::vector<std::string_view> names = family_names();
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] model_type is \"{}\", expected one of {}", config_file(path),
                                                  type, fmt::join(names.begin(), names.end(), ", ")));
    }
    const std::string folder(path);
    try {
      return std::make_unique<HfModel>(
          folder, *family, std::move(config),
          tensors_file.empty() ? StoredTensors::of_folder(folder) : StoredTensors::of_file(std::string(tensors_file)),
          std::string(prefix));
    } catch (const Error& e) {
      if (std::string_view(e.what()).find(folder) != std::string_view::npos) throw;
      throw Error(e.code, fmt::format("[{}] {}", config_file(path), e.what()));
    }
  }

  void save(std::string_view folder, const ModelSource& source, Attrs options) override {
    save_model(std::string(folder), source, options.str("family", ""),
               static_cast<uint64_t>(options.i64("shard_bytes", int64_t{5} << 30)));
    for (const char* key : {"tokenizer.file", "tokenizer.vocab"})
      if (const std::string_view file = options.str(key, ""); !file.empty())
        copy_tokenizer(std::string(folder), std::string(file));
  }
};
GESTALT_COMPONENT(HfFormat)

}  // namespace gestalt::format_hf

// Component kind "format/1": models of other programs, read.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gestalt/abi/format.h"
#include "gestalt/component.hpp"
#include "gestalt/tokenizer.hpp"

namespace gestalt {

// Lines of the key report: put(GESTALT_KEY_..., "model.embedding.weight <- wte.weight").
using KeySink = ByteSink;

// One opened model.
class FormatModel {
 public:
  virtual ~FormatModel() = default;
  // The run file that describes it, as TOML.
  virtual std::string config() const = 0;
  // [any] Fills a whole logical tensor, in the view's dtype. False when nothing stored gives it.
  virtual bool read(std::string_view name, const gestalt_view& out) = 0;
  virtual void report(const KeySink& sink) const = 0;
};

// A model that is to be written; see gestalt_model_source.
class ModelSource {
 public:
  ModelSource(const gestalt_model_source* source, const gestalt_host* host) : source_(source), host_(host) {}

  Attrs config() const { return {source_->config, source_->num_config}; }
  std::span<const gestalt_shard> tensors() const { return {source_->tensors, static_cast<size_t>(source_->num_tensors)}; }
  void read(std::string_view name, void* data, uint64_t bytes) const {
    check(host_, source_->read(source_->self, str_of(name), data, bytes));
  }

 private:
  const gestalt_model_source* source_;
  const gestalt_host* host_;
};

class Format : public detail::ComponentOf<Format> {
 public:
  virtual bool detect(std::string_view path) const = 0;
  // See gestalt_format_1.open.
  virtual std::unique_ptr<FormatModel> open(std::string_view path, std::string_view tensors_file,
                                            std::string_view prefix) = 0;
  // See gestalt_format_1.save.
  virtual void save(std::string_view, const ModelSource&, Attrs) {
    throw Unsupported("[format] models of this format are only read");
  }

  static constexpr std::string_view kKind = "format/1";
  template <class>
  static constexpr const void* table();
};

namespace detail {

inline constexpr gestalt_format_1 format_table = {
    sizeof(gestalt_format_1),
    [](void* self, gestalt_str path) noexcept {
      return value_or([&] { return held<Format>(self).object->detect(view_of(path)) ? 1 : 0; }, 0);
    },
    [](void* self, gestalt_str path, gestalt_str tensors_file, gestalt_str prefix, void** model) noexcept {
      return with<Format>(self, [&](Format& f) {
        *model = new Held<FormatModel>{held<Format>(self).host,
                                       f.open(view_of(path), view_of(tensors_file), view_of(prefix))};
      });
    },
    [](void* model, const gestalt_byte_sink* sink) noexcept {
      return with<FormatModel>(model, [&](FormatModel& m) { ByteSink(sink).put(0, m.config()); });
    },
    [](void* model, gestalt_str name, gestalt_view* out) noexcept {
      return with<FormatModel>(model, [&](FormatModel& m) {
        if (!m.read(view_of(name), *out))
          throw Error(GESTALT_NOT_FOUND, "[" + std::string(view_of(name)) + "] nothing stored gives this tensor");
      });
    },
    [](void* model, const gestalt_byte_sink* sink) noexcept {
      return with<FormatModel>(model, [&](FormatModel& m) { m.report(KeySink(sink)); });
    },
    [](void* model) noexcept { delete &held<FormatModel>(model); },
    [](void* self, gestalt_str folder, const gestalt_model_source* source, const gestalt_attr* options,
       uint64_t num_options) noexcept {
      return with<Format>(self, [&](Format& f) {
        f.save(view_of(folder), ModelSource(source, held<Format>(self).host), Attrs(options, num_options));
      });
    }};

}  // namespace detail

template <class>
constexpr const void* Format::table() {
  return &detail::format_table;
}

}  // namespace gestalt

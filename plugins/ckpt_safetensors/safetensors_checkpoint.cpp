#include "plugins/ckpt_safetensors/safetensors_checkpoint.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "gestalt/view.hpp"
#include "plugins/ckpt_safetensors/layout_text.h"
#include "support/safetensors.h"

namespace gestalt::ckpt_safetensors {

namespace {

using support::SafetensorsEntry;
using support::SafetensorsReader;
using support::SafetensorsType;

std::string place(const std::string& path, std::string_view name) {
  return "[" + path + ": " + std::string(name) + "] ";
}

const SafetensorsType& checked_type(const gestalt_view& view, const std::string& where) {
  const SafetensorsType* type = support::safetensors_type(view.dtype);
  const bool on_host = view.device_type == GESTALT_DEVICE_CPU;
  if (type == nullptr || !on_host || !View(&view).contiguous()) {
    throw InvalidArgument(where + "got " + describe(View(&view)) + (on_host ? "" : " in device memory") +
                          ", expected a contiguous tensor in host memory");
  }
  return *type;
}

// Keeps names and shapes; the data stays where it is until finish.
class Writer : public ShardWriter {
 public:
  explicit Writer(std::string path) : path_(std::move(path)), file_(path_) {}

  void put(const gestalt_shard& shard) override {
    const std::string_view name = view_of(shard.name);
    const std::string where = place(path_, name);
    const SafetensorsType& type = checked_type(shard.view, where);
    const auto ndim = static_cast<size_t>(shard.view.ndim);
    const std::vector<int64_t> shape(shard.view.shape, shard.view.shape + ndim);
    Layout layout;
    layout.global.assign(shard.global, shard.global + ndim);
    layout.offset.assign(shard.offset, shard.offset + ndim);
    layout.parts.assign(shard.parts, shard.parts + shard.num_parts);
    try {
      check_layout(layout, shape, GESTALT_INVALID_ARGUMENT);
    } catch (const Error& error) {
      throw Error(error.code, where + error.what());
    }
    const std::lock_guard lock(mutex_);
    if (!names_.emplace(name).second) throw InvalidArgument(where + "was put twice");
    file_.add(name, type, shape, shard.view.data);
    layouts_.add(name, layout);
  }

  void finish() override {
    file_.set_metadata("format", "pt");  // what readers of the hub's files expect
    file_.set_metadata(kLayoutKey, layouts_.finish());
    file_.commit();
  }

 private:
  std::string path_;
  std::mutex mutex_;
  support::SafetensorsWriter file_;
  LayoutText layouts_;
  std::unordered_set<std::string> names_;
};

class Reader : public ShardReader {
 public:
  explicit Reader(std::string path) : file_(std::move(path)) {
    const std::string* text = file_.metadata(kLayoutKey);
    std::unordered_map<std::string, Layout> layouts;
    if (text != nullptr) layouts = parse_layouts(*text, file_.path() + ": " + std::string(kLayoutKey));
    if (text != nullptr && layouts.size() != file_.entries().size()) {
      throw Error(GESTALT_DATA_ERROR, place(file_.path(), kLayoutKey) + "describes " + std::to_string(layouts.size()) +
                                          " tensors, expected the file's " + std::to_string(file_.entries().size()));
    }
    for (const SafetensorsEntry& entry : file_.entries()) {
      const std::string where = place(file_.path(), entry.name);
      if (entry.type->dtype == 0 || entry.shape.size() > GESTALT_MAX_NDIM) {
        throw Error(GESTALT_DATA_ERROR, where + "cannot be held, got " + std::string(entry.type->name) + " with " +
                                            std::to_string(entry.shape.size()) +
                                            " dimensions, expected F64 F32 BF16 F16 I64 I32 U8 or BOOL with 8 at most");
      }
      Layout& layout = layouts_.emplace_back();
      if (text == nullptr) {
        layout = {entry.shape, std::vector<int64_t>(entry.shape.size(), 0), {}};
        continue;
      }
      const auto found = layouts.find(entry.name);
      if (found == layouts.end()) throw Error(GESTALT_DATA_ERROR, where + "has no entry in " + std::string(kLayoutKey));
      try {
        check_layout(found->second, entry.shape, GESTALT_DATA_ERROR);
      } catch (const Error& error) {
        throw Error(error.code, where + error.what());
      }
      layout = std::move(found->second);
    }
  }

  void list(const ShardSink& sink) override {
    for (size_t i = 0; i < layouts_.size(); ++i) {
      const SafetensorsEntry& entry = file_.entries()[i];
      const Layout& layout = layouts_[i];
      int64_t shape[GESTALT_MAX_NDIM] = {}, strides[GESTALT_MAX_NDIM] = {};
      int64_t stride = 1;
      for (size_t d = entry.shape.size(); d-- > 0;) {
        shape[d] = entry.shape[d];
        strides[d] = stride;
        if (shape[d] > 0) stride *= shape[d];
      }
      const gestalt_shard shard = {sizeof(gestalt_shard),
                                   str_of(entry.name),
                                   layout.global.data(),
                                   layout.offset.data(),
                                   layout.parts.data(),
                                   layout.parts.size(),
                                   {nullptr, GESTALT_DEVICE_CPU, 0, static_cast<int32_t>(entry.shape.size()),
                                    entry.type->dtype, shape, strides, 0}};
      sink.put(shard);
    }
  }

  void get(std::string_view name, const gestalt_view& out) override {
    const SafetensorsEntry& entry = file_.at(name);
    const std::string where = place(file_.path(), name);
    const SafetensorsType& type = checked_type(out, where);
    const auto ndim = static_cast<size_t>(out.ndim);
    if (&type != entry.type || ndim != entry.shape.size() ||
        !std::equal(entry.shape.begin(), entry.shape.end(), out.shape)) {
      std::string held(entry.type->name);
      for (size_t d = 0; d < entry.shape.size(); ++d) held += (d == 0 ? "[" : ", ") + std::to_string(entry.shape[d]);
      throw Error(GESTALT_DATA_ERROR, where + "the file holds " + held + (entry.shape.empty() ? "[]" : "]") +
                                          ", expected " + describe(View(&out)));
    }
    file_.read(entry, out.data, entry.bytes);
  }

 private:
  SafetensorsReader file_;
  std::vector<Layout> layouts_;  // beside file_.entries()
};

}  // namespace

std::unique_ptr<ShardWriter> SafetensorsCheckpoint::open_write(std::string_view path) {
  return std::make_unique<Writer>(std::string(path));
}

std::unique_ptr<ShardReader> SafetensorsCheckpoint::open_read(std::string_view path) {
  return std::make_unique<Reader>(std::string(path));
}

GESTALT_COMPONENT(SafetensorsCheckpoint)

}  // namespace gestalt::ckpt_safetensors

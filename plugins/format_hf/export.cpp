#include "plugins/format_hf/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>

#include "gestalt/dtype.hpp"
#include "gestalt/error.hpp"
#include "plugins/format_hf/family.h"
#include "plugins/format_hf/pattern.h"
#include "plugins/format_hf/tokenizer_files.h"
#include "support/file.h"
#include "support/safetensors.h"

namespace gestalt::format_hf {

namespace {

using support::Json;

int64_t count(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// A tensor of the files: a piece of a logical one.
struct Piece {
  std::string name;
  const gestalt_shard* logical;
  int64_t first_row;
  std::vector<int64_t> shape;  // as the logical tensor has it
  bool transposed;
  uint64_t bytes;

  std::vector<int64_t> stored_shape() const { return transposed ? std::vector<int64_t>{shape[1], shape[0]} : shape; }
};

uint64_t element_bytes(const gestalt_shard& s) { return static_cast<uint64_t>(size_of(s.view.dtype)); }

// What the rules make of the tensors; `missing` names those without a rule.
std::vector<Piece> pieces_of(const Family& family, const ModelSource& source, std::string* missing) {
  std::vector<Piece> pieces;
  for (const gestalt_shard& s : source.tensors()) {
    const FoundRule found = find_rule(family, view_of(s.name));
    if (!found.rule) {
      *missing += (missing->empty() ? "" : ", ") + std::string(view_of(s.name));
      continue;
    }
    const std::vector<int64_t> shape(s.global, s.global + s.view.ndim);
    const auto& stored = found.rule->stored;
    const auto num = static_cast<uint64_t>(
        std::count_if(stored.begin(), stored.end(), [](std::string_view name) { return !name.empty(); }));
    if (num > 1 && s.num_parts != num) {
      *missing +=
          fmt::format("{}{} of {} parts, expected {}", missing->empty() ? "" : ", ", view_of(s.name), s.num_parts, num);
      continue;
    }
    int64_t row = 0;
    for (uint64_t i = 0; i < num; ++i) {
      Piece p{with_layer(stored[i], found.layer), &s, row, shape, found.rule->transposed && shape.size() == 2, 0};
      if (num > 1) p.shape[0] = s.parts[i];
      p.bytes = static_cast<uint64_t>(count(p.shape)) * element_bytes(s);
      row += p.shape.empty() ? 0 : p.shape[0];
      pieces.push_back(std::move(p));
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.name < b.name; });
  return pieces;
}

void fill(const ModelSource& source, const Piece& p, void* out) {
  const std::vector<int64_t> whole(p.logical->global, p.logical->global + p.logical->view.ndim);
  const uint64_t width = element_bytes(*p.logical);
  std::vector<char> bytes(static_cast<size_t>(count(whole)) * width);
  source.read(view_of(p.logical->name), bytes.data(), bytes.size());
  const int64_t row_elements = whole.empty() || whole[0] == 0 ? 0 : count(whole) / whole[0];
  const char* from = bytes.data() + static_cast<uint64_t>(p.first_row * row_elements) * width;
  if (!p.transposed) {
    if (p.bytes > 0) std::memcpy(out, from, p.bytes);
    return;
  }
  const auto rows = static_cast<size_t>(p.shape[0]), columns = static_cast<size_t>(p.shape[1]);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      std::memcpy(static_cast<char*>(out) + (c * rows + r) * width, from + (r * columns + c) * width, width);
}

struct Choice {
  const Family* family;
  Json config;
};

// A family whose config.json, read back, is the model that was given.
Choice choose_family(std::string_view wanted, const ModelKeys& model, std::string_view dtype) {
  std::vector<std::string> nearest;
  std::string_view nearest_name;
  for (const Family* f : families()) {
    if (!wanted.empty() && f->model_type != wanted) continue;
    std::vector<std::string> wrong;
    try {
      Json config = write_config(*f, model, dtype);
      wrong = differences(model, complete(translate(*f, config).keys));
      if (wrong.empty()) return {f, std::move(config)};
    } catch (const Error& e) {
      wrong.push_back(e.message());
    }
    if (nearest_name.empty() || wrong.size() < nearest.size()) {
      nearest = std::move(wrong);
      nearest_name = f->model_type;
    }
  }
  const std::vector<std::string_view> names = family_names();
  if (nearest_name.empty())
    throw Error(GESTALT_USAGE_ERROR,
                fmt::format("[family] got '{}', expected one of {}", wanted, fmt::join(names, ", ")));
  throw Unsupported(
      fmt::format("[format hf] {} does not have the model's settings: {}", nearest_name, fmt::join(nearest, "; ")));
}

std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case kBF16:
      return "bfloat16";
    case kF16:
      return "float16";
    case kF64:
      return "float64";
    default:
      return "float32";
  }
}

void write_json_file(const std::string& path, const Json& json) {
  support::AtomicFile file(path);
  file.write(support::write_json(json, 2) + "\n");
  file.commit();
}

void write_file(const std::string& path, const ModelSource& source, std::span<const Piece> pieces) {
  support::SafetensorsWriter writer(path);
  writer.set_metadata("format", "pt");
  for (const Piece& p : pieces)
    writer.add(p.name, *support::safetensors_type(p.logical->view.dtype), p.stored_shape(),
               [&source, &p](void* out) { fill(source, p, out); });
  writer.commit();
}

void write_tensors(const std::string& folder, const ModelSource& source, const std::vector<Piece>& pieces,
                   uint64_t shard_bytes) {
  std::vector<std::span<const Piece>> shards;
  uint64_t total = 0;
  for (size_t first = 0, at = 0; at < pieces.size(); first = at) {
    uint64_t bytes = 0;
    while (at < pieces.size() && (at == first || bytes + pieces[at].bytes <= shard_bytes)) bytes += pieces[at++].bytes;
    shards.emplace_back(pieces.data() + first, at - first);
    total += bytes;
  }
  if (shards.size() == 1) return write_file(folder + "/model.safetensors", source, shards[0]);
  Json map = Json::object();
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    write_file(folder + "/" + name, source, shards[i]);
    for (const Piece& p : shards[i]) map.set(p.name, name);
  }
  Json index = Json::object();
  index.set("metadata", Json::object({{"total_size", Json(total)}}));
  index.set("weight_map", std::move(map));
  write_json_file(folder + "/model.safetensors.index.json", index);
}

}  // namespace

void save_model(const std::string& folder, const ModelSource& source, std::string_view family, uint64_t shard_bytes) {
  DType dtype = kF32;
  for (const gestalt_shard& s : source.tensors()) dtype = s.view.dtype;
  const Choice choice = choose_family(family, complete(ModelKeys(source.config())), torch_name(dtype));
  std::string missing;
  const std::vector<Piece> pieces = pieces_of(*choice.family, source, &missing);
  if (!missing.empty())
    throw Unsupported(fmt::format("[format hf] {} has no tensor for {}", choice.family->model_type, missing));
  write_tensors(folder, source, pieces, shard_bytes);
  write_json_file(folder + "/config.json", choice.config);
}

void copy_tokenizer(const std::string& folder, const std::string& tokenizer_file) {
  const std::string from = tokenizer_file.substr(0, tokenizer_file.find_last_of('/') + 1);
  for (std::string_view name : kTokenizerFiles) {
    const std::string path = from + std::string(name);
    if (!std::filesystem::is_regular_file(path)) continue;
    support::AtomicFile copy(folder + "/" + std::string(name));
    copy.write(support::ReadFile(path).read_all());
    copy.commit();
  }
}

}  // namespace gestalt::format_hf

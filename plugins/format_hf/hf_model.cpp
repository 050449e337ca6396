#include "plugins/format_hf/hf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "gestalt/dtype.hpp"
#include "plugins/format_hf/pattern.h"
#include "plugins/format_hf/tokenizer_files.h"
#include "support/convert.h"

namespace gestalt::format_hf {

namespace {

// Plugins that every family's run file uses, and the machine that it asks for.
constexpr const char* kRunFile =
    "[run]\nname = \"{}\"\n\n"
    "[plugins]\nuse = [\"gestalt.device_cpu\", \"gestalt.device_sim\", \"gestalt.kernels_cpu\", \"gestalt.comm_self\",\n"
    "  \"gestalt.decoder\", \"gestalt.attention\", \"gestalt.mlp\", \"gestalt.norm\", \"gestalt.ckpt_safetensors\"{}]\n\n"
    "[kernels]\ncpu = [\"gestalt.cpu\"]\n\n"
    "[model]\n{}\n"
    "[checkpoint]\ntype = \"gestalt.safetensors\"\n";

// Letters that need no care in TOML and in file names.
std::string run_name(const std::string& folder) {
  std::string name = std::filesystem::path(folder).filename().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  return name.empty() ? "model" : name;
}

int64_t count(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", ")); }

// One stored tensor as the tables want it: its shape, and where its elements go.
struct Piece {
  StoredTensors::Place place;
  std::vector<int64_t> shape;
};

void copy_piece(const Piece& piece, bool transposed, char* out, DType dtype) {
  const support::SafetensorsEntry& e = *piece.place.entry;
  std::vector<char> bytes(e.bytes);
  piece.place.file->read(e, bytes.data(), e.bytes);
  const auto num = static_cast<uint64_t>(count(piece.shape));
  if (!transposed) return support::convert_elements(bytes.data(), e.type->dtype, out, dtype, num);
  const auto width = static_cast<size_t>(size_of(dtype));
  std::vector<char> converted(num * width);
  support::convert_elements(bytes.data(), e.type->dtype, converted.data(), dtype, num);
  const auto rows = static_cast<size_t>(piece.shape[0]), columns = static_cast<size_t>(piece.shape[1]);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      std::memcpy(out + (r * columns + c) * width, converted.data() + (c * rows + r) * width, width);
}

}  // namespace

HfModel::HfModel(std::string folder, const Family& family, support::Json config, StoredTensors tensors, std::string prefix)
    : folder_(std::move(folder)),
      family_(family),
      translated_(translate(family_, config)),
      tensors_(std::move(tensors)),
      prefix_(std::move(prefix)) {}

std::string HfModel::config() const {
  const TokenizerSection tokenizer = tokenizer_section(folder_);
  return fmt::format(kRunFile, run_name(folder_), tokenizer.plugin.empty() ? "" : ", \"" + tokenizer.plugin + "\"",
                     translated_.keys.text()) +
         tokenizer.text;
}

StoredTensors::Place HfModel::place_of(std::string_view name) const {
  if (const auto place = tensors_.find(prefix_ + std::string(name)); place.entry) return place;
  const std::string_view optional = family_.optional_prefix;
  if (optional.empty() || name.substr(0, optional.size()) != optional) return {};
  return tensors_.find(prefix_ + std::string(name.substr(optional.size())));
}

bool HfModel::read(std::string_view name, const gestalt_view& out) {
  const FoundRule found = find_rule(family_, name);
  std::vector<Piece> pieces;
  std::string sources, missing;
  for (size_t i = 0; found.rule && i < found.rule->stored.size() && !found.rule->stored[i].empty(); ++i) {
    const std::string stored = with_layer(found.rule->stored[i], found.layer);
    const auto place = place_of(stored);
    if (!place.entry) {
      missing += (missing.empty() ? "" : ", ") + stored;
      continue;
    }
    if (!support::convertible(place.entry->type->dtype))
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] tensor '{}' is of type {}, expected F64, F32, F16 or BF16",
                                                  place.file->path(), place.entry->name, place.entry->type->name));
    Piece piece{place, place.entry->shape};
    if (found.rule->transposed && piece.shape.size() == 2) std::swap(piece.shape[0], piece.shape[1]);
    sources += (sources.empty() ? "" : " + ") + place.entry->name;
    pieces.push_back(std::move(piece));
  }
  std::lock_guard lock(mutex_);
  for (const Piece& p : pieces) used_.insert(p.place.entry->name);
  if (pieces.empty() || !missing.empty()) {
    lines_[std::string(name)] = {GESTALT_KEY_MISSING, fmt::format("{} <- {}", name, missing.empty() ? "nothing" : missing)};
    if (pieces.empty()) return false;
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] tensor '{}' is missing, which belongs to '{}'",
                                                pieces[0].place.file->path(), missing, name));
  }
  // The pieces stand one after the other along dimension 0.
  std::vector<int64_t> joined = pieces[0].shape;
  for (size_t i = 1; i < pieces.size(); ++i)
    if (!joined.empty() && pieces[i].shape.size() == joined.size()) joined[0] += pieces[i].shape[0];
  const std::vector<int64_t> wanted(out.shape, out.shape + out.ndim);
  for (const Piece& p : pieces)
    if (joined != wanted || !std::equal(p.shape.begin() + 1, p.shape.end(), joined.begin() + 1, joined.end()))
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] tensor '{}' has shape {}, which does not give '{}' of shape {}",
                                                  p.place.file->path(), p.place.entry->name, text(p.place.entry->shape), name,
                                                  text(wanted)));
  char* to = static_cast<char*>(out.data);
  for (const Piece& p : pieces) {
    copy_piece(p, found.rule->transposed, to, out.dtype);
    to += count(p.shape) * size_of(out.dtype);
  }
  const bool reshaped = pieces.size() > 1 || found.rule->transposed;
  lines_[std::string(name)] = {reshaped ? GESTALT_KEY_RESHAPED : GESTALT_KEY_LOADED,
                               fmt::format("{} <- {}{}", name, sources, found.rule->transposed ? " transposed" : "")};
  return true;
}

void HfModel::report(const KeySink& sink) const {
  std::lock_guard lock(mutex_);
  for (const auto& [name, line] : lines_) sink.put(static_cast<uint64_t>(line.first), line.second);
  for (const std::string& setting : translated_.unknown)
    sink.put(GESTALT_KEY_SETTING, fmt::format("{} in {}/config.json", setting, folder_));
  const bool tied = lines_.find("model.head.weight") == lines_.end();
  if (tied) sink.put(GESTALT_KEY_TIED, "the head <- the embedding");
  const std::string head = place_of("lm_head.weight").entry ? place_of("lm_head.weight").entry->name : std::string();
  for (std::string_view name : tensors_.names()) {
    if (name.substr(0, prefix_.size()) != prefix_ || used_.find(name) != used_.end()) continue;
    const bool ignored = std::any_of(family_.ignored.begin(), family_.ignored.end(),
                                     [&](std::string_view pattern) { return match_any(pattern, name); });
    if (tied && name == head)
      sink.put(GESTALT_KEY_TIED, fmt::format("{}: stored, but the config ties the head to the embedding", name));
    else
      sink.put(ignored ? GESTALT_KEY_IGNORED : GESTALT_KEY_UNEXPECTED, name);
  }
}

}  // namespace gestalt::format_hf

#include "core/checkpoint/manifest.h"

#include <algorithm>
#include <functional>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/digest.h"
#include "core/tensor/dtype.h"
#include "gestalt/abi/base.h"
#include "support/json.h"

namespace gestalt::core {

namespace {

using support::Json;

constexpr int64_t kVersion = 1;
constexpr uint64_t kMaxBytes = uint64_t{256} << 20;
constexpr size_t kMaxPieces = 10'000;  // of one tensor; overlaps are looked for in pairs

Json json_of(const std::vector<int64_t>& list) {
  Json out = Json::array();
  for (const int64_t v : list) out.push(v);
  return out;
}

// Elements of a shape that comes from a file; negative or overflowing sizes are refused.
int64_t checked_count(const std::vector<int64_t>& shape, const std::string& where) {
  int64_t n = 1;
  for (const int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(n, d, &n)) fail(GESTALT_DATA_ERROR, "{} has a size out of range, got {}", where, d);
  return n;
}

bool is_plain_name(std::string_view name) {
  if (name.empty() || name.size() > 512 || name.find("..") != std::string_view::npos) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '/' ||
           c == '-';
  });
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool overlap(const StoredPiece& a, const StoredPiece& b) {
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (a.offset[d] >= b.offset[d] + b.shape[d] || b.offset[d] >= a.offset[d] + a.shape[d]) return false;
  return true;
}

}  // namespace

const StoredTensor* CheckpointManifest::find(std::string_view name) const {
  const auto it = std::lower_bound(tensors.begin(), tensors.end(), name,
                                   [](const StoredTensor& t, std::string_view n) { return t.name < n; });
  return it != tensors.end() && it->name == name ? &*it : nullptr;
}

std::string state_digest(const CheckpointManifest& m) {
  std::string text = fmt::format("step {} samples {}\n", m.state.step, m.state.samples);
  for (const StoredTensor& t : m.tensors) {
    text += t.name + " " + std::string(dtype_name(t.dtype));
    for (const int64_t d : t.shape) text += fmt::format(" {}", d);
    text += " " + t.digest + "\n";
  }
  return xxh3_hex(text.data(), text.size());
}

void check_coverage(const CheckpointManifest& m) {
  for (const StoredTensor& t : m.tensors) {
    const std::string where = fmt::format("tensor '{}'", t.name);
    const int64_t whole = checked_count(t.shape, where);
    if (t.pieces.empty()) fail(GESTALT_DATA_ERROR, "{} has no piece", where);
    if (t.pieces.size() > kMaxPieces)
      fail(GESTALT_DATA_ERROR, "{} has {} pieces, expected at most {}", where, t.pieces.size(), kMaxPieces);
    int64_t covered = 0;
    for (size_t i = 0; i < t.pieces.size(); ++i) {
      const StoredPiece& p = t.pieces[i];
      if (p.offset.size() != t.shape.size() || p.shape.size() != t.shape.size())
        fail(GESTALT_DATA_ERROR, "{} has a piece of {} dimensions, expected {}", where, p.shape.size(), t.shape.size());
      for (size_t d = 0; d < t.shape.size(); ++d)
        if (p.offset[d] < 0 || p.shape[d] < 0 || p.shape[d] > t.shape[d] || p.offset[d] > t.shape[d] - p.shape[d])
          fail(GESTALT_DATA_ERROR, "{} has a piece outside it: offset {} and size {} of {} in dimension {}", where,
               p.offset[d], p.shape[d], t.shape[d], d);
      const int64_t count = checked_count(p.shape, where);
      if (count == 0 && whole != 0) fail(GESTALT_DATA_ERROR, "{} has an empty piece", where);
      if (__builtin_add_overflow(covered, count, &covered)) covered = -1;
      for (size_t j = 0; j < i && count > 0; ++j)
        if (overlap(p, t.pieces[j])) fail(GESTALT_DATA_ERROR, "{} has overlapping pieces", where);
    }
    if (covered != whole) fail(GESTALT_DATA_ERROR, "{} has {} elements in its pieces, expected {}", where, covered, whole);
  }
}

std::string to_json(const CheckpointManifest& m) {
  Json files = Json::array(), tensors = Json::array();
  for (const StoredFile& f : m.files)
    files.push(Json::object({{"name", f.name}, {"bytes", f.bytes}, {"sha256", f.sha256}}));
  for (const StoredTensor& t : m.tensors) {
    Json pieces = Json::array();
    for (const StoredPiece& p : t.pieces)
      pieces.push(Json::object({{"file", p.file}, {"offset", json_of(p.offset)}, {"shape", json_of(p.shape)}, {"xxh3", p.digest}}));
    Json tensor = Json::object({{"name", t.name}, {"dtype", dtype_name(t.dtype)}, {"shape", json_of(t.shape)}});
    if (!t.parts.empty()) tensor.set("parts", json_of(t.parts));
    tensor.set("xxh3", t.digest);
    tensor.set("pieces", std::move(pieces));
    tensors.push(std::move(tensor));
  }
  return support::write_json(
             Json::object({{"format", "gestalt.checkpoint"}, {"version", kVersion}, {"step", m.state.step}, {"samples", m.state.samples},
                           {"data_digest", m.state.data_digest}, {"tokenizer", m.state.tokenizer},
                           {"loss_scale", m.state.loss_scale}, {"good_steps", m.state.good_steps}, {"previous", m.previous},
                           {"seed", m.seed}, {"attempt", m.attempt}, {"component", m.component}, {"mesh", m.mesh},
                           {"state", m.digest}, {"files", std::move(files)}, {"tensors", std::move(tensors)}}),
             1) +
         "\n";
}

CheckpointManifest parse_checkpoint_manifest(std::string_view text, const std::string& origin) {
  const Json json = support::parse_json(text, origin, {kMaxBytes, 64});
  auto refuse = [&](const std::string& why) { fail(GESTALT_DATA_ERROR, "[{}] {}", origin, why); };
  CheckpointManifest m;
  try {
    if (json.str("format") != "gestalt.checkpoint" || json.i64("version") != kVersion)
      refuse(fmt::format("is format '{}' version {}, expected 'gestalt.checkpoint' version {}", escape_controls(json.str("format")),
                         json.i64("version"), kVersion));
    m.state = {json.i64("step"), json.i64("samples"), json.str("data_digest"), json.str("tokenizer"),
               json.i64("loss_scale", 0), json.i64("good_steps", 0)};
    m.previous = json.i64("previous");
    m.seed = json.at("seed").u64();
    m.attempt = json.str("attempt");
    m.component = json.str("component");
    m.mesh = json.str("mesh");
    m.digest = json.str("state");
    std::set<std::string> names;
    for (const Json& f : json.at("files").items()) {
      m.files.push_back({f.str("name"), f.at("bytes").u64(), f.str("sha256")});
      const StoredFile& file = m.files.back();
      if (!is_plain_name(file.name) || file.name.find('/') != std::string::npos || !names.insert(file.name).second)
        refuse(fmt::format("file name '{}' is not plain or not unique", escape_controls(file.name)));
      if (!is_hex(file.sha256, 64)) refuse("'" + file.name + "' has no SHA-256");
    }
    for (const Json& j : json.at("tensors").items()) {
      StoredTensor& t = m.tensors.emplace_back();
      t.name = j.str("name");
      if (!is_plain_name(t.name)) refuse("tensor name '" + escape_controls(t.name) + "' is not plain");
      if (m.tensors.size() > 1 && !(m.tensors[m.tensors.size() - 2].name < t.name))
        refuse("tensor '" + t.name + "' is out of order or twice");
      t.dtype = parse_dtype(j.str("dtype"), "dtype");
      t.shape = j.i64_list("shape");
      if (t.shape.size() > GESTALT_MAX_NDIM) refuse("tensor '" + t.name + "' has too many dimensions");
      if (j.has("parts")) t.parts = j.i64_list("parts");
      t.digest = j.str("xxh3");
      for (const Json& p : j.at("pieces").items()) {
        t.pieces.push_back({p.at("file").u64(), p.i64_list("offset"), p.i64_list("shape"), p.str("xxh3")});
        if (t.pieces.back().file >= m.files.size() || !is_hex(t.pieces.back().digest, 32))
          refuse("tensor '" + t.name + "' has a piece without file or digest");
      }
    }
    check_coverage(m);
    if (state_digest(m) != m.digest) refuse("the state digest does not fit the tensors");
  } catch (const Error& e) {
    if (e.message().rfind("[" + origin, 0) == 0) throw;
    fail(GESTALT_DATA_ERROR, "[{}] {}", origin, e.message());
  } catch (const std::exception& e) {  // of the JSON reader, which names the key
    fail(GESTALT_DATA_ERROR, "[{}] {}", origin, e.what());
  }
  return m;
}

}  // namespace gestalt::core

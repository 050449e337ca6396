#include "core/checkpoint/shard.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/base/hash.h"
#include "core/base/host.h"
#include "core/checkpoint/digest.h"
#include "core/checkpoint/failpoint.h"
#include "core/tensor/tensor.h"
#include "gestalt/abi/checkpoint.h"

namespace gestalt::core {

namespace fs = std::filesystem;

namespace {

constexpr size_t kSampled = 16;

int64_t rows_of(const HostTensor& t) { return t.shape.empty() ? 1 : t.shape[0]; }

StoredPiece piece_of(const HostTensor& t, const Slab& s) {
  StoredPiece piece{0, std::vector<int64_t>(t.shape.size(), 0), t.shape, {}};
  if (!t.shape.empty()) {
    piece.offset[0] = s.first;
    piece.shape[0] = s.rows;
  }
  return piece;
}

const char* data_of(const HostTensor& t, const Slab& s) {
  const uint64_t rows = static_cast<uint64_t>(std::max<int64_t>(rows_of(t), 1));
  return t.data + bytes_of(t.dtype, t.shape) / rows * static_cast<uint64_t>(s.first);
}

}  // namespace

uint64_t bytes_of(uint32_t dtype, const std::vector<int64_t>& shape) {
  return static_cast<uint64_t>(num_elements(shape)) * dtype_size(dtype);
}

std::vector<std::vector<Slab>> share_out(const std::vector<HostTensor>& tensors, int64_t num) {
  uint64_t total = 0, used = 0;
  for (const HostTensor& t : tensors) total += bytes_of(t.dtype, t.shape);
  const uint64_t target = (total + static_cast<uint64_t>(num) - 1) / static_cast<uint64_t>(num);
  std::vector<std::vector<Slab>> shares(1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t rows = rows_of(tensors[i]);
    const uint64_t row_bytes = rows > 0 ? bytes_of(tensors[i].dtype, tensors[i].shape) / static_cast<uint64_t>(rows) : 0;
    int64_t at = 0;
    do {
      if (used >= target && static_cast<int64_t>(shares.size()) < num) {
        shares.emplace_back();
        used = 0;
      }
      int64_t take = rows - at;
      if (row_bytes > 0 && static_cast<int64_t>(shares.size()) < num)
        take = std::clamp(static_cast<int64_t>((target - used + row_bytes - 1) / row_bytes), int64_t{1}, take);
      shares.back().push_back({i, at, take});
      used += static_cast<uint64_t>(take) * row_bytes;
      at += take;
    } while (at < rows);
  }
  return shares;
}

std::string shard_name(const Instance& plugin, size_t index) {
  return fmt::format("shard-{:05}{}", index, view_of(plugin.table<gestalt_checkpoint_1>()->extension));
}

ShardReport write_shard(const Instance& plugin, const fs::path& path, const std::vector<HostTensor>& tensors,
                        const std::vector<Slab>& slabs, Verify verify) {
  ShardReport report;
  for (const Slab& s : slabs) {
    StoredPiece piece = piece_of(tensors[s.tensor], s);
    piece.digest = xxh3_hex(data_of(tensors[s.tensor], s), bytes_of(tensors[s.tensor].dtype, piece.shape));
    report.pieces.push_back(std::move(piece));
  }
  const auto* table = plugin.table<gestalt_checkpoint_1>();
  const gestalt_host* host = plugin.component().host;
  void* writer = nullptr;
  check(host, table->open_write(plugin.self(), str_of(path.native()), &writer), plugin.text());
  try {
    for (size_t i = 0; i < slabs.size(); ++i) {
      const HostTensor& t = tensors[slabs[i].tensor];
      const StoredPiece& piece = report.pieces[i];
      Tensor view(t.dtype, piece.shape, const_cast<char*>(data_of(t, slabs[i])));
      // Sizes of fused parts describe a whole dimension 0; for a cut tensor the manifest alone has them.
      const bool whole = piece.shape == t.shape;
      const gestalt_shard shard{sizeof(gestalt_shard), str_of(t.name), t.shape.data(), piece.offset.data(),
                                t.parts.data(), whole ? t.parts.size() : 0, view.view};
      check(host, table->put(writer, &shard), t.name);
    }
  } catch (...) {
    if (gestalt_status* status = table->close_write(writer, 0)) take(status);
    throw;
  }
  check(host, table->close_write(writer, 1), plugin.text());
  failpoint("ckpt.shard_written");
  if (verify != Verify::kNone) {
    const Shard shard(plugin, path);
    uint64_t most = 0;
    for (size_t i = 0; i < slabs.size(); ++i) most = std::max(most, bytes_of(tensors[slabs[i].tensor].dtype, report.pieces[i].shape));
    const auto again = std::make_unique_for_overwrite<char[]>(most);
    for (size_t i = 0; i < slabs.size(); i += verify == Verify::kFull ? 1 : kSampled) {
      const HostTensor& t = tensors[slabs[i].tensor];
      shard.read(t.name, t.dtype, report.pieces[i].shape, again.get());
      if (xxh3_hex(again.get(), bytes_of(t.dtype, report.pieces[i].shape)) != report.pieces[i].digest)
        fail(GESTALT_IO_ERROR, "[{}] tensor '{}' reads back other bytes than were written", path.native(), t.name);
    }
  }
  report.file = {path.filename().native(), fs::file_size(path), sha256_file(path)};
  failpoint("ckpt.shard_read_back");
  return report;
}

Shard::Shard(const Instance& plugin, const fs::path& path) : plugin_(&plugin), path_(path.native()) {
  check(plugin.component().host, plugin.table<gestalt_checkpoint_1>()->open_read(plugin.self(), str_of(path_), &reader_), path_);
}

Shard::~Shard() {
  if (reader_) plugin_->table<gestalt_checkpoint_1>()->close_read(reader_);
}

void Shard::read(const std::string& name, uint32_t dtype, const std::vector<int64_t>& shape, void* out) const {
  Tensor t(dtype, shape, out);
  check(plugin_->component().host, plugin_->table<gestalt_checkpoint_1>()->get(reader_, str_of(name), &t.view), path_);
}

void place_box(const std::vector<int64_t>& shape, const std::vector<int64_t>& offset, const std::vector<int64_t>& box,
               uint64_t element_bytes, const char* from, char* to) {
  if (num_elements(box) == 0) return;
  std::vector<int64_t> strides(shape.size());
  contiguous_strides(shape, strides.data());
  // Dimensions after `inner` are whole, so [inner, end) of the box is one run of bytes.
  size_t inner = shape.size();
  while (inner > 0 && box[inner - 1] == shape[inner - 1]) --inner;
  uint64_t run = element_bytes;
  for (size_t d = inner == 0 ? 0 : inner - 1; d < shape.size(); ++d) run *= static_cast<uint64_t>(box[d]);
  const size_t outer = inner == 0 ? 0 : inner - 1;
  std::vector<int64_t> at(outer, 0);
  while (true) {
    int64_t element = outer < shape.size() ? offset[outer] * strides[outer] : 0;
    for (size_t d = 0; d < outer; ++d) element += (offset[d] + at[d]) * strides[d];
    std::memcpy(to + static_cast<uint64_t>(element) * element_bytes, from, run);
    from += run;
    size_t d = outer;
    while (d > 0 && ++at[d - 1] == box[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace gestalt::core

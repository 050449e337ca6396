// Between logical tensors and the shard files of a "checkpoint/1" component.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/checkpoint/manifest.h"
#include "core/plugin/registry.h"

namespace gestalt::core {

// A logical tensor in host memory.
struct HostTensor {
  std::string name;
  uint32_t dtype = 0;
  std::vector<int64_t> shape, parts;
  const char* data = nullptr;
};
uint64_t bytes_of(uint32_t dtype, const std::vector<int64_t>& shape);

// Rows [first, first + rows) of dimension 0 of a tensor; all of a scalar.
struct Slab {
  size_t tensor = 0;
  int64_t first = 0, rows = 0;
};

// Which slabs each of `num` writers takes: about equal bytes, in the order of the tensors. Writers that would have
// nothing are left out.
std::vector<std::vector<Slab>> share_out(const std::vector<HostTensor>& tensors, int64_t num);

// What a writer says about its file. pieces[i] is of slab i.
struct ShardReport {
  StoredFile file;
  std::vector<StoredPiece> pieces;
};

enum class Verify { kFull, kSample, kNone };  // what is read back: all, every 16th tensor, nothing

std::string shard_name(const Instance& plugin, size_t index);
// Writes and syncs one file: digests of the source first, then the file, then it is read again and compared.
ShardReport write_shard(const Instance& plugin, const std::filesystem::path& path, const std::vector<HostTensor>& tensors,
                        const std::vector<Slab>& slabs, Verify verify);

// An open shard file.
class Shard {
 public:
  Shard(const Instance& plugin, const std::filesystem::path& path);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard(Shard&& other) noexcept : plugin_(other.plugin_), path_(other.path_), reader_(std::exchange(other.reader_, nullptr)) {}
  void read(const std::string& name, uint32_t dtype, const std::vector<int64_t>& shape, void* out) const;

 private:
  const Instance* plugin_;
  std::string path_;
  void* reader_ = nullptr;
};

// Copies a contiguous box of elements to its place in a contiguous tensor.
void place_box(const std::vector<int64_t>& shape, const std::vector<int64_t>& offset, const std::vector<int64_t>& box,
               uint64_t element_bytes, const char* from, char* to);

}  // namespace gestalt::core

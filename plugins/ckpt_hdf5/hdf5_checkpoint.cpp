#include "plugins/ckpt_hdf5/hdf5_checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "gestalt/view.hpp"
#include "plugins/ckpt_hdf5/hdf5_type.h"
#include "support/file.h"

namespace gestalt::ckpt_hdf5 {

namespace {

constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
constexpr hsize_t kAlignment = 4096;
constexpr size_t kChunkCache = 4 * kChunkBytes;
constexpr int64_t kWriteBehind = int64_t{8} << 20;

std::mutex g_library;  // HDF5 is one state machine a process

using Dims = std::vector<hsize_t>;

std::string place(const std::string& path, std::string_view name) { return "[" + path + ": " + std::string(name) + "] "; }

Handle file_access(std::string_view where) {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, GESTALT_INTERNAL, where, "file settings");
  checked(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110), GESTALT_INTERNAL, where, "format version");
  // Closing a file with open objects is an error, not a promise for later.
  checked(H5Pset_fclose_degree(access, H5F_CLOSE_SEMI), GESTALT_INTERNAL, where, "way of closing");
  checked(H5Pset_alignment(access, kAlignment, kAlignment), GESTALT_INTERNAL, where, "alignment");
  return access;
}

// Chunks of whole trailing dimensions, about kChunkBytes each and about equal, so that little is padded.
Dims chunk_of(Dims dims, uint64_t element_bytes) {
  for (size_t d = 0; d < dims.size(); ++d) {
    uint64_t row = element_bytes;
    for (size_t i = d + 1; i < dims.size(); ++i) row *= dims[i];
    const uint64_t fit = std::max<uint64_t>(kChunkBytes / std::max<uint64_t>(row, 1), 1);
    const uint64_t num = (dims[d] + fit - 1) / fit;
    dims[d] = (dims[d] + num - 1) / num;
    if (row <= kChunkBytes) break;
  }
  return dims;
}

void write_list(hid_t dataset, const char* key, const int64_t* values, uint64_t num, std::string_view where) {
  const hsize_t size = num;
  Handle space(num ? H5Screate_simple(1, &size, nullptr) : H5Screate(H5S_NULL), H5Sclose, GESTALT_IO_ERROR, where, key);
  Handle attribute(H5Acreate2(dataset, key, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, GESTALT_IO_ERROR, where, key);
  if (num) checked(H5Awrite(attribute, H5T_NATIVE_INT64, values), GESTALT_IO_ERROR, where, key);
  attribute.close(GESTALT_IO_ERROR, where, key);
  space.close(GESTALT_IO_ERROR, where, key);
}

std::vector<int64_t> read_list(hid_t dataset, const char* key, std::string_view where) {
  if (checked(H5Aexists(dataset, key), GESTALT_DATA_ERROR, where, key) == 0) return {};
  Handle attribute(H5Aopen(dataset, key, H5P_DEFAULT), H5Aclose, GESTALT_DATA_ERROR, where, key);
  Handle space(H5Aget_space(attribute), H5Sclose, GESTALT_DATA_ERROR, where, key);
  const int64_t num = checked(H5Sget_simple_extent_npoints(space), GESTALT_DATA_ERROR, where, key);
  if (num > 64) throw Error(GESTALT_DATA_ERROR, std::string(where) + key + " has " + std::to_string(num) + " entries, expected at most 64");
  std::vector<int64_t> values(static_cast<size_t>(num));
  if (num) checked(H5Aread(attribute, H5T_NATIVE_INT64, values.data()), GESTALT_DATA_ERROR, where, key);
  return values;
}

// Every call is checked, closes included. After the first failure nothing more is written and finish refuses.
class Writer : public ShardWriter {
 public:
  explicit Writer(std::string path) : path_(std::move(path)), part_(path_ + ".part"), where_("[" + path_ + "] ") {
    const std::lock_guard lock(g_library);
    Handle create(H5Pcreate(H5P_FILE_CREATE), H5Pclose, GESTALT_INTERNAL, where_, "file settings");
    const Handle access = file_access(where_);
    file_ = Handle(H5Fcreate(part_.c_str(), H5F_ACC_TRUNC, create, access), H5Fclose, GESTALT_IO_ERROR, where_, "create");
    descriptor_ = ::open(part_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw Error(GESTALT_IO_ERROR, where_ + "open failed: " + std::strerror(errno));
  }
  ~Writer() override {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (finished_) return;
    const std::lock_guard lock(g_library);
    file_ = Handle();
    ::unlink(part_.c_str());
  }

  void put(const gestalt_shard& shard) override {
    const std::lock_guard lock(g_library);
    const std::string where = place(path_, view_of(shard.name));
    if (broken_) throw Error(GESTALT_IO_ERROR, where + "an earlier write failed");
    const View view(&shard.view);
    if (shard.view.device_type != GESTALT_DEVICE_CPU || !view.contiguous())
      throw InvalidArgument(where + "got " + describe(view) + ", expected a contiguous tensor in host memory");
    broken_ = true;
    write(shard, where);
    // The disk begins while the next tensor is prepared, so that the sync at the end finds little left.
    unsynced_ += view.numel() * static_cast<int64_t>(size_of(shard.view.dtype));
    if (unsynced_ >= kWriteBehind && descriptor_ >= 0) {
      ::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE);
      unsynced_ = 0;
    }
    broken_ = false;
  }

  void finish() override {
    const std::lock_guard lock(g_library);
    if (broken_) throw Error(GESTALT_IO_ERROR, where_ + "an earlier write failed");
    broken_ = true;
    checked(H5Fflush(file_, H5F_SCOPE_GLOBAL), GESTALT_IO_ERROR, where_, "flush");
    file_.close(GESTALT_IO_ERROR, where_, "close");
    const bool good = ::fsync(descriptor_) == 0;
    const int error = errno;
    if (!good || std::rename(part_.c_str(), path_.c_str()) != 0)
      throw Error(GESTALT_IO_ERROR, where_ + (good ? "rename" : "fsync") + " failed: " + std::strerror(good ? errno : error));
    finished_ = true;
    support::sync_folder_of(path_);
  }

 private:
  void write(const gestalt_shard& shard, const std::string& where) {
    const auto ndim = static_cast<size_t>(shard.view.ndim);
    const Dims dims(shard.view.shape, shard.view.shape + ndim);
    const Handle type = type_of(shard.view.dtype, where);
    const bool chunked = ndim > 0 && std::find(dims.begin(), dims.end(), 0u) == dims.end();
    Handle space(ndim ? H5Screate_simple(static_cast<int>(ndim), dims.data(), nullptr) : H5Screate(H5S_SCALAR), H5Sclose,
                 GESTALT_IO_ERROR, where, "shape");
    Handle create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, GESTALT_INTERNAL, where, "settings");
    checked(H5Pset_fill_time(create, H5D_FILL_TIME_NEVER), GESTALT_INTERNAL, where, "settings");
    if (chunked) {
      const Dims chunk = chunk_of(dims, size_of(shard.view.dtype));
      checked(H5Pset_chunk(create, static_cast<int>(ndim), chunk.data()), GESTALT_INTERNAL, where, "chunks");
      checked(H5Pset_fletcher32(create), GESTALT_INTERNAL, where, "checksum");
    }
    Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose, GESTALT_INTERNAL, where, "settings");
    checked(H5Pset_create_intermediate_group(links, 1), GESTALT_INTERNAL, where, "settings");
    Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, GESTALT_INTERNAL, where, "settings");
    checked(H5Pset_chunk_cache(access, 521, kChunkCache, 1.0), GESTALT_INTERNAL, where, "chunk cache");
    const std::string name(view_of(shard.name));
    Handle dataset(H5Dcreate2(file_, name.c_str(), type, space, links, create, access), H5Dclose, GESTALT_IO_ERROR, where, "create");
    write_list(dataset, "global", shard.global, ndim, where);
    write_list(dataset, "offset", shard.offset, ndim, where);
    write_list(dataset, "parts", shard.parts, shard.num_parts, where);
    if (std::find(dims.begin(), dims.end(), 0u) == dims.end())
      checked(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, shard.view.data), GESTALT_IO_ERROR, where, "write");
    dataset.close(GESTALT_IO_ERROR, where, "close");
    space.close(GESTALT_IO_ERROR, where, "close");
  }

  std::string path_, part_, where_;
  Handle file_;
  int descriptor_ = -1;  // of the same file, for syncs
  int64_t unsynced_ = 0;
  bool broken_ = false, finished_ = false;
};

class Reader : public ShardReader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {
    const support::ReadFile regular(path_);  // says what is wrong with a file that is none
    const std::lock_guard lock(g_library);
    const std::string where = "[" + path_ + "] ";
    const Handle access = file_access(where);
    file_ = Handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access), H5Fclose, GESTALT_DATA_ERROR, where, "open");
  }
  ~Reader() override {
    const std::lock_guard lock(g_library);
    file_ = Handle();
  }

  void list(const ShardSink& sink) override {
    const std::lock_guard lock(g_library);
    std::vector<std::string> names;
    checked(H5Ovisit2(
                file_, H5_INDEX_NAME, H5_ITER_INC,
                [](hid_t, const char* name, const H5O_info_t* info, void* out) -> herr_t {
                  if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(out)->emplace_back(name);
                  return 0;
                },
                &names, H5O_INFO_BASIC),
            GESTALT_DATA_ERROR, "[" + path_ + "] ", "list");
    for (const std::string& name : names) {
      const std::string where = place(path_, name);
      const Handle dataset = open(name, where);
      std::vector<int64_t> shape, strides;
      const uint32_t dtype = describe_dataset(dataset, &shape, where);
      std::vector<int64_t> global = read_list(dataset, "global", where), offset = read_list(dataset, "offset", where);
      const std::vector<int64_t> parts = read_list(dataset, "parts", where);
      if (global.empty()) global = shape;
      if (offset.empty()) offset.assign(shape.size(), 0);
      if (dtype == 0 || global.size() != shape.size() || offset.size() != shape.size())
        throw Error(GESTALT_DATA_ERROR, where + "has a type or place that is not understood");
      strides.assign(shape.size(), 1);
      for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
      sink.put({sizeof(gestalt_shard), str_of(name), global.data(), offset.data(), parts.data(), parts.size(),
                {nullptr, GESTALT_DEVICE_CPU, 0, static_cast<int32_t>(shape.size()), dtype, shape.data(), strides.data(), 0}});
    }
  }

  void get(std::string_view name, const gestalt_view& out) override {
    const std::lock_guard lock(g_library);
    const std::string where = place(path_, name);
    const Handle dataset = open(std::string(name), where);
    std::vector<int64_t> shape;
    const uint32_t dtype = describe_dataset(dataset, &shape, where);
    const View view(&out);
    if (dtype != out.dtype || static_cast<int32_t>(shape.size()) != out.ndim || !std::equal(shape.begin(), shape.end(), out.shape) ||
        out.device_type != GESTALT_DEVICE_CPU || !view.contiguous())
      throw Error(GESTALT_DATA_ERROR, where + "the file holds another type or shape, expected " + describe(view));
    if (view.numel() == 0) return;
    checked(H5Dread(dataset, type_of(dtype, where), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data), GESTALT_DATA_ERROR, where, "read");
  }

 private:
  Handle open(const std::string& name, const std::string& where) const {
    if (H5Lexists(file_, name.c_str(), H5P_DEFAULT) <= 0) {
      H5Eclear2(H5E_DEFAULT);
      throw Error(GESTALT_NOT_FOUND, where + "the file has no such tensor");
    }
    return Handle(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), H5Dclose, GESTALT_DATA_ERROR, where, "open");
  }
  static uint32_t describe_dataset(hid_t dataset, std::vector<int64_t>* shape, const std::string& where) {
    const Handle type(H5Dget_type(dataset), H5Tclose, GESTALT_DATA_ERROR, where, "type");
    const Handle space(H5Dget_space(dataset), H5Sclose, GESTALT_DATA_ERROR, where, "shape");
    const int64_t ndim = checked(H5Sget_simple_extent_ndims(space), GESTALT_DATA_ERROR, where, "shape");
    if (ndim > GESTALT_MAX_NDIM) throw Error(GESTALT_DATA_ERROR, where + "has too many dimensions");
    Dims dims(static_cast<size_t>(ndim));
    if (ndim) checked(H5Sget_simple_extent_dims(space, dims.data(), nullptr), GESTALT_DATA_ERROR, where, "shape");
    shape->assign(dims.begin(), dims.end());
    return dtype_of(type, where);
  }

  std::string path_;
  Handle file_;
};

}  // namespace

Hdf5Checkpoint::Hdf5Checkpoint(Host, Attrs) {
  const std::lock_guard lock(g_library);
  prepare_library();
}

std::unique_ptr<ShardWriter> Hdf5Checkpoint::open_write(std::string_view path) {
  return std::make_unique<Writer>(std::string(path));
}

std::unique_ptr<ShardReader> Hdf5Checkpoint::open_read(std::string_view path) {
  return std::make_unique<Reader>(std::string(path));
}

GESTALT_COMPONENT(Hdf5Checkpoint)

}  // namespace gestalt::ckpt_hdf5

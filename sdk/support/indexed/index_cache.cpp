#include "support/indexed/index_cache.h"

#include <fmt/format.h>

#include <filesystem>

#include "gestalt/error.hpp"
#include "support/file.h"
#include "support/indexed/mapped_file.h"
#include "support/sha256.h"

namespace gestalt::support::indexed {
namespace {

// A cache file: this header, then the elements.
struct Header {
  char magic[8] = {'G', 'I', 'N', 'D', 'E', 'X', '1', '\n'};
  uint64_t type = 0, count = 0;
  uint8_t digest[32] = {};  // of the elements
  uint64_t zero = 0;
};
static_assert(sizeof(Header) == 64);

struct Name {
  const char* file;
  IndexArray GptIndex::*array;
};
constexpr Name kNames[] = {{"documents.index", &GptIndex::documents},
                           {"samples.index", &GptIndex::samples},
                           {"shuffle.index", &GptIndex::shuffle}};

void save(const std::string& path, const IndexArray& array) {
  const uint64_t bytes = static_cast<uint64_t>(array.size()) * support::size_of(array.type());
  Header header;
  header.type = static_cast<uint64_t>(array.type());
  header.count = static_cast<uint64_t>(array.size());
  support::Sha256 hash;
  hash.update(array.data(), bytes);
  const auto digest = hash.finish();
  std::copy(digest.begin(), digest.end(), header.digest);
  support::AtomicFile file(path);
  file.write(&header, sizeof header);
  file.write(array.data(), bytes);
  file.commit();
}

// False when the file is absent or is not what was asked for: it is then built again.
bool load(const std::string& path, support::NpyType type, int64_t count, IndexArray* out) {
  std::shared_ptr<MappedFile> file;
  try {
    file = std::make_shared<MappedFile>(path);
  } catch (const Error& e) {
    if (e.code == GESTALT_NOT_FOUND) return false;
    throw;
  }
  const uint64_t bytes = static_cast<uint64_t>(count) * support::size_of(type);
  Header header, wanted;
  if (file->size() != sizeof header + bytes) return false;
  std::memcpy(&header, file->data(), sizeof header);
  if (std::memcmp(header.magic, wanted.magic, sizeof header.magic) != 0 || header.type != static_cast<uint64_t>(type) ||
      header.count != static_cast<uint64_t>(count))
    return false;
  support::Sha256 hash;
  hash.update(file->data() + sizeof header, bytes);
  const auto digest = hash.finish();
  if (std::memcmp(digest.data(), header.digest, digest.size()) != 0) return false;
  *out = IndexArray(type, file->data() + sizeof header, count, file);
  return true;
}

}  // namespace

std::string cache_name(const std::array<uint8_t, 32>& corpus_digest, const GptIndexRequest& r) {
  support::Sha256 hash;
  hash.update_field("gestalt.data_indexed/1");
  hash.update(corpus_digest.data(), corpus_digest.size());
  for (const int64_t v : {r.begin, r.end, r.num_samples, r.seq_len, r.extra, static_cast<int64_t>(r.seed),
                          static_cast<int64_t>(r.keep_partial)})
    hash.update_u64(static_cast<uint64_t>(v));
  return support::hex(hash.finish());
}

GptIndex load_or_build_gpt_index(const IndexFile& corpus, const std::array<uint8_t, 32>& corpus_digest,
                                 const GptIndexRequest& request, const std::string& cache_dir) {
  if (cache_dir.empty()) return build_gpt_index(corpus, request);
  using support::NpyType;
  const std::string folder = cache_dir + "/" + cache_name(corpus_digest, request) + "/";
  const GptPlan plan = plan_gpt_index(corpus, request);
  GptIndex index;
  index.num_epochs = plan.num_epochs;
  index.separate_last_epoch = plan.separate_last_epoch;
  if (load(folder + kNames[0].file, NpyType::kI4, plan.num_epochs * (request.end - request.begin), &index.documents) &&
      load(folder + kNames[1].file, plan.wide_samples ? NpyType::kI8 : NpyType::kI4, 2 * (plan.num_samples + 1),
           &index.samples) &&
      load(folder + kNames[2].file, plan.wide_shuffle ? NpyType::kI8 : NpyType::kU4, plan.num_samples, &index.shuffle))
    return index;
  index = build_gpt_index(corpus, request);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(GESTALT_IO_ERROR, fmt::format("[data.cache_dir] {} cannot be made: {}", folder, error.message()));
  for (const Name& name : kNames) save(folder + name.file, index.*name.array);
  return index;
}

}  // namespace gestalt::support::indexed

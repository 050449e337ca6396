#include "core/checkpoint/commit.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <spdlog/spdlog.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/checkpoint/digest.h"
#include "core/checkpoint/failpoint.h"
#include "core/checkpoint/folder.h"
#include "core/checkpoint/reader.h"

namespace gestalt::core {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_io(const char* what, const fs::path& path) {
  fail(GESTALT_IO_ERROR, "[checkpoint] cannot {} '{}': {}", what, path.native(), std::strerror(errno));
}

// A new file, synced. After a failed fsync nothing is known about the file, so it is never tried again: the attempt is
// void.
void write_new(const fs::path& path, std::string_view content) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) fail_io("create", path);
  bool good = true;
  for (size_t done = 0; good && done < content.size();) {
    const ssize_t n = ::write(descriptor, content.data() + done, content.size() - done);
    if (n > 0) done += static_cast<size_t>(n);
    good = n >= 0 || errno == EINTR;
  }
  good = good && ::fsync(descriptor) == 0;
  const int error = errno;
  if (::close(descriptor) != 0 && good) fail_io("close", path);
  errno = error;
  if (!good) fail_io("write", path);
}

CheckpointManifest make_manifest(const SaveSettings& settings, const std::string& component, const SaveJob& job) {
  CheckpointManifest m{job.state, -1, job.seed, settings.attempt, component, job.mesh, {}, {}, {}};
  for (const Committed& c : committed(settings.folder))
    if (c.step < job.state.step) m.previous = c.step;
  for (const HostTensor& t : job.tensors)
    m.tensors.push_back({t.name, t.dtype, t.shape, t.parts, xxh3_hex(t.data, bytes_of(t.dtype, t.shape)), {}});
  std::sort(m.tensors.begin(), m.tensors.end(), [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  m.digest = state_digest(m);
  return m;
}

void add_shards(CheckpointManifest& m, const SaveJob& job, const std::vector<std::vector<Slab>>& shares,
                const std::vector<ShardReport>& reports) {
  for (size_t w = 0; w < reports.size(); ++w) {
    for (size_t i = 0; i < reports[w].pieces.size(); ++i) {
      StoredPiece piece = reports[w].pieces[i];
      piece.file = m.files.size();
      const_cast<StoredTensor*>(m.find(job.tensors[shares[w][i].tensor].name))->pieces.push_back(std::move(piece));
    }
    m.files.push_back(reports[w].file);
  }
}

}  // namespace

Saved commit_checkpoint(const SaveSettings& settings, const std::string& component, const SaveJob& job,
                        const WriteShards& write) {
  const fs::path final = settings.folder / step_name(job.state.step);
  const fs::path attempt = settings.folder / (final.filename().native() + ".tmp-" + settings.attempt);
  CheckpointManifest m = make_manifest(settings, component, job);
  std::error_code ec;
  const bool replaces = fs::exists(final, ec);
  if (replaces && stored_digest(final) == m.digest) return {final, m.digest};
  bool renamed = false;
  try {
    fs::remove_all(attempt, ec);
    if (!fs::create_directory(attempt, ec)) {
      errno = ec.value();
      fail_io("make folder", attempt);
    }
    failpoint("ckpt.attempt_made");
    const std::vector<std::vector<Slab>> shares = share_out(job.tensors, settings.writers);
    add_shards(m, job, shares, write(attempt, shares));
    check_coverage(m);
    for (const auto& [name, content] : job.texts) {
      write_new(attempt / name, content);
      m.files.push_back({name, content.size(), sha256_hex(content)});
    }
    failpoint("ckpt.texts_written");
    const std::string text = to_json(m);
    write_new(attempt / kManifestFile, text);
    failpoint("ckpt.manifest_written");
    write_new(attempt / kCommitFile, commit_text(sha256_hex(text)));
    failpoint("ckpt.commit_written");
    sync_folder(attempt);
    failpoint("ckpt.folder_synced");
    // An exchange, so that the step is there at every moment; the old one then has the attempt's name.
    const int result = replaces ? ::renameat2(AT_FDCWD, attempt.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE)
                                : ::rename(attempt.c_str(), final.c_str());
    if (result != 0) fail_io("rename", attempt);
    renamed = true;
    failpoint("ckpt.renamed");
    sync_folder(settings.folder);
  } catch (...) {
    if (!renamed) fs::remove_all(attempt, ec);
    throw;
  }
  failpoint("ckpt.committed");
  try {  // what follows is convenience: it cannot undo the commit
    if (replaces) fs::remove_all(attempt, ec);
    write_file_atomic(settings.folder / "latest", final.filename().native() + "\n");
    failpoint("ckpt.latest_written");
    retire_old(settings.folder, settings.keep, job.state.step, settings.attempt);
  } catch (const Error& e) {
    spdlog::warn("after checkpoint '{}': {}", final.native(), e.message());
  }
  return {final, m.digest};
}

}  // namespace gestalt::core

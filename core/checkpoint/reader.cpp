#include "core/checkpoint/reader.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/host.h"
#include "core/base/text.h"
#include "core/checkpoint/digest.h"
#include "core/checkpoint/folder.h"
#include "core/config/attr_list.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxManifest = uint64_t{256} << 20;
constexpr unsigned kDiagnosisSeconds = 120;

// Runs `work` in a child and gives back the text that it returns; empty when the child died or ran too long.
template <class F>
std::string in_child(F work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kDiagnosisSeconds);
    std::string text;
    try {
      text = work();
    } catch (...) {
      ::_exit(1);
    }
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = ::write(ends[1], text.data() + at, text.size() - at);
      if (n <= 0) ::_exit(1);
      at += static_cast<size_t>(n);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char chunk[4096];
  ssize_t n = 0;
  while (child > 0 && ((n = ::read(ends[0], chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR)))
    if (n > 0) text.append(chunk, static_cast<size_t>(n));
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  return text;
}

}  // namespace

CheckpointManifest read_checkpoint_manifest(const fs::path& folder) {
  std::error_code ec;
  if (!fs::is_directory(folder, ec)) fail(GESTALT_NOT_FOUND, "[checkpoint] no such folder '{}'", folder.native());
  auto content = [&](const char* name, uint64_t max_bytes) {
    try {
      return read_file(folder / name, max_bytes);
    } catch (const Error& e) {
      if (e.code() != GESTALT_NOT_FOUND) throw;
      fail(GESTALT_DATA_ERROR, "[{}] is missing: the folder is no committed checkpoint", (folder / name).native());
    }
  };
  const std::string commit = content(kCommitFile, 4096), text = content(kManifestFile, kMaxManifest);
  if (commit != commit_text(sha256_hex(text)))
    fail(GESTALT_DATA_ERROR, "[{}] does not vouch for {}: one of the two is damaged", (folder / kCommitFile).native(), kManifestFile);
  CheckpointManifest m = parse_checkpoint_manifest(text, (folder / kManifestFile).native());
  const auto step = step_of(fs::absolute(folder).lexically_normal().filename().native());
  if (step && *step != m.state.step)
    fail(GESTALT_DATA_ERROR, "[{}] is of step {}, expected the folder's", (folder / kManifestFile).native(), m.state.step);
  return m;
}

std::string stored_digest(const fs::path& folder) {
  try {
    const CheckpointManifest m = read_checkpoint_manifest(folder);
    return check_files(folder, m).empty() ? m.digest : std::string();
  } catch (const Error&) {
    return {};
  }
}

std::vector<Problem> check_files(const fs::path& folder, const CheckpointManifest& manifest) {
  std::vector<Problem> problems;
  for (const StoredFile& f : manifest.files) try {
      const uint64_t bytes = InputFile(folder / f.name).size();
      if (bytes != f.bytes)
        problems.push_back({f.name, "", fmt::format("has {} bytes, expected {}", bytes, f.bytes)});
      else if (sha256_file(folder / f.name) != f.sha256)
        problems.push_back({f.name, "", "has another SHA-256 than when it was written"});
    } catch (const Error& e) {
      problems.push_back({f.name, "", e.message()});
    }
  return problems;
}

Instance open_checkpoint_plugin(const Registry& registry, const std::string& name, const ConfigNode* config) {
  const ComponentRef component = registry.component("checkpoint/1", name);
  ConfigNode own = ConfigNode::table();
  for (size_t i = 0; config && i < config->members().size(); ++i)
    for (uint64_t k = 0; k < component.component->num_keys; ++k)
      if (const ConfigMember& m = config->members()[i]; m.key == view_of(component.component->keys[k].name))
        own.insert(m.key, m.value);
  const AttrList attrs = to_attrs(own);
  return Instance(component, attrs.data(), attrs.size());
}

CheckpointReader::CheckpointReader(const Registry& registry, fs::path folder, CheckpointManifest manifest)
    : folder_(std::move(folder)),
      manifest_(std::move(manifest)),
      plugin_(open_checkpoint_plugin(registry, manifest_.component, nullptr)) {}

CheckpointReader::CheckpointReader(const Registry& registry, fs::path folder)
    : CheckpointReader(registry, folder, read_checkpoint_manifest(folder)) {
  if (!check_files(folder_, manifest_).empty())
    fail(GESTALT_DATA_ERROR, "[{}] the checkpoint is damaged:{}", folder_.native(), describe(find_damage(registry, folder_, manifest_)));
}

const Shard& CheckpointReader::shard(uint64_t file) {
  auto it = shards_.find(file);
  if (it == shards_.end()) it = shards_.emplace(file, Shard(plugin_, folder_ / manifest_.files[file].name)).first;
  return it->second;
}

std::vector<char> CheckpointReader::read(const StoredTensor& t) {
  std::vector<char> whole(bytes_of(t.dtype, t.shape)), part;
  for (const StoredPiece& p : t.pieces) {
    const bool all = p.shape == t.shape;
    if (!all) part.resize(bytes_of(t.dtype, p.shape));
    std::vector<char>& to = all ? whole : part;
    shard(p.file).read(t.name, t.dtype, p.shape, to.data());
    if (xxh3_hex(to.data(), to.size()) != p.digest)
      fail(GESTALT_DATA_ERROR, "[{}] tensor '{}' has other bytes than were written",
           (folder_ / manifest_.files[p.file].name).native(), t.name);
    if (!all) place_box(t.shape, p.offset, p.shape, dtype_size(t.dtype), part.data(), whole.data());
  }
  if (xxh3_hex(whole.data(), whole.size()) != t.digest)
    fail(GESTALT_DATA_ERROR, "[{}] tensor '{}' has other bytes than were saved", folder_.native(), t.name);
  return whole;
}

std::vector<Problem> CheckpointReader::check_tensors() {
  std::vector<Problem> problems;
  for (const StoredTensor& t : manifest_.tensors) try {
      read(t);
    } catch (const Error& e) {
      problems.push_back({manifest_.files[t.pieces[0].file].name, t.name, e.message()});
    }
  return problems;
}

std::vector<Problem> find_damage(const Registry& registry, const fs::path& folder, const CheckpointManifest& manifest) {
  std::vector<Problem> problems = check_files(folder, manifest);
  if (problems.empty()) return CheckpointReader(registry, folder, manifest).check_tensors();
  const size_t num_files = problems.size();
  for (size_t i = 0; i < num_files; ++i) {
    uint64_t file = 0;
    while (manifest.files[file].name != problems[i].file) ++file;
    CheckpointManifest part = manifest;  // the tensors with a piece in this file, and of them only those pieces
    part.tensors.clear();
    for (const StoredTensor& t : manifest.tensors)
      for (const StoredPiece& p : t.pieces)
        if (p.file == file) part.tensors.push_back({t.name, t.dtype, p.shape, {}, p.digest, {{file, std::vector<int64_t>(p.shape.size(), 0), p.shape, p.digest}}});
    if (part.tensors.empty()) continue;
    const std::string found = in_child([&] {
      std::string names = "+\n";
      for (const Problem& p : CheckpointReader(registry, folder, part).check_tensors()) names += p.tensor + "\n";
      return names;
    });
    if (found.empty()) {
      problems[i].reason += "; its reader fails, so that all of its tensors are in doubt";
      for (const StoredTensor& t : part.tensors) problems.push_back({problems[i].file, t.name, "is in doubt"});
      continue;
    }
    if (found == "+\n") problems[i].reason += "; every tensor in it still has its bytes";
    for (const std::string& name : split(found, '\n'))
      if (!name.empty() && name != "+") problems.push_back({problems[i].file, name, "is damaged"});
  }
  return problems;
}

std::string describe(const std::vector<Problem>& problems, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(most, problems.size()); ++i)
    text += "\n  " + problems[i].file + (problems[i].tensor.empty() ? "" : ": tensor '" + problems[i].tensor + "'") + " " + problems[i].reason;
  if (problems.size() > most) text += fmt::format("\n  and {} more", problems.size() - most);
  return text;
}

}  // namespace gestalt::core

// Damage of a committed checkpoint: single flipped bits over every file, truncations, sectors of zeros, files swapped with
// another step's, a folder under another step's name. Each must be found, with the file named.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "core/base/error.h"
#include "tests/reliability/checkpoints/faults.h"

namespace gestalt::test {

namespace {

namespace fs = std::filesystem;

struct Found {
  bool file = false, tensor = false;
};

// What is said about the checkpoint; `name` is the damaged file.
Found look(core::Registry& registry, const fs::path& folder, const std::string& name) {
  Found found;
  try {
    for (const core::Problem& p : core::find_damage(registry, folder, core::read_checkpoint_manifest(folder))) {
      found.file |= p.file == name;
      found.tensor |= p.file == name && !p.tensor.empty();
    }
  } catch (const core::Error& e) {
    found.file = e.code() == GESTALT_DATA_ERROR && (e.message().find(name) != std::string::npos || name == core::kManifestFile || name == core::kCommitFile);
  }
  return found;
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary | std::ios::trunc) << text; }

}  // namespace

int run_flips(const Options& o) {
  Plugins plugins(o.component);
  Options make = o;
  make.steps = 2;
  Child maker({}, arguments_of("train", make));
  if (maker.wait().status != 0) core::fail(GESTALT_INTERNAL, "no checkpoints");
  const std::vector<core::Committed> all = core::committed(o.folder);
  const fs::path folder = all.back().path, older = all.front().path;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  auto must_find = [&](const fs::path& file, const std::string& what) {
    const Found found = look(plugins.registry(), folder, file.filename().native());
    if (!found.file) core::fail(GESTALT_DATA_ERROR, "{} of '{}' was not found", what, file.filename().native());
    return found.tensor;
  };

  int64_t others = 0;
  for (const fs::path& file : files) {
    const std::string text = content(file);
    for (size_t at = 0; at < text.size(); at += 4096) {
      put(file, text.substr(0, at));
      must_find(file, fmt::format("truncation to {}", at));
      std::string zeroed = text;
      std::fill(zeroed.begin() + static_cast<std::ptrdiff_t>(at), zeroed.begin() + static_cast<std::ptrdiff_t>(std::min(at + 512, text.size())), '\0');
      others += zeroed == text ? 1 : 2;
      put(file, zeroed);
      if (zeroed != text) must_find(file, fmt::format("a zeroed sector at {}", at));
    }
    // A stale file of the older step; run.toml is the same in both.
    if (const std::string stale = content(older / file.filename()); stale != text) {
      put(file, stale);
      must_find(file, "another step's file in place");
      ++others;
    }
    put(file, text + "x");
    must_find(file, "a longer file in place");
    fs::remove(file);
    must_find(file, "the absence");
    others += 2;
    put(file, text);
  }
  std::vector<fs::path> shards;
  for (const fs::path& file : files)
    if (file.filename().native().rfind("shard-", 0) == 0) shards.push_back(file);
  if (shards.size() > 1) {  // two shards swapped
    const std::string a = content(shards[0]), b = content(shards[1]);
    put(shards[0], b);
    put(shards[1], a);
    must_find(shards[0], "the swap");
    must_find(shards[1], "the swap");
    put(shards[0], a);
    put(shards[1], b);
  }
  fs::rename(folder, o.folder / core::step_name(99));
  if (!look(plugins.registry(), o.folder / core::step_name(99), core::kManifestFile).file)
    core::fail(GESTALT_DATA_ERROR, "a folder under another step's name was not found");
  fs::rename(o.folder / core::step_name(99), folder);

  std::mt19937_64 random(o.seed);
  int64_t in_shards = 0, with_tensor = 0;
  for (int64_t i = 0; i < o.runs; ++i) {
    const fs::path& file = files[random() % files.size()];
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    const auto size = static_cast<uint64_t>(fs::file_size(file));
    const uint64_t bit = random() % (8 * size);
    char byte = 0;
    if (descriptor < 0 || ::pread(descriptor, &byte, 1, static_cast<off_t>(bit / 8)) != 1) core::fail(GESTALT_IO_ERROR, "cannot read '{}'", file.native());
    const char flipped = static_cast<char>(byte ^ (1 << (bit % 8)));
    if (::pwrite(descriptor, &flipped, 1, static_cast<off_t>(bit / 8)) != 1) core::fail(GESTALT_IO_ERROR, "cannot write '{}'", file.native());
    const bool tensor = must_find(file, fmt::format("seed {}, flip {}: bit {}", o.seed, i, bit));
    in_shards += file.filename().native().rfind("shard-", 0) == 0;
    with_tensor += tensor;
    if (::pwrite(descriptor, &byte, 1, static_cast<off_t>(bit / 8)) != 1) core::fail(GESTALT_IO_ERROR, "cannot write '{}'", file.native());
    ::close(descriptor);
  }
  if (!core::find_damage(plugins.registry(), folder, core::read_checkpoint_manifest(folder)).empty()) core::fail(GESTALT_INTERNAL, "the checkpoint is not what it was");
  std::printf("seed %llu: %lld flipped bits in %zu files, none silent (%lld in shards, %lld of them in a tensor, which was named); %lld other damages refused\n",
              static_cast<unsigned long long>(o.seed), static_cast<long long>(o.runs), files.size(), static_cast<long long>(in_shards),
              static_cast<long long>(with_tensor), static_cast<long long>(others));
  return 0;
}

}  // namespace gestalt::test

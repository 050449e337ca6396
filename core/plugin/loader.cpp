#include "core/plugin/loader.h"

#define BOOST_DLL_USE_STD_FS 1

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <unistd.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <set>

#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/host.h"
#include "core/plugin/descriptor.h"

namespace gestalt::core {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxLibraryBytes = uint64_t{4} << 30;

// Where the loader is, so that any failure can say it.
class Progress {
 public:
  Progress(std::string id, fs::path file) : id_(std::move(id)), file_(std::move(file)) {}
  void step(const char* name) { step_ = name; }
  void step(const char* name, fs::path file) {
    step_ = name;
    file_ = std::move(file);
  }
  void id(std::string id) { id_ = std::move(id); }
  [[noreturn]] void fail(std::string_view reason) const {
    throw Placed(GESTALT_CONFIG_ERROR,
                 fmt::format("plugin '{}': step '{}': file {}: {}", id_, step_, file_.native(), reason));
  }
  // Runs one step's work and puts the place in front of what it throws.
  template <class F>
  auto operator()(F work) const {
    try {
      return work();
    } catch (const Placed&) {
      throw;
    } catch (const Error& e) {
      fail(e.message());
    }
  }

 private:
  struct Placed : Error {  // says where it happened already
    using Error::Error;
  };

  std::string id_, step_;
  fs::path file_;
};

std::string mode_text(mode_t mode) { return fmt::format("{:04o}", mode & 07777); }

void check_owner(const Progress& at, const struct stat& s, std::string_view what, Trust trust) {
  if (s.st_mode & S_IWOTH)
    at.fail(fmt::format("{} is world-writable (mode {}); chmod o-w it", what, mode_text(s.st_mode)));
  if (trust != Trust::kLocked) return;
  if (s.st_mode & S_IWGRP)
    at.fail(fmt::format("{} is group-writable (mode {}), refused under trust 'locked'", what, mode_text(s.st_mode)));
  if (s.st_uid != 0 && s.st_uid != ::geteuid())
    at.fail(
        fmt::format("{} belongs to user {}, expected {} or root under trust 'locked'", what, s.st_uid, ::geteuid()));
}

// Folder of the manifest and folders between it and the library, then the library; the folder above the manifest's may
// be world-writable only with the sticky bit, as /tmp is.
void check_owners(const Progress& at, const fs::path& folder, const Fd& root, const fs::path& library, const Fd& file,
                  Trust trust) {
  check_owner(at, root.status(), fmt::format("folder {}", folder.native()), trust);
  const fs::path above = fs::canonical(folder).parent_path();
  const struct stat s = open_folder(above).status();
  if ((s.st_mode & S_IWOTH) && !(s.st_mode & S_ISVTX))
    at.fail(fmt::format("folder {} is world-writable (mode {}); chmod o-w it", above.native(), mode_text(s.st_mode)));
  fs::path sub;
  for (const fs::path& part : library.parent_path()) {
    sub /= part;
    check_owner(at, open_folder(folder / sub).status(), fmt::format("folder {}", (folder / sub).native()), trust);
  }
  check_owner(at, file.status(), "the file", trust);
}

void check_abi(const Progress& at, const ElfFile& elf) {
  const std::vector<int> majors = elf.abi_majors();
  if (std::find(majors.begin(), majors.end(), GESTALT_ABI_MAJOR) != majors.end()) return;
  if (majors.empty())
    at.fail(fmt::format("does not export {}: not a Gestalt plugin, or its symbols are hidden", GESTALT_PLUGIN_MAIN_V1));
  at.fail(fmt::format("built for ABI major {}, this host has {}.{}; rebuild it with this SDK", majors.back(),
                      GESTALT_ABI_MAJOR, GESTALT_ABI_MINOR));
}

void check_glibc(const Progress& at, const ElfFile& elf, const std::vector<Need>& needs) {
  const std::string_view have = gnu_get_libc_version();
  if (!elf.glibc.empty() && !version_in_range(have, ">=" + elf.glibc))
    at.fail(fmt::format("its symbols need glibc >= {}, this machine has {}", elf.glibc, have));
  for (const Need& need : needs)
    if (need.name == "glibc" && !version_in_range(have, need.range))
      at.fail(fmt::format("needs glibc {}, this machine has {}", need.range, have));
}

// The loader's own words: Boost.DLL calls every failure "Bad file descriptor".
std::string loader_message() {
  const char* text = ::dlerror();
  return text ? text : "the dynamic loader gave no reason";
}

// Loads the very file that was checked: whoever replaces it on disk meanwhile changes nothing. The library object and
// the descriptor are never released: glibc finds loaded libraries by name, so /proc/self/fd/N must not be reused.
boost::dll::shared_library& load(const Progress& at, Fd file) {
  static auto* kept = new std::vector<std::unique_ptr<boost::dll::shared_library>>;
  auto owned = std::make_unique<boost::dll::shared_library>();
  boost::dll::shared_library& library = *owned;
  const auto mode = static_cast<boost::dll::load_mode::type>(RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const fs::path path = fmt::format("/proc/self/fd/{}", file.get());
  ::dlerror();
  std::error_code error;
  library.load(path, error, mode);
  if (!library.is_loaded()) at.fail(loader_message());
  file.release();
  kept->push_back(std::move(owned));
  return library;
}

const gestalt_plugin* call_main(Progress& at, boost::dll::shared_library& library, const gestalt_host* host) {
  at.step("symbol");
  if (!library.has(GESTALT_PLUGIN_MAIN_V1)) at.fail(fmt::format("{} is not found", GESTALT_PLUGIN_MAIN_V1));
  // Without noexcept in the type, so that a plugin that breaks the contract and throws is an error and not the end.
  using Main = gestalt_status*(const gestalt_host*, const gestalt_plugin**);
  Main& main = library.get<Main>(GESTALT_PLUGIN_MAIN_V1);
  at.step("main");
  const gestalt_plugin* descriptor = nullptr;
  gestalt_status* status = nullptr;
  try {
    status = main(host, &descriptor);
  } catch (const std::exception& e) {
    at.fail(fmt::format("{} threw an exception: {}", GESTALT_PLUGIN_MAIN_V1, e.what()));
  } catch (...) {
    at.fail(fmt::format("{} threw an exception", GESTALT_PLUGIN_MAIN_V1));
  }
  if (status) {
    const Error e = take(status);
    at.fail(fmt::format("{} returned {}: {}", GESTALT_PLUGIN_MAIN_V1, status_name(e.code()), e.message()));
  }
  at.step("descriptor");
  at([&] { check_descriptor(descriptor); });
  return descriptor;
}

void compare(const Progress& at, const Manifest& manifest, const Manifest& binary) {
  const std::vector<std::string> said = promises(manifest), found = promises(binary);
  std::vector<std::string> only_said, only_found;
  std::set_difference(said.begin(), said.end(), found.begin(), found.end(), std::back_inserter(only_said));
  std::set_difference(found.begin(), found.end(), said.begin(), said.end(), std::back_inserter(only_found));
  if (only_said.empty() && only_found.empty()) return;
  std::string reason = "the manifest does not tell the truth:";
  for (const std::string& line : only_said) reason += fmt::format(" it says {}, the binary does not;", line);
  for (const std::string& line : only_found) reason += fmt::format(" the binary says {}, it does not;", line);
  at.fail(reason + " run `gestalt plugin pack` again");
}

}  // namespace

Plugin load_plugin(const fs::path& folder, Trust trust, const Lock* lock) {
  Progress at(folder.filename().native(), folder / "plugin.toml");
  at.step("manifest");
  const Manifest manifest = at([&] { return read_manifest(folder); });
  at.id(manifest.id);
  const fs::path path = folder / manifest.library;

  at.step("path", path);
  const Fd root = at([&] { return open_folder(folder); });
  Fd file = at([&] { return open_beneath(root, manifest.library); });

  at.step("owner");
  at([&] { check_owners(at, folder, root, manifest.library, file, trust); });

  if (trust == Trust::kLocked) {
    at.step("lock");
    const LockEntry* entry = lock ? lock->find(manifest.id) : nullptr;
    if (!lock) at.fail("trust is 'locked' and there is no lock file; write one with `gestalt plugin lock`");
    if (!entry) at.fail(fmt::format("lock file {} does not have this id", lock->path));
    if (entry->sha256 != manifest.sha256 || entry->version != manifest.version)
      at.fail(fmt::format("version {} with hash {}, lock file {} has version {} with hash {}", manifest.version,
                          manifest.sha256, lock->path, entry->version, entry->sha256));
  }

  at.step("hash");
  const std::string bytes = at([&] { return read_whole(file, kMaxLibraryBytes); });
  if (const std::string hash = sha256_hex(bytes); hash != manifest.sha256)
    at.fail(fmt::format("SHA-256 is {}, the manifest says {}; run `gestalt plugin pack` after a rebuild", hash,
                        manifest.sha256));

  at.step("elf");
  const ElfFile elf = at([&] { return parse_elf(bytes); });

  at.step("abi");
  check_abi(at, elf);
  if (manifest.abi_major != GESTALT_ABI_MAJOR || manifest.min_minor > GESTALT_ABI_MINOR)
    at.fail(fmt::format("the manifest asks for ABI {}.{}, this host has {}.{}", manifest.abi_major, manifest.min_minor,
                        GESTALT_ABI_MAJOR, GESTALT_ABI_MINOR));

  at.step("needs");
  at([&] { check_glibc(at, elf, manifest.needs); });

  at.step("load");
  boost::dll::shared_library& library = load(at, std::move(file));
  const gestalt_host* host = make_host(manifest.id);
  const gestalt_plugin* descriptor = call_main(at, library, host);

  at.step("compare");
  at([&] { compare(at, manifest, describe(*descriptor)); });
  return {manifest, folder, descriptor, host};
}

BareLibrary load_bare(const fs::path& path) {
  Progress at(path.filename().native(), path);
  at.step("path");
  Fd file = at([&] { return open_regular(path); });
  const std::string bytes = at([&] { return read_whole(file, kMaxLibraryBytes); });
  at.step("elf");
  BareLibrary out{nullptr, sha256_hex(bytes), at([&] { return parse_elf(bytes); })};
  at.step("abi");
  check_abi(at, out.elf);
  at.step("needs");
  check_glibc(at, out.elf, {});
  at.step("load");
  boost::dll::shared_library& library = load(at, std::move(file));
  out.descriptor = call_main(at, library, make_host(path.filename().native()));
  return out;
}

void pack(const fs::path& library, const fs::path& authored_file, const fs::path& out) {
  const BareLibrary bare = load_bare(library);
  Manifest manifest = describe(*bare.descriptor);
  const fs::path folder = fs::canonical(fs::absolute(out).parent_path());
  const fs::path relative = fs::canonical(library).lexically_relative(folder);
  if (relative.empty() || *relative.begin() == "..")
    fail(GESTALT_CONFIG_ERROR, "[plugin pack] library {} is not below {}, the folder of its manifest", library.native(),
         folder.native());
  manifest.library = relative.native();
  manifest.sha256 = bare.sha256;
  if (!authored_file.empty()) {
    const std::string name = authored_file.native();
    const Authored authored = parse_authored(read_file(authored_file, 1 << 20), name);
    if (!authored.id.empty() && authored.id != manifest.id)
      fail(GESTALT_CONFIG_ERROR, "[plugin pack] {}: id is '{}', the binary says '{}'", name, authored.id, manifest.id);
    if (!authored.version.empty() && authored.version != manifest.version)
      fail(GESTALT_CONFIG_ERROR, "[plugin pack] {}: version is '{}', the binary says '{}'", name, authored.version,
           manifest.version);
    manifest.publisher = authored.publisher;
    manifest.license = authored.license;
    manifest.description = authored.description;
    manifest.needs = authored.needs;
  }
  const std::string text = to_toml(manifest);
  parse_manifest(text, out.native());  // never write what the loader would refuse
  write_file_atomic(out, text);
}

}  // namespace gestalt::core

// Plugins that must be refused: each case damages one thing of a plugin that loads, and expects the step, the file and
// the reason, the code that gives exit 78, a living process, and no code run before step 'load'.
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/plugin/registry.h"
#include "tests/catch_compat.hpp"

using namespace gestalt::core;
namespace fs = std::filesystem;

namespace {

const fs::path kOdd = fs::path(GESTALT_BUILD_DIR) / "tests/odd";
constexpr uint64_t kMax = 1 << 24;

void write(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

// A search folder with one plugin in it, fresh for every case, so that every load is a first load.
struct Box {
  fs::path root, folder, library;
  std::string mark;
  Trust trust = Trust::kNamed;
  Lock lock;
  const Lock* use_lock = nullptr;

  Box() {
    std::string name = (fs::temp_directory_path() / "gestalt_odd_XXXXXX").native();
    root = ::mkdtemp(name.data());
    fs::permissions(root, fs::perms(0755));
    folder = root / "odd";
    library = folder / "lib/libodd.so";
    mark = root / "mark";
    fs::create_directories(folder / "lib");
    use("libodd.so");
    ::setenv("GESTALT_ODD_MARK", mark.c_str(), 1);
  }
  ~Box() {
    ::unsetenv("GESTALT_ODD");
    ::unsetenv("GESTALT_ODD_MARK");
    fs::remove_all(root);
  }
  // Takes another library, with a manifest that is right but for what its binary says.
  void use(const char* name) {
    const ::mode_t mask = ::umask(022);
    fs::remove(library);
    fs::copy_file(kOdd / name, library);
    fs::permissions(library, fs::perms(0755));
    edit([](Manifest&) {});
    ::umask(mask);
  }
  std::string bytes() const { return read_file(library, kMax); }
  // Writes the library's bytes, and a manifest with their hash.
  void bytes(const std::string& content) {
    write(library, content);
    edit([](Manifest&) {});
  }
  void edit(const std::function<void(Manifest&)>& change) {
    Manifest m = good();
    std::error_code error;
    if (fs::is_regular_file(library, error)) m.sha256 = sha256_hex(read_file(library, kMax));
    change(m);
    write(folder / "plugin.toml", to_toml(m));
  }
  static Manifest good() {
    static const Manifest manifest = [] {
      Manifest m = describe(*load_bare(kOdd / "libodd.so").descriptor);
      m.library = "lib/libodd.so";
      m.sha256 = std::string(64, '0');
      return m;
    }();
    return manifest;
  }
  void odd(const char* mode) { ::setenv("GESTALT_ODD", mode, 1); }
  void lock_it() {
    lock = {{{"acme.odd", "1.0.0", sha256_hex(bytes())}}, "plugins.lock.toml"};
    use_lock = &lock;
    trust = Trust::kLocked;
  }
};

struct Case {
  const char* name;
  const char* step;
  const char* reason;  // part of the message
  std::function<void(Box&)> damage;
};

Case odd(const char* mode, const char* step, const char* reason) {
  return {mode, step, reason, [mode](Box& b) { b.odd(mode); }};
}

Case truncated(const char* name, size_t divide, size_t minus, const char* reason) {
  return {name, "elf", reason, [=](Box& b) {
            const std::string all = b.bytes();
            b.bytes(all.substr(0, all.size() / divide - minus));
          }};
}

Case patched(const char* name, const char* reason, std::function<void(Elf64_Ehdr&)> change) {
  return {name, "elf", reason, [change](Box& b) {
            std::string all = b.bytes();
            Elf64_Ehdr header;
            std::memcpy(&header, all.data(), sizeof header);
            change(header);
            std::memcpy(all.data(), &header, sizeof header);
            b.bytes(all);
          }};
}

std::vector<Case> cases() {
  const auto cut = [](size_t size) { return [size](Box& b) { b.bytes(b.bytes().substr(0, size)); }; };
  return {
      // the file
      {"empty file", "elf", "empty file", cut(0)},
      {"one byte", "elf", "truncated", cut(1)},
      {"identification only", "elf", "truncated", cut(16)},
      {"header less one byte", "elf", "truncated", cut(63)},
      {"header only", "elf", "truncated", cut(64)},
      {"some program headers", "elf", "truncated", cut(200)},
      truncated("a quarter", 4, 0, "truncated"),
      truncated("half", 2, 0, "truncated"),
      truncated("all but one byte", 1, 1, "truncated"),
      {"a folder as library", "path", "is a folder",
       [](Box& b) {
         fs::remove(b.library);
         fs::create_directory(b.library);
       }},
      {"a FIFO as library", "path", "is a FIFO",
       [](Box& b) {
         fs::remove(b.library);
         REQUIRE(::mkfifo(b.library.c_str(), 0644) == 0);
       }},
      {"no library", "path", "No such file", [](Box& b) { fs::remove(b.library); }},
      {"text as library", "elf", "not an ELF file", [](Box& b) { b.bytes(std::string(5000, 'x')); }},
      patched("another architecture", "built for aarch64, this machine is x86_64",
              [](auto& h) { h.e_machine = EM_AARCH64; }),
      patched("an unknown architecture", "built for machine 4660", [](auto& h) { h.e_machine = 0x1234; }),
      patched("32-bit", "32-bit ELF file", [](auto& h) { h.e_ident[EI_CLASS] = ELFCLASS32; }),
      patched("big-endian", "big-endian", [](auto& h) { h.e_ident[EI_DATA] = ELFDATA2MSB; }),
      patched("an object file", "ELF type 1", [](auto& h) { h.e_type = ET_REL; }),
      patched("headers past the end", "truncated", [](auto& h) { h.e_phoff = ~uint64_t{0} - 8; }),
      patched("no program headers", "no program headers", [](auto& h) { h.e_phnum = 0; }),
      patched("sections past the end", "truncated", [](auto& h) { h.e_shoff = ~uint64_t{0} - 8; }),
      {"ABI major 2 only", "abi", "built for ABI major 2, this host has 1.0", [](Box& b) { b.use("libabi2.so"); }},
      {"no entry", "abi", "does not export gestalt_plugin_main_v1", [](Box& b) { b.use("libno_main.so"); }},
      {"missing dependency", "load", "libodd_dependency.so", [](Box& b) { b.use("libneeds.so"); }},
      {"wrong hash", "hash", "SHA-256 is",
       [](Box& b) { b.edit([](Manifest& m) { m.sha256 = std::string(64, 'a'); }); }},
      {"one byte changed", "hash", "SHA-256 is",
       [](Box& b) {
         std::string all = b.bytes();
         all.back() ^= 1;
         write(b.library, all);
       }},
      // paths and permissions
      {"a link as library", "path", "symbolic link",
       [](Box& b) {
         fs::rename(b.library, b.root / "outside.so");
         fs::create_symlink(b.root / "outside.so", b.library);
       }},
      {"a link inside the folder", "path", "symbolic link",
       [](Box& b) {
         fs::rename(b.library, b.folder / "real.so");
         fs::create_symlink("../real.so", b.library);
       }},
      {"a link in the middle", "path", "symbolic link",
       [](Box& b) {
         fs::rename(b.folder / "lib", b.root / "outside");
         fs::create_directory_symlink(b.root / "outside", b.folder / "lib");
       }},
      {"a path with ..", "path", "'..' is not allowed",
       [](Box& b) { b.edit([](Manifest& m) { m.library = "lib/../../odd/lib/libodd.so"; }); }},
      {"an absolute path", "path", "absolute path",
       [](Box& b) { b.edit([&](Manifest& m) { m.library = b.library.native(); }); }},
      {"a path with an empty part", "path", "'' is not allowed",
       [](Box& b) { b.edit([](Manifest& m) { m.library = "lib//libodd.so"; }); }},
      {"a very long path", "path", "4095",
       [](Box& b) { b.edit([](Manifest& m) { m.library = std::string(5000, 'a'); }); }},
      {"a library that anyone may write", "owner", "the file is world-writable (mode 0757)",
       [](Box& b) { fs::permissions(b.library, fs::perms(0757)); }},
      {"a folder that anyone may write", "owner", "world-writable (mode 0757)",
       [](Box& b) { fs::permissions(b.folder, fs::perms(0757)); }},
      {"a folder of the library that anyone may write", "owner", "lib is world-writable",
       [](Box& b) { fs::permissions(b.folder / "lib", fs::perms(0757)); }},
      {"a search folder that anyone may write", "owner", "world-writable (mode 0777)",
       [](Box& b) { fs::permissions(b.root, fs::perms(0777)); }},
      {"locked without a lock file", "lock", "no lock file", [](Box& b) { b.trust = Trust::kLocked; }},
      {"locked, not in the lock file", "lock", "does not have this id",
       [](Box& b) {
         b.lock_it();
         b.lock.plugins[0].id = "acme.even";
       }},
      {"locked with another hash", "lock", "lock file plugins.lock.toml has",
       [](Box& b) {
         b.lock_it();
         b.lock.plugins[0].sha256 = std::string(64, '1');
       }},
      {"locked, written by the group", "owner", "group-writable (mode 0775)",
       [](Box& b) {
         b.lock_it();
         fs::permissions(b.library, fs::perms(0775));
       }},
      // the manifest
      {"manifest of another ABI major", "abi", "asks for ABI 99.0",
       [](Box& b) { b.edit([](Manifest& m) { m.abi_major = 99; }); }},
      {"manifest of a later minor", "abi", "asks for ABI 1.9",
       [](Box& b) { b.edit([](Manifest& m) { m.min_minor = 9; }); }},
      {"needs a later glibc", "needs", "needs glibc >=9.1",
       [](Box& b) { b.edit([](Manifest& m) {
                      m.needs = {{"glibc", ">=9.1", {}}};
                    }); }},
      {"manifest with one kernel more", "compare", "it says kernel of 'core.add' on 'cpu' by 'lies.cpu'",
       [](Box& b) { b.edit([](Manifest& m) {
                      m.kernels.push_back({"core.add", "cpu", "lies.cpu", 0});
                    }); }},
      {"manifest with one kernel less", "compare", "the binary says kernel of 'acme.twice'",
       [](Box& b) { b.edit([](Manifest& m) { m.kernels.clear(); }); }},
      {"manifest with another version", "compare", "it says version '1.0.7'",
       [](Box& b) { b.edit([](Manifest& m) { m.version = "1.0.7"; }); }},
      {"manifest without the op", "compare", "the binary says op 'acme.twice(x) -> (y)'",
       [](Box& b) { b.edit([](Manifest& m) { m.ops.clear(); }); }},
      {"manifest with another default", "compare", "default = 11",
       [](Box& b) { b.edit([](Manifest& m) { m.components[0].keys[0].default_value = "11"; }); }},
      {"manifest without the component", "compare", "the binary says tracker/1 'acme.tracker'",
       [](Box& b) { b.edit([](Manifest& m) { m.components.clear(); }); }},
      // main
      odd("status", "main", "returned unavailable: no luck today"),
      {"main throws", "main", "threw an exception: thrown on purpose", [](Box& b) { b.use("libthrows.so"); }},
      odd("no descriptor", "descriptor", "descriptor is NULL"),
      odd("small descriptor", "descriptor", "struct_size is 16"),
      odd("huge descriptor", "descriptor", "struct_size is 18446744073709551608"),
      odd("uneven descriptor", "descriptor", "multiple of 8"),
      odd("abi major", "descriptor", "ABI major 2, expected 1"),
      odd("host minor", "descriptor", "needs a host of ABI 1.7"),
      odd("null id", "descriptor", "id is NULL with size 4"),
      odd("capital id", "descriptor", "id 'Acme.odd'"),
      odd("lone id", "descriptor", "id 'acme'"),
      odd("no version", "descriptor", "version is empty"),
      odd("control in version", "descriptor", "control byte 0x09"),
      odd("null ops", "descriptor", "ops is NULL with count 1"),
      odd("null op", "descriptor", "op 0 is NULL"),
      odd("huge count", "descriptor", "kernels counts 18446744073709551615"),
      odd("op size", "descriptor", "op 0: struct_size is 8"),
      odd("op without infer", "descriptor", "op 'acme.twice': infer is NULL"),
      odd("op flag", "descriptor", "op 'acme.twice': flags 0x10000000001"),
      odd("op without namespace", "descriptor", "op 'twice'"),
      odd("op twice", "descriptor", "op 'acme.twice' is defined twice"),
      odd("null kernels", "descriptor", "kernels is NULL with count 1"),
      odd("null kernel", "descriptor", "kernel 0 is NULL"),
      odd("kernel size", "descriptor", "kernel 0: struct_size is 8"),
      odd("kernel flag", "descriptor", "flags 0x10000000002"),
      odd("kernel without run", "descriptor", "run is NULL"),
      odd("kernel without prepare", "descriptor", "prepare is NULL"),
      odd("kernel without destroy", "descriptor", "destroy is NULL"),
      odd("kernel without op", "descriptor", "kernel 0: op is empty"),
      odd("kernel twice", "descriptor", "kernel 'acme.twice' for 'cpu' by 'acme.cpu' is defined twice"),
      odd("null component", "descriptor", "component 0 is NULL"),
      odd("component kind", "descriptor", "expected 'name/revision'"),
      odd("component without create", "descriptor", "create is NULL"),
      odd("component without table", "descriptor", "table is NULL"),
      odd("small table", "descriptor", "table: struct_size is 8"),
      odd("component twice", "descriptor", "tracker/1 'acme.tracker' is defined twice"),
      odd("null keys", "descriptor", "keys is NULL with count 1"),
      odd("key twice", "descriptor", "key 'every' is defined twice"),
      odd("key null", "descriptor", "name is NULL"),
      odd("key type", "descriptor", "i65"),
      odd("key default", "descriptor", "every"),
      odd("key literal", "descriptor", "every"),
      odd("other id", "compare", "the binary says id 'acme.other'"),
      odd("other version", "compare", "the binary says version '1.0.1'"),
      odd("other schema", "compare", "acme.twice(x, z)"),
      odd("kernel device", "compare", "on 'cuda'"),
      odd("unknown low flag", "compare", "bit20"),
      odd("fewer kernels", "compare", "it says kernel of 'acme.twice'"),
      {"op of a foreign namespace", "register", "it defines op 'rival.twice', but only plugins 'rival.*'",
       [](Box& b) {
         b.odd("foreign op");
         b.edit([](Manifest& m) { m.ops = {"rival.twice(x) -> (y)"}; });
       }},
      {"op of the core", "register", "only plugins 'gestalt.*' may define ops 'core.*'",
       [](Box& b) {
         b.odd("core op");
         b.edit([](Manifest& m) { m.ops = {"core.twice(x) -> (y)"}; });
       }},
  };
}

bool runs_code(std::string_view step) {
  for (std::string_view s : {"symbol", "main", "descriptor", "compare", "register"})
    if (s == step) return true;
  return false;
}

std::string refusal(Box& box) {
  Registry registry;
  registry.discover({box.root});
  try {
    registry.load({"acme.odd"}, box.trust, box.use_lock);
  } catch (const Error& e) {
    CHECK(e.code() == GESTALT_CONFIG_ERROR);
    CHECK(exit_code(e.code()) == 78);
    CHECK(registry.plugins().empty());
    CHECK(registry.ops().empty());
    CHECK(registry.kernels().empty());
    return e.message();
  }
  return "it loaded";
}

void has(const std::string& message, const std::string& part) {
  INFO(message);
  INFO("expected: " << part);
  CHECK(message.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("the plugin that the cases damage loads and registers") {
  Box box;
  Registry registry;
  registry.discover({box.root});
  registry.load({"acme.odd", "acme.odd"});
  CHECK(fs::exists(box.mark));
  REQUIRE(registry.plugins().size() == 1);
  REQUIRE(registry.find_kernels("acme.twice", "cpu").size() == 1);
  CHECK(registry.find_kernels("acme.twice", "cpu")[0].plugin == "acme.odd");
  CHECK(registry.find_kernels("acme.twice", "cuda").empty());
  CHECK(registry.ops().size() == 1);
  const Instance tracker(registry.component("tracker/1", "acme.tracker"), nullptr, 0);
  CHECK(tracker.table<gestalt_component>() != nullptr);
  CHECK(registry.lock().plugins.size() == 1);
  registry.shutdown();
}

TEST_CASE("a locked plugin with the right hash loads") {
  Box box;
  box.lock_it();
  Registry registry;
  registry.discover({box.root});
  CHECK_NOTHROW(registry.load({"acme.odd"}, box.trust, box.use_lock));
}

TEST_CASE("a damaged plugin is refused with step, file and reason, and none of its code ran before step load") {
  for (const Case& c : cases()) {
    DYNAMIC_SECTION(c.name) {
      Box box;
      c.damage(box);
      const std::string message = refusal(box);
      has(message, std::string("plugin 'acme.odd': step '") + c.step + "': file " + box.folder.native());
      has(message, c.reason);
      // main throws comes from a library without the constructor
      if (std::string_view(c.name) != "main throws") CHECK(fs::exists(box.mark) == runs_code(c.step));
    }
  }
}

TEST_CASE("a library that belongs to a stranger is refused under trust locked") {
  if (::geteuid() != 0) return;  // only root can give files away
  Box box;
  box.lock_it();
  REQUIRE(::chown(box.library.c_str(), 12345, 12345) == 0);
  has(refusal(box), "step 'owner'");
  CHECK(!fs::exists(box.mark));
}

TEST_CASE("an unreadable manifest is an error only for who names the plugin, and says why") {
  struct Bad {
    const char* reason;
    std::function<void(const fs::path&)> damage;
  };
  const Bad bad[] = {
      {"empty", [](const fs::path& p) { write(p, ""); }},
      {"not TOML", [](const fs::path& p) { write(p, "= [\n"); }},
      {"is a symbolic link",
       [](const fs::path& p) {
         fs::rename(p, p.parent_path() / "real.toml");
         fs::create_symlink("real.toml", p);
       }},
      {"is a FIFO",
       [](const fs::path& p) {
         fs::remove(p);
         REQUIRE(::mkfifo(p.c_str(), 0644) == 0);
       }},
      {"is a folder",
       [](const fs::path& p) {
         fs::remove(p);
         fs::create_directory(p);
       }},
      {"binary", [](const fs::path& p) { write(p, std::string("\x7f\x45\x4c\x46\0\0\xff\xfe", 8)); }},
      {"unknown key, got 'licence'", [](const fs::path& p) { write(p, "licence = \"MIT\"\n" + read_file(p, kMax)); }},
  };
  for (const Bad& b : bad) {
    DYNAMIC_SECTION(b.reason) {
      Box box;
      b.damage(box.folder / "plugin.toml");
      Registry registry;
      CHECK_NOTHROW(registry.discover({box.root}));
      CHECK(registry.found().empty());
      REQUIRE(registry.unreadable().size() == 1);
      const std::string message = refusal(box);
      has(message, "plugin 'acme.odd': step 'search'");
      has(message, (box.folder / "plugin.toml").native());
      CHECK(!fs::exists(box.mark));
    }
  }
}

TEST_CASE("a missing plugin is refused with the paths searched and the nearest id") {
  Box box;
  Registry registry;
  registry.discover({box.root, "/nonexistent/plugins"});
  try {
    registry.load({"acme.od"});
    FAIL("it loaded");
  } catch (const Error& e) {
    CHECK(e.code() == GESTALT_CONFIG_ERROR);
    has(e.message(), box.root.native() + ", /nonexistent/plugins");
    has(e.message(), "did you mean 'acme.odd'?");
  }
}

TEST_CASE("the same id in two folders is refused with both") {
  Box box;
  fs::copy(box.folder, box.root / "odd_again", fs::copy_options::recursive);
  const std::string message = refusal(box);
  has(message, "step 'search'");
  has(message, (box.root / "odd/plugin.toml").native());
  has(message, (box.root / "odd_again/plugin.toml").native());
  CHECK(!fs::exists(box.mark));
}

TEST_CASE("a library replaced while it loads is never the one that runs unchecked") {
  Box box;
  // The hash of the file that was opened decides, whatever the name stands for later.
  const Manifest manifest = read_manifest(box.folder);
  const fs::path other = box.root / "other.so";
  fs::copy_file(kOdd / "libabi2.so", other);
  fs::rename(other, box.library);
  has(refusal(box), "step 'hash'");
  CHECK(manifest.sha256 != sha256_hex(box.bytes()));
  CHECK(!fs::exists(box.mark));
}

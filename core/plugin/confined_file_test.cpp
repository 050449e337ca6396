#include "core/plugin/confined_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "core/base/error.h"
#include "tests/catch_compat.hpp"

using namespace gestalt::core;
namespace fs = std::filesystem;

namespace {
struct Tree {
  fs::path root;
  Tree() {
    std::string name = (fs::temp_directory_path() / "gestalt_confined_XXXXXX").native();
    root = ::mkdtemp(name.data());
    fs::create_directories(root / "inside/sub");
    fs::create_directories(root / "outside");
    std::ofstream(root / "inside/sub/file") << "inside";
    std::ofstream(root / "outside/file") << "outside";
  }
  ~Tree() { fs::remove_all(root); }
};
}  // namespace

TEST_CASE("a file below the folder is read") {
  const Tree tree;
  CHECK(read_whole(open_beneath(open_folder(tree.root / "inside"), "sub/file"), 100) == "inside");
}

TEST_CASE("paths that leave the folder are refused") {
  const Tree tree;
  const Fd folder = open_folder(tree.root / "inside");
  fs::create_symlink(tree.root / "outside/file", tree.root / "inside/link");
  fs::create_directory_symlink(tree.root / "outside", tree.root / "inside/links");
  fs::create_symlink("/proc/self/root", tree.root / "inside/magic");
  REQUIRE(::mkfifo((tree.root / "inside/fifo").c_str(), 0644) == 0);
  const std::string nul("sub\0/file", 9), deep = "sub/" + std::string(5000, 'a');
  for (const std::string& path : {std::string("../outside/file"),
                                  std::string("sub/../../outside/file"),
                                  std::string("/etc/passwd"),
                                  std::string(""),
                                  std::string("."),
                                  std::string(".."),
                                  std::string("./sub/file"),
                                  std::string("sub//file"),
                                  std::string("sub/"),
                                  std::string("sub"),
                                  std::string("link"),
                                  std::string("links/file"),
                                  std::string("magic/etc/passwd"),
                                  std::string("fifo"),
                                  std::string("sub/file/"),
                                  std::string("sub/file/x"),
                                  std::string("absent"),
                                  nul,
                                  deep,
                                  std::string("..\xc0\xaf..\xc0\xaf"
                                              "etc")}) {
    INFO(path);
    CHECK_THROWS_AS(open_beneath(folder, path), Error);
  }
}

TEST_CASE("no path escapes while another thread swaps a folder and a link") {
  const Tree tree;
  const fs::path inside = tree.root / "inside";
  fs::create_directory_symlink(tree.root / "outside", inside / "link");
  std::atomic<bool> stop{false};
  std::thread swapper([&] {
    while (!stop) {
      // Exchanges the names of the folder and the link.
      ::renameat2(AT_FDCWD, (inside / "sub").c_str(), AT_FDCWD, (inside / "link").c_str(), RENAME_EXCHANGE);
    }
  });
  const Fd folder = open_folder(inside);
  int read = 0, refused = 0, escaped = 0;
  for (int i = 0; i < 20000; ++i) {
    try {
      (read_whole(open_beneath(folder, "sub/file"), 100) == "inside" ? read : escaped) += 1;
    } catch (const Error&) {
      ++refused;
    }
  }
  stop = true;
  swapper.join();
  CHECK(escaped == 0);
  CHECK(read + refused == 20000);
}

TEST_CASE("a file larger than allowed is refused before it is read") {
  const Tree tree;
  CHECK_THROWS_AS(read_whole(open_beneath(open_folder(tree.root / "inside"), "sub/file"), 5), Error);
}

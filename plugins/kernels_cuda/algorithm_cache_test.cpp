#include "plugins/kernels_cuda/algorithm_cache.h"

#include <fstream>

#include "tests/catch_compat.hpp"
#include "tests/temporary_folder.h"

using gestalt::kernels_cuda::AlgorithmCache;
using gestalt::test::TemporaryFolder;

TEST_CASE("a stored algorithm is found by the next process") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "cache").string();
  {
    AlgorithmCache cache(path);
    CHECK_FALSE(cache.find("a|1").has_value());
    CHECK(cache.store("a|1", "ff00"));
    CHECK(cache.find("a|1") == "ff00");
  }
  AlgorithmCache again(path);
  CHECK(again.find("a|1") == "ff00");
  CHECK_FALSE(again.find("a|2").has_value());
}

TEST_CASE("of two processes that searched at once the first counts") {
  const TemporaryFolder folder;
  AlgorithmCache one(folder.path().string()), two(folder.path().string());
  CHECK(one.store("k", "11"));
  CHECK(two.store("k", "22"));
  CHECK(AlgorithmCache(folder.path().string()).find("k") == "11");
}

TEST_CASE("lines without a key are passed over") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "matmul_algorithms.txt") << "damaged\nk\t33\n\n";
  AlgorithmCache cache(folder.path().string());
  CHECK(cache.find("k") == "33");
}

TEST_CASE("a cache without a folder keeps nothing on disk") {
  AlgorithmCache cache("");
  CHECK_FALSE(cache.writable());
  CHECK_FALSE(cache.store("k", "11"));
}

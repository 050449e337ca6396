#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

// What a search found best, kept on disk for later runs: one line "key <tab> value" each, in
// $GESTALT_CACHE_DIR/matmul_algorithms.txt, else $XDG_CACHE_HOME/gestalt, else ~/.cache/gestalt.
namespace gestalt::kernels_cuda {

class AlgorithmCache {
 public:
  // The process's own, read on first use.
  static AlgorithmCache& of_process();
  // For tests: in this folder; empty: nowhere.
  explicit AlgorithmCache(std::string folder);

  std::optional<std::string> find(const std::string& key);
  // False when the line could not be written: then a later run would choose anew, perhaps otherwise.
  bool store(const std::string& key, const std::string& value);
  // Whether store can work.
  bool writable();

 private:
  std::mutex mutex_;
  std::string folder_, file_;
  std::unordered_map<std::string, std::string> lines_;
};

}  // namespace gestalt::kernels_cuda

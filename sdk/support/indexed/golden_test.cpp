// Every array and sample that Megatron Core's own data set code makes. Skips where the reference files are absent.
#include <filesystem>

#include "support/indexed/parity.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support::indexed {

TEST_CASE("Indices, mixtures and samples equal Megatron's, bit for bit") {
  const auto folder = std::filesystem::path(GESTALT_SOURCE_DIR) / "../shared/golden/megatron-data";
  if (!exists(folder / "cases.json")) {
    WARN("SKIP: golden/megatron-data is not beside this checkout");
    return;
  }
  const auto results = compare_data_cases(folder.string());
  CHECK(results.size() == 5);
  for (const ParityCase& result : results) {
    INFO(result.tag);
    for (const std::string& difference : result.differences) FAIL_CHECK(difference);
    CHECK(result.num_arrays > 50);
  }
}

}  // namespace gestalt::support::indexed

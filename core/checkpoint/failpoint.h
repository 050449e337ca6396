#pragma once

#include <string_view>
#include <vector>

namespace gestalt::core {

// A place where a test can make the process die, fail or wait:
//   GESTALT_FAILPOINTS="ckpt.after_manifest=kill;ckpt.renamed=error:2"
// Actions: kill (SIGKILL), abort, error (an IO_ERROR), sleep (a second). A number after the action: only at that visit,
// counted from 1; else at every one. Compiled in where tests are built.
#ifdef GESTALT_HAS_FAILPOINTS
void failpoint(std::string_view name);
#else
inline void failpoint(std::string_view) {}
#endif

// Every name, for tests that visit each.
const std::vector<std::string_view>& failpoint_names();

}  // namespace gestalt::core

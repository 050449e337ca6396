#include "core/checkpoint/failpoint.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"

namespace gestalt::core {

const std::vector<std::string_view>& failpoint_names() {
  static const std::vector<std::string_view> kNames = {
      "ckpt.attempt_made",  "ckpt.shard_written",   "ckpt.shard_read_back", "ckpt.texts_written", "ckpt.manifest_written",
      "ckpt.commit_written", "ckpt.folder_synced",   "ckpt.renamed",         "ckpt.committed",     "ckpt.latest_written",
      "ckpt.trash_renamed"};
  return kNames;
}

#ifdef GESTALT_HAS_FAILPOINTS

void failpoint(std::string_view name) {
  const char* text = std::getenv("GESTALT_FAILPOINTS");
  if (!text) return;
  static std::map<std::string, int, std::less<>> visits;
  const int visit = ++visits[std::string(name)];
  for (const std::string& entry : split(text, ';')) {
    const size_t equal = entry.find('='), colon = entry.find(':');
    const std::string at = entry.substr(0, equal);
    if (std::find(failpoint_names().begin(), failpoint_names().end(), at) == failpoint_names().end())
      fail(GESTALT_INVALID_ARGUMENT, "[GESTALT_FAILPOINTS] unknown failpoint, got '{}'", at);
    if (at != name || (colon != std::string::npos && std::atoi(entry.c_str() + colon + 1) != visit)) continue;
    const std::string action = equal == std::string::npos ? "" : entry.substr(equal + 1, colon - equal - 1);
    if (action == "kill")
      ::kill(::getpid(), SIGKILL);
    else if (action == "abort")
      std::abort();
    else if (action == "sleep")
      ::sleep(1);
    else if (action == "error")
      fail(GESTALT_IO_ERROR, "[{}] failpoint", name);
    else
      fail(GESTALT_INVALID_ARGUMENT, "[GESTALT_FAILPOINTS] unknown action, got '{}', expected kill, abort, error or sleep",
           action);
  }
}

#endif

}  // namespace gestalt::core

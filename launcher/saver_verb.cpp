// The saver process of a training; not for users.
#include "core/checkpoint/saver_process.h"
#include "core/session/run.h"
#include "launcher/verb.h"

namespace gestalt::launcher {
namespace {

const Verb kSaver("_saver", "gestalt _saver", "", [](const Arguments&) {
  core::publish_interfaces();
  return core::serve_saver();
});

}  // namespace
}  // namespace gestalt::launcher

#include "launcher/verb.h"

#include <algorithm>

namespace gestalt::launcher {

namespace {
std::vector<const VerbSource*>& sources() {
  static std::vector<const VerbSource*> list;
  return list;
}
}  // namespace

VerbSource::VerbSource() { sources().push_back(this); }

std::vector<const VerbSource*> VerbSource::all() {
  std::vector<const VerbSource*> list = sources();
  std::stable_partition(list.begin(), list.end(), [](const VerbSource* s) { return !s->late(); });
  return list;
}

}  // namespace gestalt::launcher

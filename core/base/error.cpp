#include "core/base/error.h"

namespace gestalt::core {

namespace {
struct Entry {
  int32_t code;
  int exit;
  const char* name;
};
// sysexits(3) where there is one.
constexpr Entry kEntries[] = {
    {GESTALT_INVALID_ARGUMENT, 1, "invalid_argument"}, {GESTALT_INTERNAL, 1, "internal"},
    {GESTALT_UNSUPPORTED, 69, "unsupported"},          {GESTALT_NOT_FOUND, 66, "not_found"},
    {GESTALT_DATA_ERROR, 65, "data_error"},            {GESTALT_UNAVAILABLE, 69, "unavailable"},
    {GESTALT_IO_ERROR, 74, "io_error"},                {GESTALT_CONFIG_ERROR, 78, "config_error"},
    {GESTALT_OUT_OF_MEMORY, 1, "out_of_memory"},       {GESTALT_INTERRUPTED, 75, "interrupted"},
    {GESTALT_VALIDATION, 17, "validation"},            {GESTALT_USAGE_ERROR, 2, "usage_error"},
    {GESTALT_AMBIGUOUS, 16, "ambiguous"},
};
}  // namespace

int exit_code(int32_t status_code) {
  for (const Entry& e : kEntries)
    if (e.code == status_code) return e.exit;
  return 1;
}

const char* status_name(int32_t status_code) {
  for (const Entry& e : kEntries)
    if (e.code == status_code) return e.name;
  return "unknown";
}

}  // namespace gestalt::core

#include "core/plugin/descriptor.h"

#include <set>
#include <string>
#include <string_view>

#include "core/base/host.h"
#include "core/plugin/manifest.h"
#include "gestalt/abi/checkpoint.h"
#include "gestalt/abi/comm.h"
#include "gestalt/abi/dataset.h"
#include "gestalt/abi/device.h"
#include "gestalt/abi/format.h"
#include "gestalt/abi/module.h"
#include "gestalt/abi/optimizer.h"
#include "gestalt/abi/session.h"
#include "gestalt/abi/tokenizer.h"
#include "gestalt/abi/tracker.h"

namespace gestalt::core {

namespace {

constexpr uint64_t kMaxStructSize = 1 << 16;
constexpr uint64_t kMaxCount = 1 << 16;
constexpr uint64_t kMaxString = 1 << 16;
constexpr uint64_t kHighBits = 0xffffffff00000000u;
constexpr uint64_t kKnownKeyFlags = GESTALT_KEY_REQUIRED;

struct Kind {
  std::string_view name;
  uint64_t table_size;  // of minor 0: the least a table may have
};
constexpr Kind kKinds[] = {
    {"tokenizer/1", sizeof(gestalt_tokenizer_1)}, {"dataset/1", sizeof(gestalt_dataset_1)},
    {"device/1", sizeof(gestalt_device_1)},       {"comm/1", sizeof(gestalt_comm_1)},
    {"module/1", sizeof(gestalt_module_1)},       {"optimizer/1", sizeof(gestalt_optimizer_1)},
    {"tracker/1", sizeof(gestalt_tracker_1)},     {"checkpoint/1", sizeof(gestalt_checkpoint_1)},
    {"task/1", sizeof(gestalt_task_1)},           {"format/1", sizeof(gestalt_format_1)},
};

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(GESTALT_CONFIG_ERROR, format, std::forward<Args>(args)...);
}

void check_size(const std::string& what, uint64_t size, uint64_t least) {
  if (size < least || size > kMaxStructSize || size % 8 != 0)
    refuse("{}: struct_size is {}, expected at least {}, at most {} and a multiple of 8", what, size, least,
           kMaxStructSize);
}

std::string checked(const std::string& what, gestalt_str s, bool may_be_empty = false) {
  if (s.size > kMaxString) refuse("{} has {} bytes, expected at most {}", what, s.size, kMaxString);
  if (s.size > 0 && !s.data) refuse("{} is NULL with size {}", what, s.size);
  if (s.size == 0 && !may_be_empty) refuse("{} is empty", what);
  for (char c : view_of(s))
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      refuse("{} holds the control byte {:#04x}", what, static_cast<unsigned char>(c));
  return std::string(view_of(s));
}

void check_array(const std::string& what, const void* array, uint64_t count) {
  if (count > kMaxCount) refuse("{} counts {}, expected at most {}", what, count, kMaxCount);
  if (count > 0 && !array) refuse("{} is NULL with count {}", what, count);
}

template <class T>
void check_pointer(const std::string& what, T pointer) {
  if (!pointer) refuse("{} is NULL", what);
}

void check_flags(const std::string& what, uint64_t flags) {
  if (flags & kHighBits) refuse("{}: flags {:#x} hold bits of the high half that this host does not know", what, flags);
}

void check_op(const gestalt_op* op, uint64_t index, std::set<std::string>& seen) {
  std::string what = fmt::format("op {}", index);
  check_pointer(what, op);
  check_size(what, op->struct_size, sizeof(gestalt_op));
  const std::string schema = checked(what + ": schema", op->schema);
  const std::string name = schema.substr(0, schema.find('('));
  what = fmt::format("op '{}'", name);
  if (!valid_id(name)) refuse("{}: name of the schema, expected 'namespace.op'", what);
  if (!seen.insert(name).second) refuse("{} is defined twice", what);
  check_flags(what, op->flags);
  check_pointer(what + ": infer", op->infer);
}

void check_kernel(const gestalt_kernel* kernel, uint64_t index, std::set<std::string>& seen) {
  std::string what = fmt::format("kernel {}", index);
  check_pointer(what, kernel);
  check_size(what, kernel->struct_size, sizeof(gestalt_kernel));
  const std::string op = checked(what + ": op", kernel->op);
  const std::string device = checked(what + ": device", kernel->device);
  const std::string backend = checked(what + ": backend", kernel->backend);
  what = fmt::format("kernel '{}' for '{}' by '{}'", op, device, backend);
  if (!valid_id(op)) refuse("{}: op, expected 'namespace.op'", what);
  if (!valid_id(backend)) refuse("{}: backend, expected 'vendor.device'", what);
  if (!seen.insert(what).second) refuse("{} is defined twice", what);
  check_flags(what, kernel->flags);
  check_pointer(what + ": prepare", kernel->prepare);
  check_pointer(what + ": run", kernel->run);
  check_pointer(what + ": destroy", kernel->destroy);
}

void check_key(const std::string& component, const gestalt_config_key& key, std::set<std::string>& seen) {
  const std::string what = fmt::format("{}: key '{}'", component, checked(component + ": a key's name", key.name));
  if (!seen.insert(what).second) refuse("{} is defined twice", what);
  checked(what + ": type", key.type);
  checked(what + ": default", key.default_value, true);
  checked(what + ": min", key.min, true);
  checked(what + ": max", key.max, true);
  checked(what + ": choices", key.choices, true);
  checked(what + ": when", key.when, true);
  checked(what + ": doc", key.doc, true);
  if (key.flags & ~kKnownKeyFlags & kHighBits) refuse("{}: flags {:#x} are not known to this host", what, key.flags);
  check_key_spec(key_spec(key), component);
}

void check_component(const gestalt_component* component, uint64_t index, std::set<std::string>& seen) {
  std::string what = fmt::format("component {}", index);
  check_pointer(what, component);
  check_size(what, component->struct_size, sizeof(gestalt_component));
  const std::string kind = checked(what + ": kind", component->kind);
  const std::string name = checked(what + ": name", component->name);
  what = fmt::format("{} '{}'", kind, name);
  if (kind.find('/') == std::string::npos) refuse("{}: kind, expected 'name/revision'", what);
  if (!seen.insert(what).second) refuse("{} is defined twice", what);
  check_array(what + ": keys", component->keys, component->num_keys);
  std::set<std::string> keys;
  for (uint64_t i = 0; i < component->num_keys; ++i) check_key(what, component->keys[i], keys);
  check_pointer(what + ": create", component->create);
  check_pointer(what + ": destroy", component->destroy);
  check_pointer(what + ": table", component->table);
  const uint64_t size = *static_cast<const uint64_t*>(component->table);
  uint64_t least = sizeof(uint64_t);
  for (const Kind& k : kKinds)
    if (k.name == kind) least = k.table_size;
  check_size(what + ": table", size, least);
}

}  // namespace

void check_descriptor(const gestalt_plugin* plugin) {
  check_pointer("descriptor", plugin);
  check_size("descriptor", plugin->struct_size, sizeof(gestalt_plugin));
  if (plugin->abi_major != GESTALT_ABI_MAJOR)
    refuse("descriptor: ABI major {}, expected {}", plugin->abi_major, GESTALT_ABI_MAJOR);
  if (plugin->min_host_minor > GESTALT_ABI_MINOR)
    refuse("descriptor: needs a host of ABI {}.{}, this one has {}.{}", plugin->abi_major, plugin->min_host_minor,
           GESTALT_ABI_MAJOR, GESTALT_ABI_MINOR);
  const std::string id = checked("descriptor: id", plugin->id);
  if (!valid_id(id)) refuse("descriptor: id '{}', expected lower-case words joined by dots, at least two", id);
  checked("descriptor: version", plugin->version);
  checked("descriptor: build", plugin->build, true);
  check_array("ops", plugin->ops, plugin->num_ops);
  check_array("kernels", plugin->kernels, plugin->num_kernels);
  check_array("components", plugin->components, plugin->num_components);
  std::set<std::string> seen;
  for (uint64_t i = 0; i < plugin->num_ops; ++i) check_op(plugin->ops[i], i, seen);
  for (uint64_t i = 0; i < plugin->num_kernels; ++i) check_kernel(plugin->kernels[i], i, seen);
  for (uint64_t i = 0; i < plugin->num_components; ++i) check_component(plugin->components[i], i, seen);
}

}  // namespace gestalt::core

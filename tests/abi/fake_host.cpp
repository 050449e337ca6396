#include "tests/abi/fake_host.h"

#include <algorithm>

struct gestalt_status {
  int32_t code;
  std::string message;
};

namespace {

FakeHost& self_of(void* self) { return *static_cast<FakeHost*>(self); }

gestalt_status* status_new(void* self, int32_t code, gestalt_str message) noexcept {
  ++self_of(self).open_statuses;
  return new gestalt_status{code, text_of(message)};
}
void status_free(void* self, gestalt_status* status) noexcept {
  --self_of(self).open_statuses;
  delete status;
}
int32_t status_get(void*, const gestalt_status* status, gestalt_str* message) noexcept {
  *message = abi_str(status->message);
  return status->code;
}
void write_log(void* self, int32_t level, gestalt_str message) noexcept {
  self_of(self).log.push_back(std::to_string(level) + " " + text_of(message));
}

// Two halves, one after the other.
int64_t num_threads(void*) noexcept { return 2; }
void parallel_for(void*, int64_t n, int64_t, void (*fn)(void*, int64_t, int64_t), void* ctx) noexcept {
  fn(ctx, 0, n / 2);
  fn(ctx, n / 2, n);
}
constexpr gestalt_parallel_1 kParallel = {sizeof(gestalt_parallel_1), nullptr, num_threads, parallel_for};

const void* get_interface(void* self, gestalt_str id) noexcept {
  return self_of(self).with_parallel && text_of(id) == "gestalt.parallel/1" ? &kParallel : nullptr;
}

FakeBuild& build_of(gestalt_build* b) { return *static_cast<FakeBuild*>(b); }
std::string number(const gestalt_tensor* t) { return std::to_string(reinterpret_cast<uintptr_t>(t)); }

gestalt_status* apply(gestalt_build* b, gestalt_str op, gestalt_tensor* const* in, uint64_t num_in,
                      const gestalt_attr* attrs, uint64_t num_attrs, gestalt_tensor** out, uint64_t* num_out) noexcept {
  std::string text = text_of(op) + "(";
  for (uint64_t i = 0; i < num_in; ++i) text += (i ? ", " : "") + number(in[i]);
  text += ")";
  for (uint64_t i = 0; i < num_attrs; ++i) text += " " + text_of(attrs[i].name);
  build_of(b).log.push_back(text);
  *num_out = build_of(b).num_outputs;
  for (uint64_t i = 0; i < *num_out; ++i) out[i] = build_of(b).make();
  return nullptr;
}
gestalt_status* describe(gestalt_build* b, const gestalt_tensor* t, uint32_t* dtype, int32_t* ndim,
                         int64_t* shape) noexcept {
  const auto& integers = build_of(b).integers;
  const int n = static_cast<int>(reinterpret_cast<uintptr_t>(t));
  *dtype = std::count(integers.begin(), integers.end(), n) ? GESTALT_I32 : GESTALT_F32;
  *ndim = 1;
  shape[0] = 6;
  return nullptr;
}
gestalt_status* param(gestalt_build* b, uint64_t id, gestalt_tensor** out) noexcept {
  build_of(b).log.push_back("param " + std::to_string(id));
  *out = build_of(b).make();
  return nullptr;
}
constexpr gestalt_build_api kBuild = {sizeof(gestalt_build_api),
                                      apply,
                                      describe,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      param,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      nullptr};

gestalt_status* declare_param(gestalt_declare* d, const gestalt_param_desc* desc, uint64_t* id) noexcept {
  auto& log = static_cast<FakeDeclare*>(d)->log;
  std::string text = text_of(desc->name) + " [";
  for (int64_t i = 0; i < desc->ndim; ++i) text += (i ? ", " : "") + std::to_string(desc->shape[i]);
  text += "]";
  for (uint64_t i = 0; i < desc->num_parts; ++i)
    text += " " + text_of(desc->part_names[i]) + ":" + std::to_string(desc->parts[i]);
  text += " dim " + std::to_string(desc->shard_dim) + " " + text_of(desc->shard_axis);
  log.push_back(text);
  *id = log.size();
  return nullptr;
}
constexpr gestalt_declare_api kDeclare = {
    sizeof(gestalt_declare_api), nullptr, declare_param, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

FakeHost::FakeHost() {
  table = {sizeof(gestalt_host), GESTALT_ABI_MAJOR, GESTALT_ABI_MINOR, this,         status_new,
           status_free,          status_get,        write_log,         get_interface};
}

FakeBuild::FakeBuild() { api = &kBuild; }
FakeDeclare::FakeDeclare() { api = &kDeclare; }

std::string text_of(const FakeHost& host, gestalt_status* status) {
  if (!status) return "ok";
  std::string text = std::to_string(status->code) + " " + status->message;
  host.table.status_free(host.table.self, status);
  return text;
}

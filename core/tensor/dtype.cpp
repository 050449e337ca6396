#include "core/tensor/dtype.h"

#include "core/base/error.h"

namespace gestalt::core {

namespace {
struct Entry {
  DType dtype;
  std::string_view name;
  bool is_float;
  DType accumulation;
};
constexpr Entry kEntries[] = {
    {GESTALT_F32, "f32", true, GESTALT_F32},   {GESTALT_F64, "f64", true, GESTALT_F64},
    {GESTALT_BF16, "bf16", true, GESTALT_F32}, {GESTALT_F16, "f16", true, GESTALT_F32},
    {GESTALT_I32, "i32", false, GESTALT_I64},  {GESTALT_I64, "i64", false, GESTALT_I64},
    {GESTALT_U8, "u8", false, GESTALT_I64},    {GESTALT_BOOL, "bool", false, GESTALT_I64},
};

const Entry* find(DType dtype) {
  for (const Entry& e : kEntries)
    if (e.dtype == dtype) return &e;
  return nullptr;
}

const Entry& get(DType dtype) {
  const Entry* e = find(dtype);
  if (!e) fail(GESTALT_INVALID_ARGUMENT, "[dtype] unknown element type {:#x}, expected one of GESTALT_F32, ...", dtype);
  return *e;
}
}  // namespace

uint64_t dtype_size(DType dtype) {
  get(dtype);
  return (dtype >> 8 & 0xff) / 8;
}

std::string_view dtype_name(DType dtype) {
  const Entry* e = find(dtype);
  return e ? e->name : "unknown";
}

DType parse_dtype(std::string_view name, std::string_view place) {
  for (const Entry& e : kEntries)
    if (e.name == name) return e.dtype;
  fail(GESTALT_INVALID_ARGUMENT,
       "[{}] unknown element type, got \"{}\", expected f32, f64, bf16, f16, i32, i64, u8 or bool", place, name);
}

bool is_dtype(DType dtype) { return find(dtype) != nullptr; }

bool is_float(DType dtype) { return get(dtype).is_float; }

DType accumulation_dtype(DType dtype) { return get(dtype).accumulation; }

}  // namespace gestalt::core

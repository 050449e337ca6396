// The C functions of gestalt_build_api over Builder. Exceptions end here.

#include "core/base/host.h"
#include "core/program/builder.h"

namespace gestalt::core {

namespace {

template <class F>
gestalt_status* guarded(F f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return status_of_current_exception();
  }
}

void give(const std::vector<Value*>& values, gestalt_tensor** out, uint64_t* num_out, std::string_view what) {
  if (values.size() > *num_out)
    fail(GESTALT_INVALID_ARGUMENT, "[{}] has {} outputs, got room for {}", what, values.size(), *num_out);
  std::copy(values.begin(), values.end(), out);
  *num_out = values.size();
}

const ModuleInstance& module_of(Builder& b) {
  if (!b.current())
    fail(GESTALT_INVALID_ARGUMENT, "parameters, states and children belong to modules; no module is emitting");
  return *b.current();
}

template <class T>
auto& at(const std::vector<T>& list, uint64_t id, const char* what, const ModuleInstance& m) {
  if (id >= list.size())
    fail(GESTALT_INVALID_ARGUMENT, "[{}] {} id {} was not declared, expected less than {}", m.path, what, id, list.size());
  return list[id];
}

gestalt_status* apply(gestalt_build* b, gestalt_str op, gestalt_tensor* const* in, uint64_t num_in,
                      const gestalt_attr* attrs, uint64_t num_attrs, gestalt_tensor** out, uint64_t* num_out) noexcept {
  return guarded([&] {
    give(Builder::of(b).apply(view_of(op), std::vector<Value*>(in, in + num_in), Attrs(attrs, num_attrs)), out, num_out,
         view_of(op));
  });
}

gestalt_status* describe(gestalt_build*, const gestalt_tensor* t, uint32_t* dtype, int32_t* ndim,
                         int64_t* shape) noexcept {
  return guarded([&] {
    if (!t) fail(GESTALT_INVALID_ARGUMENT, "describe: the tensor is empty");
    *dtype = t->type.dtype;
    *ndim = t->type.ndim;
    std::copy(t->type.shape.begin(), t->type.shape.begin() + t->type.ndim, shape);
  });
}

const gestalt_dims* dims(gestalt_build* b) noexcept { return Builder::of(b).dims().abi(); }
int32_t phase(gestalt_build* b) noexcept { return Builder::of(b).phase(); }

gestalt_status* batch(gestalt_build* b, gestalt_str name, int32_t required, gestalt_tensor** out) noexcept {
  return guarded([&] { *out = Builder::of(b).batch(view_of(name), required != 0); });
}

gestalt_status* param(gestalt_build* b, uint64_t id, gestalt_tensor** out) noexcept {
  return guarded([&] {
    const ModuleInstance& m = module_of(Builder::of(b));
    *out = Builder::of(b).param(*at(m.params, id, "parameter", m));
  });
}

gestalt_status* buffer(gestalt_build* b, uint64_t id, gestalt_tensor** out) noexcept {
  return guarded([&] {
    const ModuleInstance& m = module_of(Builder::of(b));
    *out = Builder::of(b).param(*at(m.buffers, id, "buffer", m));
  });
}

gestalt_status* state(gestalt_build* b, uint64_t id, gestalt_tensor** out) noexcept {
  return guarded([&] {
    const ModuleInstance& m = module_of(Builder::of(b));
    *out = Builder::of(b).state(*at(m.states, id, "state", m));
  });
}

gestalt_status* call(gestalt_build* b, uint64_t child, gestalt_tensor* const* in, uint64_t num_in, gestalt_tensor** out,
                     uint64_t* num_out) noexcept {
  return guarded([&] {
    const ModuleInstance& m = module_of(Builder::of(b));
    const ModuleInstance& c = *at(m.children, child, "child", m);
    give(Builder::of(b).emit(c, std::vector<Value*>(in, in + num_in)), out, num_out, c.path);
  });
}

gestalt_status* loss(gestalt_build* b, gestalt_str name, gestalt_tensor* sum, gestalt_tensor* weight) noexcept {
  return guarded([&] { Builder::of(b).loss(std::string(view_of(name)), sum, weight); });
}

gestalt_status* metric(gestalt_build* b, gestalt_str name, gestalt_tensor* sum, gestalt_tensor* weight) noexcept {
  return guarded([&] { Builder::of(b).metric(std::string(view_of(name)), sum, weight); });
}

}  // namespace

extern const gestalt_build_api kBuildApi;
const gestalt_build_api kBuildApi = {sizeof(gestalt_build_api), apply, describe, dims,  phase, batch, param,
                                     buffer,                    state, call,     loss, metric};

}  // namespace gestalt::core

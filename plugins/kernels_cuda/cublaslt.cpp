#include "plugins/kernels_cuda/cublaslt.h"

#include <dlfcn.h>

#include "gestalt/error.hpp"

namespace gestalt::kernels_cuda {

namespace {

const std::string& library_name() {
  static const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  return name;
}

}  // namespace

CublasLt::CublasLt() {
  void* library = dlopen(library_name().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    why_not_ = library_name() + " does not open: " + (reason ? reason : "no reason given");
    return;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function && why_not_.empty()) why_not_ = library_name() + " has no function " + name;
  };
  find(get_version, "cublasLtGetVersion");
  find(status_name, "cublasLtGetStatusName");
  find(create, "cublasLtCreate");
  find(matmul, "cublasLtMatmul");
  find(desc_create, "cublasLtMatmulDescCreate");
  find(desc_destroy, "cublasLtMatmulDescDestroy");
  find(desc_set, "cublasLtMatmulDescSetAttribute");
  find(layout_create, "cublasLtMatrixLayoutCreate");
  find(layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(layout_set, "cublasLtMatrixLayoutSetAttribute");
  find(preference_create, "cublasLtMatmulPreferenceCreate");
  find(preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  if (!why_not_.empty()) return;
  version = get_version();
  if (const cublasStatus_t status = create(&handle); status != CUBLAS_STATUS_SUCCESS)
    why_not_ = library_name() + " does not start: " + status_name(status);
}

CublasLt& CublasLt::open() {
  // Never closed: plans that hold its objects may be destroyed last.
  static auto* const library = new CublasLt;
  if (!library->why_not_.empty()) throw Unsupported(library->why_not_);
  return *library;
}

void CublasLt::check(cublasStatus_t status, const char* what) const {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(GESTALT_INTERNAL, std::string("[") + what + "] " + status_name(status));
}

}  // namespace gestalt::kernels_cuda

#pragma once

#include <cublasLt.h>

#include <string>

// cuBLASLt, opened when the first product is planned: the plugin loads where the library is missing, and the products
// that need it decline with the reason.
namespace gestalt::kernels_cuda {

class CublasLt {
 public:
  // The library of the process for the current device. Throws Unsupported when it does not open.
  static CublasLt& open();

  cublasLtHandle_t handle = nullptr;
  size_t version = 0;

  decltype(&cublasLtGetVersion) get_version;
  decltype(&cublasLtGetStatusName) status_name;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;

  // Throws Error with the status's name.
  void check(cublasStatus_t status, const char* what) const;

 private:
  CublasLt();
  std::string why_not_;
};

}  // namespace gestalt::kernels_cuda

#pragma once

#include <string>

#include "plugins/kernels_cuda/cublaslt.h"
#include "plugins/kernels_cuda/matmul_shape.h"

namespace gestalt::kernels_cuda {

struct ProductTypes {
  DType in, out;  // of the operands and the bias, and of the result: the same or f32
  bool bias;
};

// The product by our own kernel (matmul.cu), for any addresses.
void multiply_plainly(const ProductShape& shape, const ProductTypes& types, const void* a, const void* b, void* y,
                      const void* bias, bool accumulate, cudaStream_t stream);

// One product of cuBLASLt, planned for one size: descriptors and algorithms. With !acc outputs beta is 1 and the result
// f32; sums are in f32 and never in TF32.
class LtProduct {
 public:
  using Types = ProductTypes;
  // `search`: time the candidates on the device and keep the fastest (AlgorithmCache); else the library's first choice.
  // Throws Unsupported when the library has no algorithm.
  LtProduct(const ProductShape& shape, const Types& types, bool search);
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;
  ~LtProduct();

  // The same or more for a larger product.
  static uint64_t workspace_bytes(const ProductShape& shape);

  void run(const void* a, const void* b, void* y, const void* bias, bool accumulate, void* workspace,
           cudaStream_t stream) const;

 private:
  struct Choice {
    cublasLtMatmulAlgo_t algorithm{};
    bool found = false;
  };
  void describe();
  void release();
  Choice first_choice(uint32_t alignment) const;
  Choice fastest(const std::string& key) const;
  std::string key() const;
  cublasStatus_t multiply(const void* a, const void* b, void* y, bool accumulate, const cublasLtMatmulAlgo_t& algorithm,
                          void* workspace, cudaStream_t stream) const;

  CublasLt& lt_;
  ProductShape shape_;
  Types types_;
  uint64_t workspace_ = 0;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, y_ = nullptr;  // row-major b, a and y, seen as column-major
  Choice aligned_, unaligned_;  // for operands at 16 bytes; for operands at one element
};

// Writes numbers of ordinary size, whatever the type, so that timings do not profit from zeros.
void fill_for_timing(void* data, uint64_t bytes, cudaStream_t stream);

}  // namespace gestalt::kernels_cuda

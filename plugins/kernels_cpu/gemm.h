#pragma once

#include <cstdint>

#include "gestalt/dtype.hpp"
#include "gestalt/parallel.hpp"

// Matrix products: both operands are copied into panels that the tile loop (loops.h) reads in order, blocks of depth
// from the first to the last are added into the result. Every element of the result is the same sequence of operations
// whatever the number of threads and the shape of the rest, so its bits depend on its row, its column and k alone.
namespace gestalt::kernels_cpu {

// Element (i, j) is at data[i * row + j * col]; elements may be narrower than the compute type.
struct Matrix {
  const void* data;
  DType dtype;
  int64_t row, col;
};

// y[m, n] (+)= a[m, k] b[k, n] + bias[n], in the compute type C (float or double).
template <class C>
struct Product {
  int64_t m, n, k;
  Matrix a, b;
  void* y;
  DType y_dtype;
  int64_t y_row, y_col;
  bool accumulate = false;
  const C* bias = nullptr;
};

// Bytes of scratch that multiply needs, 64-aligned.
template <class C>
int64_t multiply_scratch(int64_t m, int64_t n, int64_t k);

// On the team's threads, or on the calling one where team is null.
template <class C>
void multiply(const Parallel* team, const Product<C>& product, void* scratch);

}  // namespace gestalt::kernels_cpu

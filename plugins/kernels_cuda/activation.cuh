#pragma once

#include "gestalt/op_plans/activation.hpp"
#include "plugins/kernels_cuda/element.cuh"
#include "plugins/kernels_cuda/element_kernel.h"

// The functions behind the activations, gated and not.
namespace gestalt::kernels_cuda {

// Large negative x gives 1 / infinity, which is 0.
__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + exp_of(-x)); }
__device__ __forceinline__ double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// 0.5 x (1 + tanh(u)) is x sigmoid(2u), with u = sqrt(2/pi) (x + 0.044715 x^3).
template <class C>
__device__ __forceinline__ C gelu_gate(C x) {
  return sigmoid(C(1.5957691216057308) * x * (C(1) + C(0.044715) * x * x));
}
template <class C>
__device__ __forceinline__ C gelu(C x, bool erf) {
  return erf ? C(0.5) * x * erfc(C(-0.70710678118654752) * x) : x * gelu_gate(x);
}
template <class C>
__device__ __forceinline__ C gelu_slope(C x, bool erf) {
  if (erf) {
    const C density = C(0.39894228040143268) * exp(C(-0.5) * x * x);
    const C bend = density > C(0) ? x * density : C(0);
    return C(0.5) * erfc(C(-0.70710678118654752) * x) + bend;
  }
  const C s = gelu_gate(x);
  const C slope = C(1.5957691216057308) * (C(1) + C(0.134145) * x * x);
  // Large |x| squares to infinity; s (1 - s) is 0 there, and so is the product.
  const C bend = s * (C(1) - s);
  return bend > C(0) ? s + x * bend * slope : s;
}
template <class C>
__device__ __forceinline__ C silu_slope(C x) {
  const C s = sigmoid(x);
  return s + x * s * (C(1) - s);
}

}  // namespace gestalt::kernels_cuda

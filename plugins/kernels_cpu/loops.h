#pragma once

#include <cstdint>

// Inner loops over contiguous arrays of the compute type C (float or double), compiled once per instruction set
// (loops_*.cpp) and chosen once per process. A sum adds in an order fixed by its length alone, so the bits of a result
// do not depend on alignment, compiler or number of threads. The output of an elementwise loop may be one of its
// inputs.
namespace gestalt::kernels_cpu {

// Constants of one AdamW update.
template <class C>
struct AdamCoefficients {
  C clip;            // factor on the gradient
  C beta1, beta2;    // decay of the moments
  C rest1, rest2;    // 1 - beta1, 1 - beta2
  C step;            // learning rate / (1 - beta1^step)
  C inv_correction;  // 1 / sqrt(1 - beta2^step)
  C eps;
  C decay;  // learning rate * weight decay
};

template <class C>
struct Loops {
  void (*add)(const C* a, const C* b, C* y, int64_t n);
  void (*sub)(const C* a, const C* b, C* y, int64_t n);
  void (*mul)(const C* a, const C* b, C* y, int64_t n);
  void (*div)(const C* a, const C* b, C* y, int64_t n);
  void (*scale)(const C* x, C factor, C* y, int64_t n);

  void (*gelu_tanh)(const C* x, C* y, int64_t n);
  void (*gelu_tanh_bwd)(const C* x, const C* dy, C* dx, int64_t n);
  void (*gelu_erf)(const C* x, C* y, int64_t n);
  void (*gelu_erf_bwd)(const C* x, const C* dy, C* dx, int64_t n);
  void (*silu)(const C* x, C* y, int64_t n);
  void (*silu_bwd)(const C* x, const C* dy, C* dx, int64_t n);
  void (*relu)(const C* x, C* y, int64_t n);
  void (*relu_bwd)(const C* x, const C* dy, C* dx, int64_t n);
  void (*swiglu)(const C* gate, const C* up, C* y, int64_t n);
  void (*swiglu_bwd)(const C* gate, const C* up, const C* dy, C* dgate, C* dup, int64_t n);

  void (*softcap)(const C* x, C factor, C cap, C* y, int64_t n);  // y = cap tanh(factor x / cap)
  C (*max)(const C* x, int64_t n);                                // -infinity for n = 0
  C (*dot)(const C* a, const C* b, int64_t n);
  double (*sum)(const C* x, int64_t n);
  double (*sum_squares)(const C* x, int64_t n);
  void (*add_to_double)(const C* x, double* y, int64_t n);              // y += x
  C (*exp_shift_sum)(const C* x, C factor, C shift, C* y, int64_t n);   // y = exp(factor x - shift), returns its sum
  C (*logsumexp)(const C* x, int64_t n);                                // natural log
  void (*softmax_grad)(const C* x, C lse, C factor, C* dx, int64_t n);  // dx = factor exp(x - lse)
  void (*score_grad)(const C* p, const C* dp, C delta, C factor, C* ds, int64_t n);  // ds = p (dp - delta) factor

  // cosine and sine of position * turns[i] full turns.
  void (*rotation)(double position, const double* turns, C* cosine, C* sine, int64_t n);

  // y[i] = factor x[i], or 0 where the 24 high bits of word i are below threshold. The words are those of
  // philox(key, c0, c1, c2, c3 + i / 4), see gestalt/philox.h.
  void (*dropout)(const C* x, C factor, uint32_t threshold, uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2,
                  uint32_t c3, C* y, int64_t n);

  // One row of n; w and b hold n elements, b may be null. dw and db are added to.
  void (*rms_norm)(const C* x, const C* w, C eps, C* y, C* rstd, int64_t n);
  void (*rms_norm_bwd)(const C* x, const C* w, C rstd, const C* dy, C* dx, C* dw, int64_t n);
  void (*layer_norm)(const C* x, const C* w, const C* b, C eps, C* y, C* mean, C* rstd, int64_t n);
  void (*layer_norm_bwd)(const C* x, const C* w, C mean, C rstd, const C* dy, C* dx, C* dw, C* db, int64_t n);

  void (*adamw)(const AdamCoefficients<C>& c, const C* grad, C* param, C* m, C* v, int64_t n);
  void (*sgd)(C clip, C momentum, C lr, C decay, bool nesterov, const C* grad, C* param, C* buf, int64_t n);

  // c[i * ldc + j] = sum over k < depth of a[k * kTileRows + i] * b[k * kTileCols + j] for i < rows, j < cols, k
  // rising: one tile of a matrix product on packed panels (gemm.h). first: write, else add. bias (may be null) is per
  // column.
  void (*tile)(int64_t depth, const C* a, const C* b, C* c, int64_t ldc, int64_t rows, int64_t cols, bool first,
               const C* bias);
  // Panels for tile: panel[k * tile_rows + i] = from[i * stride + k * depth_stride] for i < size, 0 up to tile_rows;
  // the right operand's panels likewise with tile_cols.
  void (*pack_left)(const C* from, int64_t stride, int64_t depth_stride, int64_t size, int64_t depth, C* panel);
  void (*pack_right)(const C* from, int64_t stride, int64_t depth_stride, int64_t size, int64_t depth, C* panel);
  int64_t tile_rows, tile_cols;  // of the packed panels: tile_rows <= kMaxTileRows, tile_cols <= kMaxTileCols
};

inline constexpr int64_t kMaxTileRows = 16;
inline constexpr int64_t kMaxTileCols = 32;

// The best table for this processor.
template <class C>
const Loops<C>& loops();
template <>
const Loops<float>& loops<float>();
template <>
const Loops<double>& loops<double>();

}  // namespace gestalt::kernels_cpu

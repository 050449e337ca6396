// Included by loops_baseline.cpp, loops_avx2.cpp and loops_avx512.cpp, which are compiled with different flags and
// define GESTALT_ISA (a namespace) and GESTALT_VECTOR_BYTES. No function of this file may have external linkage outside
// that namespace: the linker would keep one copy, perhaps one that this processor cannot run. So no standard headers.
// The flags switch off contraction (fused multiply-add appears only through madd) to keep loop bodies and loop
// remainders bit-equal.

#include <utility>  // integer_sequence, which has no functions

#ifdef __FMA__
#include <immintrin.h>
#endif

#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu::GESTALT_ISA {
namespace {

#define GESTALT_INLINE static inline __attribute__((always_inline))
#define GESTALT_SIMD _Pragma("omp simd")
#ifdef __clang__
#define GESTALT_UNROLL _Pragma("unroll")
#else
#define GESTALT_UNROLL _Pragma("GCC unroll 16")
#endif

GESTALT_INLINE float madd(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

GESTALT_INLINE double madd(double a, double b, double c) { return a * b + c; }

GESTALT_INLINE double exp_of(double x) { return __builtin_exp(x); }
GESTALT_INLINE double log_of(double x) { return __builtin_log(x); }
GESTALT_INLINE float log_of(float x) { return __builtin_logf(x); }
GESTALT_INLINE double sqrt_of(double x) { return __builtin_sqrt(x); }
GESTALT_INLINE float sqrt_of(float x) { return __builtin_sqrtf(x); }
GESTALT_INLINE double erfc_of(double x) { return __builtin_erfc(x); }
GESTALT_INLINE float erfc_of(float x) { return __builtin_erfcf(x); }

// exp as 2^n e^r with |r| <= ln(2)/2 and a polynomial for e^r: error below 2 units in the last place; results below
// 2^-126 become 0. Branch-free, so loops over it become vector code.
GESTALT_INLINE float exp_of(float x) {
  const float t = madd(x < 89.0f ? (x > -88.0f ? x : -88.0f) : 89.0f, 1.44269504088896341f, 12582912.0f);
  const float n = t - 12582912.0f;
  float r = madd(n, -0.693145751953125f, x < 89.0f ? (x > -88.0f ? x : -88.0f) : 89.0f);
  r = madd(n, -1.428606765330187e-6f, r);
  float p = 1.9875691500e-4f;
  p = madd(p, r, 1.3981999507e-3f);
  p = madd(p, r, 8.3334519073e-3f);
  p = madd(p, r, 4.1665795894e-2f);
  p = madd(p, r, 1.6666665459e-1f);
  p = madd(p, r, 5.0000001201e-1f);
  p = madd(p * r, r, r) + 1.0f;
  const int32_t exponent = static_cast<int32_t>(n);
  const int32_t half = exponent >> 1;
  const float first = __builtin_bit_cast(float, (half + 127) << 23);
  const float second = __builtin_bit_cast(float, (exponent - half + 127) << 23);
  float y = p * first * second;
  y = x < -87.33654f ? 0.0f : y;
  return x != x ? x : y;
}

// Sum of f(0..n-1): 32 partial sums by index modulo 32, then halved.
template <class A, class F>
GESTALT_INLINE A reduce(int64_t n, F f) {
  A part[32] = {};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    GESTALT_SIMD
    for (int64_t l = 0; l < 32; ++l) part[l] += f(i + l);
  }
  for (int64_t l = 0; i < n; ++i, ++l) part[l] += f(i);
  for (int64_t width = 16; width > 0; width /= 2)
    for (int64_t l = 0; l < width; ++l) part[l] += part[l + width];
  return part[0];
}

template <class F>
GESTALT_INLINE void each(int64_t n, F f) {
  GESTALT_SIMD
  for (int64_t i = 0; i < n; ++i) f(i);
}

template <class C>
void add(const C* a, const C* b, C* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] = a[i] + b[i]; });
}
template <class C>
void sub(const C* a, const C* b, C* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] = a[i] - b[i]; });
}
template <class C>
void mul(const C* a, const C* b, C* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] = a[i] * b[i]; });
}
template <class C>
void div(const C* a, const C* b, C* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] = a[i] / b[i]; });
}
template <class C>
void scale(const C* x, C factor, C* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] = x[i] * factor; });
}

template <class C>
GESTALT_INLINE C sigmoid(C x) {
  return C(1) / (C(1) + exp_of(-x));
}

// 0.5 x (1 + tanh(u)) is x sigmoid(2u), with u = sqrt(2/pi) (x + 0.044715 x^3).
template <class C>
GESTALT_INLINE C gelu_gate(C x) {
  return sigmoid(C(1.5957691216057308) * x * (C(1) + C(0.044715) * x * x));
}
template <class C>
void gelu_tanh(const C* x, C* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] = x[i] * gelu_gate(x[i]); });
}
template <class C>
void gelu_tanh_bwd(const C* x, const C* dy, C* dx, int64_t n) {
  each(n, [=](int64_t i) {
    const C v = x[i];
    const C s = gelu_gate(v);
    const C slope = C(1.5957691216057308) * (C(1) + C(0.134145) * v * v);
    // Large |x| squares to infinity; s (1 - s) is 0 there, and so is the product.
    const C bend = s * (C(1) - s);
    dx[i] = dy[i] * (bend > C(0) ? s + v * bend * slope : s);
  });
}
template <class C>
void gelu_erf(const C* x, C* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = C(0.5) * x[i] * erfc_of(C(-0.70710678118654752) * x[i]);
}
template <class C>
void gelu_erf_bwd(const C* x, const C* dy, C* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const C v = x[i];
    const C density = C(0.39894228040143268) * exp_of(C(-0.5) * v * v);
    const C bend = density > C(0) ? v * density : C(0);
    dx[i] = dy[i] * (C(0.5) * erfc_of(C(-0.70710678118654752) * v) + bend);
  }
}
template <class C>
void silu(const C* x, C* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] = x[i] * sigmoid(x[i]); });
}
template <class C>
GESTALT_INLINE C silu_slope(C x) {
  const C s = sigmoid(x);
  return s + x * s * (C(1) - s);
}
template <class C>
void silu_bwd(const C* x, const C* dy, C* dx, int64_t n) {
  each(n, [=](int64_t i) { dx[i] = dy[i] * silu_slope(x[i]); });
}
template <class C>
void relu(const C* x, C* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] = x[i] < C(0) ? C(0) : x[i]; });
}
template <class C>
void relu_bwd(const C* x, const C* dy, C* dx, int64_t n) {
  each(n, [=](int64_t i) { dx[i] = x[i] > C(0) ? dy[i] : C(0); });
}
template <class C>
void swiglu(const C* gate, const C* up, C* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] = gate[i] * sigmoid(gate[i]) * up[i]; });
}
template <class C>
void swiglu_bwd(const C* gate, const C* up, const C* dy, C* dgate, C* dup, int64_t n) {
  each(n, [=](int64_t i) {
    const C g = gate[i], u = up[i], d = dy[i];
    dgate[i] = d * u * silu_slope(g);
    dup[i] = d * g * sigmoid(g);
  });
}

// Small arguments by a polynomial: 1 - 2 / (exp(2x) + 1) loses their digits.
GESTALT_INLINE float tanh_of(float x) {
  const float size = x < 0.0f ? -x : x;
  const float q = x * x;
  float p = -5.70498872745e-3f;
  p = madd(p, q, 2.06390887954e-2f);
  p = madd(p, q, -5.37397155531e-2f);
  p = madd(p, q, 1.33314422036e-1f);
  p = madd(p, q, -3.33332819422e-1f);
  const float near = madd(p * q, x, x);
  const float far = 1.0f - 2.0f / (exp_of(2.0f * size) + 1.0f);
  return size < 0.625f ? near : (x < 0.0f ? -far : far);
}
GESTALT_INLINE double tanh_of(double x) { return __builtin_tanh(x); }
template <class C>
void softcap(const C* x, C factor, C cap, C* y, int64_t n) {
  const C inner = factor / cap;
  each(n, [=](int64_t i) { y[i] = cap * tanh_of(x[i] * inner); });
}

template <class C>
C max(const C* x, int64_t n) {
  C part[32];
  for (int64_t l = 0; l < 32; ++l) part[l] = -C(__builtin_inf());
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    GESTALT_SIMD
    for (int64_t l = 0; l < 32; ++l) part[l] = x[i + l] > part[l] ? x[i + l] : part[l];
  }
  for (int64_t l = 0; i < n; ++i, ++l) part[l] = x[i] > part[l] ? x[i] : part[l];
  for (int64_t l = 1; l < 32; ++l) part[0] = part[l] > part[0] ? part[l] : part[0];
  return part[0];
}
template <class C>
C dot(const C* a, const C* b, int64_t n) {
  return reduce<C>(n, [=](int64_t i) { return a[i] * b[i]; });
}
template <class C>
double sum(const C* x, int64_t n) {
  return reduce<double>(n, [=](int64_t i) { return static_cast<double>(x[i]); });
}
template <class C>
double sum_squares(const C* x, int64_t n) {
  return reduce<double>(n, [=](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}
template <class C>
void add_to_double(const C* x, double* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] += static_cast<double>(x[i]); });
}
template <class C>
C exp_shift_sum(const C* x, C factor, C shift, C* y, int64_t n) {
  each(n, [=](int64_t i) { y[i] = exp_of(x[i] * factor - shift); });
  return reduce<C>(n, [=](int64_t i) { return y[i]; });
}
template <class C>
C logsumexp(const C* x, int64_t n) {
  const C top = max(x, n);
  // All -infinity (or empty), or +infinity: the differences below would be NaN.
  if (top - top != C(0)) return top;
  return top + log_of(reduce<C>(n, [=](int64_t i) { return exp_of(x[i] - top); }));
}
template <class C>
void softmax_grad(const C* x, C lse, C factor, C* dx, int64_t n) {
  each(n, [=](int64_t i) { dx[i] = factor * exp_of(x[i] - lse); });
}
template <class C>
void score_grad(const C* p, const C* dp, C delta, C factor, C* ds, int64_t n) {
  each(n, [=](int64_t i) { ds[i] = p[i] * (dp[i] - delta) * factor; });
}

// The angle is reduced in double to r within an eighth of a turn of a quarter turn; the series in r then have errors
// below one unit in the last place of float.
GESTALT_INLINE void rotate_one(double turns, float* cosine, float* sine) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double quarter = turns * 4.0 + kShift - kShift;
  const float r = static_cast<float>((turns * 4.0 - quarter) * 1.5707963267948966);
  const float q = r * r;
  const float s = r * (1.0f + q * (-1.6666667e-1f + q * (8.3333333e-3f + q * (-1.9841270e-4f + q * 2.7557319e-6f))));
  const float c = 1.0f + q * (-0.5f + q * (4.1666667e-2f + q * (-1.3888889e-3f + q * 2.4801587e-5f)));
  const float fourth = static_cast<float>(quarter - 4.0 * (quarter * 0.25 - 0.375 + kShift - kShift));
  // fourth is the quarter modulo 4: 0, 1, 2 or 3.
  const float a = fourth == 1.0f || fourth == 3.0f ? s : c;
  const float b = fourth == 1.0f || fourth == 3.0f ? c : s;
  *cosine = fourth == 1.0f || fourth == 2.0f ? -a : a;
  *sine = fourth >= 2.0f ? -b : b;
}
GESTALT_INLINE void rotate_one(double turns, double* cosine, double* sine) {
  *cosine = __builtin_cos(turns * 6.283185307179586477);
  *sine = __builtin_sin(turns * 6.283185307179586477);
}
template <class C>
void rotation(double position, const double* turns, C* cosine, C* sine, int64_t n) {
  each(n, [=](int64_t i) { rotate_one(position * turns[i], cosine + i, sine + i); });
}

// 16 counters side by side: the rounds of gestalt/philox.h, one vector instruction each.
template <class C>
void dropout(const C* x, C factor, uint32_t threshold, uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3,
             C* y, int64_t n) {
  constexpr int kBlocks = 16;
  uint32_t w0[kBlocks], w1[kBlocks], w2[kBlocks], w3[kBlocks], words[4 * kBlocks];
  for (int64_t begin = 0; begin < n; begin += 4 * kBlocks, c3 += kBlocks) {
    GESTALT_SIMD
    for (int i = 0; i < kBlocks; ++i) {
      uint32_t a = c0, b = c1, c = c2, d = c3 + static_cast<uint32_t>(i);
      uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
      for (int round = 0; round < 10; ++round) {
        const uint64_t p = uint64_t{0xD2511F53u} * a, q = uint64_t{0xCD9E8D57u} * c;
        a = static_cast<uint32_t>(q >> 32) ^ b ^ k0;
        b = static_cast<uint32_t>(q);
        c = static_cast<uint32_t>(p >> 32) ^ d ^ k1;
        d = static_cast<uint32_t>(p);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
      }
      w0[i] = a;
      w1[i] = b;
      w2[i] = c;
      w3[i] = d;
    }
    for (int i = 0; i < kBlocks; ++i) {
      words[4 * i] = w0[i];
      words[4 * i + 1] = w1[i];
      words[4 * i + 2] = w2[i];
      words[4 * i + 3] = w3[i];
    }
    const int64_t count = n - begin < 4 * kBlocks ? n - begin : 4 * kBlocks;
    const C* from = x + begin;
    C* to = y + begin;
    each(count, [&](int64_t i) { to[i] = words[i] >> 8 < threshold ? C(0) : from[i] * factor; });
  }
}

template <class C>
void rms_norm(const C* x, const C* w, C eps, C* y, C* rstd, int64_t n) {
  const C square = reduce<C>(n, [=](int64_t i) { return x[i] * x[i]; });
  const C scale = C(1) / sqrt_of(square / C(n) + eps);
  *rstd = scale;
  each(n, [=](int64_t i) { y[i] = x[i] * scale * w[i]; });
}
template <class C>
void rms_norm_bwd(const C* x, const C* w, C rstd, const C* dy, C* dx, C* dw, int64_t n) {
  const C along = reduce<C>(n, [=](int64_t i) { return dy[i] * w[i] * x[i]; });
  const C pull = along * rstd * rstd / C(n);
  each(n, [=](int64_t i) {
    const C v = x[i], d = dy[i];
    dw[i] += d * v * rstd;
    dx[i] = (d * w[i] - v * pull) * rstd;
  });
}
template <class C>
void layer_norm(const C* x, const C* w, const C* b, C eps, C* y, C* mean, C* rstd, int64_t n) {
  const C middle = reduce<C>(n, [=](int64_t i) { return x[i]; }) / C(n);
  const C square = reduce<C>(n, [=](int64_t i) { return (x[i] - middle) * (x[i] - middle); });
  const C scale = C(1) / sqrt_of(square / C(n) + eps);
  *mean = middle;
  *rstd = scale;
  if (b != nullptr) {
    each(n, [=](int64_t i) { y[i] = (x[i] - middle) * scale * w[i] + b[i]; });
  } else {
    each(n, [=](int64_t i) { y[i] = (x[i] - middle) * scale * w[i]; });
  }
}
template <class C>
void layer_norm_bwd(const C* x, const C* w, C mean, C rstd, const C* dy, C* dx, C* dw, C* db, int64_t n) {
  const C level = reduce<C>(n, [=](int64_t i) { return dy[i] * w[i]; }) / C(n);
  const C along = reduce<C>(n, [=](int64_t i) { return dy[i] * w[i] * ((x[i] - mean) * rstd); }) / C(n);
  each(n, [=](int64_t i) {
    const C normal = (x[i] - mean) * rstd, d = dy[i];
    dw[i] += d * normal;
    db[i] += d;
    dx[i] = (d * w[i] - level - normal * along) * rstd;
  });
}

template <class C>
void adamw(const AdamCoefficients<C>& c, const C* grad, C* param, C* m, C* v, int64_t n) {
  const AdamCoefficients<C> k = c;
  each(n, [=](int64_t i) {
    const C g = grad[i] * k.clip;
    const C first = k.beta1 * m[i] + k.rest1 * g;
    const C second = k.beta2 * v[i] + k.rest2 * g * g;
    m[i] = first;
    v[i] = second;
    param[i] -= k.step * first / (sqrt_of(second) * k.inv_correction + k.eps) + k.decay * param[i];
  });
}
template <class C>
void sgd(C clip, C momentum, C lr, C decay, bool nesterov, const C* grad, C* param, C* buf, int64_t n) {
  if (buf == nullptr) {
    each(n, [=](int64_t i) { param[i] -= lr * (grad[i] * clip + decay * param[i]); });
    return;
  }
  each(n, [=](int64_t i) {
    const C g = grad[i] * clip + decay * param[i];
    const C next = momentum * buf[i] + g;
    buf[i] = next;
    param[i] -= lr * (nesterov ? g + momentum * next : next);
  });
}

template <class C>
struct Vector;
template <>
struct Vector<float> {
  typedef float type __attribute__((vector_size(GESTALT_VECTOR_BYTES), aligned(4), may_alias));
  typedef float held __attribute__((vector_size(GESTALT_VECTOR_BYTES)));
};
template <>
struct Vector<double> {
  typedef double type __attribute__((vector_size(GESTALT_VECTOR_BYTES), aligned(8), may_alias));
  typedef double held __attribute__((vector_size(GESTALT_VECTOR_BYTES)));
};

// a b + c with one b for all lanes.
template <class V, class C>
GESTALT_INLINE V fused(V a, C b, V c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(C) == 4) {
    return (V)_mm512_fmadd_ps((__m512)a, _mm512_set1_ps(b), (__m512)c);
  } else {
    return (V)_mm512_fmadd_pd((__m512d)a, _mm512_set1_pd(b), (__m512d)c);
  }
#elif defined(__FMA__)
  if constexpr (sizeof(C) == 4) {
    return (V)_mm256_fmadd_ps((__m256)a, _mm256_set1_ps(b), (__m256)c);
  } else {
    return (V)_mm256_fmadd_pd((__m256d)a, _mm256_set1_pd(b), (__m256d)c);
  }
#else
  return a * b + c;
#endif
}

// kRows x kVectors vectors of sums stay in registers over the whole depth.
template <class C, int kRows, int kVectors>
void tile(int64_t depth, const C* a, const C* b, C* c, int64_t ldc, int64_t rows, int64_t cols, bool first,
          const C* bias) {
  using Stored = typename Vector<C>::type;
  using Held = typename Vector<C>::held;
  constexpr int kWidth = GESTALT_VECTOR_BYTES / static_cast<int>(sizeof(C));
  constexpr int kCols = kVectors * kWidth;
  Held sum[kRows][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Held right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = *reinterpret_cast<const Stored*>(b + k * kCols + j * kWidth);
    GESTALT_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const C left = a[k * kRows + i];
      for (int j = 0; j < kVectors; ++j) sum[i][j] = fused(right[j], left, sum[i][j]);
    }
  }
  if (rows == kRows && cols == kCols) {
    GESTALT_UNROLL
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kVectors; ++j) {
        Stored* to = reinterpret_cast<Stored*>(c + i * ldc + j * kWidth);
        Held value = sum[i][j];
        if (bias != nullptr) value += *reinterpret_cast<const Stored*>(bias + j * kWidth);
        *to = first ? value : *to + value;
      }
    }
    return;
  }
  C flat[kRows * kCols];
  __builtin_memcpy(flat, sum, sizeof(flat));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      C value = flat[i * kCols + j];
      if (bias != nullptr) value += bias[j];
      C* to = c + i * ldc + j;
      *to = first ? value : *to + value;
    }
  }
}

// Lane l of the result: a[l] or b[l - kHalf] by bit kHalf of l; and a[l + kHalf] or b[l].
template <int kHalf, class V, int... kLane>
GESTALT_INLINE void exchange(V& a, V& b, std::integer_sequence<int, kLane...>) {
  constexpr int n = sizeof...(kLane);
  const V low = __builtin_shufflevector(a, b, ((kLane & kHalf) == 0 ? kLane : n + kLane - kHalf)...);
  b = __builtin_shufflevector(a, b, ((kLane & kHalf) == 0 ? kLane + kHalf : n + kLane)...);
  a = low;
}

// n vectors of n lanes, in log2(n) rounds of exchanged halves.
template <int kHalf, int n, class V>
GESTALT_INLINE void transpose(V (&rows)[n]) {
  if constexpr (kHalf > 0) {
    GESTALT_UNROLL
    for (int i = 0; i < n; ++i)
      if ((i & kHalf) == 0) exchange<kHalf>(rows[i], rows[i + kHalf], std::make_integer_sequence<int, n>());
    transpose<kHalf / 2>(rows);
  }
}

// Rows that are contiguous along the depth. A group of rows, as many as a vector has lanes, is transposed at a time.
// Its store may run over the end of a panel's row: into the next one, which is written later, for groups go from last
// to first and depth from first to last. Only the last row of all is cut short.
template <class C, int kPanel>
void pack_along(const C* from, int64_t stride, int64_t size, int64_t depth, C* panel) {
  using Stored = typename Vector<C>::type;
  using Held = typename Vector<C>::held;
  constexpr int n = GESTALT_VECTOR_BYTES / static_cast<int>(sizeof(C));
  for (int64_t first = (kPanel - 1) / n * n; first >= 0; first -= n) {
    const int64_t own = kPanel - first < n ? kPanel - first : n;
    const int64_t valid = size - first < own ? size - first : own;
    const C* rows = from + first * stride;
    int64_t k = 0;
    for (; k + n < depth; k += n) {
      Held block[n] = {};
      if (valid == n) {
        GESTALT_UNROLL
        for (int i = 0; i < n; ++i) block[i] = *reinterpret_cast<const Stored*>(rows + i * stride + k);
      } else {
        GESTALT_UNROLL
        for (int i = 0; i < n; ++i)
          if (i < valid) block[i] = *reinterpret_cast<const Stored*>(rows + i * stride + k);
      }
      transpose<n / 2>(block);
      GESTALT_UNROLL
      for (int i = 0; i < n; ++i) *reinterpret_cast<Stored*>(panel + (k + i) * kPanel + first) = block[i];
    }
    for (; k < depth; ++k)
      for (int64_t i = 0; i < own; ++i) panel[k * kPanel + first + i] = i < valid ? rows[i * stride + k] : C(0);
  }
}

template <class C, int kPanel>
void pack(const C* from, int64_t stride, int64_t depth_stride, int64_t size, int64_t depth, C* panel) {
  if (stride == 1 && size == kPanel) {
    for (int64_t k = 0; k < depth; ++k)
      __builtin_memcpy(panel + k * kPanel, from + k * depth_stride, kPanel * sizeof(C));
  } else if (depth_stride == 1) {
    pack_along<C, kPanel>(from, stride, size, depth, panel);
  } else {
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t i = 0; i < kPanel; ++i)
        panel[k * kPanel + i] = i < size ? from[i * stride + k * depth_stride] : C(0);
  }
}

}  // namespace

template <class C, int kRows, int kVectors>
constexpr Loops<C> make_loops() {
  constexpr int kCols = kVectors * (GESTALT_VECTOR_BYTES / static_cast<int>(sizeof(C)));
  return {add<C>,
          sub<C>,
          mul<C>,
          div<C>,
          scale<C>,
          gelu_tanh<C>,
          gelu_tanh_bwd<C>,
          gelu_erf<C>,
          gelu_erf_bwd<C>,
          silu<C>,
          silu_bwd<C>,
          relu<C>,
          relu_bwd<C>,
          swiglu<C>,
          swiglu_bwd<C>,
          softcap<C>,
          max<C>,
          dot<C>,
          sum<C>,
          sum_squares<C>,
          add_to_double<C>,
          exp_shift_sum<C>,
          logsumexp<C>,
          softmax_grad<C>,
          score_grad<C>,
          rotation<C>,
          dropout<C>,
          rms_norm<C>,
          rms_norm_bwd<C>,
          layer_norm<C>,
          layer_norm_bwd<C>,
          adamw<C>,
          sgd<C>,
          tile<C, kRows, kVectors>,
          pack<C, kRows>,
          pack<C, kCols>,
          kRows,
          kCols};
}

extern const Loops<float> kLoopsF32;
extern const Loops<double> kLoopsF64;
constexpr Loops<float> kTableF32 = make_loops<float, GESTALT_TILE_ROWS, GESTALT_TILE_VECTORS>();
constexpr Loops<double> kTableF64 = make_loops<double, GESTALT_TILE_ROWS, GESTALT_TILE_VECTORS>();
constinit const Loops<float> kLoopsF32 = kTableF32;
constinit const Loops<double> kLoopsF64 = kTableF64;

}  // namespace gestalt::kernels_cpu::GESTALT_ISA

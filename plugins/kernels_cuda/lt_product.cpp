#include "plugins/kernels_cuda/lt_product.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "plugins/kernels_cuda/algorithm_cache.h"

namespace gestalt::kernels_cuda {

namespace {

constexpr int kCandidates = 12;
constexpr int kRepeats = 3;
constexpr uint32_t kVectorAlignment = 16;
constexpr uint64_t kLargeWorkspace = uint64_t{32} << 20, kSmallWorkspace = uint64_t{1} << 20;
constexpr int64_t kLargeProduct = int64_t{1} << 26;  // multiplications

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case kBF16:
      return CUDA_R_16BF;
    case kF16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

bool at_vector(const void* p) { return reinterpret_cast<uintptr_t>(p) % kVectorAlignment == 0; }

std::string to_hex(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const unsigned char* p = reinterpret_cast<const unsigned char*>(&algorithm);
       p != reinterpret_cast<const unsigned char*>(&algorithm + 1); ++p) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", *p);
    text += two;
  }
  return text;
}

bool from_hex(const std::string& text, cublasLtMatmulAlgo_t* algorithm) {
  std::array<unsigned char, sizeof(cublasLtMatmulAlgo_t)> bytes;
  if (text.size() != 2 * bytes.size()) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    if (std::sscanf(text.c_str() + 2 * i, "%2x", &value) != 1) return false;
    bytes[i] = static_cast<unsigned char>(value);
  }
  std::memcpy(algorithm, bytes.data(), bytes.size());
  return true;
}

// Memory and events of one search, gone with it.
class Trial {
 public:
  Trial(uint64_t a, uint64_t b, uint64_t y, uint64_t workspace) {
    for (uint64_t bytes : {a, b, y, workspace}) {
      void* data = nullptr;
      if (cudaMalloc(&data, bytes) != cudaSuccess) {
        cudaGetLastError();  // no room: the library's first choice will do
        return;
      }
      data_[allocated_++] = data;
    }
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaEventCreate(&begin) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess)
      return;
    fill_for_timing(data_[0], a, stream);
    fill_for_timing(data_[1], b, stream);
    fill_for_timing(data_[2], y, stream);
    ready = cudaStreamSynchronize(stream) == cudaSuccess;
  }
  ~Trial() {
    for (int i = 0; i < allocated_; ++i) cudaFree(data_[i]);
    if (stream) cudaStreamDestroy(stream);
    if (begin) cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
    cudaGetLastError();
  }
  void* a() const { return data_[0]; }
  void* b() const { return data_[1]; }
  void* y() const { return data_[2]; }
  void* workspace() const { return data_[3]; }

  bool ready = false;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;

 private:
  void* data_[4] = {};
  int allocated_ = 0;
};

}  // namespace

uint64_t LtProduct::workspace_bytes(const ProductShape& shape) {
  return shape.m * shape.n * shape.k >= kLargeProduct ? kLargeWorkspace : kSmallWorkspace;
}

LtProduct::LtProduct(const ProductShape& shape, const Types& types, bool search)
    : lt_(CublasLt::open()), shape_(shape), types_(types), workspace_(workspace_bytes(shape)) {
  if (types.in == kF64) throw Unsupported("cublaslt: f64 is left to gestalt.cuda");
  if (shape.empty() || shape.k == 0) throw Unsupported("cublaslt: an empty product is left to gestalt.cuda");
  try {
    describe();
    unaligned_ = first_choice(static_cast<uint32_t>(size_of(types.in)));
    aligned_ = search ? fastest(key()) : first_choice(kVectorAlignment);
    if (!aligned_.found) aligned_ = unaligned_;
    if (!aligned_.found)
      throw Unsupported("cublaslt: no algorithm for " + std::to_string(shape.m) + " x " + std::to_string(shape.n) +
                        " x " + std::to_string(shape.k) + " of " + std::string(name_of(types.in)));
  } catch (...) {
    release();
    throw;
  }
}

LtProduct::~LtProduct() { release(); }

void LtProduct::release() {
  if (a_) lt_.layout_destroy(a_);
  if (b_) lt_.layout_destroy(b_);
  if (y_) lt_.layout_destroy(y_);
  if (desc_) lt_.desc_destroy(desc_);
}

// Row-major y = a b is column-major y^T = b^T a^T: the library's first operand is our b.
void LtProduct::describe() {
  const ProductShape& s = shape_;
  lt_.check(lt_.desc_create(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  const auto set = [&](cublasLtMatmulDescAttributes_t what, const auto& value) {
    lt_.check(lt_.desc_set(desc_, what, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, s.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, s.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (types_.bias) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(types_.in));
  }
  const auto layout = [&](cublasLtMatrixLayout_t* out, DType dtype, int64_t rows, int64_t columns) {
    lt_.check(lt_.layout_create(out, type_of(dtype), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
              "cublasLtMatrixLayoutCreate");
    if (s.batch == 1) return;
    const auto count = static_cast<int32_t>(s.batch);
    const int64_t stride = rows * columns;
    lt_.check(lt_.layout_set(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "batch count");
    lt_.check(lt_.layout_set(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
              "batch offset");
  };
  layout(&b_, types_.in, s.trans_b ? s.k : s.n, s.trans_b ? s.n : s.k);
  layout(&a_, types_.in, s.trans_a ? s.m : s.k, s.trans_a ? s.k : s.m);
  layout(&y_, types_.out, s.n, s.m);
}

namespace {

// What an algorithm may use; asks the library for at most `most` candidates.
int candidates(const CublasLt& lt, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t a,
               cublasLtMatrixLayout_t y, bool wide_output, uint64_t workspace, uint32_t alignment, int most,
               cublasLtMatmulHeuristicResult_t* results) {
  cublasLtMatmulPreference_t preference = nullptr;
  lt.check(lt.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    lt.preference_set(preference, what, &value, sizeof value);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(which, alignment);
  // Partial sums of a split are never rounded to 16 bits.
  const uint32_t reductions =
      CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | (wide_output ? CUBLASLT_REDUCTION_SCHEME_INPLACE : 0);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  int count = 0;
  const cublasStatus_t status = lt.heuristic(lt.handle, desc, b, a, y, y, preference, most, results, &count);
  lt.preference_destroy(preference);
  return status == CUBLAS_STATUS_SUCCESS ? count : 0;
}

}  // namespace

LtProduct::Choice LtProduct::first_choice(uint32_t alignment) const {
  cublasLtMatmulHeuristicResult_t result{};
  const int count = candidates(lt_, desc_, b_, a_, y_, types_.out == kF32, workspace_, alignment, 1, &result);
  return {result.algo, count > 0 && result.state == CUBLAS_STATUS_SUCCESS};
}

std::string LtProduct::key() const {
  int device = 0;
  cudaDeviceProp properties{};
  cudaGetDevice(&device);
  cudaGetDeviceProperties(&properties, device);
  std::string text = std::string(properties.name) + "|" + std::to_string(properties.multiProcessorCount) +
                     "|cublaslt " + std::to_string(lt_.version);
  for (int64_t v : {shape_.m, shape_.n, shape_.k, shape_.batch, int64_t{shape_.trans_a}, int64_t{shape_.trans_b},
                    int64_t{types_.bias}})
    text += "|" + std::to_string(v);
  return text + "|" + std::string(name_of(types_.in)) + "|" + std::string(name_of(types_.out));
}

LtProduct::Choice LtProduct::fastest(const std::string& key) const {
  AlgorithmCache& cache = AlgorithmCache::of_process();
  if (const auto line = cache.find(key)) {
    Choice known;
    known.found = from_hex(*line, &known.algorithm);
    if (known.found) return known;
  }
  // What cannot be kept is not searched: the next run might find another, and other bits.
  if (!cache.writable()) return first_choice(kVectorAlignment);
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results{};
  const int count =
      candidates(lt_, desc_, b_, a_, y_, types_.out == kF32, workspace_, kVectorAlignment, kCandidates, results.data());
  if (count == 0) return {};
  Choice best{results[0].algo, true};
  const ProductShape& s = shape_;
  const auto bytes = [&](int64_t elements, DType dtype) {
    return static_cast<uint64_t>(elements * s.batch * size_of(dtype));
  };
  Trial trial(bytes(s.m * s.k, types_.in), bytes(s.k * s.n, types_.in), bytes(s.m * s.n, types_.out), workspace_);
  if (!trial.ready || count == 1) return best;
  if (types_.bias) {
    const void* bias = trial.b();
    lt_.desc_set(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  }
  float lowest = 0;
  for (int i = 0; i < count; ++i) {
    if (results[static_cast<size_t>(i)].state != CUBLAS_STATUS_SUCCESS) continue;
    const cublasLtMatmulAlgo_t& algorithm = results[static_cast<size_t>(i)].algo;
    const auto once = [&] {
      return multiply(trial.a(), trial.b(), trial.y(), false, algorithm, trial.workspace(), trial.stream);
    };
    if (once() != CUBLAS_STATUS_SUCCESS) continue;
    float time = 0;
    for (int r = 0; r < kRepeats; ++r) {
      float milliseconds = 0;
      cudaEventRecord(trial.begin, trial.stream);
      once();
      cudaEventRecord(trial.end, trial.stream);
      if (cudaEventSynchronize(trial.end) != cudaSuccess) return {};
      cudaEventElapsedTime(&milliseconds, trial.begin, trial.end);
      if (r == 0 || milliseconds < time) time = milliseconds;
    }
    if (lowest == 0 || time < lowest) {
      lowest = time;
      best.algorithm = algorithm;
    }
  }
  cache.store(key, to_hex(best.algorithm));
  return best;
}

cublasStatus_t LtProduct::multiply(const void* a, const void* b, void* y, bool accumulate,
                                   const cublasLtMatmulAlgo_t& algorithm, void* workspace, cudaStream_t stream) const {
  const float alpha = 1, beta = accumulate ? 1 : 0;
  return lt_.matmul(lt_.handle, desc_, &alpha, b, b_, a, a_, &beta, y, y_, y, y_, &algorithm, workspace, workspace_,
                    stream);
}

void LtProduct::run(const void* a, const void* b, void* y, const void* bias, bool accumulate, void* workspace,
                    cudaStream_t stream) const {
  if (types_.bias)
    lt_.check(lt_.desc_set(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias), "bias pointer");
  const bool aligned = at_vector(a) && at_vector(b) && at_vector(y) && (!bias || at_vector(bias));
  const Choice& choice = aligned || !unaligned_.found ? aligned_ : unaligned_;
  const cublasStatus_t status = multiply(a, b, y, accumulate, choice.algorithm, workspace, stream);
  // The library may refuse an operand that lies between the vectors it reads; it says so before it enqueues anything.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED && !aligned)
    return multiply_plainly(shape_, types_, a, b, y, bias, accumulate, stream);
  lt_.check(status, "cublasLtMatmul");
}

}  // namespace gestalt::kernels_cuda

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "gestalt/device.hpp"
#include "plugins/device_cuda/architectures.h"

namespace gestalt::device_cuda {

namespace {

constexpr uint64_t kAlignment = 256;  // what cudaMalloc guarantees, and more than any load needs

std::string version_text(int version) {  // 13000: "13.0"
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // an error that does not end the context is not reported twice
  throw Error(error == cudaErrorMemoryAllocation ? GESTALT_OUT_OF_MEMORY : GESTALT_INTERNAL,
              std::string("[") + what + "] " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
}

[[noreturn]] void unavailable(const std::string& why) {
  throw Error(GESTALT_UNAVAILABLE, "[device cuda] unavailable because " + why);
}

// The GPU `ordinal` after every check that can be made before the first use.
cudaDeviceProp open_gpu(int ordinal) {
  int driver = 0, runtime = 0, count = 0;
  cudaRuntimeGetVersion(&runtime);
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    unavailable("no NVIDIA driver is installed; run.device = \"cpu\" needs none");
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver)
    unavailable("the driver is too old: it serves CUDA " + version_text(driver) + ", expected " +
                version_text(runtime) + " or newer");
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
    unavailable("there is no GPU that this process may see; CUDA_VISIBLE_DEVICES can hide them");
  if (error != cudaSuccess) unavailable(std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error));
  if (ordinal >= count)
    unavailable("there is no GPU number " + std::to_string(ordinal) + ", got device.ordinal = " +
                std::to_string(ordinal) + ", expected 0 to " + std::to_string(count - 1));
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  if (!code_runs_on(GESTALT_CUDA_ARCHITECTURES, properties.major, properties.minor))
    unavailable(std::string(properties.name) + " has compute capability " + std::to_string(properties.major) + "." +
                std::to_string(properties.minor) + ", expected one of " + readable(GESTALT_CUDA_ARCHITECTURES) +
                "; build with -DCMAKE_CUDA_ARCHITECTURES for it");
  const cudaError_t set = cudaSetDevice(ordinal);
  if (set != cudaSuccess)
    unavailable(std::string(properties.name) + " does not open, " + cudaGetErrorName(set) + ": " +
                cudaGetErrorString(set));
  return properties;
}

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

cudaMemcpyKind kind_of(int32_t direction) {
  switch (direction) {
    case GESTALT_COPY_TO_DEVICE:
      return cudaMemcpyHostToDevice;
    case GESTALT_COPY_TO_HOST:
      return cudaMemcpyDeviceToHost;
    case GESTALT_COPY_ON_DEVICE:
      return cudaMemcpyDeviceToDevice;
    default:
      throw Error(GESTALT_INVALID_ARGUMENT, "[copy] unknown direction, got " + std::to_string(direction));
  }
}

class Cuda : public Device {
 public:
  static constexpr std::string_view name = "cuda";
  static constexpr ConfigKey keys[] = {{.name = "ordinal",
                                        .type = "i64",
                                        .default_value = "0",
                                        .min = "0",
                                        .doc = "which GPU, as the driver counts those that this process may see"}};

  Cuda(Host host, Attrs config) : ordinal_(static_cast<int>(config.i64("ordinal", 0))), properties_(open_gpu(ordinal_)) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    host.debug("[device cuda] " + std::string(properties_.name) + ", driver for CUDA " + version_text(driver) +
               ", runtime " + version_text(runtime));
  }

  void info(gestalt_device_info& out) override {
    enter();
    size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    gestalt_device_info filled{};
    filled.device_type = GESTALT_DEVICE_CUDA;
    filled.device_id = ordinal_;
    filled.name = str_of(std::string_view(properties_.name));
    filled.kernels_of = str_of("cuda");
    filled.alignment = kAlignment;
    filled.total_bytes = total;
    filled.free_bytes = free;
    filled.struct_size = std::min<uint64_t>(out.struct_size, sizeof filled);
    std::memcpy(&out, &filled, filled.struct_size);
  }

  void* alloc(uint64_t bytes, int32_t where) override {
    if (bytes == 0) return nullptr;
    enter();
    void* data = nullptr;
    if (where == GESTALT_ALLOC_PINNED) {
      check_cuda(cudaMallocHost(&data, bytes), "cudaMallocHost");
      return data;
    }
    const cudaError_t error = cudaMalloc(&data, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      throw Error(GESTALT_OUT_OF_MEMORY, "[alloc] the GPU has no " + std::to_string(bytes) + " bytes, " +
                                             std::to_string(free) + " of " + std::to_string(total) + " are free");
    }
    check_cuda(error, "cudaMalloc");
    return data;
  }
  void free(void* data) override {
    if (!data) return;
    enter();
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    cudaPointerAttributes at{};
    check_cuda(cudaPointerGetAttributes(&at, data), "cudaPointerGetAttributes");
    if (at.type == cudaMemoryTypeHost)
      check_cuda(cudaFreeHost(data), "cudaFreeHost");
    else
      check_cuda(cudaFree(data), "cudaFree");
  }

  void* stream_open() override {
    enter();
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return stream;
  }
  void* event_open() override {
    enter();
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    return event;
  }
  void close(int32_t kind, void* handle) override {
    enter();
    if (kind == GESTALT_HANDLE_STREAM)
      check_cuda(cudaStreamDestroy(stream_of(handle)), "cudaStreamDestroy");
    else if (kind == GESTALT_HANDLE_EVENT)
      check_cuda(cudaEventDestroy(event_of(handle)), "cudaEventDestroy");
    else if (kind == GESTALT_HANDLE_GRAPH)
      check_cuda(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(handle)), "cudaGraphExecDestroy");
    else
      throw Error(GESTALT_INVALID_ARGUMENT, "[close] unknown kind of handle, got " + std::to_string(kind));
  }

  void copy(void* dst, const void* src, uint64_t bytes, int32_t direction, void* stream) override {
    if (bytes == 0) return;
    enter();
    check_cuda(cudaMemcpyAsync(dst, src, bytes, kind_of(direction), stream_of(stream)), "cudaMemcpyAsync");
  }
  void fill(void* dst, uint8_t byte, uint64_t bytes, void* stream) override {
    if (bytes == 0) return;
    enter();
    check_cuda(cudaMemsetAsync(dst, byte, bytes, stream_of(stream)), "cudaMemsetAsync");
  }
  void record(void* event, void* stream) override {
    enter();
    check_cuda(cudaEventRecord(event_of(event), stream_of(stream)), "cudaEventRecord");
  }
  void wait(void* event, void* stream) override {
    enter();
    check_cuda(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0), "cudaStreamWaitEvent");
  }
  void sync(void* stream) override {
    enter();
    check_cuda(stream ? cudaStreamSynchronize(stream_of(stream)) : cudaDeviceSynchronize(), "sync");
  }

  // Thread-local: another thread (a saver, a reader) may allocate and copy meanwhile.
  void capture_begin(void* stream) override {
    enter();
    check_cuda(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  }
  void* capture_end(void* stream) override {
    enter();
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamEndCapture(stream_of(stream), &graph), "cudaStreamEndCapture");
    cudaGraphExec_t ready = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(error, "cudaGraphInstantiate");
    return ready;
  }
  void replay(void* graph, void* stream) override {
    enter();
    check_cuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(stream)), "cudaGraphLaunch");
  }

 private:
  // CUDA's current device belongs to the thread; the host may call from any.
  void enter() const {
    thread_local int current = -1;
    if (current == ordinal_) return;
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    current = ordinal_;
  }

  int ordinal_;
  cudaDeviceProp properties_;
};

}  // namespace

GESTALT_COMPONENT(Cuda)

}  // namespace gestalt::device_cuda

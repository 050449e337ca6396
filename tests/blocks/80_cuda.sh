# The CUDA parts compile, and say what they lack: all without a GPU. Scripts that need one skip here (tests/gpu/pack.sh).
# runs: always
. tests/blocks/report.sh
if ! command -v nvcc >/dev/null 2>&1; then
  wanted cuda && echo "SKIP cuda/compile nvcc is not on PATH"
elif wanted cuda && [ ! -f "$BUILD/lib/gestalt/plugins/kernels_cuda/libkernels_cuda.so" ]; then
  echo "FAIL cuda/compile nvcc is there, but the release build has no CUDA kernels"
elif wanted cuda; then
  echo "PASS cuda/compile"
fi
check_scripts tests/gpu

# The CUDA parts compile. They need no GPU for that, only nvcc.
# runs: always
. tests/blocks/report.sh
wanted cuda || exit 0
sources=$(git ls-files '*.cu' 2>/dev/null | wc -l)
if ! command -v nvcc >/dev/null 2>&1; then
  echo "SKIP cuda/compile nvcc is not on PATH"
elif [ "$sources" -eq 0 ]; then
  echo "SKIP cuda/compile there is no .cu file in the tree"
else
  build gpu && echo "PASS cuda/compile"
fi

# The op harness itself: kernels made wrong on purpose must be caught. (The harness's checks of the real kernels are unit
# tests.)
# runs: ci
. tests/blocks/report.sh
check_scripts tests/harness

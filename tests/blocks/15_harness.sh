# The op harness itself: kernels made wrong on purpose must be caught. (The harness's checks of the real kernels are unit
# runs: ci
# tests.)
. tests/blocks/report.sh
check_scripts tests/harness

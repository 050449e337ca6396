# The op harness itself: kernels made wrong on purpose must be caught. (Real kernels are checked by the unit tests.)
# runs: ci
. tests/blocks/report.sh
check_scripts tests/harness

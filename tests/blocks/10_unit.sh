# The unit tests of the release build, one line a test executable.
# runs: always
. tests/blocks/report.sh
check_ctest "$BUILD" unit/

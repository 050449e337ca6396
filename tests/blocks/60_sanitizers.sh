# The whole unit suite under AddressSanitizer and UndefinedBehaviorSanitizer.
# runs: ci
. tests/blocks/report.sh
build asan || exit 0
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=0
export UBSAN_OPTIONS=print_stacktrace=1
check_ctest build/asan asan/

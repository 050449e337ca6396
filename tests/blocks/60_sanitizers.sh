# The whole unit suite under AddressSanitizer and UndefinedBehaviorSanitizer.
# runs: ci
. tests/blocks/report.sh
build asan || exit 0
# alloc_dealloc_mismatch: tests that count allocations replace operator new and delete by malloc and free, but not every
# form of them, so a pair can be half replaced.
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=0:alloc_dealloc_mismatch=0
export UBSAN_OPTIONS=print_stacktrace=1
check_ctest build/asan asan/

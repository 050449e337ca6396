# The unit tests labelled "threads" under ThreadSanitizer, by clang.
# runs: ci
. tests/blocks/report.sh
if ! cmake --preset tsan >"$LOGS/build_tsan.log" 2>&1; then
  echo "FAIL build_tsan (log: $LOGS/build_tsan.log)"
  tail -n 20 "$LOGS/build_tsan.log" | sed 's/^/  | /'
  exit 0
fi
mapfile -t names < <(ctest --test-dir build/tsan -N -L threads | sed -n 's/^ *Test *#[0-9]*: //p')
if [ "${#names[@]}" -eq 0 ]; then
  echo "SKIP tsan no test has the label threads"
  exit 0
fi
build tsan "${names[@]/#/test_}" || exit 0
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$REPO/tests/reliability/tsan.supp
check_ctest build/tsan tsan/ -L threads

# How a block reports; sourced by the blocks. run.sh gives REPO, BUILD, LOGS, JOBS, FILTER, and CI and ALL as 0 or 1.

set -u -o pipefail
cd "$REPO" || exit 1

# wanted NAME: whether the filter lets this test run.
wanted() { [ -z "$FILTER" ] || [[ $1 =~ $FILTER ]]; }

# check NAME COMMAND...: PASS on exit 0, SKIP on 77 with the command's last line as the reason, else FAIL and the end
# of its output.
check() {
  local name=$1 status=0 log
  shift
  wanted "$name" || return 0
  log=$LOGS/$name.log
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || status=$?
  case "$status" in
    0) echo "PASS $name" ;;
    77) echo "SKIP $name $(tail -n 1 "$log")" ;;
    *)
      echo "FAIL $name exit code $status (log: $log)"
      tail -n 60 "$log" | sed 's/^/  | /'
      return 1 ;;
  esac
}

# check_scripts FOLDER: each FOLDER/*.sh is one test named FOLDER's last part / script name. A second line
# "# runs: ci" or "# runs: all" keeps it for those runs; "# runs: part" says that another script calls it.
check_scripts() {
  local script runs
  for script in "$1"/*.sh; do
    [ -f "$script" ] || { echo "SKIP $(basename "$1") no scripts in $1"; return 0; }
    runs=$(sed -n '2s/^# runs: \([a-z]*\).*/\1/p' "$script")
    [ "$runs" = part ] && continue
    [ "$runs" = ci ] && [ "$CI" -ne 1 ] && continue
    [ "$runs" = all ] && [ "$ALL" -ne 1 ] && continue
    check "$(basename "$1")/$(basename "$script" .sh)" bash "$script"
  done
  return 0
}

# check_ctest BUILD_FOLDER PREFIX [ctest arguments]: one line a test; the output of a failed one below it.
check_ctest() {
  local folder=$1 prefix=$2
  shift 2
  local pattern=()
  if [ -n "$FILTER" ]; then pattern=(-R "$FILTER"); fi
  ctest --test-dir "$folder" -j "$JOBS" --timeout 600 --output-on-failure --no-tests=ignore "${pattern[@]}" "$@" 2>&1 |
    awk -v prefix="$prefix" '
      /^ *[0-9]+\/[0-9]+ +Test +#[0-9]+: / {
        failing = 0
        name = $0; sub(/^[^:]*: /, "", name); sub(/ .*/, "", name)
        took = $(NF - 1) " s"
        if (/ Passed +[0-9.]+ sec/) print "PASS " prefix name
        else if (/\*\*\*Skipped/) print "SKIP " prefix name " it says so itself"
        else if (/\(Disabled\)/) print "SKIP " prefix name " disabled"
        else { print "FAIL " prefix name " " $0; failing = 1 }
        fflush(); next
      }
      /^ +Start +[0-9]+:/ || /tests passed,/ { failing = 0; next }
      failing && NF { print "  | " $0 }'
}

# build PRESET [targets]: configures and builds build/PRESET; says FAIL and the errors when it cannot.
build() {
  local preset=$1 log=$LOGS/build_$1.log
  shift
  local targets=()
  if [ $# -gt 0 ]; then targets=(--target "$@"); fi
  if { cmake --preset "$preset" && cmake --build "build/$preset" -j "$JOBS" "${targets[@]}"; } >"$log" 2>&1; then
    return 0
  fi
  echo "FAIL build_$preset (log: $log)"
  { grep -E '(error|Error|FAILED|undefined reference)' "$log" | head -n 20; tail -n 20 "$log"; } | sed 's/^/  | /'
  return 1
}

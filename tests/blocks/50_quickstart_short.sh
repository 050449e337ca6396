# The quickstart for half a minute: it has to learn, not to win.
# runs: always
. tests/blocks/report.sh

short_quickstart() {
  bash launcher/quickstart.sh --minutes 0.5 --output "$REPO/build/quickstart-short" | tee "$LOGS/quickstart_short.txt" || return 1
  local bits
  bits=$(sed -n 's/.*bits per byte, model: *\([0-9.]*\).*/\1/p' "$LOGS/quickstart_short.txt")
  # 3.2 is what a model gives that has learned nothing of 4,096 tokens.
  awk -v bits="$bits" 'BEGIN { exit !(bits > 0 && bits < 3.1) }' || {
    echo "[quickstart] bits per byte after half a minute, got '$bits', expected below 3.1"
    return 1
  }
}
check quickstart/short short_quickstart

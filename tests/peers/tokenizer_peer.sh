# Encoding speed against tiktoken on one core, on the King James Bible.
# runs: always
set -eu -o pipefail
gestalt=$BUILD/bin/gestalt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v bible >/dev/null; then
  echo "the Debian package bible-kjv is not installed"
  exit 77
fi
bible -f gen1:1-rev22:21 >"$work/kjv.txt"
ranks=$REPO/../shared/data/tokenizers/r50k_base.tiktoken.xz
if [ ! -e "$ranks" ]; then
  echo "GPT-2's ranks are not beside this checkout"
  exit 77
fi
xz -dc "$ranks" >"$work/r50k_base.tiktoken"
python=${GESTALT_PEERS_PYTHON:-python3}
"$python" "$REPO/tests/peers/tokenizer_speed.py" --gestalt "$gestalt" --ranks "$work/r50k_base.tiktoken" --pattern gpt2 \
  --file "$work/kjv.txt"

# The ten lines of docs/guide.md that read a tensor of a checkpoint with h5py, against what was written.
# runs: always
set -eu -o pipefail
python=${GESTALT_PEERS_PYTHON:-python3}
"$python" -c 'import h5py, numpy' 2>/dev/null || { echo "no h5py in $python (GESTALT_PEERS_PYTHON names another)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n '/^```python h5py$/,/^```$/p' "$REPO/docs/guide.md" | sed '1d;$d' >"$work/read.py"
[ "$(wc -l <"$work/read.py")" -le 11 ]
"$BUILD/tests/checkpoint_faults" train --folder "$work/c" --steps 1 --writers 3 --bytes 100000
"$python" "$REPO/tests/peers/checkpoint_h5py.py" "$work/c/step-00000001" "$work/read.py"

# Other people's data order and token ids, where the reference files are beside the checkout.
set -eu -o pipefail
gestalt=$BUILD/bin/gestalt
shared=$REPO/../shared
if [ ! -e "$shared/golden/megatron-data/cases.json" ]; then
  echo "the reference files are not beside this checkout"
  exit 77
fi
"$gestalt" parity "$shared/golden/megatron-data"
"$gestalt" tokenizer verify --golden "$shared/golden/tokenizer_golden.jsonl" --files "$shared/data"

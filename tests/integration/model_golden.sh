# Models of other programs: logits, loss, gradients, greedy ids and a training curve against stored values, where the
# reference files are beside the checkout.
set -eu -o pipefail
gestalt=$BUILD/bin/gestalt
shared=$REPO/../shared
if [ ! -e "$shared/golden/hf/gpt2/expect.json" ]; then
  echo "the reference files are not beside this checkout"
  exit 77
fi
for device in cpu sim; do
  for name in gpt2 llama qwen3 mistral-window olmo2 gemma2; do
    echo "--- $name on $device"
    "$gestalt" parity "$shared/golden/hf/$name" --device "$device"
  done
  "$gestalt" parity "$shared/data/weights/stories260K.bin" --golden "$shared/golden/stories260K_golden.json" \
    --device "$device"
done

# The comparison notices what is wrong.
status=0
"$gestalt" parity "$shared/golden/hf/llama" --set model.norm_eps=1e-3 || status=$?
[ "$status" -eq 17 ] || { echo "a wrong epsilon exits $status, expected 17"; exit 1; }

# The text of the greedy run, through the tokenizer beside the weights.
text=$("$gestalt" generate "$shared/data/weights/stories260K.bin" --prompt "Once upon a time" --max-tokens 20 --temperature 0)
case "$text" in
  "Once upon a time, there was a little girl named Lily."*) ;;
  *) echo "got '$text'"; exit 1 ;;
esac

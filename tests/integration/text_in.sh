# Text to a vocabulary, to a corpus, and into a training run; every command as a person types it.
set -eu -o pipefail
gestalt=$BUILD/bin/gestalt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

for i in $(seq 1 4000); do echo "Line $((i * 7919 % 1009)) says that the word $((i % 97)) follows the other words."; done >text.txt
head -n 300 text.txt | sed 's/.*/{"text": "&"}/' >lines.jsonl
echo '{"text": broken' >>lines.jsonl

"$gestalt" tokenizer train --input text.txt --output small.tiktoken --vocab-size 400 >/dev/null
ids=$("$gestalt" tokenizer encode --ranks small.tiktoken "says that")
[ "$("$gestalt" tokenizer decode --ranks small.tiktoken $ids)" = "says that" ]

# The same bytes from any number of workers, from a packed file and from standard input.
for workers in 1 3; do
  "$gestalt" data tokenize --input text.txt --document line --output "w$workers" --ranks small.tiktoken \
    --workers "$workers" >/dev/null
done
gzip -k text.txt
"$gestalt" data tokenize --input text.txt.gz --document line --output gz --ranks small.tiktoken >/dev/null
"$gestalt" data tokenize --document line --output stdin --ranks small.tiktoken - <text.txt >/dev/null
for other in w3 gz stdin; do cmp w1.bin "$other.bin" && cmp w1.idx "$other.idx"; done

# A bad line is counted with its place, or ends the work.
"$gestalt" data tokenize --input lines.jsonl --output j --ranks small.tiktoken --json >report.json
grep -q '"documents":300,' report.json
grep -q '"bad_lines":1,' report.json
grep -q 'lines.jsonl:301' report.json
if "$gestalt" data tokenize --input lines.jsonl --output k --ranks small.tiktoken --bad fail 2>/dev/null; then exit 1; fi
[ ! -e k.bin ] && [ ! -e k.idx ]

"$gestalt" data verify w1 --vocab-size 400 >/dev/null
"$gestalt" data index --out arrays --seq-len 64 --samples 500,10,0 w1 >/dev/null
[ -s arrays/train.sub0.shuffle_index.npy ]
status=0
"$gestalt" data verify nothing 2>/dev/null || status=$?
[ "$status" -eq 66 ]
head -c 100 w1.idx >cut.idx
cp w1.bin cut.bin
status=0
"$gestalt" data inspect cut 2>message || status=$?
[ "$status" -eq 65 ]
grep -q 'cut.idx.*at byte' message

cat >run.toml <<'TOML'
[run]
name = "text_in"
seed = 1
output = "run"
[plugins]
use = [
  "gestalt.device_cpu", "gestalt.kernels_cpu", "gestalt.comm_self", "gestalt.tokenizer_bpe", "gestalt.data_indexed",
  "gestalt.decoder", "gestalt.attention", "gestalt.mlp", "gestalt.norm", "gestalt.adam", "gestalt.tracker_jsonl",
  "gestalt.ckpt_safetensors",
]
[kernels]
cpu = ["gestalt.cpu"]
[model]
type = "gestalt.decoder"
hidden = 32
layers = 1
heads = 2
ffn = 64
vocab = 400
seq_len = 32
[tokenizer]
type = "gestalt.bpe"
ranks = "small.tiktoken"
[data]
type = "gestalt.indexed"
paths = ["w1"]
split = "9,1,0"
train_samples = 40
inter_document_masking = true
cache_dir = "cache"
[optimizer]
type = "gestalt.adamw"
lr = 1e-3
[train]
steps = 3
global_batch = 4
[checkpoint]
type = "gestalt.safetensors"
[metrics]
trackers = ["gestalt.jsonl"]
TOML
"$gestalt" train run.toml >train.log
"$gestalt" train run.toml --set run.output=again >again.log
grep -v tokens/s train.log | sed 's#run/#again/#' | cmp - <(grep -v tokens/s again.log)
grep -q 'bits_per_byte' train.log

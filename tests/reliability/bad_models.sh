#!/usr/bin/env bash
# runs: always
# Models of other programs that are damaged: each is refused by `gestalt generate` and `gestalt parity` with one message
# that names file, tensor and reason, and with exit code 65 (a file was refused) or 66 (a file is missing). Every case is
# a copy of one good model with one damage.
set -u -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${BUILD:-$repo/build/release}
good=$repo/../shared/golden/hf/llama
[ -e "$good/model.safetensors" ] || { echo "the reference files are not beside this checkout"; exit 77; }
[ -x "$build/bin/gestalt" ] || { echo "no gestalt is built in $build"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$work/model
file=$model/model.safetensors

# A good file's header and its bytes after it.
header_bytes=$(od -An -t u8 -N 8 "$good/model.safetensors" | tr -d ' ')
header=$(tail -c +9 "$good/model.safetensors" | head -c "$header_bytes")
tail -c +$((9 + header_bytes)) "$good/model.safetensors" >"$work/data"

fresh() {
  rm -rf "$model"
  mkdir "$model"
  cp "$good"/* "$model/"
  chmod u+w "$model"/*
}
# Eight bytes, little endian.
length() {
  local i n=$1
  for ((i = 0; i < 8; ++i, n >>= 8)); do printf "\\x$(printf %02x $((n & 255)))"; done
}
# safetensors HEADER: the file with this header before the good data.
safetensors() {
  length "${#1}" >"$file"
  printf %s "$1" >>"$file"
  cat "$work/data" >>"$file"
}
# edited EXPRESSION: the header after one sed expression, which must change it.
edited() {
  local new
  new=$(sed -E "$1" <<<"$header")
  [ "$new" != "$header" ] || { echo "[bad_models] '$1' changes nothing" >&2; exit 1; }
  safetensors "$new"
}

count=0 failed=0
# run_both NAME CODE REGEX...: both commands; every expression must be found in the one message on standard error.
run_both() {
  local name=$1 code=$2 verb status wrong regex
  shift 2
  count=$((count + 1))
  for verb in parity generate; do
    status=0 wrong=""
    local line=("$build/bin/gestalt" "$verb" "$model")
    [ "$verb" = generate ] && line+=(--prompt a --max-tokens 1)
    timeout 60 "${line[@]}" >"$work/out" 2>"$work/err" </dev/null || status=$?
    [ "$status" -eq "$code" ] || wrong="exit code $status, expected $code"
    grep -v '"level":"info"' "$work/err" >"$work/said"
    # One message; where several tensors are wrong it lists them, indented.
    if [ "$(grep -c '^gestalt: error: ' "$work/said")" -ne 1 ] || grep -qvE '^(gestalt: error: |  )' "$work/said"; then
      wrong="$wrong${wrong:+; }expected one message"
    fi
    for regex in "$@"; do
      grep -qE -- "$regex" "$work/said" || wrong="$wrong${wrong:+; }the message lacks /$regex/"
    done
    [ -z "$wrong" ] && continue
    failed=$((failed + 1))
    echo "[bad_models] $name, $verb: $wrong; it said:"
    head -n 5 "$work/err" | sed 's/^/    /'
  done
}
# bad_file NAME REGEX...: refused, with the weights' file in the message.
bad_file() {
  local name=$1
  shift
  run_both "$name" 65 'model/model\.safetensors' "$@"
}

fresh
timeout 100 "$build/bin/gestalt" parity "$model" >"$work/out" 2>"$work/err" ||
  { echo "[bad_models] the untouched copy fails:"; tail -n 5 "$work/err"; exit 1; }
safetensors "$header"
cmp "$file" "$good/model.safetensors" || { echo "[bad_models] the rebuilt file is another one"; exit 1; }

# --- the file's frame
head -c 5 "$good/model.safetensors" >"$file"
bad_file "five bytes" "too short.* 5 bytes"

{ length 1000000; tail -c +9 "$good/model.safetensors"; } >"$file"
bad_file "a header that ends after the file" "1000000"

{ length 100000001; tail -c +9 "$good/model.safetensors"; } >"$file"
truncate -s 100000100 "$file"
bad_file "a header above 100 MB" "100000001.*100000000"

{ printf '\xff\xff\xff\xff\xff\xff\xff\xff'; tail -c +9 "$good/model.safetensors"; } >"$file"
bad_file "a header of 2^64 - 1 bytes" "18446744073709551615"

fresh
truncate -s -100 "$file"
bad_file "data cut off" "model\.norm\.weight" "truncated"

printf 'more' >"$work/more"
fresh
cat "$work/more" >>"$file"
bad_file "bytes after the last tensor" "4 bytes after the last tensor"

# --- the header's text
edited 's/^\{/[/'
bad_file "a header that is no object" "does not start with '\{'"

edited 's/"dtype":"F32",/"dtype";"F32",/'
bad_file "a header that is not JSON" "header.*[0-9]"

edited 's/"model\.layers\.0\.self_attn\.v_proj\.weight"/"model.layers.0.self_attn.k_proj.weight"/'
bad_file "a tensor twice" "model\.layers\.0\.self_attn\.k_proj\.weight" "duplicate|twice"

edited 's/("model\.layers\.1\.input_layernorm\.weight":\{"dtype":)"F32"/\1"F33"/'
bad_file "an unknown dtype" "model\.layers\.1\.input_layernorm\.weight" "unknown dtype.*F33"

edited 's/("model\.layers\.1\.input_layernorm\.weight":\{"dtype":"F32","shape":)\[64\]/\1[4294967296,4294967296,64]/'
bad_file "a shape whose product overflows" "model\.layers\.1\.input_layernorm\.weight" "overflow"

edited 's/("model\.layers\.1\.input_layernorm\.weight":\{"dtype":"F32","shape":)\[64\]/\1[-64]/'
bad_file "a negative dimension" "model\.layers\.1\.input_layernorm\.weight" "negative dimension.*-64"

edited 's/("model\.layers\.1\.input_layernorm\.weight":\{"dtype":"F32","shape":)\[64\]/\1[65]/'
bad_file "a shape that is not as large as its bytes" "model\.layers\.1\.input_layernorm\.weight" "260|65" "256"

# --- where tensors lie
edited 's/\[131072,262144\]/[131068,262140]/'
bad_file "tensors that overlap" "model\.embed_tokens\.weight" "131068" "131072"

edited 's/"model\.layers\.0\.input_layernorm\.weight":\{[^}]*\},//'
bad_file "a hole" "model\.layers\.0\.mlp\.down_proj\.weight" "262400" "262144"

edited 's/\[131072,262144\]/[262144,131072]/'
bad_file "an end before its begin" "model\.embed_tokens\.weight" "data_offsets"

# --- what the model needs
edited 's/("model\.layers\.2\.mlp\.gate_proj\.weight":\{"dtype":"F32","shape":)\[160,64\]/\1[64,160]/'
bad_file "a tensor of a wrong shape" "model\.layers\.2\.mlp\.gate_proj\.weight" "\[64, 160\]" "shape"

edited 's/("model\.norm\.weight":\{"dtype":)"F32"/\1"I32"/'
bad_file "weights that are integers" "model\.norm\.weight" "I32" "expected F64, F32, F16 or BF16"

edited 's/"model\.layers\.1\.self_attn\.q_proj\.weight"/"model.layers.1.self_attn.q_porj.weight"/'
bad_file "a missing part of a fused tensor" "model\.layers\.1\.self_attn\.q_proj\.weight" "missing"

edited 's/"model\.norm\.weight"/"model.nrom.weight"/'
run_both "a missing tensor" 65 "$model\]" "missing: model\.final_norm\.weight" "model\.norm\.weight"

fresh
sed -i 's/"intermediate_size": 160/"intermediate_size": 161/' "$model/config.json"
bad_file "a config of other widths" "mlp\.(gate|up|down)_proj\.weight" "shape" "16[01]"

# --- config.json
fresh
sed -i 's/"model_type": "llama"/"model_type": "llamba"/' "$model/config.json"
run_both "an unknown architecture" 65 'model/config\.json' "model_type" "llamba" "expected one of .*llama"

fresh
sed -i 's/"hidden_size": 64/"hidden_size": "wide"/' "$model/config.json"
run_both "a width that is no number" 65 'model/config\.json' "hidden_size"

fresh
sed -i 's/"num_hidden_layers": 3/"num_hidden_layers": 4/' "$model/config.json"
run_both "a layer too many" 65 "$model\]" "missing: model\.layers\.3\.attention\.qkv\.weight" "self_attn\.q_proj\.weight"

fresh
sed -i '2s/^/,/' "$model/config.json"
run_both "a config that is not JSON" 65 'model/config\.json' ":2|line 2|[0-9]"

# --- files
fresh
rm "$file"
run_both "no weights" 66 "$model" "model\.safetensors"

# index SHARD: one shard for all but the final norm, which lies in SHARD.
index() {
  fresh
  mv "$file" "$model/model-00001-of-00002.safetensors"
  {
    printf '{"weight_map":{'
    grep -oE '"(model|lm_head)\.[a-z0-9_.]*weight"' <<<"$header" | grep -v '"model\.norm\.weight"' |
      sed 's/$/:"model-00001-of-00002.safetensors",/'
    printf '"model.norm.weight":"%s"}}' "$1"
  } >"$model/model.safetensors.index.json"
}
index model-00002-of-00002.safetensors
run_both "a missing shard" 66 'model\.safetensors\.index\.json' "model-00002-of-00002\.safetensors" "missing"

index model-00002-of-00002.safetensors
cp "$model/train.safetensors" "$model/model-00002-of-00002.safetensors"
run_both "a tensor that is not in its shard" 65 "model\.safetensors\.index\.json" "model\.norm\.weight" "model-00002"

index ../model.safetensors
run_both "a shard outside the folder" 65 "model\.safetensors\.index\.json" "model\.norm\.weight" "\.\./model"

echo "$count damaged models, two commands each, $failed failed"
[ "$failed" -eq 0 ]

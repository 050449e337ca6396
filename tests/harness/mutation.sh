#!/usr/bin/env bash
# runs: ci
# Holds the harness against wrong kernels: one plugin is built from a copy of plugins/kernels_cpu in which each of the
# places below can be made wrong by number (GESTALT_MUTANT=N at run time): first signs of backward kernels, then one
# mistake of each other kind that the harness claims to find. Without a mutant the harness must pass; with any one the
# checks of that op must fail, and for a backward kernel also the gradient check of its forward.
#
#   BUILD=build/release bash tests/harness/mutation.sh [N]...
set -euo pipefail
export LC_ALL=C

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "${BUILD:-$repo/build/release}" && pwd)
harness=$build/bin/gestalt_harness
[ -x "$harness" ] || { echo "[mutation] $harness is not built"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

kernels=$work/plugins/kernels_cpu
mkdir -p "$work/plugins"
cp -r "$repo/plugins/kernels_cpu" "$kernels"

ops=(none) places=(none)

# mutant OP FILE OLD NEW: makes NEW of OLD, which must be there exactly once. @ is 1, or -1 when this mutant is on.
mutant() {
  local op=$1 file=$kernels/$2 old=$3 new=$4 number=${#ops[@]} text rest
  text=$(<"$file")
  rest=${text#*"$old"}
  if [ "$rest" = "$text" ] || [[ $rest == *"$old"* ]]; then
    echo "[mutation] mutant $number: '$old' is not exactly once in $2; the kernel has changed, so change the mutant"
    exit 1
  fi
  printf '%s\n' "${text%%"$old"*}${new/@/mutant_sign($number)}$rest" >"$file"
  ops+=("$op")
  places+=("$2: $old")
}

loops=loops_inl.h
mutant gelu_bwd $loops 's + v * bend * slope : s' 's + @ * v * bend * slope : s'
mutant gelu_bwd $loops '* v) + bend)' '* v) + @ * bend)'
mutant silu_bwd $loops 'return s + x * s * (C(1) - s)' 'return s + @ * x * s * (C(1) - s)'
mutant relu_bwd $loops 'x[i] > C(0) ? dy[i] : C(0)' 'x[i] > C(0) ? @ * dy[i] : C(0)'
mutant swiglu_bwd $loops 'dgate[i] = d * u' 'dgate[i] = @ * d * u'
mutant swiglu_bwd $loops 'dup[i] = d * g' 'dup[i] = @ * d * g'
mutant rms_norm_bwd $loops '(d * w[i] - v * pull)' '(d * w[i] - @ * v * pull)'
mutant rms_norm_bwd $loops 'dw[i] += d * v * rstd' 'dw[i] += @ * d * v * rstd'
mutant layer_norm_bwd $loops '(d * w[i] - level -' '(d * w[i] - @ * level -'
mutant layer_norm_bwd $loops '- normal * along) * rstd' '- @ * normal * along) * rstd'
mutant layer_norm_bwd $loops 'dw[i] += d * normal' 'dw[i] += @ * d * normal'
mutant layer_norm_bwd $loops 'db[i] += d;' 'db[i] += @ * d;'
mutant cross_entropy_bwd $loops 'dx[i] = factor * exp_of(x[i] - lse)' 'dx[i] = @ * factor * exp_of(x[i] - lse)'
mutant cross_entropy_bwd cross_entropy.cpp '] -= factor;' '] -= @ * factor;'
mutant attention_bwd $loops 'p[i] * (dp[i] - delta) * factor' 'p[i] * (dp[i] - @ * delta) * factor'
mutant attention_bwd attention_bwd.cpp 'table.score_grad(p, ds, s.delta[i], scale,' 'table.score_grad(p, ds, s.delta[i], @ * scale,'
mutant attention_bwd attention_bwd.cpp 'table.exp_shift_sum(p, scale,' 'table.exp_shift_sum(p, @ * scale,'
mutant embedding_bwd embedding.cpp 'i < n; ++i) to[i] += from[i];' 'i < n; ++i) to[i] += @ * from[i];'
mutant attention_bwd attention_bwd.cpp 'sums[0] -=' 'sums[0] -= @ *'
mutant attention_bwd attention_bwd.cpp 'distance[j] += static_cast<double>(ds[j])' 'distance[j] += @ * static_cast<double>(ds[j])'
mutant attention_bwd attention_shape.h 'slope[i] = C(1) - row[i] / cap' 'slope[i] = C(1) - @ * row[i] / cap'
mutant rms_norm_bwd rms_norm.cpp 'weight[i] + static_cast<C>(offset)' 'weight[i] + @ * static_cast<C>(offset)'
mutant relu2_bwd activation.cpp 'C(2) * x[i] * dy[i]' '@ * C(2) * x[i] * dy[i]'
mutant softplus_bwd activation.cpp 'dy[i] / (C(1) + std::exp(-x[i]))' 'dy[i] / (C(1) + std::exp(-@ * x[i]))'
mutant softcap_bwd activation.cpp '(C(1) - part * part)' '(C(1) - @ * part * part)'
mutant swiglu_bwd gated.cpp 's + alpha * g * s * (C(1) - s)' 's + @ * alpha * g * s * (C(1) - s)'
mutant geglu_bwd gated.cpp 'loops<C>().mul(dy, up, through, n)' 'loops<C>().mul(dy, @ < 0 ? active : up, through, n)'
mutant clamp_bwd curve.cpp 'in[0][i] <= high ? in[1][i] : C(0)' 'in[0][i] <= high ? @ * in[1][i] : C(0)'
mutant softmax_bwd rows.cpp 'loops<C>().dot(in[0], in[1], n), C(1)' '@ * loops<C>().dot(in[0], in[1], n), C(1)'
mutant logsumexp_bwd rows.cpp 'In<C>(dy).one(one_at(dy, row))' '@ * In<C>(dy).one(one_at(dy, row))'
mutant topk_bwd rows.cpp 'In<C>(dy).one(row_at(dy, row)' '@ * In<C>(dy).one(row_at(dy, row)'
mutant relative_bias_bwd relative_bias.cpp '+= In<double>(dbias)' '+= @ * In<double>(dbias)'
mutant rotary rotary.cpp 'turns_.push_back(p_.sense *' 'turns_.push_back((p_.sense < 0 ? @ : 1) * p_.sense *'
mutant sum sum.cpp 'result[i] = static_cast<C>(total[i])' 'result[i] = @ * static_cast<C>(total[i])'
mutant neg elementwise.cpp 'static double factor(const Plan&) { return -1; }' 'static double factor(const Plan&) { return -1 * @; }'
mutant adamw_update $loops 'param[i] -= k.step * first' 'param[i] -= @ * k.step * first'
mutant sgd_update $loops 'momentum * buf[i] + g;' 'momentum * buf[i] + @ * g;'

# Last element not written; one element too many; an input changed; the number of threads matters; an allocation in run;
# accumulate ignored; strides ignored; a workspace too small.
mutant relu $loops 'each(n, [=](int64_t i) { y[i] = x[i] < C(0)' 'each(n - (@ < 0), [=](int64_t i) { y[i] = x[i] < C(0)'
mutant sub $loops 'each(n, [=](int64_t i) { y[i] = a[i] - b[i]' 'each(n + (@ < 0), [=](int64_t i) { y[i] = a[i] - b[i]'
mutant silu $loops '{ y[i] = x[i] * sigmoid(x[i]); }' '{ y[i] = x[i] * sigmoid(x[i]); if (@ < 0) const_cast<C*>(x)[i] = C(0); }'
mutant scale elementwise.cpp 'factor_(Op::factor(plan))' 'factor_(Op::factor(plan) * (@ < 0 && team_.num_threads() > 1 ? 1.5 : 1))'
mutant fill copy.cpp 'void run(Call call) const {
    elementwise<double, 0, 1>(' 'void run(Call call) const {
    if (@ < 0) ::operator delete(::operator new(8));
    elementwise<double, 0, 1>('
mutant matmul matmul_shape.h '.accumulate = call.accumulate(0)' '.accumulate = @ > 0 && call.accumulate(0)'
mutant sum sum.cpp 'row_stride_x = x.stride(d)' 'row_stride_x = @ < 0 ? 1 : x.stride(d)'
mutant rms_norm rms_norm.cpp 'plan_norm_workspace(plan, slots_, 3)' 'plan_norm_workspace(plan, slots_, @ < 0 ? 2 : 3)'

# The switch: read once, before any kernel runs.
text=$(<"$kernels/loops.h")
cat >"$kernels/loops.h" <<'END'
#pragma once
namespace gestalt::kernels_cpu {
extern const int kMutant;
static inline int mutant_sign(int number) { return kMutant == number ? -1 : 1; }
}  // namespace gestalt::kernels_cpu
END
printf '%s\n' "$text" >>"$kernels/loops.h"
cat >>"$kernels/loops.cpp" <<'END'
#include <cstdlib>
namespace gestalt::kernels_cpu {
const int kMutant = std::getenv("GESTALT_MUTANT") ? std::atoi(std::getenv("GESTALT_MUTANT")) : 0;
}  // namespace gestalt::kernels_cpu
END
for file in $(grep -l mutant_sign "$kernels"/*.cpp "$kernels"/*.h); do
  case ${file##*/} in
    loops.h | loops_inl.h) ;;
    *.h) sed -i '/^#pragma once/a #include "plugins/kernels_cpu/loops.h"' "$file" ;;
    *) sed -i '1i #include "plugins/kernels_cpu/loops.h"' "$file" ;;
  esac
done

# The build's own commands, on the copy.
mkdir -p "$work/out"
ninja -C "$build" -t commands lib/gestalt/plugins/kernels_cpu/libkernels_cpu.so |
  grep 'plugin_kernels_cpu\.dir' |
  sed -e "s|$repo/plugins/kernels_cpu|$kernels|g" -e "s|$build/plugins/kernels_cpu|$work|g" \
      -e "s|plugins/kernels_cpu/CMakeFiles/plugin_kernels_cpu\.dir|$work/out|g" \
      -e "s|$build/lib/gestalt/plugins/kernels_cpu|$work/lib/kernels_cpu|g" \
      -e "s| lib/gestalt/plugins/kernels_cpu| $work/lib/kernels_cpu|g" -e 's| -O3 | -O1 |' >"$work/commands"
mkdir -p "$work/lib/kernels_cpu"
for device in device_cpu device_sim; do cp -r "$build/lib/gestalt/plugins/$device" "$work/lib/"; done
cd "$build"
grep -- ' -c ' "$work/commands" | tr '\n' '\0' | xargs -0 -P "$(nproc)" -n 1 bash -c
grep -v -- ' -c ' "$work/commands" | bash -e

run() { # run NUMBER OP [harness arguments]
  GESTALT_MUTANT=$1 "$harness" --plugins "$work/lib" --op "$2" "${@:3}" >"$work/log" 2>&1
}

failed=0
numbers=("$@")
[ ${#numbers[@]} -gt 0 ] || mapfile -t numbers < <(seq 1 $((${#ops[@]} - 1)))
for op in $(printf '%s\n' "${ops[@]:1}" | sort -u); do
  run 0 "$op" || { echo "FAIL $op without a mutant"; tail -n 5 "$work/log"; failed=1; }
done
expect_caught() { # expect_caught NUMBER OP [harness arguments]
  local status=0
  { run "$@"; } 2>/dev/null || status=$?
  if [ "$status" -eq 1 ] || [ "$status" -ge 128 ]; then  # a crash is seen, too
    echo "caught $1 by ${*:2}: $(grep -c '^FAILED' "$work/log") checks (${places[$1]%%$'\n'*})"
  else
    echo "FAIL mutant $1 was not caught by ${*:2}, exit code $status (${places[$1]})"
    tail -n 3 "$work/log"
    failed=1
  fi
}
for n in "${numbers[@]}"; do
  expect_caught "$n" "${ops[n]}"
  case ${ops[n]} in *_bwd) expect_caught "$n" "${ops[n]%_bwd}" --check gradient ;; esac
done
[ "$failed" -eq 0 ] && echo "all ${#numbers[@]} mutants caught"
exit "$failed"

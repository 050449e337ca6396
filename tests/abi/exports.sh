#!/usr/bin/env bash
# What the loader relies on, read from every plugin of the build (or from the libraries given): one exported symbol, no
# GNU unique ones, no code at load, no absolute run path. Each fault is named.
set -u -o pipefail
cd "$(dirname "$0")/../.."
if [ $# -eq 0 ]; then
  shopt -s nullglob
  set -- "${BUILD:-build/release}"/lib/gestalt/plugins/*/lib*.so
  if [ $# -eq 0 ]; then
    echo "no plugin is built in ${BUILD:-build/release}"
    exit 77
  fi
fi

# Constructors that a toolchain brings: those of libstdc++.a (its sources end in .cc, ours in .cpp) and CUDA's
# registration.
toolchain='_GLOBAL__sub_I_([a-zA-Z0-9_+-]+\.cc|_ZN9__gnu_cxx9__freeresEv)|_ZL24__sti____cudaRegisterAllv'

# A constructor that only makes the standard streams ready: CUB's headers include <iostream>.
only_streams() {
  local calls
  calls=$(objdump -d --no-show-raw-insn --disassemble="$2" "$1" | grep -oE '(call|jmp) .*<[^>+]*' | sed 's/.*<//' | sort -u | tr '\n' ' ')
  [ "$calls" = "_ZNSt8ios_base4InitC1Ev@plt __cxa_atexit@plt " ]
}

faults=0
for library in "$@"; do
  fault() { echo "$library: $1"; faults=1; }
  exported=$(nm -D --defined-only "$library" | awk '{ print $NF }' | tr '\n' ' ')
  [ "$exported" = "gestalt_plugin_main_v1 " ] || fault "exports '$exported', expected gestalt_plugin_main_v1 alone"
  if readelf -sW "$library" | grep -q ' UNIQUE '; then fault "has GNU unique symbols, which are shared by all plugins"; fi
  constructors=$(nm "$library" | awk '{ print $NF }' |
    grep -E '^(_GLOBAL__(sub_)?[ID]_|__cxx_global_var_init|_ZL24__sti__)' | grep -vxE "$toolchain" |
    while read -r symbol; do only_streams "$library" "$symbol" || printf '%s ' "$symbol"; done)
  [ -z "$constructors" ] || fault "runs code when it is loaded: $constructors"
  dynamic=$(readelf -dW "$library")
  if grep -qE '\((RPATH|RUNPATH)\).*\[/' <<<"$dynamic"; then fault "has an absolute run path"; fi
  if grep -q TEXTREL <<<"$dynamic"; then fault "has text relocations"; fi
  if readelf -lW "$library" | grep GNU_STACK | grep -q RWE; then fault "asks for an executable stack"; fi
done
echo "$# libraries read"
exit $faults

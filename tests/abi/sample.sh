#!/usr/bin/env bash
# Builds the sample plugin with each compiler, optimised and not, and with a static C++ runtime, and drives each one
# through the C contract.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
include=(-std=c++20 -Wall -Wextra -Werror -I. -Isdk/include)

host=(g++ "${include[@]}" -O1 tests/catch_main.cpp tests/abi/fake_host.cpp tests/abi/sample_test.cpp -ldl)
"${host[@]}" -o "$out/host"

try() {
  local name=$1
  shift
  "$@" "${include[@]}" -Wno-restrict -fPIC -shared -fvisibility=hidden -fvisibility-inlines-hidden \
    -Wl,-z,defs -Wl,--exclude-libs,ALL -Wl,--version-script=sdk/cmake/gestalt_plugin.map \
    tests/abi/sample_plugin.cpp -o "$out/$name.so"
  echo "--- $name"
  GESTALT_SAMPLE=$out/$name.so "$out/host"
  bash tests/abi/exports.sh "$out/$name.so"
}

try gcc_debug g++ -O0 -g -fno-gnu-unique
try gcc_release g++ -O2 -DNDEBUG -fno-gnu-unique
if ! command -v clang++ >/dev/null; then
  echo "clang++ is not installed: only g++ was tried"
  exit 77
fi
try clang_debug clang++ -O0 -g -Wno-unknown-warning-option
try clang_static clang++ -O2 -DNDEBUG -Wno-unknown-warning-option -static-libstdc++ -static-libgcc

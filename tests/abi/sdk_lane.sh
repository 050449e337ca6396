#!/usr/bin/env bash
# runs: ci
# First party plays by third-party rules: the SDK is installed and moved, plugins/ is copied away from the source tree
# and built against the moved SDK by clang++ with a static C++ runtime (by g++ where there is no clang++).
set -eu -o pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build/release}
if [ ! -x "$build/bin/gestalt" ]; then
  echo "no launcher is built in $build"
  exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

cmake --install "$build" --prefix "$out/first" --component sdk >/dev/null
mv "$out/first" "$out/sdk"
mkdir "$out/alone"
cp -r plugins "$out/alone/plugins"

arguments=(-S "$out/alone/plugins" -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$out/sdk"
           -DCMAKE_CXX_FLAGS_RELEASE=-O0)
if command -v clang++ >/dev/null; then
  arguments+=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++
              "-DCMAKE_MODULE_LINKER_FLAGS=-static-libstdc++ -static-libgcc")
fi
if command -v ccache >/dev/null; then
  arguments+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_BASEDIR=$out CCACHE_NOHASHDIR=1  # the folder has another name every time
fi
cmake "${arguments[@]}"
cmake --build "$out/build" -j "${JOBS:-2}"

for library in "$out"/build/lib/gestalt/plugins/*/lib*.so; do
  [ -s "$(dirname "$library")/plugin.toml" ] || { echo "$library has no manifest"; exit 1; }
done
bash tests/abi/exports.sh "$out"/build/lib/gestalt/plugins/*/lib*.so

# An author's own project: one file, one call.
mkdir "$out/author"
cp tests/abi/sample_plugin.cpp "$out/author/"
cat >"$out/author/plugin.toml" <<'TOML'
publisher = "Sample"
license = "Apache-2.0"
description = "One of everything"
TOML
cat >"$out/author/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(sample LANGUAGES CXX)
find_package(Gestalt 0.1 REQUIRED COMPONENTS sdk)
gestalt_add_plugin(NAME sample ID gestalt.sample SOURCES sample_plugin.cpp)
CMAKE
cmake -S "$out/author" -B "$out/author/build" -G Ninja -DCMAKE_PREFIX_PATH="$out/sdk"
cmake --build "$out/author/build"
grep -q 'sample.letters' "$out/author/build/lib/gestalt/plugins/sample/plugin.toml"

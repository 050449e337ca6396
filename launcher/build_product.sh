#!/usr/bin/env bash
# Builds what a user runs, without the tests: bash launcher/build_product.sh BUILD_FOLDER [more ninja targets]
set -eu
build=$1
shift
# Ninja names the targets of a folder FOLDER/all; a folder without a CMakeLists.txt has none.
known=$(ninja -C "$build" -t targets all)
targets=()
for folder in sdk core launcher plugins; do
  if grep -q "^$folder/all:" <<<"$known"; then targets+=("$folder/all"); fi
done
exec cmake --build "$build" -j "$(nproc)" --target "${targets[@]}" "$@"

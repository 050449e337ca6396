#!/usr/bin/env bash
# Builds what a user runs, without the tests: bash launcher/build_product.sh BUILD_FOLDER [more targets]
set -eu
build=$1
shift
# The command and every plugin of this build; what they need follows.
mapfile -t products < <(ninja -C "$build" -t targets all | sed -n 's/^\(bin\/gestalt\|lib\/gestalt\/plugins\/[^:]*\.so\): .*/\1/p')
exec cmake --build "$build" -j "$(nproc)" --target "${products[@]}" "$@"

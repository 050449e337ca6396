#!/usr/bin/env bash
# Every ABI header by itself, as C11, C17, C++17 and C++20, with gcc and clang, without a warning; every header of the
# C++ layer by itself, as C++20.
set -u -o pipefail
cd "$(dirname "$0")/../.."
faults=0
tried=0
compile() {
  tried=$((tried + 1))
  "$@" || { echo "FAULT: $*"; faults=1; }
}

strict=(-Wall -Wextra -Wpadded -pedantic -Werror -fsyntax-only -Isdk/include)
for compiler in gcc clang; do
  command -v $compiler >/dev/null || { echo "$compiler is not installed"; continue; }
  for header in sdk/include/gestalt/abi/*.h; do
    for standard in c11 c17; do
      compile $compiler -x c -std=$standard "${strict[@]}" -include "${header#sdk/include/}" /dev/null
    done
    for standard in c++17 c++20; do
      compile $compiler -x c++ -std=$standard "${strict[@]}" -include "${header#sdk/include/}" /dev/null
    done
  done
  compile $compiler -x c -std=c11 "${strict[@]}" tests/abi/dltensor.c
done

compiler=clang++
command -v $compiler >/dev/null || compiler=g++
for header in sdk/include/gestalt/*.hpp sdk/include/gestalt/philox.h; do
  compile $compiler -x c++ -std=c++20 -Wall -Wextra -pedantic -Werror -fsyntax-only -Isdk/include \
    -include "${header#sdk/include/}" /dev/null
done
compile g++ -x c++ -std=c++20 -Wall -Wextra -pedantic -Werror -fsyntax-only -Isdk/include -include gestalt/plugin.hpp /dev/null
echo "$tried compilations"
exit $faults

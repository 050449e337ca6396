#!/usr/bin/env bash
# Who may include whom (ARCHITECTURE 2), read from the include lines: the ABI nothing, the SDK the ABI, core the ABI and
# sdk/support, the launcher core, plugins the SDK and themselves. Nobody includes plugins. Tests may include anything.
set -u -o pipefail
cd "$(dirname "$0")/../.."

# FILE:LINE:path of every #include "path" of the sources below the given folders. Tests are left out: by name, and what
# includes something of tests/ (the installed-SDK lane builds without that folder, so no plugin can hide there).
includes() {
  find "$@" -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.c' \) \
    ! -name '*_test.cpp' ! -name '*_test.cu' ! -name '*test*.h' ! -path '*/tests/*' ! -path '*/bench/*' -print0 |
    xargs -0 -r grep -LZE '^#include "tests/' | xargs -0 -r grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' |
    sed -E 's/^([^:]*:[0-9]+):[^"]*"([^"]*)".*/\1:\2/'
}

faults=0
# rule NAME ALLOWED FOLDER...: every quoted include below the folders matches the expression ALLOWED.
rule() {
  local name=$1 allowed=$2 wrong
  shift 2
  wrong=$(includes "$@" | awk -F: -v allowed="$allowed" '$3 !~ allowed')
  [ -z "$wrong" ] && return
  echo "$name may include $allowed only:"
  sed 's/^/  /' <<<"$wrong"
  faults=1
}

rule sdk/include/gestalt/abi '^gestalt/abi/[a-z0-9_]+[.]h$' sdk/include/gestalt/abi
rule sdk/include '^gestalt/' sdk/include
rule sdk/support '^(gestalt|support)/' sdk/support
rule core '^(core|support|gestalt/abi)/|^gestalt/philox[.]h$' core
rule launcher '^(launcher|core|support|gestalt/abi)/|^gestalt/philox[.]h$' launcher
for folder in plugins/*/ plugins-contrib/*/; do
  [ -d "$folder" ] || continue
  rule "${folder%/}" "^(gestalt|support)/|^${folder}|^[a-z0-9_]+[.](h|hpp|cuh)$" "$folder"
done

# A system header in the ABI would be part of the contract.
system=$(grep -HnE '^#[[:space:]]*include[[:space:]]*<' sdk/include/gestalt/abi/*.h | grep -v '<stdint.h>')
if [ -n "$system" ]; then
  echo "sdk/include/gestalt/abi may include <stdint.h> only:"
  sed 's/^/  /' <<<"$system"
  faults=1
fi
# Third-party headers stay out of the C++ layer.
foreign=$(grep -HnE '^#[[:space:]]*include[[:space:]]*<[a-z_0-9+]+(/|[.]h)' sdk/include/gestalt/*.hpp sdk/include/gestalt/*.h |
  grep -v '<stdint.h>')
if [ -n "$foreign" ]; then
  echo "sdk/include/gestalt may include the C++ library only:"
  sed 's/^/  /' <<<"$foreign"
  faults=1
fi
exit $faults

#!/usr/bin/env bash
# The layout of the ABI against tests/abi/layout.txt: every field's offset and size, every struct's size, every constant.
# An old line that is gone or different fails; a field added at the end of a struct that carries struct_size passes.
#   bash tests/abi/layout.sh --write     writes layout.txt anew (before the first release, or after appending)
set -u -o pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

for header in sdk/include/gestalt/abi/*.h; do echo "#include \"${header#sdk/include/}\""; done >"$out/all.c"
gcc -std=c11 -Isdk/include -g -gdwarf-4 -fno-eliminate-unused-debug-types -c "$out/all.c" -o "$out/all.o" || exit 1

# Offsets come from the debug information; a field's size is the distance to the next one, because nothing is padded
# (tests/abi/headers.sh compiles with -Wpadded).
readelf --debug-dump=info "$out/all.o" | awk '
  function value(s) { sub(/^[^:]*: (\(indirect string, offset: [^)]*\): )?/, "", s); sub(/[ \t]+$/, "", s); return s }
  function flush_struct(   i, end) {
    if (name ~ /^gestalt_/ && size != "") {
      for (i = 0; i < n; ++i) {
        end = i + 1 < n ? at[i + 1] : size
        print name "." field[i], "offset", at[i], "size", end - at[i]
      }
      print name, "size", size
    }
    name = ""; n = 0; size = ""
  }
  /DW_TAG_structure_type/ { flush_struct(); inside = 1; member = 0; depth = $1; sub(/^<|>.*/, "", depth); next }
  /DW_TAG_member/ && inside { member = 1; next }
  /DW_TAG_(union|typedef|base|subroutine|pointer|const|array|subprogram|variable)/ { if (inside) { flush_struct(); inside = 0 } next }
  inside && !member && /DW_AT_name/ { name = value($0) }
  inside && !member && /DW_AT_byte_size/ { size = value($0) + 0 }
  inside && member && /DW_AT_name/ { field[n] = value($0) }
  inside && member && /DW_AT_data_member_location/ { at[n++] = value($0) + 0 }
  END { flush_struct() }' | LC_ALL=C sort -u >"$out/layout.txt"

# Constants, evaluated by the compiler.
gcc -std=c11 -Isdk/include -dM -E "$out/all.c" |
  awk '/^#define GESTALT_[A-Z0-9_]+ / && !/GESTALT_(NOEXCEPT|EXTERN_C|PLUGIN_MAIN_V1|ABI_MINOR)/ { print $2 }' | sort >"$out/names"
{
  echo '#include <stdio.h>'
  cat "$out/all.c"
  echo 'int main(void) {'
  while read -r name; do echo "printf(\"$name = %lld\\n\", (long long)$name);"; done <"$out/names"
  echo 'printf("GESTALT_PLUGIN_MAIN_V1 = %s\n", GESTALT_PLUGIN_MAIN_V1); return 0; }'
} >"$out/constants.c"
gcc -std=c11 -Isdk/include "$out/constants.c" -o "$out/constants" || exit 1
"$out/constants" | LC_ALL=C sort >>"$out/layout.txt"

if [ "${1:-}" = --write ]; then
  cp "$out/layout.txt" tests/abi/layout.txt
  exit 0
fi

awk '
  NR == FNR { now[$0] = 1; if ($2 == "size") bytes[$1] = $3; next }
  $0 in now { next }
  # A struct that says its own size may grow.
  $2 == "size" && bytes[$1] > $3 && (($1 ".struct_size offset 0 size 8") in now) { next }
  { print "changed or gone: " $0; faults = 1 }
  END { exit faults }' "$out/layout.txt" tests/abi/layout.txt || exit 1
echo "$(wc -l <tests/abi/layout.txt) lines hold"
grep -Fvxf tests/abi/layout.txt "$out/layout.txt" | sed 's/^/new, not yet in layout.txt: /'
exit 0

#!/usr/bin/env python3
"""Writes sdk/support/bpe/unicode_runs.cpp: the character classes that the tokenizer patterns ask for.

Needs: pip install unicodedata2==16.0.0. Unicode 16.0 is what tiktoken 0.14's regex engine knows.
"""
import sys
import unicodedata2 as ud

SPACE = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
OTHER, IS_SPACE, NUMBER, UPPER, LOWER, UNCASED, MARK = range(7)  # the order of CharClass in unicode.h


def char_class(code):
    if code in SPACE:
        return IS_SPACE
    category = ud.category(chr(code))
    if category[0] == "N":
        return NUMBER
    if category[0] == "M":
        return MARK
    return {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": UNCASED, "Lo": UNCASED}.get(category, OTHER)


runs, last = [], None
for code in range(0x110000):
    now = char_class(code)
    if now != last:
        runs.append(code << 3 | now)
        last = now

lines, line = [], "   "
for run in runs:
    item = f" 0x{run:x},"
    if len(line) + len(item) > 118:
        lines.append(line)
        line = "   "
    line += item
lines.append(line)

with open(sys.argv[1], "w") as out:
    out.write(f"// Made by tests/peers/make_unicode_classes.py from Unicode {ud.unidata_version}. Data only; do not edit.\n")
    out.write('#include "support/bpe/unicode.h"\n\nnamespace gestalt::support::bpe {\n\n')
    out.write("// Each entry: first code point << 3 | CharClass; a run lasts until the next entry's first code point.\n")
    out.write("// clang-format off\nconst uint32_t kUnicodeRuns[] = {\n" + "\n".join(lines) + "\n};\n// clang-format on\n")
    out.write("const size_t kNumUnicodeRuns = sizeof(kUnicodeRuns) / sizeof(kUnicodeRuns[0]);\n\n}  // namespace gestalt::support::bpe\n")
print(len(runs), "runs")

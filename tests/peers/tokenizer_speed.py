#!/usr/bin/env python3
"""Encodes the same text with tiktoken and with `gestalt tokenizer speed`, one thread each, rounds in turn, same ids.

  pip install tiktoken
  tests/peers/tokenizer_speed.py --gestalt build/release/bin/gestalt --ranks r50k_base.tiktoken --pattern gpt2 --file kjv.txt

Prints MB/s (10^6 bytes) of both, the best of the rounds, and exits 1 unless ours reaches --least and --ratio times theirs.
"""
import argparse
import base64
import hashlib
import json
import os
import struct
import subprocess
import sys
import time

os.environ["RAYON_NUM_THREADS"] = "1"
try:
    import tiktoken
except ImportError:
    print("SKIP tokenizer_speed: tiktoken is not installed (pip install tiktoken)")
    sys.exit(77)

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
CL100K = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"""
          r"""|\s+(?!\S)|\s+""")

parser = argparse.ArgumentParser()
parser.add_argument("--gestalt", required=True)
parser.add_argument("--ranks", required=True)
parser.add_argument("--pattern", choices=["gpt2", "cl100k_base"], default="gpt2")
parser.add_argument("--file", required=True)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--least", type=float, default=15.0)
parser.add_argument("--ratio", type=float, default=2.0)
args = parser.parse_args()

with open(args.ranks, "rb") as f:
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in f if line.strip())}
theirs = tiktoken.Encoding("peer", pat_str=GPT2 if args.pattern == "gpt2" else CL100K, mergeable_ranks=ranks,
                           special_tokens={})
with open(args.file, encoding="utf-8", newline="") as f:
    text = f.read()
num_bytes = len(text.encode())

best_theirs, best_ours, ids, ours = 0.0, 0.0, [], {}
for _ in range(args.rounds):
    begin = time.perf_counter()
    ids = theirs.encode_ordinary(text)
    best_theirs = max(best_theirs, num_bytes / 1e6 / (time.perf_counter() - begin))
    ours = json.loads(subprocess.run([args.gestalt, "tokenizer", "speed", "--ranks", args.ranks, "--pattern",
                                      args.pattern, "--file", args.file, "--rounds", "1", "--json"],
                                     check=True, stdout=subprocess.PIPE).stdout)
    best_ours = max(best_ours, ours["mb_per_second"])

same = hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest() == ours["sha256_of_uint32le_ids"]
print(f"{args.pattern}: {num_bytes} bytes, {len(ids)} ids; tiktoken {tiktoken.__version__} {best_theirs:.1f} MB/s, "
      f"gestalt {best_ours:.1f} MB/s, ratio {best_ours / best_theirs:.2f}, ids {'equal' if same else 'DIFFERENT'}")
sys.exit(0 if same and best_ours >= args.least and best_ours >= args.ratio * best_theirs else 1)

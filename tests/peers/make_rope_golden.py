"""Rotary frequencies of every kind, computed by Hugging Face transformers.

    python3 tests/peers/make_rope_golden.py tests/golden/rope.json

Each case holds the attributes of core.rotary_table, a number of tokens, and for that length the frequencies (radians a
position) and the factor on cosines and sines that ROPE_INIT_FUNCTIONS gives.
"""
import json
import sys

import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

SHORT = [1.0, 1.02, 1.1, 1.3, 1.5, 1.9, 2.4, 3.0]
LONG = [1.0, 1.3, 2.0, 3.5, 6.0, 11.0, 20.0, 32.0]
# kind, settings of rope_parameters, the context that config.json names, numbers of tokens
CASES = [
    ("linear", dict(factor=4.0), 64, [8]),
    ("dynamic", dict(factor=2.0), 16, [8, 16, 17, 40]),
    ("yarn", dict(factor=4.0, original_max_position_embeddings=32), 128, [8]),
    ("yarn", dict(factor=8.0, original_max_position_embeddings=512, beta_fast=16.0, beta_slow=2.0), 4096, [8]),
    ("yarn", dict(factor=8.0, original_max_position_embeddings=512, truncate=False), 4096, [8]),
    ("yarn", dict(factor=40.0, original_max_position_embeddings=4096, mscale=1.0, mscale_all_dim=0.5), 163840, [8]),
    ("yarn", dict(factor=4.0, original_max_position_embeddings=32, attention_factor=1.25), 128, [8]),
    ("llama3", dict(factor=8.0, original_max_position_embeddings=64, low_freq_factor=1.0, high_freq_factor=4.0), 512, [8]),
    ("llama3", dict(factor=32.0, original_max_position_embeddings=8192, low_freq_factor=1.0, high_freq_factor=4.0), 131072,
     [8]),
    ("longrope", dict(short_factor=SHORT, long_factor=LONG, original_max_position_embeddings=16), 64, [8, 16, 17]),
    ("longrope", dict(short_factor=SHORT, long_factor=LONG, original_max_position_embeddings=16, factor=2.0,
                      attention_factor=1.1), 64, [8, 17]),
]
NAMES = dict(original_max_position_embeddings="original_max")


def main():
    out = []
    for kind, settings, context, lengths in CASES:
        for theta, part in ((10000.0, 1.0), (500000.0, 0.5)):
            if kind == "longrope" and part != 1.0:
                continue
            head = 16
            config = transformers.LlamaConfig(
                hidden_size=2 * head, num_attention_heads=2, head_dim=head, max_position_embeddings=context,
                rope_parameters=dict(settings, rope_type=kind, rope_theta=theta, partial_rotary_factor=part))
            attributes = {NAMES.get(k, k): v for k, v in settings.items()}
            attributes.update(kind=kind, theta=theta, dims=int(head * part))
            if kind == "dynamic":
                attributes["original_max"] = context
            if kind == "longrope":
                attributes.setdefault("factor", context / settings["original_max_position_embeddings"])
            for length in lengths:
                frequencies, factor = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=length)
                out.append(dict(attributes=attributes, tokens=length, attention_factor=float(factor),
                                frequencies=[float(f) for f in frequencies]))
    with open(sys.argv[1], "w") as f:
        json.dump(dict(reference="transformers " + transformers.__version__, cases=out), f, separators=(",", ":"))
        f.write("\n")
    print(len(out), "cases")


main()

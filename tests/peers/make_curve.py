"""Makes tests/golden/curve/losses.json: 100 updates of a small GPT by PyTorch, on the CPU in f32.

    GESTALT_DUMP_CURVE=/tmp/curve build/release/bin/test_training "the first 100 losses*"
    python tests/peers/make_curve.py /tmp/curve tests/golden/curve/losses.json

The folder holds the initial weights and the batches that the test's own run reads; everything else is written here
anew, from the definitions: RMS norm before each branch, rotary positions in halves, the tanh form of GELU, a tied head,
decoupled weight decay for matrices, clipping at norm 1.
"""

import json
import math
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

STEPS, BATCH, LENGTH, LAYERS, HEADS, HIDDEN = 100, 8, 64, 3, 4, 64
EPS, THETA, DECAY, BETAS = 1e-5, 1e4, 0.1, (0.9, 0.95)


def read(folder):
    weights, decayed = {}, set()
    for line in (folder / "shapes.txt").read_text().splitlines():
        path, group, *shape = line.split()
        data = numpy.fromfile(folder / f"{path}.f32", dtype=numpy.float32).reshape([int(s) for s in shape])
        name = path.removeprefix("model.")
        weights[name] = torch.tensor(data, requires_grad=True)
        if group == "decay":
            decayed.add(name)
    return weights, decayed


def norm(x, w):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * w


def rotate(x):
    """x [batch, heads, length, size]: pairs (i, i + size / 2) turn by position * THETA^(-2 i / size)."""
    half = x.shape[-1] // 2
    turns = THETA ** (-torch.arange(half, dtype=torch.float64) * 2 / x.shape[-1])
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * turns
    cos, sin = angle.cos().float(), angle.sin().float()
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def loss_of(w, tokens, labels):
    x = F.embedding(tokens, w["embedding.weight"])
    for i in range(LAYERS):
        at = f"layers.{i}."
        h = norm(x, w[at + "attention_norm.weight"])
        parts = (h @ w[at + "attention.qkv.weight"].T).split(HIDDEN, dim=-1)
        q, k, v = (p.view(BATCH, LENGTH, HEADS, HIDDEN // HEADS).transpose(1, 2) for p in parts)
        o = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + o.transpose(1, 2).reshape(BATCH, LENGTH, HIDDEN) @ w[at + "attention.out.weight"].T
        h = norm(x, w[at + "mlp_norm.weight"])
        x = x + F.gelu(h @ w[at + "mlp.up.weight"].T, approximate="tanh") @ w[at + "mlp.down.weight"].T
    logits = norm(x, w["final_norm.weight"]) @ w["embedding.weight"].T
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    torch.manual_seed(0)
    w, decayed = read(folder)
    optimizer = torch.optim.AdamW(
        [{"params": [w[n] for n in sorted(decayed)], "weight_decay": DECAY},
         {"params": [w[n] for n in sorted(w) if n not in decayed], "weight_decay": 0.0}],
        lr=1.0, betas=BETAS, eps=1e-8)
    losses, norms = [], []
    for step in range(STEPS):
        tokens, labels = (
            torch.from_numpy(numpy.fromfile(folder / f"{step}.{f}.i32", dtype=numpy.int32).astype(numpy.int64)).view(BATCH, LENGTH)
            for f in ("tokens", "labels"))
        for group in optimizer.param_groups:
            group["lr"] = float(numpy.fromfile(folder / f"{step}.lr.f64", dtype=numpy.float64)[0])
        optimizer.zero_grad()
        loss = loss_of(w, tokens, labels)
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(list(w.values()), 1.0)))
        optimizer.step()
        losses.append(loss.item())
        assert math.isfinite(losses[-1])
    out.write_text(json.dumps({"torch": torch.__version__.split("+")[0], "losses": losses, "grad_norms": norms}, indent=1) + "\n")
    print(losses[0], losses[-1])


if __name__ == "__main__":
    main()

"""Trains GPT-2 124M with torch in f32 (no TF32) and writes the folder that `gestalt parity` compares with: the model as it
began, every batch, every loss.

usage: curve.py TOKENS.bin OUT [STEPS [ROWS [LENGTH]]]     TOKENS.bin: uint16 ids, one after the other
"""
import json
import math
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

tokens = torch.from_numpy(np.fromfile(sys.argv[1], dtype=np.uint16).astype(np.int64))
out = sys.argv[2]
steps, rows, length = (int(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((3, 1000), (4, 8), (5, 256)))
peak, low, warmup = 6e-4, 6e-5, 100  # as in gpu/curve.sh

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
config = transformers.GPT2Config(vocab_size=50304, n_positions=1024, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
                                 bos_token_id=0, eos_token_id=0)
model = transformers.GPT2LMHeadModel(config).float()
model.save_pretrained(out, safe_serialization=True)
model = model.cuda().eval()

generator = torch.Generator().manual_seed(2)
starts = torch.randint(0, len(tokens) - length, (steps, rows), generator=generator)
batches = tokens[starts[..., None] + torch.arange(length)]
save_file({f"batch{i}.input_ids": b.to(torch.int32).contiguous() for i, b in enumerate(batches)} |
          {f"batch{i}.labels": b.to(torch.int32).contiguous() for i, b in enumerate(batches)}, out + "/train.safetensors")

ids = batches[0][:, :64].contiguous()
result = model(input_ids=ids.cuda(), labels=ids.cuda(), use_cache=False)
result.loss.backward()
io = {"input_ids": ids.to(torch.int32), "labels": ids.to(torch.int32).clone(),
      "logits": result.logits.detach().float().cpu().contiguous()}
for name, p in model.named_parameters():
    io["grad." + name] = p.grad.detach().cpu().contiguous().clone()
save_file(io, out + "/io.safetensors")
first = result.loss.item()
model.zero_grad()

decayed = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                              lr=peak, betas=(0.9, 0.95), eps=1e-8, fused=True)
batches = batches.cuda()
losses = []
for step in range(steps):
    lr = peak * (step + 1) / warmup if step < warmup else \
        low + 0.5 * (peak - low) * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))
    for group in optimizer.param_groups:
        group["lr"] = lr
    loss = model(input_ids=batches[step], labels=batches[step], use_cache=False).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.detach())
losses = torch.stack(losses).tolist()
with open(out + "/expect.json", "w") as f:
    json.dump({"loss": first, "reference": "torch " + torch.__version__ + ", f32", "train": {"losses": losses}}, f)
print(f"torch f32: {losses[0]:.4f} to {sum(losses[-100:]) / len(losses[-100:]):.4f}")

"""Reference values of tiny random models, computed by Hugging Face transformers (PyTorch, CPU, float32).

    python3 tests/peers/make_model_golden.py tests/golden/hf [NAME...]

Writes OUT/NAME/{config.json, model.safetensors, io.safetensors, expect.json} and, for models with a training curve,
train.safetensors, in the form that `gestalt parity` reads: a batch with its logits, loss and the gradient of every
parameter, a greedy continuation, and 20 steps of AdamW. Needs torch and transformers from PyPI; the results are
committed, so that no test needs them.
"""
import json
import math
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

VOCAB, LENGTH, ROWS = 48, 20, 2
SHAPE = dict(vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=None)
ONE_LAYER = dict(SHAPE, num_hidden_layers=1)
SCALED = dict(rope_theta=100.0)


def rope(kind, **numbers):
    return dict(rope_parameters=dict(SCALED, rope_type=kind, **numbers))


SHORT = [1.0 + 0.1 * i for i in range(4)]
LONG = [1.5 + 0.7 * i for i in range(4)]
# name: (configuration, model, seed, keywords, whether it also trains)
MODELS = {
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", 101, dict(SHAPE), True),
    "qwen2-window": ("Qwen2Config", "Qwen2ForCausalLM", 102,
                     dict(ONE_LAYER, num_hidden_layers=3, use_sliding_window=True, sliding_window=6, max_window_layers=1), False),
    "phi3-longrope": ("Phi3Config", "Phi3ForCausalLM", 103,
                      dict(SHAPE, original_max_position_embeddings=16,
                           **rope("longrope", short_factor=SHORT, long_factor=LONG,
                                  original_max_position_embeddings=16)), True),
    "phi3-partial": ("Phi3Config", "Phi3ForCausalLM", 104,
                     dict(ONE_LAYER, rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5)),
                     False),
    "mistral-full": ("MistralConfig", "MistralForCausalLM", 105, dict(SHAPE, sliding_window=None), True),
    "llama-linear": ("LlamaConfig", "LlamaForCausalLM", 106, dict(ONE_LAYER, **rope("linear", factor=4.0)), False),
    "llama-dynamic": ("LlamaConfig", "LlamaForCausalLM", 107,
                      dict(ONE_LAYER, max_position_embeddings=12, **rope("dynamic", factor=2.0)), False),
    "llama-yarn": ("LlamaConfig", "LlamaForCausalLM", 108,
                   dict(ONE_LAYER, **rope("yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=2.0,
                                          beta_slow=0.5)), False),
    "llama-llama3": ("LlamaConfig", "LlamaForCausalLM", 109,
                     dict(ONE_LAYER, **rope("llama3", factor=4.0, original_max_position_embeddings=16,
                                            low_freq_factor=1.0, high_freq_factor=4.0)), False),
    # A llama with the attention of gpt-oss: one more logit of each head without a value.
    "llama-sinks": ("LlamaConfig", "LlamaForCausalLM", 110, dict(SHAPE, num_attention_heads=4, num_key_value_heads=2), True),
}


def with_sinks(model, generator):
    from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward
    import transformers.models.llama.modeling_llama as llama
    llama.eager_attention_forward = eager_attention_forward
    for layer in model.model.layers:
        heads = model.config.num_attention_heads
        layer.self_attn.sinks = torch.nn.Parameter(torch.randn(heads, generator=generator))


def build(name):
    config_class, model_class, seed, keywords, _ = MODELS[name]
    torch.manual_seed(seed)
    config = getattr(transformers, config_class)(**keywords)
    config._attn_implementation = "eager"
    model = getattr(transformers, model_class)(config).float().eval()
    # Biases and norms leave their zeros and ones, and weights are large enough for every term to show.
    generator = torch.Generator().manual_seed(seed + 1000)
    with torch.no_grad():
        for _, p in model.named_parameters():
            if p.dim() == 1:
                p.add_(0.1 * torch.randn(p.shape, generator=generator))
            else:
                p.mul_(6.0)
    if name == "llama-sinks":
        with_sinks(model, generator)
    return config, model, seed


def batch(seed):
    generator = torch.Generator().manual_seed(seed + 2000)
    ids = torch.randint(3, VOCAB, (ROWS, LENGTH), generator=generator)
    return dict(input_ids=ids, labels=ids.clone())


def narrow(tensors):
    return {k: v.to(torch.int32) if v.dtype == torch.int64 else v.detach().clone().contiguous() for k, v in tensors.items()}


def train(model, seed, folder):
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([dict(params=decay, weight_decay=0.1), dict(params=rest, weight_decay=0.0)], lr=1e-3,
                                  betas=(0.9, 0.95), eps=1e-8)
    batches = [batch(seed + 10 * (i + 1)) for i in range(4)]
    save_file({f"batch{i}.{k}": v for i, b in enumerate(batches) for k, v in narrow(b).items()},
              folder + "/train.safetensors")
    losses = []
    for step in range(20):
        lr = 1e-3 * (step + 1) / 5 if step < 5 else 1e-4 + 0.5 * 9e-4 * (1 + math.cos(math.pi * (step - 5) / 15))
        for group in optimizer.param_groups:
            group["lr"] = lr
        loss = model(**batches[step % 4], use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return dict(losses=losses)


def write(name, out):
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    config, model, seed = build(name)
    model.save_pretrained(folder, safe_serialization=True)
    if os.path.exists(folder + "/generation_config.json"):
        os.remove(folder + "/generation_config.json")
    b = batch(seed)
    result = model(**b, use_cache=False)
    result.loss.backward()
    io = narrow(b)
    io["logits"] = result.logits.detach().float().contiguous()
    for n, p in model.named_parameters():
        io["grad." + n] = p.grad.detach().clone().contiguous()
    save_file(io, folder + "/io.safetensors")
    model.zero_grad()
    ids = b["input_ids"][:1, :8]
    with torch.no_grad():
        for _ in range(12):
            following = model(input_ids=ids, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, following], 1)
    expect = dict(loss=result.loss.item(), greedy_prompt=ids[0, :8].tolist(), greedy_continuation=ids[0, 8:].tolist(),
                  reference="transformers " + transformers.__version__ + ", torch " + torch.__version__.split("+")[0])
    if MODELS[name][4]:
        expect["train"] = train(model, seed, folder)
    with open(folder + "/expect.json", "w") as f:
        json.dump(expect, f, indent=1)
        f.write("\n")
    print(f"{name}: loss {expect['loss']:.6f}", flush=True)


def main():
    out = sys.argv[1]
    torch.set_num_threads(1)
    for name in sys.argv[2:] or MODELS:
        write(name, out)


main()

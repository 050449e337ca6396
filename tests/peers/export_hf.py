"""Exports models and has Hugging Face transformers load what was written.

    python3 tests/peers/export_hf.py --gestalt build/release/bin/gestalt tests/golden/hf/* [MODEL...]

For each MODEL (a folder with config.json, weights and io.safetensors): `gestalt checkpoint export` in one file and in
shards; transformers must load it with no missing, unexpected or mismatched key, give the logits of io.safetensors within
1e-4, and hold the same tensors. The last model that trains is also trained for two updates from its weights, its
checkpoint exported, and transformers' logits, loss and gradients of that given back to `gestalt parity`.
Needs torch and transformers from PyPI.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

TOLERANCE = 1e-4


def run(*arguments, **more):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\nexits {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def load(folder):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager", dtype=torch.float32)
    wrong = {k: v for k, v in info.items() if v}
    if wrong:
        sys.exit(f"{folder}: transformers says {wrong}")
    return model.eval()


def logits_of(model, ids):
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False).logits


def check(name, folder, exported):
    model = load(exported)
    reference = load(folder)
    io = load_file(os.path.join(folder, "io.safetensors"))
    difference = (logits_of(model, io["input_ids"].long()) - io["logits"]).abs().max().item()
    if not difference <= TOLERANCE:
        sys.exit(f"{name}: logits differ by {difference}")
    ours, theirs = model.state_dict(), reference.state_dict()
    unequal = [n for n in theirs if n not in ours or not torch.equal(ours[n], theirs[n])]
    if unequal or len(ours) != len(theirs):
        sys.exit(f"{name}: tensors differ: {unequal}")
    return difference


def trained(gestalt, folder, work):
    """Two updates from the weights of the folder; returns the checkpoint."""
    keys = [line.split("  #")[0] for line in run(gestalt, "explain", "config", folder).splitlines()
            if line.startswith("model.")]
    plugins = ["device_cpu", "kernels_cpu", "comm_self", "decoder", "attention", "mlp", "norm", "ckpt_safetensors", "adam",
               "tokenizer_byte", "data_text"]
    text = os.path.join(work, "text.txt")
    with open(text, "w") as f:
        f.writelines(f"line {i}: {i * i % 977} leaves\n" for i in range(2000))
    with open(os.path.join(work, "run.toml"), "w") as f:
        f.write("\n".join(keys) + "\n")
        f.write(f'model.init_from = "{folder}"\nrun.name = "trained"\nrun.output = "{work}/trained"\n')
        f.write('plugins.use = ["' + '", "'.join("gestalt." + p for p in plugins) + '"]\n')
        f.write(f'kernels.cpu = ["gestalt.cpu"]\ntokenizer.type = "gestalt.byte"\ndata.type = "gestalt.text"\n'
                f'data.path = "{text}"\noptimizer.type = "gestalt.adamw"\noptimizer.lr = 1e-2\ntrain.steps = 2\n'
                'train.global_batch = 2\ncheckpoint.type = "gestalt.safetensors"\n')
    run(gestalt, "train", os.path.join(work, "run.toml"))
    steps = os.path.join(work, "trained", "checkpoints")
    return os.path.join(steps, sorted(s for s in os.listdir(steps) if s.startswith("step-"))[-1])


def give_back(gestalt, exported):
    """What transformers computes of the folder, for `gestalt parity`."""
    model = load(exported)
    ids = torch.randint(3, model.config.vocab_size, (2, 24), generator=torch.Generator().manual_seed(5))
    result = model(input_ids=ids, labels=ids.clone(), use_cache=False)
    result.loss.backward()
    io = dict(input_ids=ids, labels=ids.clone(), logits=result.logits.detach().contiguous())
    io.update({"grad." + n: p.grad.contiguous() for n, p in model.named_parameters()})
    save_file(io, os.path.join(exported, "io.safetensors"))
    with open(os.path.join(exported, "expect.json"), "w") as f:
        json.dump(dict(loss=result.loss.item()), f)
    print(run(gestalt, "parity", exported), end="")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gestalt", required=True)
    parser.add_argument("models", nargs="+")
    o = parser.parse_args()
    torch.set_num_threads(1)
    work = tempfile.mkdtemp()
    families, last = set(), None
    try:
        for folder in o.models:
            name = os.path.basename(os.path.normpath(folder))
            with open(os.path.join(folder, "config.json")) as f:
                family = json.load(f)["model_type"]
            if name == "llama-sinks":  # not a model of transformers
                continue
            for how, more in (("one file", []), ("shards", ["--shard-size", "30000"])):
                exported = os.path.join(work, name + how.replace(" ", "_"))
                run(o.gestalt, "checkpoint", "export", folder, exported, *more)
                difference = check(name, os.path.abspath(folder), exported)
                print(f"{name} ({family}), {how}: logits differ by {difference:.2g}", flush=True)
            families.add(family)
            if json.load(open(os.path.join(folder, "config.json"))).get("vocab_size", 0) >= 256:
                last = os.path.abspath(folder)
        if last:
            exported = os.path.join(work, "of_checkpoint")
            run(o.gestalt, "checkpoint", "export", trained(o.gestalt, last, work), exported)
            print(f"a checkpoint trained from {os.path.basename(last)}:")
            give_back(o.gestalt, exported)
        print(f"{len(families)} families: {', '.join(sorted(families))}")
    finally:
        shutil.rmtree(work)


main()

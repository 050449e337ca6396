"""Reads every tensor of an HDF5 checkpoint with the script of the guide, and bf16 bits against the float32 it gives."""
import json
import subprocess
import sys

folder, script = sys.argv[1:3]
manifest = json.load(open(folder + "/manifest.json"))
assert manifest["component"] == "gestalt.hdf5"
for tensor in manifest["tensors"]:
    said = subprocess.run([sys.executable, script, folder, tensor["name"]], check=True, capture_output=True, text=True).stdout
    shape = "(" + ", ".join(map(str, tensor["shape"])) + ("," if len(tensor["shape"]) == 1 else "") + ")"
    assert said.startswith(shape), (tensor["name"], said)
    print(tensor["name"], tensor["dtype"], said.strip())
assert any(len(t["pieces"]) > 1 for t in manifest["tensors"])
assert any(t["dtype"] == "bf16" for t in manifest["tensors"])

"""Reads every tensor of an HDF5 checkpoint with the script of the guide; where the package xxhash is there, also compares
the bytes that h5py gives with the manifest's digests (bf16 from the upper halves of its float32)."""
import json
import subprocess
import sys

import h5py

folder, script = sys.argv[1:3]
manifest = json.load(open(folder + "/manifest.json"))
assert manifest["component"] == "gestalt.hdf5"
assert any(len(t["pieces"]) > 1 for t in manifest["tensors"])
assert any(t["dtype"] == "bf16" for t in manifest["tensors"])
for tensor in manifest["tensors"]:
    said = subprocess.run([sys.executable, script, folder, tensor["name"]], check=True, capture_output=True, text=True).stdout
    shape = "(" + ", ".join(map(str, tensor["shape"])) + ("," if len(tensor["shape"]) == 1 else "") + ")"
    assert said.startswith(shape), (tensor["name"], said)
    print(tensor["name"], tensor["dtype"], said.strip())

try:
    import xxhash
except ImportError:
    sys.exit()
for tensor in manifest["tensors"]:
    for piece in tensor["pieces"]:
        with h5py.File(folder + "/" + manifest["files"][piece["file"]]["name"]) as shard:
            value = shard[tensor["name"]][()]
        if tensor["dtype"] == "bf16":
            value = (value.view("<u4") >> 16).astype("<u2")
        assert xxhash.xxh3_128_hexdigest(value.tobytes()) == piece["xxh3"], tensor["name"]
print("every piece has the digest of the manifest")

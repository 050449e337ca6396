"""Reads a run's event files with the tensorboard package and compares them with metrics.jsonl of the same run."""

import json
import math
import pathlib
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("the Python package tensorboard is not there; GESTALT_PEERS_PYTHON may name a Python that has it")
    sys.exit(77)

run = pathlib.Path(sys.argv[1])
events = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0}).Reload()
count = texts = 0
for line in (run / "metrics.jsonl").read_text().splitlines():
    record = json.loads(line)
    step = record.pop("step")
    if "text" in record:
        tensors = events.Tensors(record["text"])
        found = [t.tensor_proto.string_val[0].decode() for t in tensors if t.step == step]
        assert any(record["content"] in f for f in found), record["text"]
        texts += 1
        continue
    for name, value in record.items():
        seen = [s.value for s in events.Scalars(name) if s.step == step]
        assert len(seen) == 1, f"{name} at step {step}: {len(seen)} values"
        want = float(value) if not isinstance(value, str) else {"NaN": math.nan}.get(value, math.inf)
        assert math.isclose(seen[0], want, rel_tol=1e-6, abs_tol=1e-12) or math.isnan(want), (name, step, seen, want)
        count += 1
assert count > 50 and texts >= 3, (count, texts)
print(f"{count} scalars and {texts} texts are equal")

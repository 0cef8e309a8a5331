"""What the fault tests share: a run of a second, and a comparison of two."""

import json
import os
import subprocess
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]

TINY = """
[task]
train = 300
validation = 50
test = 60
min_length = 5
max_length = 30
max_depth = 3
max_args = 4

[model]
width = 8
state = 12
heads = 4
depth = 2
dropout = 0.1

[training]
steps = {steps}
batch = 10
log_every = 4
evaluate_every = {evaluate}
checkpoint_every = {every}
keep_checkpoint_every = {keep}
global_lr = 1e-2
threads = 1
"""

RESUMED = ["last/weights.safetensors", "last/optimiser.safetensors", "last/state.json"]
FILES = [*RESUMED, "best/weights.safetensors", "best/state.json"]


def write_config(folder, steps, every, keep=0, evaluate=10):
    file = Path(folder) / "tiny.toml"
    file.write_text(TINY.format(steps=steps, every=every, keep=keep, evaluate=evaluate))
    return file


def run(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=300)
    text = f"{arguments}\n{done.stdout}\n{done.stderr}"
    assert code is None or done.returncode == code, f"exit code {done.returncode}: {text}"
    assert "terminate called" not in done.stderr, text
    return done


def metrics(run_folder):
    lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("seconds", None)
        line.pop("tokens_per_second", None)
        line.pop("memory_mb", None)
    return lines


def differences(a, b, files=FILES):
    """What is not the same in two runs."""
    found = [name for name in files if (a / name).read_bytes() != (b / name).read_bytes()]
    return found + (["metrics.jsonl"] if files is FILES and metrics(a) != metrics(b) else [])


def leftovers(run_folder):
    """What a run folder must not hold when nothing is being written."""
    return [p.name for p in Path(run_folder).iterdir()
            if p.name.endswith(".new") or ".tmp-" in p.name]

"""Corrupts the checkpoints of a run at random and resumes it: it must end with exactly the weights of
the unbroken run, having said what was wrong, or refuse with a clear message.

    ROTRNN_PROGRAM=build/release/bin/rotrnn tests/faults/corruption_test.py --count 1000
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from common import RESUMED, differences, leftovers, run, write_config

NAMES = ["weights.safetensors", "optimiser.safetensors", "state.json", "SHA256SUMS"]


def flip(data, draw):
    at = draw.randrange(len(data))
    data[at] ^= 1 << draw.randrange(8)


def flip_many(data, draw):
    for _ in range(draw.randint(2, 50)):
        flip(data, draw)


def cut(data, draw):
    del data[draw.randrange(len(data)):]


def append(data, draw):
    data += draw.randbytes(draw.randint(1, 5000))


def insert(data, draw):
    at = draw.randrange(len(data))
    data[at:at] = draw.randbytes(draw.randint(1, 64))


def zero(data, draw):
    at = draw.randrange(len(data))
    size = min(draw.randint(1, 4096), len(data) - at)
    data[at:at + size] = bytes(size)


def noise(data, draw):
    data[:] = draw.randbytes(len(data))


CHANGES = [flip, flip, flip, flip_many, cut, append, insert, zero, noise]


def corrupt(checkpoint, other, draw):
    """Damages one file, or swaps two; returns what was done, or None if nothing has changed."""
    name = draw.choice([n for n in NAMES if (checkpoint / n).exists()])
    file = checkpoint / name
    kind = draw.randrange(len(CHANGES) + 3)
    if kind < len(CHANGES):
        before = file.read_bytes()
        data = bytearray(before)
        CHANGES[kind](data, draw)
        file.write_bytes(data)
        return None if bytes(data) == before else f"{CHANGES[kind].__name__} {name}"
    if kind == len(CHANGES):
        file.unlink()
        return f"remove {name}"
    if kind == len(CHANGES) + 1:  # two files of one checkpoint
        partner = checkpoint / draw.choice([n for n in NAMES if (checkpoint / n).exists()])
        first, second = file.read_bytes(), partner.read_bytes()
        file.write_bytes(second)
        partner.write_bytes(first)
        return None if first == second else f"swap {name} and {partner.name}"
    before = file.read_bytes()  # the same file of another checkpoint
    file.write_bytes((other / name).read_bytes())
    return None if file.read_bytes() == before else f"{name} of another step"


def make_template(whole, template):
    """The run as it was after step 8."""
    template.mkdir()
    for name in ["config.toml", "metrics.jsonl"]:
        shutil.copy(whole / name, template)
    shutil.copytree(whole / "step-8", template / "last")
    shutil.copytree(whole / "step-4", template / "previous")
    best = json.loads((whole / "step-8/state.json").read_text())["state"]["best_step"]
    shutil.copytree(whole / f"step-{best}", template / "best")
    (template / "best/optimiser.safetensors").unlink()
    sums = template / "best/SHA256SUMS"
    lines = sums.read_text().splitlines(keepends=True)
    sums.write_text("".join(line for line in lines if "optimiser" not in line))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    results = Counter()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        config = write_config(folder, steps=12, every=4, keep=4, evaluate=4)
        whole, template, out = folder / "whole", folder / "template", folder / "run"
        run("train", config, "--out", whole)
        make_template(whole, template)
        for _ in range(options.count):
            done, targets = None, []
            while done is None:
                shutil.rmtree(out, ignore_errors=True)
                shutil.copytree(template, out)
                targets = draw.choices([["last"], ["last", "previous"], ["best"]], [7, 2, 1])[0]
                what = [corrupt(out / t, whole / "step-12", draw) for t in targets]
                done = None if None in what else f"{targets}: {what}"
            ended = run("train", "--resume", "--out", out, "--quiet", code=None)
            assert not leftovers(out), f"{done}: {leftovers(out)}"
            if ended.returncode == 0:
                assert differences(whole, out, RESUMED[:2]) == [], f"{done}: other weights"
                assert "warning: " in ended.stderr, f"{done}: went on without a word"
                results["best lost, said so" if targets == ["best"] else
                        "went on from the previous one"] += 1
            else:
                assert ended.returncode == 1 and "no checkpoint is whole" in ended.stderr, \
                    f"{done}: {ended.stderr}"
                assert "previous" in targets, f"{done}: refused, but one is whole"
                results["refused"] += 1
    print(f"{options.count} corruptions, none loaded: " +
          ", ".join(f"{n} {what}" for what, n in sorted(results.items())))


if __name__ == "__main__":
    sys.exit(main())

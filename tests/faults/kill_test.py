"""Kills training with SIGKILL at random moments, many of them while it saves, and resumes it: every
run must end with exactly the weights, moments and metrics of one that was never broken.

    ROTRNN_PROGRAM=build/release/bin/rotrnn tests/faults/kill_test.py --kills 50 [--every 20]
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import FILES, PROGRAM, differences, leftovers, run, write_config

STEPS = 120


def saving(out):
    return (out / "last.new").exists() or (out / "best.new").exists()


def start(config, out):
    more = ["--resume"] if (out / "config.toml").exists() else []
    return subprocess.Popen([PROGRAM, "train", str(config), "--out", str(out), *more],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill(process, out, draw):
    """Whether it was killed, and whether while saving; False when it ended before."""
    begin = time.monotonic()
    if draw.random() < 0.25:  # anywhere, from the first instruction on
        delay = draw.uniform(0, 1.5)
        while process.poll() is None and time.monotonic() - begin < delay:
            time.sleep(0.001)
    else:  # some steps on, in the middle of a checkpoint
        while process.poll() is None and not saving(out):
            time.sleep(0.0005)
        delay = draw.uniform(0, 0.4)
        begin = time.monotonic()
        while process.poll() is None and time.monotonic() - begin < delay:
            time.sleep(0.001)
        while process.poll() is None and not saving(out):
            pass
        # At any part of it: writing, flushing, reading back, exchanging, removing.
        until = time.monotonic() + draw.uniform(0, 0.012)
        while time.monotonic() < until:
            pass
    if process.poll() is not None:
        return False, False
    process.kill()
    process.communicate()
    return True, saving(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--every", type=int, default=1, help="steps between checkpoints")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        config = write_config(folder, steps=STEPS, every=options.every, keep=7)
        whole = folder / "whole"
        run("train", config, "--out", whole)
        kept = [f"step-{n}/{name}" for n in (7, 63, 119)
                for name in ("weights.safetensors", "optimiser.safetensors", "SHA256SUMS")]
        kills = in_saving = runs = 0
        while kills < options.kills:
            runs += 1
            out = folder / f"broken-{runs}"
            process = start(config, out)
            while kills < options.kills:
                killed, while_saving = kill(process, out, draw)
                if not killed:
                    break
                kills += 1
                in_saving += while_saving
                process = start(config, out)
            stderr = process.communicate(timeout=300)[1].decode()
            assert process.returncode == 0, stderr
            assert "warning" not in stderr, stderr
            found = differences(whole, out) + differences(whole, out, kept) + leftovers(out)
            assert not found, f"run {runs} differs: {found}"
        print(f"{kills} kills in {runs} runs, {in_saving} of them while saving; all {len(FILES)} "
              "files and the metrics of every run are those of the unbroken one")
        assert in_saving >= options.kills / 4, "too few kills hit a checkpoint; the test is too tame"


if __name__ == "__main__":
    sys.exit(main())

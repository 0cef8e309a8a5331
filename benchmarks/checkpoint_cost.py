#!/usr/bin/env python3
"""What a checkpoint costs: the same training with one every few steps and with none, in turns. Often, so that
it shows above the noise of a machine; then scaled to one every 100 steps.

    benchmarks/checkpoint_cost.py CONFIG --program build/release/bin/rotrnn --every 5 --steps 300
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path


def seconds_of_steps(options, every, out):
    """Seconds from the first line of metrics.jsonl to the last: without loading, the first steps, the
    last checkpoint, and the evaluations, of which there is one at the end."""
    subprocess.run([options.program, "train", options.config, "--out", str(out), "--quiet",
                    *sum((["--set", s] for s in options.set), []),
                    "--set", f"training.steps={options.steps + 1}",
                    "--set", "training.log_every=10", "--set", f"training.evaluate_every={10**9}",
                    "--set", f"training.checkpoint_every={every}"],
                   check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["split"] == "train" and line["step"] <= options.steps]
    return ((lines[-1]["seconds"] - lines[0]["seconds"]) / (lines[-1]["step"] - lines[0]["step"]),
            sum(f.stat().st_size for f in (out / "last").iterdir()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("config")
    parser.add_argument("--program", default="build/release/bin/rotrnn")
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    ratios, seconds = [], []
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for i in range(options.rounds):
            with_them, size = seconds_of_steps(options, options.every, Path(folder) / f"with{i}")
            without, _ = seconds_of_steps(options, 10**9, Path(folder) / f"without{i}")
            ratios.append(with_them / without)
            seconds.append(without)
    step = statistics.median(seconds)
    cost = [(ratio - 1) * options.every for ratio in ratios]  # of a checkpoint, in steps
    print(f"{options.config}: step {1000 * step:.2f} ms, checkpoint of {size / 1e6:.2f} MB every {options.every} steps: "
          f"{1000 * step * statistics.median(cost):.1f} ms each; one every 100 steps would cost "
          f"{statistics.median(cost):.2f}% (from {min(cost):.2f}% to {max(cost):.2f}% in {options.rounds} rounds)")


if __name__ == "__main__":
    main()

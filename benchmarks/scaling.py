#!/usr/bin/env python3
"""Ranks against threads on one machine: the same training by 1 rank x T threads and T ranks x 1 thread.

    python3 benchmarks/scaling.py [--program build/release/bin/rotrnn] [--config C] [--steps N] [--rounds R]
                                  [--ranks T] [--set key=value]...

Runs take turns, so that a machine that is busy for a while is busy for both; the median of the rounds counts. Also
one rank on one thread with its share of the batch: what a rank computes. The rest of a step is messages and waiting.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path


def seconds_per_step(program, config, settings, ranks, threads, batch, steps, folder):
    """Of the second half of a run: the first warms up."""
    start = [program, "launch", "-n", str(ranks), "--"] if ranks > 1 else [program]
    out = Path(folder) / "run"
    values = {"training.steps": steps, "training.batch": batch, "training.threads": threads,
              "training.log_every": 1, "training.evaluate_every": steps, "training.checkpoint_every": steps,
              "task.validation": 50, "task.test": 50}
    command = [*start, "train", *([config] if config else []), "--out", str(out), "--overwrite", "--quiet"]
    for key, value in values.items():
        command += ["--set", f"{key}={value}"]
    for setting in settings:
        command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    train = [line for line in lines if line["split"] == "train"]
    half = train[len(train) // 2]
    step = (train[-1]["seconds"] - half["seconds"]) / (train[-1]["step"] - half["step"])
    return step, (train[-1]["tokens"] - half["tokens"]) / (train[-1]["step"] - half["step"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/rotrnn")
    parser.add_argument("--config", default="")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--set", action="append", default=[], dest="settings")
    options = parser.parse_args()
    t = options.ranks
    forms = {f"1 rank x {t} threads": (1, t, options.batch), f"{t} ranks x 1 thread": (t, 1, options.batch),
             "1 rank x 1 thread, its share": (1, 1, options.batch // t)}
    seen = {name: [] for name in forms}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for name, (ranks, threads, batch) in forms.items():
                seen[name].append(seconds_per_step(options.program, options.config, options.settings, ranks, threads,
                                                   batch, options.steps, folder))
    medians = {name: statistics.median(step for step, _ in values) for name, values in seen.items()}
    for name, values in seen.items():
        print(f"{name:30}  {1e3 * medians[name]:8.2f} ms per step  {values[0][1] / medians[name]:12,.0f} tokens/s")
    threads, ranks, share = medians.values()
    print(f"speed of ranks over threads   {threads / ranks:8.3f}")
    print(f"messages and waiting          {1e3 * (ranks - share):8.2f} ms per step; efficiency {share / ranks:.3f}")


if __name__ == "__main__":
    main()

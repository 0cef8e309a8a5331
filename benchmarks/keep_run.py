#!/usr/bin/env python3
"""Keep what a run showed, small enough for benchmarks/results/runs/: its config, and metrics.jsonl with fewer lines.

    benchmarks/keep_run.py runs/text benchmarks/results/runs/text

Evaluations, norms and the test stay as they are; of the lines of training at most --lines stay, of eigenvalues and
confusion matrices the first and the last. `task.path` becomes the bare name of the file, and settings of the machine
(threads, cache) are left as they were. With --splits the list of examples stays too, for data that are a part of a
public set. The kept folder is a run for `rotrnn board` and `rotrnn report`.
"""

import argparse
import json
import re
import shutil
import sys
from pathlib import Path


def thinned(lines, most):
    """Every k-th line of training and the last; lambda and confusion of the first and last evaluation only."""
    train = [i for i, m in enumerate(lines) if m["split"] == "train"]
    step = max(1, -(-len(train) // most))
    kept = set(train[::step]) | set(train[-1:])
    lambdas = [i for i, m in enumerate(lines) if m["split"] == "lambda"]
    confusions = [i for i, m in enumerate(lines) if "confusion" in m]
    ends = set(lambdas[:1] + lambdas[-1:] + confusions[-1:])
    result = []
    for i, m in enumerate(lines):
        if (m["split"] == "train" and i not in kept) or (m["split"] == "lambda" and i not in ends):
            continue
        if "confusion" in m and i not in ends:
            m = {k: v for k, v in m.items() if k != "confusion"}
        result.append({k: short(v) for k, v in m.items()})
    return result


def short(value):
    """Six digits are enough to draw."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [short(v) for v in value]
    if isinstance(value, dict):
        return {k: short(v) for k, v in value.items()}
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--lines", type=int, default=150, help="lines of training to keep")
    parser.add_argument("--splits", action="store_true", help="keep splits.tsv: which example was in which split")
    options = parser.parse_args()
    source = options.run / "metrics.jsonl"
    if not source.is_file():
        sys.exit(f"{options.run}: no run folder, there is no metrics.jsonl in it")
    if options.splits and not (options.run / "splits.tsv").is_file():
        sys.exit(f"{options.run}: there is no splits.tsv in it; data that are made have none")
    if options.lines < 2:
        sys.exit(f"--lines {options.lines}: at least 2")
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    config = (options.run / "config.toml").read_text()
    config = re.sub(r'^((?:train_|validation_|test_)?path|cache) = "[^"]*/([^"/]+)/?"$', r'\1 = "\2"', config, flags=re.M)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "config.toml").write_text(config)
    if options.splits:
        shutil.copyfile(options.run / "splits.tsv", options.out / "splits.tsv")
    with open(options.out / "metrics.jsonl", "w") as out:
        for m in thinned(lines, options.lines):
            out.write(json.dumps(m, separators=(",", ":")) + "\n")
    print(f"{options.out}: {sum(f.stat().st_size for f in options.out.iterdir()):,} bytes")


if __name__ == "__main__":
    main()

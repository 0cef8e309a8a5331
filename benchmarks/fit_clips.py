"""Memory and time of rotrnn fit on synthetic clips of one second.

    benchmarks/fit_clips.py FOLDER [--counts 5000 50000] [--program build/release/bin/rotrnn]

Makes arrays of 16-bit clips at 8 kHz (four classes: pairs of tones that rise or fall, in noise) in FOLDER, where they
stay, and fits each. Prints seconds, milliseconds per clip, and the largest resident memory of the process.
"""

import argparse
import json
import os
import resource
import subprocess
from pathlib import Path

import numpy as np

RATE = 8000


def make(folder, count):
    folder.mkdir(parents=True, exist_ok=True)
    labels = np.arange(count) % 4
    if not (folder / "y.npy").exists():
        x = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.int16, shape=(count, RATE))
        rng, t = np.random.default_rng(1), np.arange(RATE) / RATE
        for i, label in enumerate(labels):
            low, high = rng.uniform(200, 600), rng.uniform(1200, 3000)
            slide = 1 + (0.5 if label % 2 else -0.3) * t
            ratio = 1 if label < 2 else 1.5
            clip = np.sin(2 * np.pi * low * slide * t) + np.sin(2 * np.pi * high * ratio ** -1 * t) * (label < 2)
            x[i] = 6000 * (clip + 1.5 * rng.standard_normal(RATE))
        x.flush()
        np.save(folder / "y.npy", labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[5000, 50000])
    parser.add_argument("--program", default="build/release/bin/rotrnn")
    arguments = parser.parse_args()
    for count in arguments.counts:
        folder = arguments.folder / str(count)
        make(folder, count)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        done = subprocess.run([arguments.program, "fit", folder, "--out", arguments.folder / f"run{count}", "--overwrite",
                               "--input", "bands", "--json", "--set", "task.cache=none"],
                              capture_output=True, text=True, check=True, env={**os.environ})
        result = json.loads(done.stdout.splitlines()[-1])
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"{count} clips: {result['seconds']:.1f} s, {1000 * result['fit_seconds'] / count:.2f} ms per clip, "
              f"{max(peak, before) / 1024:.0f} MB, accuracy {result['test_accuracy']:.3f}", flush=True)


if __name__ == "__main__":
    main()

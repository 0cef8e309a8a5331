#!/usr/bin/env python3
"""Times the front end of rotations beside what is used in its place: log-mel-like STFT in PyTorch, and a
bank of second-order filters in SciPy.

    benchmarks/compare_frontend.py [--bench build/release/bin/kernels_bench] [--rounds 5] [--threads 1]

16 clips of one second at 16 kHz, a token every 10 ms, 64 bands (STFT: 400 samples, 201 bands). Every round
runs each once; figures are medians over the rounds, in nanoseconds per sample. Needs PyTorch, NumPy and SciPy
for the python that runs it; a peer that is missing is left out.
"""

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RATE, CLIPS, HOP, BANDS = 16000, 16, 160, 64


def kernel(program, threads, direction):
    """Nanoseconds per sample."""
    done = subprocess.run([program, "--benchmark_format=json", "--benchmark_min_time=0.3",
                           f"--benchmark_filter=rotations/{direction}/{BANDS}/{CLIPS}/{threads}/"],
                          capture_output=True, text=True, cwd=ROOT, check=True)
    return 1e9 / json.loads(done.stdout)["benchmarks"][0]["items_per_second"]


def timed(work, threads):
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best / (RATE * CLIPS) * 1e9


def peers(threads):
    """{name: nanoseconds per sample} makers."""
    found = {}
    try:
        import torch
        torch.set_num_threads(threads)
        x, window = torch.randn(CLIPS, RATE), torch.hann_window(400)

        def stft():
            spectrum = torch.stft(x, 400, HOP, window=window, return_complex=True)
            return torch.log(spectrum.abs() ** 2 + 1e-7)

        found["torch.stft, log"] = stft
    except ImportError:
        pass
    try:
        import numpy as np
        from scipy import signal
        samples = np.random.default_rng(0).standard_normal((1, RATE)).astype(np.float32)
        f = 60 * (7700 / 60) ** (np.arange(BANDS) / (BANDS - 1))
        gamma = np.exp(-2 * np.pi * (f / 8 + 25) / RATE)
        # A decayed rotation is a filter of second order; SciPy filters one band after the other.
        sections = [np.array([[1, -g * np.cos(w), 0, 1, -2 * g * np.cos(w), g * g]])
                    for g, w in zip(gamma, 2 * np.pi * f / RATE)]

        def filters():
            for _ in range(CLIPS):
                for section in sections:
                    y = signal.sosfilt(section, samples)
                    np.log((y.reshape(-1, HOP) ** 2).mean(1) + 1e-7)

        found["scipy.signal.sosfilt, log"] = filters
    except ImportError:
        pass
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default="build/release/bin/kernels_bench")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    contestants = {"rotations": lambda: kernel(a.bench, a.threads, "forward"),
                   "rotations, backward": lambda: kernel(a.bench, a.threads, "backward")}
    for name, work in peers(a.threads).items():
        contestants[name] = lambda work=work: timed(work, a.threads)
    seconds = {name: [] for name in contestants}
    for _ in range(a.rounds):
        for name, measure in contestants.items():
            seconds[name].append(measure())
    ours = statistics.median(seconds["rotations"])
    print("| who | ns per sample | of rotations |\n|---|---|---|")
    for name, values in seconds.items():
        middle = statistics.median(values)
        print(f"| {name} | {middle:.2f} | {middle / ours:.1f} |")


if __name__ == "__main__":
    main()

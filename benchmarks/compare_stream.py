#!/usr/bin/env python3
"""Times streaming and scoring of an exported model beside eager PyTorch and NumPy, and prints the ratios.

    benchmarks/compare_stream.py [--rounds 5] [--program build/release/bin/rotrnn] [--batches 1,16]
                                 [--forms chunked,fft,doubling]

The network is that of Speech Commands (6 layers, D 96, N 128, 35 classes, half_glu1) with random weights, the same
file for all. Every round runs each contestant once, one after the other, so that whatever else the machine does
meets all of them; figures are medians over the rounds. Steps are of one sample in one thread, without the head;
whole sequences take --threads. Needs PyTorch for --python (Debian: python3-torch).
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from speech_model import ROOT, run, write_model

PEER = ROOT / "benchmarks/peers/torch_stream.py"


def compare(title, unit, contestants, rounds):
    """contestants {name: function that gives a time}; ours is the first. Prints a table."""
    times = {who: [] for who in contestants}
    for _ in range(rounds):
        for who, measure in contestants.items():
            times[who].append(measure())
    ours = statistics.median(next(iter(times.values())))
    print(f"\n| {title} | {unit} | speedup |\n|---|---|---|")
    for i, (who, values) in enumerate(times.items()):
        median = statistics.median(values)
        print(f"| {who} | {median:.2f} | {'' if i == 0 else f'{median / ours:.1f} ×'} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--program", default="build/release/bin/rotrnn")
    p.add_argument("--python", default="/usr/bin/python3")
    p.add_argument("--batches", default="1,16")
    p.add_argument("--forms", default="chunked,fft,doubling")
    p.add_argument("--length", type=int, default=16000)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "speech.safetensors"
        write_model(a.python, model)

        def ours():
            return run(a.program, "bench", "stream", model, "--samples", 5000, "--json")["push_us"]["p50"]

        def step(who):
            return lambda: run(a.python, PEER, "step", who, "--model", model)["p50"]

        compare("a sample, one thread", "p50, µs",
                {"rotrnn": ours, "PyTorch eager": step("torch"), "NumPy": step("numpy")}, a.rounds)
        for batch in a.batches.split(","):
            shape = ["--batch", batch, "--length", a.length, "--threads", a.threads, "--repeats", 3]

            def score(form, shape=shape):
                return lambda: 1e3 * run(a.python, PEER, "score", form, "--model", model, *shape)["seconds"]

            contestants = {"rotrnn": lambda: 1e3 * run(a.program, "bench", "score", model, *shape, "--json")["seconds"]}
            contestants.update({"PyTorch eager, " + form: score(form) for form in a.forms.split(",")})
            compare(f"{batch} × {a.length:,} samples, {a.threads} threads", "ms", contestants, a.rounds)


if __name__ == "__main__":
    main()

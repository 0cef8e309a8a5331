#!/usr/bin/env python3
"""Times a training step of one layer, rotrnn.RotRNN against the three eager PyTorch forms, in turn.

    PYTHONPATH=build/release/python benchmarks/python_layer.py [--rows listops,speech] [--repeats 7]
                                                               [--threads 2] [--optimiser]

A step is forward and backward by input and parameters, with --optimiser also AdamW. Every round runs each
contestant once, so that whatever else the machine does meets all of them; figures are medians over the
rounds. All have the same parameters, and their outputs are compared first.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch

import rotrnn

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
import torch_step  # noqa: E402

# width, state, heads, batch, length
ROWS = {"listops": (128, 256, 32, 8, 2048), "speech": (96, 128, 32, 2, 16000)}


def contestants(width, state, heads):
    """The same layer by each of them."""
    ours = rotrnn.RotRNN(width, state, heads)
    result = {"rotrnn": ours}
    for form in torch_step.SCANS:
        peer = torch_step.RotRNN(width, state, heads, form)
        values = {name: value.reshape(peer.state_dict()[name].shape) for name, value in ours.state_dict().items()}
        peer.load_state_dict(values)
        result["PyTorch " + form] = peer
    return result


def step(layer, optimiser, u, gradient):
    u.grad = None
    if optimiser is None:
        layer.zero_grad()
    else:
        optimiser.zero_grad()
    layer(u).backward(gradient)
    if optimiser is not None:
        optimiser.step()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--rows", default=",".join(ROWS))
    p.add_argument("--repeats", type=int, default=7)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--optimiser", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    rotrnn.set_num_threads(a.threads)
    print(f"PyTorch {torch.__version__} on {torch_step.blas_in_use()}, {a.threads} threads")
    print("| row | who | ms per step | useful GFLOP/s | speedup |")
    print("|---|---|---|---|---|")
    for row in a.rows.split(","):
        width, state, heads, batch, length = ROWS[row]
        torch.manual_seed(0)
        layers = contestants(width, state, heads)
        u = torch.randn(batch, length, width, requires_grad=True)
        gradient = torch.randn(batch, length, width)
        with torch.no_grad():
            expected = layers["rotrnn"](u)
            for who, layer in layers.items():
                error = float((layer(u) - expected).abs().max() / expected.abs().max())
                if not error < 1e-4:
                    raise SystemExit(f"{who} computes something else: {error:.1e}")
        optimisers = {who: torch.optim.AdamW(layer.parameters(), 1e-6) if a.optimiser else None
                      for who, layer in layers.items()}
        seconds = {who: [] for who in layers}
        for round in range(a.repeats + 1):  # the first one warms up
            for who, layer in layers.items():
                begin = time.perf_counter()
                step(layer, optimisers[who], u, gradient)
                if round > 0:
                    seconds[who].append(time.perf_counter() - begin)
        median = {who: statistics.median(times) for who, times in seconds.items()}
        flop = 3 * 4 * width * state * batch * length
        for who, time_ in median.items():
            ratio = "" if who == "rotrnn" else f"{time_ / median['rotrnn']:.2f} ×"
            print(f"| {row} | {who} | {1e3 * time_:.1f} | {flop / time_ / 1e9:.1f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()

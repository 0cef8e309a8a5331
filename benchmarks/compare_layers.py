#!/usr/bin/env python3
"""Times a training step of every layer against eager PyTorch's FFT form in turn, and prints the ratios.

    benchmarks/compare_layers.py [--layers s4d,s4] [--rows mnist,listops,speech] [--rounds 3]
                                 [--program build/release/bin/rotrnn]

Peer: benchmarks/peers/torch_layers.py. Every round runs ours and the peer's once, one after the other,
with the same network, shapes, batch and threads; figures are medians over the rounds. The S4 family has
its own block (activation = "exact_glu") on both sides. The peak is the lowest that was seen: where it is
well below that of the others, something else was running.
"""

import argparse
import statistics

from compare_step import run

LAYERS = ["rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"]
CHANNELS = ["s4d", "s4", "liquid_s4"]
ROWS = {
    "mnist": dict(config="configs/small/mnist.toml", batch=50, length=784, width=64, state=64, depth=4,
                  peer=["--inputs", 1, "--classes", 10]),
    "listops": dict(config="configs/lra/listops.toml", batch=8, length=2048, width=256, state=4, depth=6,
                    peer=["--tokens", "--inputs", 18, "--classes", 10], layers=CHANNELS),
    "listops64": dict(config="configs/lra/listops.toml", batch=8, length=2048, width=128, state=64,
                      depth=6, peer=["--tokens", "--inputs", 18, "--classes", 10]),
    "speech": dict(config="configs/speech_commands.toml", batch=2, length=16000, width=128, state=64,
                   depth=6, peer=["--inputs", 1, "--classes", 35]),
}


def contestants(a, layer, row):
    """The commands of both sides: the same network."""
    shape = ["--batch", row["batch"], "--length", row["length"], "--threads", a.threads]
    sizes = ["width", "state", "depth"]
    settings = {"layer": layer, "heads": row["state"] // 8, "dropout": 0.0,
                "activation": "exact_glu" if layer in CHANNELS else "half_glu1",
                **{size: row[size] for size in sizes}}
    if layer != "rotrnn":
        del settings["heads"]
    ours = [a.program, "bench", "step", "--config", row["config"], *shape, "--repeats", 3, "--json"]
    for key, value in settings.items():
        ours += ["--set", f"model.{key}={value}"]
    peer = [a.python, "benchmarks/peers/torch_layers.py", "--layer", layer, *row["peer"], *shape,
            "--repeats", 2]
    for size in sizes:
        peer += ["--" + size, row[size]]
    return ours, peer


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--layers", default=",".join(LAYERS))
    p.add_argument("--rows", default=",".join(ROWS))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--program", default="build/release/bin/rotrnn")
    p.add_argument("--python", default="/usr/bin/python3")
    a = p.parse_args()
    print("| row | layer | rotrnn, ms per step | PyTorch FFT, ms | speedup | memory MB | peer's | peak |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for name in a.rows.split(","):
        row = ROWS[name]
        for layer in a.layers.split(","):
            if layer not in row.get("layers", LAYERS):
                continue
            results = [[], []]
            for _ in range(a.rounds):
                for side, command in zip(results, contestants(a, layer, row)):
                    side.append(run(command))
            (ours, theirs), (memory, peer_memory) = [
                [statistics.median(r[key] for r in side) for side in results]
                for key in ("seconds_per_step", "peak_memory_mb")]
            print(f"| {name} | {layer} | {1e3 * ours:.0f} | {1e3 * theirs:.0f} | {theirs / ours:.2f} × | "
                  f"{memory:.0f} | {peer_memory:.0f} | {min(r['peak_gflops'] for r in results[0]):.0f} |",
                  flush=True)


if __name__ == "__main__":
    main()

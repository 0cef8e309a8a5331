#!/usr/bin/env python3
"""Times streaming and whole sequences of a model beside its exported graphs in ONNX Runtime, and prints the ratios.

    benchmarks/compare_onnx.py [--rounds 5] [--program build/release/bin/rotrnn] [--chunks 1,16,256] [--batches 1,16]
                               [--threads 1,2]

The network is that of Speech Commands (6 layers, D 96, N 128, 35 classes, half_glu1) with random weights, the same
file for both. Every round runs one and then the other with the same number of threads, so that whatever else the
machine does meets both; figures are medians over the rounds. A stream gives K steps per call, so that the call itself
does not count; one step per call is shown too. Ours are without the head, which ONNX Runtime computes once per call.
Before it, both graphs are compared with NumPy. onnxruntime-node is brought into build/release/onnxruntime by npm, as
the tests do. Needs Python's numpy for --python.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from speech_model import ROOT, run, write_model

RUNTIME = ROOT / "build/release/onnxruntime"


def check(model, graphs):
    """The answers of the graphs are those of the equations."""
    sys.path[:0] = [str(ROOT / "tests/golden"), str(ROOT / "tests/onnx")]
    sys.dont_write_bytecode = True
    import folded
    import numpy as np
    from session import run_jobs, tensor
    x = 0.1 * np.random.default_rng(1).normal(size=(300, 1)).astype(np.float32)
    want = folded.Folded(model).logits(x)[-1]
    start = {"state": tensor(np.zeros((1, 6 * 128)), "float32"), "sum": tensor(np.zeros((1, 96)), "float64"),
             "count": tensor([0], "int64")}
    jobs = [dict(file=graphs["sequence"], calls=[{"x": tensor(x[None], "float32"), "lengths": tensor([300], "int64")}]),
            dict(file=graphs["chunk"], calls=[{"x": tensor(x[None], "float32"), **start}])]
    for job, result in zip(jobs, run_jobs(jobs)):
        np.testing.assert_allclose(result[0]["y"][0], want, atol=1e-4, err_msg=job["file"])


def compare(title, unit, ours, theirs, rounds, faster):
    """A row of the table: medians of both, and the speedup."""
    mine, other = [], []
    for _ in range(rounds):
        mine.append(ours())
        other.append(theirs())
    a, b = statistics.median(mine), statistics.median(other)
    print(f"| {title} | {a:,.0f} {unit} | {b:,.0f} {unit} | {faster(a, b):.1f} × |", flush=True)


def compare_stream(a, peer, model, graphs, chunk):
    def ours():
        measured = run(a.program, "bench", "stream", model, "--samples", 5120, "--streams", 1, "--json")
        return measured[f"steps_per_second_by_{chunk}"]

    def theirs():
        if chunk == 1:
            return run("node", peer, "stream", graphs["step"], "--chunk", 0, "--length", 2000)["steps_per_second"]
        return run("node", peer, "stream", graphs["chunk"], "--chunk", chunk, "--length", 16128)["steps_per_second"]

    compare(f"a stream, {chunk} per call, 1 thread", "steps/s", ours, theirs, a.rounds, lambda x, y: x / y)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--program", default="build/release/bin/rotrnn")
    p.add_argument("--python", default="/usr/bin/python3")
    p.add_argument("--chunks", default="1,16,256")
    p.add_argument("--batches", default="1,16")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--length", type=int, default=16000)
    a = p.parse_args()
    subprocess.run([ROOT / "tests/onnx/run", RUNTIME, "true"], check=True)
    os.environ["ROTRNN_ONNXRUNTIME"] = str(RUNTIME)
    peer = shutil.copy(ROOT / "benchmarks/peers/onnx_stream.mjs", RUNTIME)
    with tempfile.TemporaryDirectory() as folder:
        for both in (False, True):
            model = Path(folder) / f"{'both' if both else 'one'}.safetensors"
            write_model(a.python, model, f"bidirectional={str(both).lower()}")
            files = run(a.program, "export", model, "--format", "onnx", "--json")["files"]
            graphs = {f["graph"]: f["file"] for f in files}
            if not both:
                check(model, graphs)
                print(f"| | rotrnn | ONNX Runtime {run('node', peer, 'score', graphs['sequence'], '--length', 9)['version']}"
                      " | speedup |\n|---|---:|---:|---:|")
                for chunk in filter(None, a.chunks.split(",")):
                    compare_stream(a, peer, model, graphs, int(chunk))
            for batch in a.batches.split(","):
                for threads in a.threads.split(","):
                    shape = ["--batch", batch, "--length", a.length, "--threads", threads, "--repeats", 1 + 2 // int(batch)]
                    compare(f"{'bidirectional, ' if both else ''}{batch} × {a.length:,} steps, {threads} "
                            f"thread{'s' if threads != '1' else ''}", "ms",
                            lambda: 1e3 * run(a.program, "bench", "score", model, *shape, "--json")["seconds"],
                            lambda: 1e3 * run("node", peer, "score", graphs["sequence"], *shape)["seconds"],
                            a.rounds, lambda x, y: y / x)


if __name__ == "__main__":
    main()

"""A folded model (docs/deploy.md) in eager PyTorch or NumPy: step by step, or whole sequences.

    step torch|numpy    one sample at a time, state in and out, in one thread; times of a step
    score FORM          whole sequences, one of the forms of the recurrence of torch_step.py

Prints one JSON line. Written for speed: real products, states as complex numbers of interleaved planes, no batch
norm, no gradients. Both are compared with tests/golden/folded.py before they are timed. Run by compare_stream.py.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/golden"))
sys.path.insert(0, str(ROOT / "benchmarks/peers"))

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
p.add_argument("what", choices=["step", "score"])
p.add_argument("who", choices=["torch", "numpy", "fft", "doubling", "chunked"])
p.add_argument("--model", required=True)
for name, default in dict(samples=3000, batch=1, length=16000, threads=2, repeats=3).items():
    p.add_argument("--" + name, type=int, default=default)
a = p.parse_args()
# Read by BLAS when it is loaded.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(1 if a.what == "step" else a.threads)

import numpy as np  # noqa: E402


def interleaved(t, axis):
    """Planes [all re, all im] to pairs (re, im) along an axis."""
    S = t.shape[axis] // 2
    order = np.arange(2 * S).reshape(2, S).T.ravel()
    return np.ascontiguousarray(np.take(t, order, axis))


def weights(path):
    """The tensors of half_glu1 without norm, one channel, as both peers want them."""
    import folded
    metadata, t = folded.read_file(path)
    m = json.loads(metadata["model"])
    assert m["activation"] == "half_glu1" and m["norm"] == "none" and m["pooling"] == "mean" and m["inputs"] == 1
    pre = m["preprocessing"]
    scale = (1 / np.array(pre["deviation"])).astype("f4")
    out = dict(encoder=t["encoder.weight"] * scale, head=t["head.weight"], head_bias=t["head.bias"], blocks=[],
               encoder_bias=t["encoder.bias"] - t["encoder.weight"] @ (np.array(pre["mean"], "f4") * scale))
    for i in range(m["depth"]):
        b = {k[len(f"blocks.{i}."):]: v for k, v in t.items() if k.startswith(f"blocks.{i}.")}
        out["blocks"].append(dict(
            lam=(b["lambda_re"] + 1j * b["lambda_im"]).astype("c8"), W=interleaved(b["W"], 0), b=interleaved(b["b"], 0),
            V=interleaved(b["V"], 1), D=b["D"], e=b["e"], gate=b["gate.weight"], gate_bias=b["gate.bias"]))
    return out


def numpy_step(w):
    states = [np.zeros_like(b["lam"]) for b in w["blocks"]]
    root = np.float32(np.sqrt(2 / np.pi))

    def step(v):
        x = w["encoder"] @ v + w["encoder_bias"]
        for i, b in enumerate(w["blocks"]):
            z = states[i] = b["lam"] * states[i] + (b["W"] @ x + b["b"]).view("c8")
            y = b["V"] @ z.view("f4") + b["e"] + b["D"] * x
            h = 0.5 * y * (1 + np.tanh(root * (y + np.float32(0.044715) * (y * y * y))))
            x = x + h / (1 + np.exp(-(b["gate"] @ h + b["gate_bias"])))
        return x
    return step


def torch_tensors(w):
    import torch

    def convert(x):
        return {k: convert(v) for k, v in x.items()} if isinstance(x, dict) else \
            [convert(v) for v in x] if isinstance(x, list) else torch.from_numpy(x.copy())
    return convert(w)


def torch_step(w):
    import torch
    from torch.nn import functional as F
    w = torch_tensors(w)
    states = [torch.zeros_like(b["lam"]) for b in w["blocks"]]

    def step(v):
        x = F.linear(v, w["encoder"], w["encoder_bias"])
        for i, b in enumerate(w["blocks"]):
            drive = F.linear(x, b["W"], b["b"])
            z = states[i] = torch.addcmul(torch.view_as_complex(drive.view(-1, 2)), states[i], b["lam"])
            y = torch.addcmul(F.linear(torch.view_as_real(z).view(-1), b["V"], b["e"]), b["D"], x)
            h = F.gelu(y, approximate="tanh")
            x = torch.addcmul(x, h, torch.sigmoid(F.linear(h, b["gate"], b["gate_bias"])))
        return x
    return step


def torch_score(w, form):
    import torch
    from torch.nn import functional as F
    from torch_step import SCANS
    w, scan = torch_tensors(w), SCANS[form]

    def score(v):  # [batch, time, 1]
        x = F.linear(v, w["encoder"], w["encoder_bias"])
        for b in w["blocks"]:
            drive = F.linear(x, b["W"], b["b"])
            z = scan(torch.view_as_complex(drive.view(*drive.shape[:2], -1, 2)), b["lam"])
            y = F.linear(torch.view_as_real(z).reshape(drive.shape), b["V"], b["e"]).addcmul_(b["D"], x)
            h = F.gelu(y, approximate="tanh")
            x = torch.addcmul(x, h, torch.sigmoid_(F.linear(h, b["gate"], b["gate_bias"])))
        return F.linear(x.mean(1), w["head"], w["head_bias"])
    return score


def check(got, want):
    difference = np.abs(np.asarray(got) - want).max()
    if not difference < 1e-3:
        sys.exit(f"torch_stream.py: differs from folded.py by {difference}")


def main():
    import folded
    w, rng = weights(a.model), np.random.default_rng(0)
    samples = (0.1 * rng.normal(size=(a.samples, 1))).astype("f4")
    model = folded.Folded(a.model)
    if a.what == "step":
        if a.who == "torch":
            import torch
            torch.set_num_threads(1)
            torch.set_grad_enabled(False)
            step, inputs = torch_step(w), list(torch.from_numpy(samples))
        else:
            step, inputs = numpy_step(w), list(samples)
        rows = [np.asarray(step(v)) for v in inputs[:50]]
        check(rows, model.rows(samples[:50]))
        seconds = []
        for v in inputs:
            begin = time.perf_counter()
            step(v)
            seconds.append(time.perf_counter() - begin)
        seconds = sorted(1e6 * s for s in seconds)
        print(json.dumps(dict(who=a.who, p50=seconds[len(seconds) // 2], p99=seconds[len(seconds) * 99 // 100])))
        return
    import torch
    torch.set_num_threads(a.threads)
    torch.set_grad_enabled(False)
    score = torch_score(w, a.who)
    few = (0.1 * rng.normal(size=(300, 1))).astype("f4")
    check(score(torch.from_numpy(few)[None])[0], model.logits(few)[-1])
    batch = 0.1 * torch.randn(a.batch, a.length, 1)
    seconds = []
    for _ in range(a.repeats + 1):  # the first one warms up
        begin = time.perf_counter()
        score(batch)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps(dict(who=a.who, seconds=statistics.median(seconds[1:]))))


main()

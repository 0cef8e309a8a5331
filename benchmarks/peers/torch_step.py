"""A training step of the same network in eager PyTorch, in three forms of the recurrence.

    fft      convolution with the kernel of powers of lambda, on complex tensors: what S4-style code does
    doubling the scan of log depth: what S5- and LRU-style code does
    chunked  chunks of 64 steps side by side, then a loop over chunks: O(n), the best eager form known

Prints one JSON line with seconds per step, tokens per second, useful GFLOP/s, and the increase of peak
memory over that before the first step. Run by benchmarks/compare_step.py next to `rotrnn bench step`.
"""

import argparse
import json
import math
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


def powers(lam, count):
    """lam^0 .. lam^(count-1) as [count, S]."""
    k = torch.arange(count)[:, None]
    return torch.polar(torch.exp(torch.log(lam.abs()) * k), torch.angle(lam) * k)


def scan_fft(z, lam):
    t = z.shape[1]
    kernel = torch.fft.fft(powers(lam, t), n=2 * t, dim=0)
    return torch.fft.ifft(torch.fft.fft(z, n=2 * t, dim=1) * kernel, dim=1)[:, :t]


def scan_doubling(z, lam):
    factor, distance = lam, 1
    while distance < z.shape[1]:
        z = torch.cat([z[:, :distance], torch.addcmul(z[:, distance:], z[:, :-distance], factor)], 1)
        factor, distance = factor * factor, 2 * distance
    return z


def scan_chunked(z, lam, chunk=64):
    b, t, s = z.shape
    grid = F.pad(torch.view_as_real(z), (0, 0, 0, 0, 0, -t % chunk))
    steps = torch.view_as_complex(grid).view(b, -1, chunk, s).unbind(2)
    local = [steps[0]]
    for step in steps[1:]:
        local.append(torch.addcmul(step, local[-1], lam))
    pw = powers(lam, chunk + 1)
    ends = local[-1].unbind(1)
    carry = [torch.zeros_like(ends[0])]
    for end in ends[:-1]:
        carry.append(torch.addcmul(end, carry[-1], pw[chunk]))
    out = torch.addcmul(torch.stack(local, 2), torch.stack(carry, 1)[:, :, None], pw[1:])
    return out.reshape(b, -1, s)[:, :t]


SCANS = {"fft": scan_fft, "doubling": scan_doubling, "chunked": scan_chunked}


class RotRNN(nn.Module):
    def __init__(self, width, state, heads, form):
        super().__init__()
        dh = state // heads
        self.heads, self.scan = heads, SCANS[form]
        self.theta = nn.Parameter(torch.rand(heads, dh // 2) * math.pi / 100)
        u = torch.rand(heads, 1)
        self.gamma_log = nn.Parameter(torch.log(-0.5 * torch.log(u * (0.999**2 - 0.25) + 0.25)))
        self.B = nn.Parameter(torch.randn(heads, dh, width) / math.sqrt(width))
        self.C = nn.Parameter(torch.randn(width, state) / math.sqrt(state))
        self.M = nn.Parameter(torch.randn(heads, dh, dh))
        self.D = nn.Parameter(torch.randn(width))

    def forward(self, u):
        width, state = self.C.shape
        gamma = torch.exp(-torch.exp(self.gamma_log))
        xi = torch.sqrt((1 - gamma[:, 0] ** 2) / self.B.square().sum((1, 2)))
        P = torch.matrix_exp(self.M - self.M.transpose(1, 2))
        W = (P.transpose(1, 2) @ (self.B * xi[:, None, None])).reshape(state, width)
        V = (self.C.view(width, self.heads, -1).transpose(0, 1) @ P).transpose(0, 1)
        lam = torch.polar(gamma.expand_as(self.theta), self.theta).reshape(-1)
        v = F.linear(u, W)
        z = self.scan(torch.view_as_complex(v.view(*v.shape[:2], -1, 2)), lam)
        return F.linear(torch.view_as_real(z).reshape(v.shape), V.reshape(width, state)) + self.D * u


class Block(nn.Module):
    def __init__(self, a, layer):
        super().__init__()
        self.norm = nn.BatchNorm1d(a.width)
        self.layer = layer
        self.gate = nn.Linear(a.width, a.width)
        self.dropout = a.dropout

    def drop(self, x):
        if self.dropout == 0:
            return x
        return x * F.dropout(torch.ones(x.shape[0], 1, x.shape[2]), self.dropout)

    def forward(self, x):
        u = self.norm(x.flatten(0, 1)).view_as(x)
        h = self.drop(F.gelu(self.layer(u)))
        return x + self.drop(h * torch.sigmoid(self.gate(h)))


class Network(nn.Module):
    def __init__(self, a, make_block):
        super().__init__()
        self.encoder = nn.Embedding(a.inputs, a.width) if a.tokens else nn.Linear(a.inputs, a.width)
        self.blocks = nn.Sequential(*[make_block() for _ in range(a.depth)])
        self.head = nn.Linear(a.width, a.classes)

    def forward(self, x):
        return self.head(self.blocks(self.encoder(x)).mean(1))


def blas_in_use():
    """The BLAS that is loaded, such as openblas-openmp: the folder that Debian keeps it in."""
    for line in open("/proc/self/maps"):
        path = line.split()[-1]
        if "/libopenblas" in path or "/libblas" in path:
            folder = path.split("/")[-2]
            return folder if "blas" in folder else path.split("/")[-1]
    return "unknown BLAS"


def parser(description):
    """What every peer is asked for."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--tokens", action="store_true", help="inputs are token numbers")
    for name, default in dict(inputs=18, classes=10, width=128, state=256, heads=32, depth=6, batch=8,
                              length=2048, repeats=5, threads=2).items():
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--dropout", type=float, default=0.0)
    return p


def time_steps(a, make_block):
    """Times training steps on noise."""
    torch.manual_seed(0)
    torch.set_num_threads(a.threads)
    model = Network(a, make_block)
    optimiser = torch.optim.AdamW(model.parameters(), 1e-6)
    shape = (a.batch, a.length)
    x = torch.randint(a.inputs, shape) if a.tokens else torch.randn(*shape, a.inputs)
    y = torch.randint(a.classes, (a.batch,))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(a.repeats + 1):  # the first one warms up
        begin = time.perf_counter()
        optimiser.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimiser.step()
        seconds.append(time.perf_counter() - begin)
    median = statistics.median(seconds[1:])
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return dict(seconds_per_step=median, tokens_per_second=a.batch * a.length / median,
                peak_memory_mb=memory, blas=blas_in_use())


def main():
    p = parser(__doc__)
    p.add_argument("--form", choices=SCANS, default="chunked")
    a = p.parse_args()
    flop = 3 * a.depth * (4 * a.width * a.state + 2 * a.width**2)
    result = time_steps(a, lambda: Block(a, RotRNN(a.width, a.state, a.heads, a.form)))
    print(json.dumps(dict(form=a.form, useful_gflops=result["tokens_per_second"] * flop / 1e9, **result)))


if __name__ == "__main__":
    main()

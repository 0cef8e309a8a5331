"""A training step of a network of any of the six layers in eager PyTorch, by FFT, as public code does it.

RotRNN, LRU and S5 mix channels: complex states [batch, time, S], scanned by complex FFTs, in the block of
torch_step.py. S4D, S4 and Liquid-S4 make a kernel per channel and convolve by real FFTs of twice the
length; their block is exact GELU, Linear D → 2D, GLU. float32 and complex64 throughout. Of the forms
that were tried those that ran fastest here are kept: rows [batch, time, D] for norm, GELU and products,
transposed for the FFTs; powers by one exponential; S4's sums as one reciprocal and a batched product.

Prints one JSON line as torch_step.py does. Run by benchmarks/compare_layers.py.
"""

import json
import math

import torch
from torch import nn
from torch.nn import functional as F

from torch_step import Block, RotRNN, parser, scan_fft, time_steps


def uniform(low, high, *shape):
    return low + (high - low) * torch.rand(*shape)


def parts(*shape, deviation):
    """A complex parameter, as real and imaginary parts [.., 2]."""
    return nn.Parameter(deviation * torch.randn(*shape, 2))


class Mixing(nn.Module):
    """What LRU and S5 share: v = W u, z by FFT, y = V z + D u, with complex numbers as pairs."""

    def mix(self, u, lam, W, V):
        """W [S, D] and V [D, S], complex."""
        rows = torch.view_as_real(W).permute(0, 2, 1).reshape(-1, W.shape[1])
        columns = torch.view_as_real(V.conj().resolve_conj()).reshape(V.shape[0], -1)
        v = F.linear(u, rows)
        z = scan_fft(torch.view_as_complex(v.view(*v.shape[:2], -1, 2)), lam)
        return F.linear(torch.view_as_real(z).reshape(v.shape), columns) + self.D * u


class LRU(Mixing):
    def __init__(self, width, state, length):
        super().__init__()
        S = state // 2
        self.nu_log = nn.Parameter(torch.log(-torch.log(uniform(0.9, 0.999, S))))
        self.theta_log = nn.Parameter(torch.log(uniform(0.01, math.pi / 10, S)))
        self.gamma_log = nn.Parameter(torch.log(1 - torch.exp(-2 * torch.exp(self.nu_log.detach()))) / 2)
        self.B = parts(S, width, deviation=(2 * width) ** -0.5)
        self.C = parts(width, S, deviation=S**-0.5)
        self.D = nn.Parameter(torch.randn(width))

    def forward(self, u):
        lam = torch.polar(torch.exp(-torch.exp(self.nu_log)), torch.exp(self.theta_log))
        B = torch.view_as_complex(self.B * torch.exp(self.gamma_log)[:, None, None])
        return self.mix(u, lam, B, torch.view_as_complex(self.C))


class S5(Mixing):
    def __init__(self, width, state, length):
        super().__init__()
        S = state // 2
        self.Lambda = nn.Parameter(torch.stack([torch.full((S,), -0.5), math.pi * torch.arange(S)], 1))
        self.log_step = nn.Parameter(uniform(math.log(1e-3), math.log(1e-1), S))
        self.B = parts(S, width, deviation=state**-0.5)
        self.C = parts(width, S, deviation=(state * width) ** -0.5)
        self.D = nn.Parameter(torch.randn(width))

    def forward(self, u):
        Lambda = torch.view_as_complex(self.Lambda)
        lam = torch.exp(Lambda * torch.exp(self.log_step))
        B = ((lam - 1) / Lambda)[:, None] * torch.view_as_complex(self.B)
        return self.mix(u, lam, B, 2 * torch.view_as_complex(self.C))


class Channels(nn.Module):
    """What the S4 family shares: the convolution with kernels [D, L], and parameters of all."""

    def __init__(self, width, state):
        super().__init__()
        N = state // 2
        self.A_log_re = nn.Parameter(torch.full((width, N), math.log(0.5)))
        self.A_im = nn.Parameter(math.pi * torch.arange(N).repeat(width, 1))
        self.B = nn.Parameter(torch.tensor([1.0, 0.0]).repeat(width, N, 1))
        self.C = parts(width, N, deviation=0.5**0.5)
        self.D = nn.Parameter(torch.randn(width))
        self.log_step = nn.Parameter(uniform(math.log(1e-3), math.log(1e-1), width, 1))

    def forward(self, u):
        length = u.shape[1]
        spectrum = torch.fft.rfft(u.transpose(1, 2), n=2 * length)
        spectrum = spectrum * torch.fft.rfft(self.kernel(length), n=2 * length)
        y = torch.fft.irfft(spectrum, n=2 * length)[..., :length]
        return y.transpose(1, 2) + self.D * u


class S4D(Channels):
    def __init__(self, width, state, length):
        super().__init__(width, state)

    def kernel(self, length):
        Lambda = torch.complex(-torch.exp(self.A_log_re), self.A_im)
        a = Lambda * torch.exp(self.log_step)
        c = torch.view_as_complex(self.C) * torch.view_as_complex(self.B) * (torch.exp(a) - 1) / Lambda
        powers = torch.exp(a.unsqueeze(-1) * torch.arange(length))
        return 2 * torch.einsum("hn,hnl->hl", c, powers).real


class S4(Channels):
    def __init__(self, width, state, length):
        super().__init__(width, state)
        self.P = nn.Parameter(torch.tensor([1.0, 0.0]).repeat(width, state // 2, 1))
        omega = torch.exp(-2j * math.pi * torch.arange(length // 2 + 1, dtype=torch.float64) / length)
        self.register_buffer("q", (1 + omega).to(torch.complex64))
        self.register_buffer("numerator", (2 * (1 - omega)).to(torch.complex64))

    def kernel(self, length):
        step = torch.exp(self.log_step)
        Lambda = torch.complex(-torch.exp(self.A_log_re), self.A_im)
        B, C, P = (torch.view_as_complex(t) for t in (self.B, self.C, self.P))
        a = step * torch.cat([Lambda, Lambda.conj()], 1)
        matrix = torch.reciprocal(self.numerator - a.unsqueeze(-1) * self.q)
        v = step.unsqueeze(1) * torch.stack([B * C, B * P.conj(), P * C, P * P.conj()], 1)
        bc, bp, pc, pp = torch.bmm(torch.cat([v, v.conj()], 2), matrix).unbind(1)
        return torch.fft.irfft(2 * (bc - self.q * bp * pc / (1 + self.q * pp)), n=length)


class LiquidS4(S4):
    """Products of two neighbouring inputs, causal. The coefficient is read with C̃ where C belongs, which
    is less work: C would need matrices."""

    def forward(self, u):
        step = torch.exp(self.log_step)
        Lambda = torch.complex(-torch.exp(self.A_log_re), self.A_im)
        b = step * torch.view_as_complex(self.B) / (1 - step * Lambda / 2)
        coefficient = 2 * (torch.view_as_complex(self.C) * b * b).real.sum(1)
        return super().forward(u) + coefficient * u * F.pad(u[:, :-1], (0, 0, 1, 0))


LAYERS = {"rotrnn": lambda width, state, length: RotRNN(width, state, max(1, state // 8), "fft"),
          "lru": LRU, "s5": S5, "s4d": S4D, "s4": S4, "liquid_s4": LiquidS4}


class ChannelBlock(Block):
    """norm, layer, exact GELU, Linear D → 2D, GLU."""

    def __init__(self, a, layer):
        super().__init__(a, layer)
        self.gate = nn.Linear(a.width, 2 * a.width)

    def forward(self, x):
        u = self.norm(x.flatten(0, 1)).view_as(x)
        return x + F.glu(self.gate(self.drop(F.gelu(self.layer(u)))), 2)


def main():
    p = parser(__doc__)
    p.add_argument("--layer", choices=LAYERS, required=True)
    a = p.parse_args()

    def make_block():
        layer = LAYERS[a.layer](a.width, a.state, a.length)
        return (ChannelBlock if isinstance(layer, Channels) else Block)(a, layer)

    print(json.dumps(dict(layer=a.layer, **time_steps(a, make_block))))


if __name__ == "__main__":
    main()

"""RotRNN (Biegun, Dolga, Cunningham, Barber 2024), for every head h of dh = N / H:

    x_t = gamma P Theta P^T x_{t-1} + xi B u_t          y_t = C concat_over_heads(x_t) + D * u_t
    P = expm(M - M^T)      gamma = exp(-exp(gamma_log))      xi = sqrt(c (1 - gamma^2) / |B|^2)

Theta rotates the coordinates (2j, 2j+1) by theta_j.
theta [H, dh // 2] (or theta_log), gamma_log [H], M [H, dh, dh], B [H, dh, D], C [D, N], D [D] (, C_reverse)."""

import math
from typing import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from .diagonal import System
from .settings import Settings


def angles(p: Mapping[str, Tensor]) -> Tensor:
    return p["theta_log"].double().exp() if "theta_log" in p else p["theta"].double()


def gamma(gamma_log: Tensor) -> Tensor:
    return torch.exp(-torch.exp(gamma_log.double()))


def expm(A: Tensor) -> Tensor:
    """exp(A) = exp(A / 2^s)^(2^s), that of the small matrix by its series. torch.matrix_exp has errors of 2e-10 in
    double where heads have two dimensions (PyTorch 1.13), this of 1e-14."""
    size = float(A.detach().abs().sum(-1).max())
    s = max(0, math.frexp(4 * size)[1]) if math.isfinite(size) else 0
    A = A / 2**s  # 0.25 or less: 0.25^13 / 13! is below rounding
    one = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand_as(A)
    E = one
    for k in range(12, 0, -1):
        E = one + A @ E / k
    for _ in range(s):
        E = E @ E
    return E


def rotation(M: Tensor) -> Tensor:
    """P of every head, in double."""
    M = M.double()
    return expm(M - M.transpose(1, 2))


def heads_to_planes(x: Tensor) -> Tensor:
    """[.., heads, dh] to [.., 2S]: even coordinates are real parts, odd ones imaginary parts, of which an odd
    head's last coordinate has none."""
    if x.shape[-1] % 2:
        x = F.pad(x, (0, 1))
    return torch.cat([x[..., 0::2].flatten(-2), x[..., 1::2].flatten(-2)], dim=-1)


def planes_to_heads(z: Tensor, heads: int, dh: int) -> Tensor:
    """The inverse."""
    S = z.shape[-1] // 2
    pairs = torch.stack([z[..., :S], z[..., S:]], dim=-1)
    return pairs.unflatten(-2, (heads, -1)).flatten(-2)[..., :dh]


def system(p: Mapping[str, Tensor], settings: Settings) -> System:
    """z = P^T x turns the paper's equations into z_t = gamma Theta z_{t-1} + xi P^T B u_t and
    y_t = C P z_t + D u_t, and a pair of coordinates turned by theta is a complex number times
    exp(i theta)."""
    g, P, B = gamma(p["gamma_log"]), rotation(p["M"]), p["B"].double()
    heads, dh, width = B.shape
    rest = -torch.expm1(-2 * torch.exp(p["gamma_log"].double()))  # 1 - gamma^2 with all its digits
    square = (B * B).sum(dim=(1, 2))
    radius, scale = g, torch.ones_like(g)
    if settings["normalisation"] == "xi":
        scale = torch.sqrt(settings["c"] * rest / square)
    elif settings["normalisation"] == "alpha":  # x_t = alpha (gamma A x_{t-1} + B u_t)
        scale = 1 / torch.sqrt(settings["c"] * g**2 + square)
        radius = scale * g
    theta = angles(p)
    if dh % 2:  # the last coordinate of an odd head stays where it is
        theta = F.pad(theta, (0, 1))
    lambda_re = (radius[:, None] * torch.cos(theta)).reshape(-1)
    lambda_im = (radius[:, None] * torch.sin(theta)).reshape(-1)
    rows = scale[:, None, None] * (P.transpose(1, 2) @ B)  # [heads, dh, width]

    def columns(C: Tensor) -> Tensor:  # C P of every head
        return heads_to_planes(torch.einsum("whi,hij->whj", C.double().view(width, heads, dh), P))

    start_re = start_im = None
    if settings["stationary_start"]:  # ((1 - gamma^2)^(-1/2) - 1) / lambda
        size = ((rest.rsqrt() - 1) / g)[:, None]
        start_re = (size * torch.cos(theta)).reshape(-1)
        start_im = (-size * torch.sin(theta)).reshape(-1)
    return System(lambda_re, lambda_im, heads_to_planes(rows.permute(2, 0, 1)).T, columns(p["C"]),
                  columns(p["C_reverse"]) if settings["bidirectional"] else None, p["D"].double(), start_re, start_im)


def group(name: str, settings: Settings) -> str:
    return "recurrent" if name in ("theta", "theta_log", "gamma_log", "B") else "decay"

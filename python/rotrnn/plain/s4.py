"""S4 (Gu, Goel, Re 2022): every channel is a model of its own, diagonal plus rank one, run as a convolution.

    A = Lambda - P P*        Lambda = -exp(A_log_re) + i A_im        dt = exp(log_step)        bilinear rule
    x_t = A_bar x_{t-1} + B_bar u_t        y_t = 2 Re(C x_t) + D u_t        K_l = 2 Re(C A_bar^l B_bar)

Trained is C~ = C (1 - A_bar^L), kept with its length L; as long as L is 0 it is C itself. Of n complex states each
stands for a pair of conjugates.
A_log_re, A_im, P_re, P_im, B_re, B_im [H, n], with H = D, or 1 for all channels; C_re, C_im [D, n], D, log_step [D],
length [] (, C_reverse_re, C_reverse_im, whose states begin with the next sample, as in S4D)."""

import math
from typing import Dict, Mapping, Tuple

import torch
from torch import Tensor

from .packed import backwards, following, to_grid
from .s4d import complex_of, eigenvalues
from .settings import Settings


def kernel(p: Mapping[str, Tensor], C: str = "C") -> Tensor:
    """K [D, L] from C~, by its values K^_j at the L-th roots of unity w_j, without powers of A_bar:

        rho(a, b) = sum_n dt a_n b_n / (2 (1 - w) - (1 + w) dt Lambda_n), and the same of the conjugates of a_n b_n
                    and Lambda_n
        K^ = 2 (rho(B, C~) - (1 + w) rho(B, P*) rho(P, C~) / (1 + (1 + w) rho(P, P*)))"""
    L = int(p["length"])
    Lambda, P, B, dt = eigenvalues(p)[:, :, None], complex_of(p, "P"), complex_of(p, "B"), torch.exp(p["log_step"].double())
    j = torch.arange(L // 2 + 1, dtype=torch.float64, device=dt.device)
    w = torch.polar(torch.ones_like(j), -2 * math.pi * j / L)
    dt = dt[:, None, None]
    down = 2 * (1 - w) - (1 + w) * dt * Lambda  # [D, n, frequencies]
    down_of_conjugate = 2 * (1 - w) - (1 + w) * dt * Lambda.conj()

    def rho(a: Tensor, b: Tensor) -> Tensor:
        product = (a * b)[:, :, None]
        return (dt * product / down + dt * product.conj() / down_of_conjugate).sum(1)

    C_tilde = complex_of(p, C)
    low_rank = (1 + w) * rho(B, P.conj()) * rho(P, C_tilde) / (1 + (1 + w) * rho(P, P.conj()))
    return torch.fft.irfft(2 * (rho(B, C_tilde) - low_rank), n=L)


def convolve(K: Tensor, w: Tensor, offsets: Tensor) -> Tensor:
    """sum over s <= t of K_{t-s} w_s in every sequence: K [D, L], w [n, D]."""
    grid, inside = to_grid(w, offsets)
    time = grid.shape[1]
    if time > K.shape[1]:
        raise ValueError(f"a sequence of {time} tokens, but the kernels have {K.shape[1]} steps; grow the layer")
    if time == 0:
        return w
    n = 2 * time  # nothing comes round
    product = torch.fft.rfft(grid, n=n, dim=1) * torch.fft.rfft(K[:, :time].T.to(w.dtype), n=n, dim=0)
    return torch.fft.irfft(product, n=n, dim=1)[:, :time][inside]


def both_directions(p: Mapping[str, Tensor], settings: Settings, K: Tensor, u: Tensor, offsets: Tensor) -> Tensor:
    y = convolve(K, u, offsets) + p["D"].to(u.dtype) * u
    if not settings["bidirectional"]:
        return y
    order = backwards(offsets)
    return y + following(convolve(kernel(p, "C_reverse"), u[order], offsets)[order], offsets)


def run(p: Mapping[str, Tensor], settings: Settings, u: Tensor, offsets: Tensor) -> Tensor:
    return both_directions(p, settings, kernel(p), u, offsets)


# ------------------------------------------------------------------------------------------- A itself, dense


def doubled(v: Tensor) -> Tensor:
    """[.., n] followed by the conjugates."""
    return torch.cat([v, v.conj()], dim=-1)


def discrete_matrix(p: Mapping[str, Tensor]) -> Tensor:
    """A_bar [D, 2n, 2n] on states with their conjugates: (1 - dt/2 A)^-1 (1 + dt/2 A)."""
    Lambda, P, dt = doubled(eigenvalues(p)), doubled(complex_of(p, "P")), torch.exp(p["log_step"].double())
    half = dt[:, None, None] / 2 * (torch.diag_embed(Lambda) - P[:, :, None] * P.conj()[:, None, :])
    one = torch.eye(Lambda.shape[1], dtype=half.dtype, device=half.device)
    return torch.linalg.solve(one - half, one + half)


def plain_output(p: Mapping[str, Tensor], C: str = "C") -> Tensor:
    """C [D, n] of C~: the solution of C (1 - A_bar^L) = C~."""
    C_tilde = complex_of(p, C)
    n = C_tilde.shape[1]
    power = torch.linalg.matrix_power(discrete_matrix(p), int(p["length"]))
    one = torch.eye(2 * n, dtype=power.dtype, device=power.device)
    return torch.linalg.solve((one - power).transpose(1, 2), doubled(C_tilde)[:, :, None])[:, :n, 0]


def grow(p: Mapping[str, Tensor], longest: int) -> Dict[str, Tensor]:
    """The parameters of the same layer for sequences of that length: C~ becomes C~ (1 + A_bar^L) and L becomes 2L,
    until L suffices. From L = 0 it becomes `longest`."""
    p, L = dict(p), int(p["length"])
    outputs = [C for C in ("C", "C_reverse") if C + "_re" in p]

    def times(power: int, sign: int) -> Tuple[Tensor, ...]:
        A = torch.linalg.matrix_power(discrete_matrix(p), power)
        values = (complex_of(p, C) for C in outputs)
        return tuple(C + sign * (doubled(C)[:, None, :] @ A)[:, 0, :C.shape[1]] for C in values)

    while L < longest:
        new, L = (times(longest, -1), longest) if L == 0 else (times(L, 1), 2 * L)
        for C, value in zip(outputs, new):
            p[C + "_re"], p[C + "_im"] = value.real.to(p[C + "_re"].dtype), value.imag.to(p[C + "_im"].dtype)
    p["length"] = torch.full_like(p["length"], L)
    return p


def group(name: str, settings: Settings) -> str:
    if name == "log_step":
        return "decay" if settings["s4.dt_global"] else "recurrent"
    return "recurrent" if name in ("A_log_re", "A_im", "P_re", "P_im", "B_re", "B_im") else "decay"

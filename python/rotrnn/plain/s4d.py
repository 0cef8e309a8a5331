"""S4D (Gu, Gupta, Goel, Re 2022): every channel is a model of its own with n complex states, one of each pair of
conjugates.

    x_t = Lambda_bar * x_{t-1} + B_bar u_t          y_t = 2 Re(C x_t) + D u_t
    Lambda = -exp(A_log_re) + i A_im                dt = step_rescale exp(log_step)

A_log_re, A_im, B_re, B_im [H, n], with H = D, or 1 for all channels; C_re, C_im [D, n], D, log_step [D]
(, C_reverse_re, C_reverse_im). In both directions y_t has also 2 Re(C_reverse x'_{t+1}), x' running from the end:
it begins with the next sample, so that no input enters twice.

States that go in and out are those of B_bar = 1, x / B_bar, [sequences, 2 D n]: the real parts of all channels, then
the imaginary parts."""

from typing import Mapping, Optional, Tuple

import torch
from torch import Tensor

from .diagonal import to_complex, to_planes, walk
from .discretise import discretise
from .packed import backwards, preceding
from .settings import Settings


def complex_of(p: Mapping[str, Tensor], name: str) -> Tensor:
    return torch.complex(p[name + "_re"].double(), p[name + "_im"].double())


def eigenvalues(p: Mapping[str, Tensor]) -> Tensor:
    return torch.complex(-torch.exp(p["A_log_re"].double()), p["A_im"].double())


def run(p: Mapping[str, Tensor], settings: Settings, u: Tensor, offsets: Tensor, initial: Optional[Tensor] = None,
        initial_reverse: Optional[Tensor] = None) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
    dt = settings["s4d.step_rescale"] * torch.exp(p["log_step"].double())[:, None]
    lam, factor = discretise(settings["s4d.discretisation"], eigenvalues(p), dt)
    width, n = lam.shape
    B_bar = factor * complex_of(p, "B")
    precision = torch.complex(u, u).dtype
    # Channels do not meet: their D n states are one system to the scan.
    flat, driven = lam.reshape(-1).to(precision), u.repeat_interleave(n, dim=1).to(precision)

    def read(C: Tensor, x: Tensor) -> Tensor:
        return 2 * ((C * B_bar).to(precision) * x.view(-1, width, n)).sum(-1).real

    x, final = walk(driven, flat, offsets, None if initial is None else to_complex(initial))
    y = read(complex_of(p, "C"), x) + p["D"].to(u.dtype) * u
    if not settings["bidirectional"]:
        return y, to_planes(final), None
    order = backwards(offsets)
    start = None if initial_reverse is None else to_complex(initial_reverse)
    x, final_reverse = walk(driven[order], flat, offsets, start)
    y = y + read(complex_of(p, "C_reverse"), preceding(x, offsets, start)[order])
    return y, to_planes(final), to_planes(final_reverse)


def group(name: str, settings: Settings) -> str:
    if name == "log_step":
        return "decay" if settings["s4d.dt_global"] else "recurrent"
    return "recurrent" if name in ("A_log_re", "A_im", "B_re", "B_im") else "decay"

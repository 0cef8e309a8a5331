"""LRU (Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu, De 2023).

    lambda = exp(-exp(nu_log) + i exp(theta_log))
    x_t = lambda * x_{t-1} + exp(gamma_log) * (B u_t)          y_t = Re(C x_t) + D * u_t

nu_log, theta_log, gamma_log [S], B_re, B_im [S, D], C_re, C_im [D, S], D [D] (, C_reverse_re, C_reverse_im)."""

from typing import Mapping

import torch
from torch import Tensor

from .diagonal import System
from .settings import Settings


def rest(nu_log: Tensor) -> Tensor:
    """1 - |lambda|^2 with all its digits."""
    return -torch.expm1(-2 * torch.exp(nu_log))


def system(p: Mapping[str, Tensor], settings: Settings) -> System:
    p = {name: tensor.double() for name, tensor in p.items()}
    radius, angle = torch.exp(-torch.exp(p["nu_log"])), torch.exp(p["theta_log"])
    scale = torch.exp(p["gamma_log"]) if settings["lru.gamma"] == "learned" else torch.sqrt(rest(p["nu_log"]))
    W = torch.cat([scale[:, None] * p["B_re"], scale[:, None] * p["B_im"]])
    V = torch.cat([p["C_re"], -p["C_im"]], dim=1)
    V_reverse = torch.cat([p["C_reverse_re"], -p["C_reverse_im"]], dim=1) if settings["bidirectional"] else None
    return System(radius * torch.cos(angle), radius * torch.sin(angle), W, V, V_reverse, p["D"])


def group(name: str, settings: Settings) -> str:
    return "recurrent" if name in ("nu_log", "theta_log", "gamma_log", "B_re", "B_im") else "decay"

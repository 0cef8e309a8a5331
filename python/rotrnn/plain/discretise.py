"""From a continuous model x' = Lambda x + B u to steps of time dt: x_t = Lambda_bar x_{t-1} + factor B u_t."""

from typing import Tuple

import torch
from torch import Tensor


def exp_ratio(w: Tensor) -> Tensor:
    """(exp(w) - 1) / w, 1 at w = 0, complex. Near 0 by its series, 1 + w/2 (1 + w/3 (1 + ...)): the difference
    would lose digits there, and its derivative all of them."""
    small = w.abs() < 0.5
    near, far = torch.where(small, w, torch.zeros_like(w)), torch.where(small, torch.ones_like(w), w)
    series = torch.ones_like(w)
    for k in range(17, 1, -1):  # 0.5^16 / 17! is below rounding
        series = 1 + near / k * series
    return torch.where(small, series, (torch.exp(far) - 1) / far)


def discretise(method: str, Lambda: Tensor, dt: Tensor) -> Tuple[Tensor, Tensor]:
    """Lambda_bar, and the factor of B:

        zoh:       exp(Lambda dt)                            (exp(Lambda dt) - 1) / Lambda
        bilinear:  (1 + dt Lambda / 2) / (1 - dt Lambda / 2)   dt / (1 - dt Lambda / 2)"""
    w = dt * Lambda
    if method == "zoh":
        return torch.exp(w), dt * exp_ratio(w)
    down = 1 / (1 - w / 2)
    return down * (1 + w / 2), dt * down

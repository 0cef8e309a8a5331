"""LRU (Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu, De 2023)."""

import math
from typing import Any, Optional

import torch
from torch import Tensor

from .layer import Layer, normal, ring, uniform
from .system import System


class LRU(Layer):
    """A complex diagonal recurrence whose radius and phase are learned:

        lambda = exp(-exp(nu_log) + i exp(theta_log))
        x_t = lambda * x_{t-1} + exp(gamma_log) * (B u_t)          y_t = Re(C x_t) + D * u_t

    state counts real dimensions: there are S = state / 2 complex ones. States are x, [batch, 2S].

    Parameters: nu_log, theta_log, gamma_log [S], B_re, B_im [S, width], C_re, C_im [width, S], D [width], and
    C_reverse_re, C_reverse_im [width, S] if bidirectional.

    r_min, r_max: range of |lambda|, and max_phase: largest angle, at the start.
    gamma: "learned", or "fixed": sqrt(1 - |lambda|^2) in every pass, and no parameter gamma_log."""

    def __init__(self, width: int, state: int, bidirectional: bool = False, *, r_min: float = 0.0,
                 r_max: float = 1.0, max_phase: float = 2 * math.pi, gamma: str = "learned",
                 kernels: str = "fused", device: Any = None, dtype: Optional[torch.dtype] = None) -> None:
        if width < 1:
            self._fail(f"width is {width}; it must be at least 1")
        if state < 2 or state % 2:
            self._fail(f"state is {state}; it counts real dimensions, two for a complex state, so it must be even "
                       "and at least 2")
        super().__init__(width, state // 2, bidirectional, kernels)
        self._check_choice("gamma", gamma, ["learned", "fixed"])
        if not 0 <= r_min < r_max <= 1:
            self._fail(f"r_min = {r_min} and r_max = {r_max}, but 0 <= r_min < r_max <= 1")
        if not 0 < max_phase < math.inf:
            self._fail(f"max_phase is {max_phase}; it must be above 0")
        self.state, self.gamma_form = state, gamma
        S = state // 2

        def parameter(value: Tensor) -> torch.nn.Parameter:
            return self._parameter(value, device, dtype)

        nu_log = ring(r_min, r_max, S)
        self.nu_log = parameter(nu_log)
        self.theta_log = parameter(torch.log(max_phase * uniform(S)))
        if gamma == "learned":
            self.gamma_log = parameter(0.5 * torch.log(self._rest(nu_log)))
        self.B_re = parameter(normal(S, width) / math.sqrt(2 * width))
        self.B_im = parameter(normal(S, width) / math.sqrt(2 * width))
        self.C_re = parameter(normal(width, S) / math.sqrt(S))
        self.C_im = parameter(normal(width, S) / math.sqrt(S))
        self.D = parameter(normal(width))
        if self.bidirectional:
            self.C_reverse_re = parameter(normal(width, S) / math.sqrt(S))
            self.C_reverse_im = parameter(normal(width, S) / math.sqrt(S))

    @staticmethod
    def _rest(nu_log: Tensor) -> Tensor:
        """1 - |lambda|^2 with all its digits."""
        return -torch.expm1(-2 * torch.exp(nu_log))

    def system(self) -> System:
        nu_log = self.nu_log.double()
        radius, angle = torch.exp(-torch.exp(nu_log)), torch.exp(self.theta_log.double())
        if self.gamma_form == "learned":
            scale = torch.exp(self.gamma_log.double())
        else:
            scale = torch.sqrt(self._rest(nu_log))
        W = torch.cat([scale[:, None] * self.B_re.double(), scale[:, None] * self.B_im.double()])
        V = torch.cat([self.C_re.double(), -self.C_im.double()], dim=1)
        V_reverse = None
        if self.bidirectional:
            V_reverse = torch.cat([self.C_reverse_re.double(), -self.C_reverse_im.double()], dim=1)
        return System(radius * torch.cos(angle), radius * torch.sin(angle), W, V, V_reverse, self.D.double())

    def extra_repr(self) -> str:
        return f"width={self.width}, state={self.state}" + (", bidirectional=True" if self.bidirectional else "")

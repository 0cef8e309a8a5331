"""LRU (Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu, De 2023)."""

import math
from typing import Any, Optional

import torch
from torch import Tensor

from .layer import Layer, normal, ring, uniform
from .plain import lru as plain
from .plain.diagonal import System


class LRU(Layer):
    """A complex diagonal recurrence whose radius and phase are learned:

        lambda = exp(-exp(nu_log) + i exp(theta_log))
        x_t = lambda * x_{t-1} + exp(gamma_log) * (B u_t)          y_t = Re(C x_t) + D * u_t

    state counts real dimensions: there are S = state / 2 complex ones. States are x, [batch, 2S].

    Parameters: nu_log, theta_log, gamma_log [S], B_re, B_im [S, width], C_re, C_im [width, S], D [width], and
    C_reverse_re, C_reverse_im [width, S] if bidirectional.

    r_min, r_max: range of |lambda|, and max_phase: largest angle, at the start.
    gamma: "learned", or "fixed": sqrt(1 - |lambda|^2) in every pass, and no parameter gamma_log."""

    _names = ("nu_log", "theta_log", "gamma_log", "B_re", "B_im", "C_re", "C_im", "D", "C_reverse_re", "C_reverse_im")

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
            self.gamma_log = parameter(0.5 * torch.log(plain.rest(nu_log)))
        self.B_re = parameter(normal(S, width) / math.sqrt(2 * width))
        self.B_im = parameter(normal(S, width) / math.sqrt(2 * width))
        self.C_re = parameter(normal(width, S) / math.sqrt(S))
        self.C_im = parameter(normal(width, S) / math.sqrt(S))
        self.D = parameter(normal(width))
        if self.bidirectional:
            self.C_reverse_re = parameter(normal(width, S) / math.sqrt(S))
            self.C_reverse_im = parameter(normal(width, S) / math.sqrt(S))

    def system(self) -> System:
        return plain.system(self._tensors(), {"lru.gamma": self.gamma_form, "bidirectional": self.bidirectional})

    def extra_repr(self) -> str:
        return f"width={self.width}, state={self.state}" + (", bidirectional=True" if self.bidirectional else "")

"""S5 (Smith, Warrington, Linderman 2023)."""

import math
from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from .hippo import hippo_normal
from .layer import Layer, normal, uniform
from .plain import s5 as plain
from .plain.diagonal import System


def _truncated(deviation: float, *shape: int) -> Tensor:
    """Normals cut off at twice their standard deviation, widened so that `deviation` is what remains."""
    values = torch.nn.init.trunc_normal_(torch.empty(*shape, dtype=torch.float64), a=-2.0, b=2.0)
    return values * (deviation / 0.87962566103423978)


class S5(Layer):
    """A continuous state-space model, discretised by a learned time step for each state:

        x_t = Lambda_bar * x_{t-1} + B_bar u_t          y_t = 2 Re(C x_t) + D * u_t
        zoh:       Lambda_bar = exp(Lambda dt),   B_bar = (exp(Lambda dt) - 1) / Lambda * B
        bilinear:  Lambda_bar = (1 + dt Lambda / 2) / (1 - dt Lambda / 2),   B_bar = dt / (1 - dt Lambda / 2) * B
        dt = step_rescale * exp(log_step)

    state counts real dimensions: one of each pair of conjugates is kept, S = state / 2. States are x,
    [batch, 2S]. It starts as HiPPO-N in its eigenbasis, in `blocks` equal blocks.

    Parameters: Lambda_re, Lambda_im, log_step [S], B_re, B_im [S, width], C_re, C_im [width, S], D [width], and
    C_reverse_re, C_reverse_im [width, S] if bidirectional.

    discretisation: "zoh" or "bilinear". c_init: "lecun_normal", "trunc_standard_normal" or "complex_normal".
    dt_min, dt_max: range of exp(log_step) at the start. clip: keep Re Lambda at -1e-4 or below.
    step_rescale: 2 to run a trained layer at half the sampling rate."""

    _names = ("Lambda_re", "Lambda_im", "log_step", "B_re", "B_im", "C_re", "C_im", "D", "C_reverse_re", "C_reverse_im")

    def __init__(self, width: int, state: int, bidirectional: bool = False, *, blocks: int = 8,
                 discretisation: str = "zoh", c_init: str = "lecun_normal", dt_min: float = 1e-3,
                 dt_max: float = 1e-1, clip: bool = False, step_rescale: float = 1.0, kernels: str = "fused",
                 device: Any = None, dtype: Optional[torch.dtype] = None) -> None:
        if width < 1 or blocks < 1:
            self._fail(f"width = {width}, blocks = {blocks}; each is at least 1")
        if state < 2 or state % 2:
            self._fail(f"state is {state}; its eigenvalues come in conjugate pairs, so it must be even and at "
                       "least 2")
        if state % blocks or state // blocks % 2:
            self._fail(f"blocks = {blocks} does not cut state = {state} into blocks of an even size; state must be "
                       "a multiple of 2 * blocks")
        super().__init__(width, state // 2, bidirectional, kernels)
        self._check_choice("discretisation", discretisation, ["zoh", "bilinear"])
        self._check_choice("c_init", c_init, ["lecun_normal", "trunc_standard_normal", "complex_normal"])
        if not 0 < dt_min <= dt_max < math.inf:
            self._fail(f"dt_min = {dt_min} and dt_max = {dt_max}, but 0 < dt_min <= dt_max")
        if not 0 < step_rescale < math.inf:
            self._fail(f"step_rescale is {step_rescale}; it must be above 0")
        self.state, self.blocks, self.discretisation = state, blocks, discretisation
        self.clip, self.step_rescale = bool(clip), float(step_rescale)

        def parameter(value: Tensor) -> torch.nn.Parameter:
            return self._parameter(value, device, dtype)

        values, vectors = hippo_normal(state // blocks)
        basis = torch.block_diag(*[vectors] * blocks)  # [state, S]
        self.Lambda_re = parameter(values.real.repeat(blocks))
        self.Lambda_im = parameter(values.imag.repeat(blocks))
        B = basis.conj().T @ _truncated(state**-0.5, state, width).to(basis.dtype)
        self.B_re, self.B_im = parameter(B.real), parameter(B.imag)

        def output() -> Tuple[torch.nn.Parameter, torch.nn.Parameter]:
            if c_init == "complex_normal":
                parts = (normal(width, state // 2) * 0.5**0.5, normal(width, state // 2) * 0.5**0.5)
            else:
                deviation = (state * width)**-0.5 if c_init == "lecun_normal" else state**-0.5
                C = torch.complex(_truncated(deviation, width, state), _truncated(deviation, width, state)) @ basis
                parts = (C.real, C.imag)
            return parameter(parts[0]), parameter(parts[1])

        self.C_re, self.C_im = output()
        if self.bidirectional:
            self.C_reverse_re, self.C_reverse_im = output()
        self.D = parameter(normal(width))
        low, high = math.log(dt_min), math.log(dt_max)
        self.log_step = parameter(low + (high - low) * uniform(state // 2))

    def system(self) -> System:
        return plain.system(self._tensors(), {"s5.discretisation": self.discretisation, "s5.clip": self.clip,
                                              "s5.step_rescale": self.step_rescale, "bidirectional": self.bidirectional})

    def extra_repr(self) -> str:
        text = f"width={self.width}, state={self.state}, blocks={self.blocks}"
        return text + (", bidirectional=True" if self.bidirectional else "")

"""RotRNN (Biegun, Dolga, Cunningham, Barber 2024)."""

import math
from typing import Any, Optional

import torch
from torch import Tensor

from . import _core
from .fused import address, refuse_second_derivative
from .layer import Layer, normal, ring, uniform
from .plain import rotrnn as plain
from .plain.diagonal import System
from .threads import get_num_threads

NORMALISATIONS = ["xi", "alpha", "none"]


class _Map(torch.autograd.Function):
    """System.. of parameters, float32, contiguous."""

    @staticmethod
    def forward(ctx: Any, sizes: _core.MapSizes, states: int, theta: Tensor, gamma_log: Tensor, M: Tensor,
                B: Tensor, C: Tensor, C_reverse: Optional[Tensor], stationary: bool) -> Any:
        width = len(C)
        lambda_re, lambda_im, *start = (B.new_empty(states) for _ in range(4 if stationary else 2))
        W, V = B.new_empty(2 * states, width), B.new_empty(width, 2 * states)
        V_reverse = None if C_reverse is None else torch.empty_like(V)
        P = torch.empty_like(M, dtype=torch.float64)
        parameters = (theta, gamma_log, M, B, C, C_reverse)
        # In the order of System; D is not mapped.
        system = (lambda_re, lambda_im, W, V, V_reverse, None, *(start or (None, None)))
        _core.map_forward(sizes, tuple(map(address, parameters)), tuple(map(address, system)), P.data_ptr())
        ctx.sizes, ctx.shapes = sizes, [None if t is None else t.shape for t in system]
        ctx.save_for_backward(P, *parameters)
        ctx.set_materialize_grads(False)
        return system

    @staticmethod
    def backward(ctx: Any, *gradients: Optional[Tensor]) -> Any:
        refuse_second_derivative()
        P, *parameters = ctx.saved_tensors
        dsystem = [None if shape is None else P.new_zeros(shape, dtype=torch.float32) if g is None else g.contiguous()
                   for shape, g in zip(ctx.shapes, gradients)]
        found = [None if t is None else torch.empty_like(t) for t in parameters]
        _core.map_backward(ctx.sizes, tuple(map(address, parameters)), P.data_ptr(), tuple(map(address, dsystem)),
                           tuple(map(address, found)))
        return (None, None, *found, None)


class RotRNN(Layer):
    """A linear recurrence whose state matrix is a learned rotation, for every head h of dh = state / heads:

        x_t = gamma P Theta P^T x_{t-1} + xi B u_t          y_t = C concat_over_heads(x_t) + D * u_t

        P = expm(M - M^T)      gamma = exp(-exp(gamma_log))      xi = sqrt(c (1 - gamma^2) / |B|^2)

    Theta rotates the coordinates (2j, 2j+1) by theta_j. In coordinates z = P^T x this is diagonal in complex
    numbers, lambda = gamma exp(i theta): states given and returned are z, [batch, 2S] with
    S = heads * ceil(dh / 2); `hidden` and `folded` convert to and from x [batch, state].

    Parameters: theta [heads, dh // 2] (theta_log when its logarithm is stored), gamma_log [heads],
    M [heads, dh, dh] (a buffer of zeros unless learn_rotation), B [heads, dh, width], C [width, state], D [width], and
    C_reverse [width, state] if bidirectional.

    normalisation: "xi"; "alpha" (the paper's first attempt), "none".
    c: the mean square norm of a head's state that xi aims at.
    stationary_start: have it from the first step on, not only in the long run.
    learn_rotation: False: P is the identity.
    init: "paper" or "authors" (of their code); gamma_init "ring" or "log_uniform", theta_form "plain" or
    "log", bc_init and m_init "paper" or "authors" are parts of it that can be chosen by themselves.
    gamma_min, gamma_max, theta_max: range of gamma, and largest theta, at the start."""

    _names = ("theta", "theta_log", "gamma_log", "M", "B", "C", "D", "C_reverse")

    def __init__(self, width: int, state: int, heads: int, bidirectional: bool = False, *,
                 normalisation: str = "xi", c: float = 1.0, stationary_start: bool = False,
                 learn_rotation: bool = True, init: str = "paper", gamma_min: float = 0.5,
                 gamma_max: float = 0.999, theta_max: float = math.pi / 100,
                 gamma_init: Optional[str] = None, theta_form: Optional[str] = None,
                 bc_init: Optional[str] = None, m_init: Optional[str] = None, kernels: str = "fused",
                 device: Any = None, dtype: Optional[torch.dtype] = None) -> None:
        if width < 1 or state < 1 or heads < 1:
            self._fail(f"width = {width}, state = {state}, heads = {heads}; each is at least 1")
        if state % heads != 0:
            self._fail(f"heads = {heads} does not divide state = {state}; make the state a multiple of the heads")
        dh = state // heads
        if dh < 2:
            self._fail(f"heads = {heads} leaves {dh} dimension of state = {state} for a head; a rotation needs "
                       f"2 or more, so use at most {state // 2} heads")
        super().__init__(width, heads * ((dh + 1) // 2), bidirectional, kernels)
        self._check_choice("normalisation", normalisation, NORMALISATIONS)
        self._check_choice("init", init, ["paper", "authors"])
        paper = init == "paper"
        gamma_init = gamma_init or ("ring" if paper else "log_uniform")
        theta_form = theta_form or ("plain" if paper else "log")
        bc_init, m_init = bc_init or init, m_init or init
        self._check_choice("gamma_init", gamma_init, ["ring", "log_uniform"])
        self._check_choice("theta_form", theta_form, ["plain", "log"])
        self._check_choice("bc_init", bc_init, ["paper", "authors"])
        self._check_choice("m_init", m_init, ["paper", "authors"])
        if not c > 0:
            self._fail(f"c is {c}; it must be above 0")
        if stationary_start and normalisation != "xi":
            self._fail('stationary_start needs normalisation = "xi"')
        if not 0 <= gamma_min < gamma_max < 1:
            self._fail(f"gamma_min = {gamma_min} and gamma_max = {gamma_max}, but 0 <= gamma_min < gamma_max < 1")
        if gamma_init == "log_uniform" and gamma_min == 0:
            self._fail('gamma_min is 0, which gamma_init = "log_uniform" cannot reach; make it larger')
        if not 0 < theta_max < math.inf:
            self._fail(f"theta_max is {theta_max}; it must be above 0")
        self.state, self.heads, self.head_size = state, heads, dh
        self.normalisation, self.c = normalisation, float(c)
        self.stationary_start, self.learn_rotation = bool(stationary_start), bool(learn_rotation)
        self.theta_form = theta_form

        def parameter(value: Tensor) -> torch.nn.Parameter:
            return self._parameter(value, device, dtype)

        theta = theta_max * uniform(heads, dh // 2)
        if theta_form == "log":
            self.theta_log = parameter(theta.log())
        else:
            self.theta = parameter(theta)
        if gamma_init == "ring":
            gamma_log = ring(gamma_min, gamma_max, heads)
        else:
            low, high = math.log(-math.log(gamma_max)), math.log(-math.log(gamma_min))
            gamma_log = low + (high - low) * uniform(heads)
        self.gamma_log = parameter(gamma_log)
        if self.learn_rotation:
            scale = 1.0 if m_init == "paper" else 1 / math.sqrt(state + dh)
            self.M = parameter(scale * normal(heads, dh, dh))
        else:  # P = I; in state_dict as it is with a rotation
            self.register_buffer("M", self._parameter(torch.zeros(heads, dh, dh), device, dtype).detach())
        both = 1 / math.sqrt(width + state)
        b_scale, c_scale = (width**-0.5, state**-0.5) if bc_init == "paper" else (both, both)
        self.B = parameter(b_scale * normal(heads, dh, width))
        self.C = parameter(c_scale * normal(width, state))
        self.D = parameter(normal(width))
        if self.bidirectional:
            self.C_reverse = parameter(c_scale * normal(width, state))

    def angles(self) -> Tensor:
        """theta [heads, dh // 2], in double."""
        return plain.angles(self._tensors())

    def gamma(self) -> Tensor:
        """The decay of every head, [heads], in double: in (0, 1)."""
        return plain.gamma(self.gamma_log)

    def rotation(self) -> Tensor:
        """P [heads, dh, dh], in double."""
        return plain.rotation(self.M)

    def system(self) -> System:
        return plain.system(self._tensors(), {"normalisation": self.normalisation, "c": self.c,
                                              "stationary_start": self.stationary_start,
                                              "bidirectional": self.bidirectional})

    def fused_system(self) -> System:
        """By the kernels of the program, in double inside: a tenth of the time, which shows on short batches."""
        theta = self.theta_log.exp() if self.theta_form == "log" else self.theta
        sizes = _core.MapSizes(self.width, self.state, self.heads, self.bidirectional, self.stationary_start,
                               NORMALISATIONS.index(self.normalisation), self.c, get_num_threads())
        parts = _Map.apply(sizes, self.states, theta.contiguous(), self.gamma_log.contiguous(), self.M.contiguous(),
                           self.B.contiguous(), self.C.contiguous(),
                           self.C_reverse.contiguous() if self.bidirectional else None, self.stationary_start)
        return System(*parts)._replace(D=self.D)

    def hidden(self, z: Tensor) -> Tensor:
        """The paper's x = P z [.., state] of states z [.., 2S]."""
        each = plain.planes_to_heads(z, self.heads, self.head_size)
        return torch.einsum("...hj,hij->...hi", each, self.rotation().to(z.dtype)).flatten(-2)

    def folded(self, x: Tensor) -> Tensor:
        """The inverse of `hidden`: z = P^T x [.., 2S] of x [.., state]."""
        heads = x.unflatten(-1, (self.heads, self.head_size))
        return plain.heads_to_planes(torch.einsum("...hi,hij->...hj", heads, self.rotation().to(x.dtype)))

    def extra_repr(self) -> str:
        text = f"width={self.width}, state={self.state}, heads={self.heads}"
        if self.bidirectional:
            text += ", bidirectional=True"
        if self.normalisation != "xi":
            text += f", normalisation={self.normalisation!r}"
        return text

"""What all layers share: everything but their parameters."""

from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from .fused import run_fused
from .packed import Integers, check_lengths, check_offsets, pack, pad
from .plain import diagonal
from .plain.diagonal import System

# The state of a batch, [batch, 2S]: all real parts, then all imaginary parts. Of a bidirectional layer a pair,
# (after the last token, after the first one).
State = Union[Tensor, Tuple[Optional[Tensor], Optional[Tensor]]]


class Layer(nn.Module):
    """A linear recurrent layer: `RotRNN`, `LRU` or `S5`.

        z_t = lambda * z_{t-1} + W u_t          y_t = V [Re z_t; Im z_t] + D * u_t

    with S complex states z. A derived class has parameters and `system`, which maps them to lambda, W, V, D.

    kernels: "fused" runs float32 on the CPU by fused kernels, and anything else (double, other devices) by
    plain PyTorch; "reference" always by plain PyTorch, which can be differentiated any number of times."""

    kernels: str
    _names: Tuple[str, ...]  # of all tensors that there may be

    def __init__(self, width: int, states: int, bidirectional: bool, kernels: str) -> None:
        super().__init__()
        if kernels not in ("fused", "reference"):
            self._fail(f'kernels is {kernels!r}; choose "fused" or "reference"')
        self.width = width
        self.states = states
        self.bidirectional = bool(bidirectional)
        self.kernels = kernels

    def system(self) -> System:
        """The map of the parameters, differentiable, in double."""
        raise NotImplementedError

    def _tensors(self) -> Dict[str, Tensor]:
        """Parameters and buffers by name, as the plain maps take them: also those that are parametrised."""
        return {name: getattr(self, name) for name in self._names if hasattr(self, name)}

    def fused_system(self) -> System:
        """The same in float32, for the fused kernels. A layer with a faster twin of its map overrides this."""
        return self.system().cast(torch.float32)

    # ------------------------------------------------------------------------------------------- running

    def forward(self, u: Tensor, lengths: Optional[Integers] = None, state: Optional[State] = None,
                return_state: bool = False) -> Any:
        """y [batch, time, width] of u [batch, time, width].

        lengths: true lengths [batch], 0 to time; y is zero after the end, and the padding is never read.
        state: where the sequences begin, as an earlier call returned it; None: at their beginning.
        return_state: also the state after the last token: (y, state)."""
        self._check_input("u", u, "[batch, time, width]", 3)
        batch, time = u.shape[:2]
        if lengths is not None:
            lengths = check_lengths(f"{self._name}: lengths", lengths, batch, time)
        values, offsets, rows = pack(u, lengths)
        y, final = self._run(values, offsets, state)
        y = pad(y, rows, batch, time)
        return (y, final) if return_state else y

    def forward_packed(self, values: Tensor, offsets: Integers, state: Optional[State] = None,
                       return_state: bool = False) -> Any:
        """y [n, width] of a packed batch: values [n, width], sequence i being the rows offsets[i] to
        offsets[i + 1] - 1; offsets [sequences + 1]. state and return_state as in `forward`."""
        self._check_input("values", values, "[n, width]", 2)
        checked = check_offsets(f"{self._name}: offsets", offsets, len(values))
        y, final = self._run(values, checked, state)
        return (y, final) if return_state else y

    def step(self, u: Tensor, state: Optional[Tensor] = None,
             system: Optional[System] = None) -> Tuple[Tensor, Tensor]:
        """One token of every sequence: (y [batch, width], state [batch, 2S]) from u [batch, width] and the
        state before it; None: at the beginning. Step after step this is `forward`.

        system: what `system()` gave, to save its computation at every step while parameters do not change."""
        if self.bidirectional:
            self._fail("step: a bidirectional layer needs the whole sequence, so it cannot go step by step; "
                       "use forward, or a layer with bidirectional=False")
        self._check_input("u", u, "[batch, width]", 2)
        before, _ = self._check_state(state, len(u), u)
        if system is None:
            system = self.fused_system() if self._fuses(u) else self.system()
        return diagonal.step(system, u, before)

    def _fuses(self, u: Tensor) -> bool:
        return self.kernels == "fused" and u.dtype == torch.float32 and u.device.type == "cpu"

    def _run(self, values: Tensor, offsets: Tensor, state: Optional[State]) -> Tuple[Tensor, State]:
        initial, initial_reverse = self._check_state(state, len(offsets) - 1, values)
        if self._fuses(values):
            y, final, final_reverse = run_fused(self.fused_system(), values, offsets, initial, initial_reverse)
        else:
            y, final, final_reverse = diagonal.run(self.system(), values, offsets, initial, initial_reverse)
        return y, ((final, final_reverse) if self.bidirectional else final)

    # -------------------------------------------------------------------------------------------- checks

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _fail(self, what: str) -> None:
        raise ValueError(f"{self._name}: {what}")

    def _check_input(self, name: str, u: Tensor, form: str, dims: int) -> None:
        if not isinstance(u, Tensor):
            raise TypeError(f"{self._name}: {name} is a {type(u).__name__}; give a torch.Tensor")
        if u.dim() != dims or u.shape[-1] != self.width:
            hint = ""
            if dims == 3 and u.dim() == 2 and u.shape[-1] == self.width:
                hint = "; one sequence is u[None], a packed batch goes to forward_packed"
            self._fail(f"{name} has the shape {tuple(u.shape)}; expected {form} with width = {self.width}{hint}")
        own = next(self.parameters())
        if own.dtype not in (torch.float32, torch.float64):
            self._fail(f"the parameters are of {own.dtype}; float32 and float64 are supported: use layer.float() "
                       "or layer.double()")
        if u.dtype != own.dtype:
            convert = "double" if own.dtype == torch.float64 else "float"
            self._fail(f"{name} is of {u.dtype}, the parameters of {own.dtype}; convert one of them, "
                       f"such as {name}.{convert}()")
        if u.device != own.device:
            self._fail(f"{name} is on {u.device}, the parameters on {own.device}; move one of them")

    def _check_state(self, state: Optional[State], batch: int,
                     u: Tensor) -> Tuple[Optional[Tensor], Optional[Tensor]]:
        if state is None:
            return None, None
        if self.bidirectional:
            if not isinstance(state, (tuple, list)) or len(state) != 2:
                self._fail("the state of a bidirectional layer is a pair (forward, reverse), each "
                           f"[batch, {2 * self.states}] or None")
            forward, reverse = state
        else:
            forward, reverse = state, None
        for name, t in (("state", forward), ("reverse state", reverse)):
            if t is None:
                continue
            if not isinstance(t, Tensor):
                raise TypeError(f"{self._name}: the {name} is a {type(t).__name__}; give a torch.Tensor")
            if t.shape != (batch, 2 * self.states):
                self._fail(f"the {name} has the shape {tuple(t.shape)}; expected [batch, 2S] = "
                           f"{(batch, 2 * self.states)}")
            if t.dtype != u.dtype or t.device != u.device:
                self._fail(f"the {name} is of {t.dtype} on {t.device}, the input of {u.dtype} on {u.device}; "
                           "they must agree")
        return forward, reverse

    def _check_choice(self, key: str, value: str, choices: List[str]) -> None:
        if value not in choices:
            self._fail(f"{key} is {value!r}; choose one of {', '.join(repr(c) for c in choices)}")

    def _parameter(self, value: Tensor, device: Any, dtype: Optional[torch.dtype]) -> nn.Parameter:
        """Initial values are drawn in double on the CPU."""
        return nn.Parameter(value.to(device=device, dtype=dtype or torch.get_default_dtype()))


def uniform(*shape: int) -> Tensor:
    """Uniform in (0, 1), in double: 0 would have no logarithm."""
    return torch.rand(*shape, dtype=torch.float64).clamp(min=2.0**-53)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def ring(smallest: float, largest: float, *shape: int) -> Tensor:
    """log(-log r) for r uniform in area on the ring between two radii."""
    square = uniform(*shape) * (largest**2 - smallest**2) + smallest**2
    return torch.log(-0.5 * torch.log(square))

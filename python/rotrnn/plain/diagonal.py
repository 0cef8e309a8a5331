"""The one form that layers which mix channels map their parameters to: RotRNN, LRU and S5.

    z_t = lambda * z_{t-1} + W u_t          y_t = V [Re z_t; Im z_t] + D * u_t

z holds S complex states, kept as 2S real numbers: all real parts, then all imaginary parts. The reverse
direction runs the same recurrence from the end of a sequence and adds V_reverse [Re z; Im z].
"""

import math
from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .packed import backwards, lengths_of, to_grid


class System(NamedTuple):
    """A layer's parameters as the recurrence uses them, in double."""

    lambda_re: Tensor  # [S]
    lambda_im: Tensor  # [S]
    W: Tensor  # [2S, D]
    V: Tensor  # [D, 2S]
    V_reverse: Optional[Tensor]  # [D, 2S], bidirectional only
    D: Tensor  # [D]
    # Where no state is given z_0 = start * (W u_1), u_1 being the first input; None: z_0 = 0.
    start_re: Optional[Tensor] = None  # [S]
    start_im: Optional[Tensor] = None  # [S]

    def cast(self, dtype: torch.dtype) -> "System":
        """The same in another precision."""
        return System(*(t if t is None else t.to(dtype) for t in self))


def to_complex(planes: Tensor) -> Tensor:
    """[.., 2S] real to [.., S] complex."""
    S = planes.shape[-1] // 2
    return torch.complex(planes[..., :S], planes[..., S:])


def to_planes(z: Tensor) -> Tensor:
    """[.., S] complex to [.., 2S] real."""
    return torch.cat([z.real, z.imag], dim=-1)


def scan(v: Tensor, lam: Tensor, start: Optional[Tensor]) -> Tensor:
    """z_t = lam * z_{t-1} + v_t along v [batch, time, S] from z_0 = start [batch, S] (None: 0), complex.

    Chunks of about sqrt(time) steps run side by side from zero, then their ends are joined in a loop, so that
    it takes few operations, all of them differentiable, any number of times."""
    batch, time, S = v.shape
    if time == 0:
        return v
    chunk = max(1, math.isqrt(time))
    chunks = -(-time // chunk)
    if chunks * chunk > time:
        v = torch.cat([v, v.new_zeros(batch, chunks * chunk - time, S)], dim=1)
    local, powers = [], []
    for step in v.view(batch, chunks, chunk, S).unbind(2):
        local.append(step if not local else step + lam * local[-1])
        powers.append(lam if not powers else powers[-1] * lam)
    carries = [v.new_zeros(batch, S) if start is None else start]
    for end in local[-1].unbind(1)[:-1]:
        carries.append(end + powers[-1] * carries[-1])
    z = torch.stack(local, dim=2) + torch.stack(powers) * torch.stack(carries, dim=1)[:, :, None]
    return z.view(batch, chunks * chunk, S)[:, :time]


def walk(v: Tensor, lam: Tensor, offsets: Tensor, start: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    """z_t = lam * z_{t-1} + v_t in every sequence: all states [n, S] and the final ones [sequences, S], complex,
    from z_0 = start [sequences, S] (None: 0)."""
    grid, inside = to_grid(v, offsets)
    z = scan(grid, lam, start)
    lengths = lengths_of(offsets)
    before = v.new_zeros(len(lengths), v.shape[1]) if start is None else start
    if z.shape[1] == 0:
        return v, before
    last = z[torch.arange(len(lengths), device=v.device), (lengths - 1).clamp(min=0)]
    return z[inside], torch.where(lengths[:, None] > 0, last, before)


def _one_direction(v: Tensor, system: System, offsets: Tensor, initial: Optional[Tensor],
                   reverse: bool) -> Tuple[Tensor, Tensor]:
    """States [n, 2S] of all tokens and final states [sequences, 2S], for v = W u [n, 2S]."""
    if reverse:
        order = backwards(offsets)
        z, final = _one_direction(v[order], system, offsets, initial, False)
        return z[order], final
    driven = to_complex(v)
    start = None
    if initial is not None:
        start = to_complex(initial)
    elif system.start_re is not None and system.start_im is not None:
        some = lengths_of(offsets) > 0
        first = driven[offsets[:-1][some]]
        start = driven.new_zeros(len(some), first.shape[1])
        start = start.index_put((some,), torch.complex(system.start_re, system.start_im) * first)
    z, final = walk(driven, torch.complex(system.lambda_re, system.lambda_im), offsets, start)
    return to_planes(z), to_planes(final)


def run(system: System, u: Tensor, offsets: Tensor, initial: Optional[Tensor] = None,
        initial_reverse: Optional[Tensor] = None) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
    """y [n, D] and the final states [sequences, 2S] of a packed batch u [n, D], on any device, in u's
    precision, differentiable in everything."""
    system = system.cast(u.dtype)
    offsets = offsets.to(u.device)
    v = u @ system.W.T
    z, final = _one_direction(v, system, offsets, initial, False)
    y = z @ system.V.T + system.D * u
    if system.V_reverse is None:
        return y, final, None
    z, final_reverse = _one_direction(v, system, offsets, initial_reverse, True)
    return y + z @ system.V_reverse.T, final, final_reverse


def step(system: System, u: Tensor, z: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    """One token of every sequence: y [sequences, D] and z [sequences, 2S] from u [sequences, D] and the z
    before it (None: at the beginning)."""
    system = system.cast(u.dtype)
    v = to_complex(u @ system.W.T)
    if z is not None:
        before: Optional[Tensor] = to_complex(z)
    elif system.start_re is not None and system.start_im is not None:
        before = torch.complex(system.start_re, system.start_im) * v
    else:
        before = None
    if before is not None:
        v = v + torch.complex(system.lambda_re, system.lambda_im) * before
    after = to_planes(v)
    return after @ system.V.T + system.D * u, after

"""The fused kernels as one function of autograd. Float32 on the CPU."""

import itertools
import weakref
from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from . import _core
from .plain.diagonal import System
from .threads import get_num_threads

# What forward calls have left for their backward calls, by number. A lease lives as long as the tensor that
# autograd saves for it, and then its memory serves the next step.
_leases: "weakref.WeakValueDictionary[int, _core.Lease]" = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def address(t: Optional[Tensor]) -> int:
    return 0 if t is None else t.data_ptr()


def contiguous(t: Optional[Tensor]) -> Optional[Tensor]:
    return None if t is None else t.contiguous()


def _new_lease(u: Tensor, states: int, directions: int) -> Tuple[_core.Lease, Tensor]:
    """A lease and the tensor that owns it, which holds its number."""
    number = next(_numbers)
    lease = _core.Lease(number, 4 * directions * len(u) * (2 * states + 16))
    _leases[number] = lease
    return lease, torch.frombuffer(lease, dtype=torch.int64)


def _call(system: Tuple[Optional[Tensor], ...], offsets: Tensor, u: Tensor, initial: Optional[Tensor],
          initial_reverse: Optional[Tensor]) -> Tuple[_core.Shape, Tuple[int, ...], _core.Batch]:
    """The arguments that forward and backward share."""
    W, V_reverse = system[2], system[4]
    assert W is not None
    shape = _core.Shape(W.shape[1], len(W) // 2, V_reverse is not None, get_num_threads())
    batch = _core.Batch(offsets.data_ptr(), len(offsets) - 1, u.data_ptr(), address(initial),
                        address(initial_reverse))
    return shape, tuple(address(t) for t in system), batch


def refuse_second_derivative() -> None:
    """Called by backward functions, which run with gradients enabled only to be differentiated again."""
    if torch.is_grad_enabled():
        raise RuntimeError("rotrnn: the fused kernels have no second derivative (create_graph=True was asked "
                           'for); make the layer with kernels="reference", or set layer.kernels = "reference"')


class _Fused(torch.autograd.Function):
    """y, final, final_reverse of a system on a packed batch. All tensors are contiguous."""

    @staticmethod
    def forward(ctx: Any, keep: bool, offsets: Tensor, u: Tensor, initial: Optional[Tensor],
                initial_reverse: Optional[Tensor], *system: Optional[Tensor]) -> Any:
        W, V_reverse = system[2], system[4]
        assert W is not None
        y = torch.empty_like(u)
        final = u.new_empty(len(offsets) - 1, len(W))
        final_reverse = None if V_reverse is None else torch.empty_like(final)
        lease = None
        if keep:
            lease, owner = _new_lease(u, len(W) // 2, 1 if V_reverse is None else 2)
            ctx.save_for_backward(owner, offsets, u, initial, initial_reverse, *system)
            ctx.set_materialize_grads(False)
        shape, addresses, batch = _call(system, offsets, u, initial, initial_reverse)
        _core.forward(lease, shape, addresses, batch, y.data_ptr(), final.data_ptr(), address(final_reverse))
        return y, final, final_reverse

    @staticmethod
    def backward(ctx: Any, dy: Optional[Tensor], dfinal: Optional[Tensor],
                 dfinal_reverse: Optional[Tensor]) -> Any:
        refuse_second_derivative()
        owner, offsets, u, initial, initial_reverse, *rest = ctx.saved_tensors
        system = tuple(rest)
        shape, addresses, batch = _call(system, offsets, u, initial, initial_reverse)
        lease = _leases.get(int(owner))
        if lease is None:  # a hook on saved tensors copied its owner: what it held is computed again
            lease, owner = _new_lease(u, len(system[2]) // 2, 1 if system[4] is None else 2)
            y = torch.empty_like(u)
            _core.forward(lease, shape, addresses, batch, y.data_ptr(), 0, 0)
        dy = torch.zeros_like(u) if dy is None else dy.contiguous()
        dfinal, dfinal_reverse = contiguous(dfinal), contiguous(dfinal_reverse)
        # u's is where the kernels work; the others on demand, in the order of System.
        du = torch.empty_like(u)
        wanted = ctx.needs_input_grad
        dsystem = [torch.empty_like(t) if need else None for t, need in zip(system, wanted[5:])]
        dinitial = torch.empty_like(initial) if wanted[3] else None
        dinitial_reverse = torch.empty_like(initial_reverse) if wanted[4] else None
        _core.backward(lease, shape, addresses, batch, dy.data_ptr(), address(dfinal),
                       address(dfinal_reverse), du.data_ptr(), tuple(map(address, dsystem)),
                       address(dinitial), address(dinitial_reverse))
        return (None, None, du if wanted[2] else None, dinitial, dinitial_reverse, *dsystem)


def run_fused(system: System, u: Tensor, offsets: Tensor, initial: Optional[Tensor],
              initial_reverse: Optional[Tensor]) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
    """As `plain.diagonal.run`, for a system in float32 on the CPU."""
    tensors = [contiguous(t) for t in system]
    inputs = [u.contiguous(), contiguous(initial), contiguous(initial_reverse)]
    keep = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in [*inputs, *tensors])
    return _Fused.apply(keep, offsets, *inputs, *tensors)

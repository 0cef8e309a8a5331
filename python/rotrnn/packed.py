"""Packed batches: values [n, ..] with the tokens of all sequences one after the other, and offsets
[sequences + 1]; sequence i is the rows offsets[i] .. offsets[i + 1] - 1."""

from typing import Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

Integers = Union[Tensor, Sequence[int]]


def _integers(name: str, values: Integers) -> Tensor:
    """As a one-dimensional int64 tensor on the CPU."""
    t = torch.as_tensor(values)
    if t.numel() == 0 and not isinstance(values, Tensor):
        t = t.to(torch.int64)  # an empty list has no type
    if t.is_floating_point() or t.is_complex() or t.dtype == torch.bool:
        raise ValueError(f"{name} is of {t.dtype}; give whole numbers (torch.int64)")
    if t.dim() != 1:
        raise ValueError(f"{name} has the shape {tuple(t.shape)}; give one number for each sequence, in one dimension")
    return t.detach().to("cpu", torch.int64).contiguous()


def check_offsets(name: str, offsets: Integers, n: int) -> Tensor:
    """Offsets of n tokens, or ValueError."""
    t = _integers(name, offsets)
    if len(t) == 0 or int(t[0]) != 0:
        raise ValueError(f"{name} is {t.tolist()[:4]}; it begins with 0 and has one number more than there are sequences")
    if bool((t[1:] < t[:-1]).any()):
        raise ValueError(f"{name} falls somewhere; each number is where a sequence begins, so they never fall")
    if int(t[-1]) != n:
        raise ValueError(f"{name} ends with {int(t[-1])}, but there are {n} rows of values; the last one is the number of rows")
    return t


def check_lengths(name: str, lengths: Integers, batch: int, time: int) -> Tensor:
    """Lengths of the sequences of a padded batch, or ValueError."""
    t = _integers(name, lengths)
    if len(t) != batch:
        raise ValueError(f"{name} has {len(t)} numbers for a batch of {batch}; give one for each sequence")
    if len(t) and (int(t.min()) < 0 or int(t.max()) > time):
        raise ValueError(f"{name} has values from {int(t.min())} to {int(t.max())}; with {time} time steps they "
                         f"are from 0 to {time}")
    return t


def pack(padded: Tensor, lengths: Optional[Tensor]) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
    """Values, offsets, and the rows of the valid tokens among batch * time; None: all are. The padding is
    never read."""
    batch, time = padded.shape[:2]
    values = padded.reshape(batch * time, *padded.shape[2:])
    if lengths is None or bool((lengths == time).all()):
        return values, torch.arange(batch + 1, dtype=torch.int64) * time, None
    rows = torch.nonzero((torch.arange(time) < lengths[:, None]).reshape(-1))[:, 0].to(padded.device)
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return values.index_select(0, rows), offsets, rows


def pad(values: Tensor, rows: Optional[Tensor], batch: int, time: int) -> Tensor:
    """[batch, time, ..], zeros after the end of each sequence; rows as `pack` gave them."""
    if rows is not None:
        values = values.new_zeros(batch * time, *values.shape[1:]).index_copy(0, rows, values)
    return values.reshape(batch, time, *values.shape[1:])

"""Walks over packed batches: values [n, ..] and offsets [sequences + 1]."""

from typing import Optional, Tuple

import torch
from torch import Tensor


def lengths_of(offsets: Tensor) -> Tensor:
    return offsets[1:] - offsets[:-1]


def sequence_of(offsets: Tensor) -> Tensor:
    """The number of the sequence that each token is of, [n]."""
    return torch.repeat_interleave(torch.arange(len(offsets) - 1, device=offsets.device), lengths_of(offsets))


def to_grid(values: Tensor, offsets: Tensor) -> Tuple[Tensor, Tensor]:
    """[sequences, time, ..] with zeros behind the end of each sequence, and where it has tokens
    [sequences, time]: grid[inside] are the values again."""
    lengths = lengths_of(offsets)
    time = int(lengths.max()) if len(lengths) else 0
    t = torch.arange(time, device=values.device)
    inside = t < lengths[:, None]
    grid = values.new_zeros(len(lengths), time, *values.shape[1:])
    return grid.index_put((sequence_of(offsets), (t.expand_as(inside))[inside]), values), inside


def backwards(offsets: Tensor) -> Tensor:
    """The rows with each sequence from its end: values[backwards(offsets)]. Twice it changes nothing."""
    rows = torch.arange(int(offsets[-1]), device=offsets.device)
    sequence = sequence_of(offsets)
    return offsets[sequence] + offsets[sequence + 1] - 1 - rows


def preceding(values: Tensor, offsets: Tensor, first: Optional[Tensor] = None) -> Tensor:
    """Every token's predecessor in its sequence; of first tokens `first` [sequences, ..], or 0."""
    shifted = torch.cat([values.new_zeros(1, *values.shape[1:]), values[:-1]])[:len(values)]
    some = lengths_of(offsets) > 0
    begin = offsets[:-1][some]
    at_begin = values.new_zeros(len(begin), *values.shape[1:]) if first is None else first[some]
    return shifted.index_put((begin,), at_begin)


def following(values: Tensor, offsets: Tensor, last: Optional[Tensor] = None) -> Tensor:
    """Every token's successor in its sequence; of last tokens `last` [sequences, ..], or 0."""
    order = backwards(offsets)
    return preceding(values[order], offsets, last)[order]

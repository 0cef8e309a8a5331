"""The masks of dropout, one number for every sequence and channel: the same as the program's for the same seed, step
and number of the sequence in the data.

Numbers come from Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011), which turns a counter and a key into four words. The
key is the seed, the upper half of the counter the place: what the numbers are for, the step, the block, the site
in it (0 in front of the gate, 1 at the end) and the sequence, mixed by the last steps of SplitMix64."""

from typing import Iterator, Sequence, Tuple

import torch
from torch import Tensor

_WORD, _LONG = 2**32 - 1, 2**64 - 1
_DROPOUT = 3  # what the numbers are for


def philox(counter: Tuple[int, ...], key: Tuple[int, int]) -> Tuple[int, ...]:
    """One block of four words."""
    c, (k0, k1) = counter, key
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = ((b >> 32) ^ c[1] ^ k0, b & _WORD, (a >> 32) ^ c[3] ^ k1, a & _WORD)
        k0, k1 = (k0 + 0x9E3779B9) & _WORD, (k1 + 0xBB67AE85) & _WORD
    return c


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _LONG
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _LONG
    return x ^ (x >> 31)


def _words(seed: int, place: Sequence[int]) -> Iterator[int]:
    stream = _mix(_DROPOUT)
    for number in place:
        stream = _mix(stream ^ _mix((number + 0x9E3779B97F4A7C15) & _LONG))
    counter = 0
    while True:
        yield from philox((counter & _WORD, counter >> 32, stream & _WORD, stream >> 32), (seed & _WORD, seed >> 32))
        counter += 1


def mask(probability: float, seed: int, step: int, block: int, site: int, sequences: Sequence[int], width: int) -> Tensor:
    """[sequences, width]: 0, or 1 / (1 - probability)."""
    threshold, keep = int(probability * 2**32), 1 / (1 - probability)
    rows = []
    for sequence in sequences:
        words = _words(seed, (step, block, site, sequence))
        rows.append([0.0 if next(words) < threshold else keep for _ in range(width)])
    return torch.tensor(rows, dtype=torch.float64).reshape(len(sequences), width)

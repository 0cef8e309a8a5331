"""AdamW (Loshchilov and Hutter 2019) with two learning rates:

    w <- w (1 - rate decay)        m <- b1 m + (1 - b1) g        v <- b2 v + (1 - b2) g^2
    w <- w - rate m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon)

The group of a parameter is "recurrent" (the recurrent rate, no decay), "recurrent_decay", "no_decay" (the global
rate) or "decay"."""

from typing import Dict, Mapping, NamedTuple, Tuple

import torch
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Rates(NamedTuple):
    global_lr: float
    recurrent_lr: float
    weight_decay: float


class Moments(NamedTuple):
    first: Dict[str, Tensor]
    second: Dict[str, Tensor]


def start(p: Mapping[str, Tensor]) -> Moments:
    return Moments(*({name: torch.zeros_like(w) for name, w in p.items()} for _ in range(2)))


def step(t: int, p: Mapping[str, Tensor], gradients: Mapping[str, Tensor], moments: Moments,
         groups: Mapping[str, str], rates: Rates) -> Tuple[Dict[str, Tensor], Moments]:
    """Parameters and moments after step t, which counts from 1."""
    after, first, second = {}, {}, {}
    for name, w in p.items():
        g, group = gradients[name], groups[name]
        rate = rates.recurrent_lr if group.startswith("recurrent") else rates.global_lr
        decay = rates.weight_decay if group.endswith("decay") and group != "no_decay" else 0.0
        first[name] = BETA1 * moments.first[name] + (1 - BETA1) * g
        second[name] = BETA2 * moments.second[name] + (1 - BETA2) * g**2
        m, v = first[name] / (1 - BETA1**t), second[name] / (1 - BETA2**t)
        after[name] = w * (1 - rate * decay) - rate * m / (torch.sqrt(v) + EPSILON)
    return after, Moments(first, second)

"""Liquid-S4 (Hasani et al. 2022): S4, of which x_t = (A_bar + diag(B_bar) u_t) x_{t-1} + B_bar u_t adds the products
of p = 2 .. degree inputs. With b_n = dt B_n / (1 - dt Lambda_n / 2), the low rank ignored, and s = 2 Re sum_n b_n:

    pb:  y_t += sum_p c_p u_t u_{t-1} .. u_{t-p+1}          u = 0 before the start
         coefficient "power" c_p = 2 Re sum_n C_n b_n^p;  "reference" c_p = s^(2^(p-1) - 1) 2 Re sum_n C_n b_n
    kb:  y_t += sum_p s^(p-1) sum_l K_l u_{t-l} u_{t-l-1} .. u_{t-l-p+1}

Parameters are those of S4."""

import itertools
import math
from typing import List, Mapping

import torch
from torch import Tensor

from . import s4
from .packed import preceding
from .s4d import complex_of, eigenvalues
from .settings import Settings

group = s4.group


def coefficients(p: Mapping[str, Tensor], settings: Settings) -> List[Tensor]:
    """c_p [D] for p = 2 .. degree; in form kb s^(p-1)."""
    dt, orders = torch.exp(p["log_step"].double())[:, None], range(2, settings["liquid_s4.degree"] + 1)
    b = dt * complex_of(p, "B") / (1 - dt * eigenvalues(p) / 2)
    s = 2 * b.sum(1).real
    if settings["liquid_s4.form"] == "kb":
        found = [s**(order - 1) for order in orders]
    elif settings["liquid_s4.coefficient"] == "power":
        found = [2 * (s4.plain_output(p) * b**order).sum(1).real for order in orders]
    else:
        found = [s**(2**(order - 1) - 1) * 2 * (s4.plain_output(p) * b).sum(1).real for order in orders]
    return found if settings["liquid_s4.train_liquid"] else [c.detach() for c in found]


def neighbours(u: Tensor, offsets: Tensor, order: int) -> Tensor:
    """u_t u_{t-1} .. of so many inputs."""
    product = u
    for _ in range(order - 1):
        product = u * preceding(product, offsets)
    return product


def combinations(u: Tensor, offsets: Tensor, order: int) -> Tensor:
    """The products of the authors' code, which is not causal: of the combinations of `order` of the last w inputs,
    in lexicographic order, the last T for a sequence of T tokens, from its end; w is the smallest number below T
    that has as many."""
    parts = []
    for sequence in torch.tensor_split(u, offsets[1:-1].cpu()):
        T = len(sequence)
        window = next((w for w in range(T) if math.comb(w, order) >= T), None)
        if window is None:
            raise ValueError(f"a sequence of {T} tokens is too short for products of {order} inputs in mode \"reference\"")
        rows = list(itertools.combinations(range(T - window, T), order))[-T:]
        parts.append(sequence[torch.tensor(rows, device=u.device)].prod(1).flip(0))
    return torch.cat(parts)


def run(p: Mapping[str, Tensor], settings: Settings, u: Tensor, offsets: Tensor) -> Tensor:
    K = s4.kernel(p)
    y = s4.both_directions(p, settings, K, u, offsets)
    for order, c in enumerate(coefficients(p, settings), start=2):
        if settings["liquid_s4.form"] == "kb":
            y = y + c.to(u.dtype) * s4.convolve(K, neighbours(u, offsets, order), offsets)
        elif settings["liquid_s4.mode"] == "reference":
            y = y + c.to(u.dtype) * combinations(u, offsets, order)
        else:
            y = y + c.to(u.dtype) * neighbours(u, offsets, order)
    return y

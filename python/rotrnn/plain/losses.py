"""What training minimises, of outputs y [rows, outputs]. A loss of rows is [rows]:

    cross_entropy   -log softmax(y)_c                      one class c per row
    binary          sum_k c_k BCE(y_k, t_k) / sum_k c_k    several labels at once; c: weights of the classes
    mean_square     mean_k (y_k - t_k)^2
    mean_absolute   mean_k |y_k - t_k|
    huber           mean_k of e^2/2 where |e| <= delta, else delta (|e| - delta/2)
    quantile        mean of max(q e, (q - 1) e), e = t - y; outputs are [targets, quantiles]"""

from typing import Optional, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F


def rows(name: str, y: Tensor, targets: Tensor, class_weights: Optional[Tensor] = None, delta: float = 1.0,
         quantiles: Sequence[float] = ()) -> Tensor:
    if name == "cross_entropy":
        return -torch.log_softmax(y, dim=1).gather(1, targets[:, None])[:, 0]
    if name == "binary":
        c = torch.ones_like(y[0]) if class_weights is None else class_weights
        return (c * F.binary_cross_entropy_with_logits(y, targets, reduction="none")).sum(1) / c.sum()
    if name == "mean_square":
        return ((y - targets)**2).mean(1)
    if name == "mean_absolute":
        return (y - targets).abs().mean(1)
    if name == "huber":
        e = (y - targets).abs()
        return torch.where(e <= delta, e**2 / 2, delta * (e - delta / 2)).mean(1)
    if name == "quantile":
        q = torch.tensor(quantiles, dtype=y.dtype, device=y.device)
        e = targets[:, :, None] - y.unflatten(1, (-1, len(q)))
        return torch.maximum(q * e, (q - 1) * e).mean((1, 2))
    raise ValueError(f"no loss {name!r}")


def loss(name: str, y: Tensor, targets: Tensor, weights: Optional[Tensor] = None,
         class_weights: Optional[Tensor] = None, delta: float = 1.0, quantiles: Sequence[float] = ()) -> Tensor:
    """The mean of the rows by the weights of their examples [rows] times, for classes, of their classes; 0 when all
    weights are."""
    each = rows(name, y, targets, class_weights, delta, quantiles)
    w = torch.ones_like(each) if weights is None else weights
    if name == "cross_entropy" and class_weights is not None:
        w = w * class_weights[targets]
    whole = w.sum()
    return (w * each).sum() / torch.where(whole > 0, whole, torch.ones_like(whole))

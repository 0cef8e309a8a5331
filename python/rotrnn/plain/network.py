"""The whole network: front end, encoder, blocks, pooling and head, on packed batches.

    block:  x + activation(layer(norm(x))), or postnorm: norm(x + activation(layer(x)))
    half_glu1   h = drop(gelu(x)),  drop(h * sigmoid(W2 h))              full_glu    drop(W1 h * sigmoid(W2 h))
    half_glu2   drop(x * sigmoid(W2 drop(gelu(x))))                      gelu        drop(gelu(x))
    exact_glu   h = drop(gelu(x)),  W1 h * sigmoid(W2 h)                 with the exact GELU; the others have tanh's

W1 (value) and W2 (gate) have biases. Parameters and buffers p have their full names: (frontend.*,) encoder.weight (, encoder.bias),
blocks.K.norm.*, blocks.K.layer.*, blocks.K.value.*, blocks.K.gate.*, (hidden.*,) head.*."""

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from . import frontend, layers
from .packed import lengths_of, sequence_of
from .settings import Settings, complete

EPSILON = 1e-5  # added to variances

Parameters = Mapping[str, Tensor]
# Of one block: what is multiplied in front of the gate and at the end, [sequences, D]; None: nothing is dropped.
Masks = Tuple[Optional[Tensor], Optional[Tensor]]
# Of one block: forward, reverse.
States = Tuple[Optional[Tensor], Optional[Tensor]]


class Output(NamedTuple):
    y: Tensor  # [examples, outputs], or [n, outputs] without pooling
    final: List[States]
    running: Dict[str, Tensor]  # the running statistics after the pass, by their names


def part(p: Parameters, prefix: str) -> Dict[str, Tensor]:
    """The tensors below a name, by their names there."""
    return {name[len(prefix):]: tensor for name, tensor in p.items() if name.startswith(prefix)}


def linear(p: Parameters, name: str, x: Tensor) -> Tensor:
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def batch_norm(p: Parameters, x: Tensor, training: bool, momentum: float) -> Tuple[Tensor, Dict[str, Tensor]]:
    """Over all tokens; variances are biased, also in the running statistics that come back."""
    mean, var = p["running_mean"], p["running_var"]
    if training:
        mean, var = x.mean(0), x.var(0, unbiased=False)
    y = (x - mean) / torch.sqrt(var + EPSILON) * p["weight"] + p["bias"]
    keep = momentum if training else 1.0
    return y, {"running_mean": keep * p["running_mean"] + (1 - keep) * mean.detach(),
               "running_var": keep * p["running_var"] + (1 - keep) * var.detach()}


def norm(p: Parameters, settings: Settings, x: Tensor, training: bool) -> Tuple[Tensor, Dict[str, Tensor]]:
    if settings["norm"] == "batch":
        return batch_norm(p, x, training, settings["norm_momentum"])
    mean, var = x.mean(1, keepdim=True), x.var(1, unbiased=False, keepdim=True)
    return (x - mean) / torch.sqrt(var + EPSILON) * p["weight"] + p["bias"], {}


def activation(p: Parameters, name: str, x: Tensor, masks: Masks, sequence: Tensor) -> Tensor:
    def drop(values: Tensor, mask: Optional[Tensor]) -> Tensor:
        return values if mask is None else values * mask[sequence]

    before_gate, at_end = masks
    if name == "gelu":
        return drop(gelu(x), at_end)
    if name == "exact_glu":
        h = drop(F.gelu(x), before_gate)
        return linear(p, "value", h) * torch.sigmoid(linear(p, "gate", h))
    h = drop(gelu(x), before_gate)
    gated = {"half_glu1": lambda: h, "full_glu": lambda: linear(p, "value", h), "half_glu2": lambda: x}[name]()
    return drop(gated * torch.sigmoid(linear(p, "gate", h)), at_end)


def pool(kind: str, x: Tensor, offsets: Tensor) -> Tensor:
    if kind == "none":
        return x
    if kind == "last":
        return x[offsets[1:] - 1]
    lengths = lengths_of(offsets)
    return x.new_zeros(len(lengths), x.shape[1]).index_add(0, sequence_of(offsets), x) / lengths[:, None]


def head(p: Parameters, towers: int, pooled: Tensor) -> Tensor:
    if towers == 2:  # the two sequences of an example are neighbours
        a, b = pooled[0::2], pooled[1::2]
        pooled = gelu(linear(p, "hidden", torch.cat([a, b, a - b, a * b], dim=1)))
    return linear(p, "head", pooled)


def run(p: Parameters, settings: Settings, batch: Tensor, offsets: Tensor, training: bool = True,
        masks: Optional[Sequence[Masks]] = None, initial: Optional[Sequence[States]] = None) -> Output:
    """batch: tokens [n] (int64) or values [n, channels], which a front end takes as samples. training: batch norm by the statistics of the batch. masks
    and initial: of every block."""
    settings = complete(settings)
    batch, offsets = frontend.run(part(p, "frontend."), settings, batch, offsets)
    x = p["encoder.weight"][batch] if batch.dtype == torch.int64 else linear(p, "encoder", batch)
    sequence, final, running = sequence_of(offsets), [], {}
    for k in range(settings["depth"]):
        prefix = f"blocks.{k}."
        block, residual = part(p, prefix), x

        def normalised(x: Tensor) -> Tensor:
            y, statistics = norm(part(block, "norm."), settings, x, training)
            running.update({f"{prefix}norm.{name}": tensor for name, tensor in statistics.items()})
            return y

        if settings["prenorm"]:
            x = normalised(x)
        out = layers.run(part(block, "layer."), settings, x, offsets, *(initial[k] if initial else (None, None)))
        final.append((out.final, out.final_reverse))
        x = residual + activation(block, settings["activation"], out.y, masks[k] if masks else (None, None), sequence)
        if not settings["prenorm"]:
            x = normalised(x)
    return Output(head(p, settings["towers"], pool(settings["pooling"], x, offsets)), final, running)


def prepare(p: Parameters, settings: Settings, longest: int) -> Dict[str, Tensor]:
    """The parameters of the same network for sequences of up to so many tokens."""
    settings, grown = complete(settings), dict(p)
    for k in range(settings["depth"]):
        prefix = f"blocks.{k}.layer."
        for name, tensor in layers.prepare(part(p, prefix), settings, longest).items():
            grown[prefix + name] = tensor
    return grown


def group(name: str, settings: Settings) -> str:
    """As `layers.group`, of a parameter of a network: outside the layers biases and norms do not decay."""
    if ".layer." in name:
        return layers.group(name.split(".layer.")[1], settings)
    if name.startswith("frontend."):
        return "recurrent"
    return "no_decay" if name.endswith(".bias") or ".norm." in name else "decay"

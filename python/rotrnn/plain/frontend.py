"""Front ends: packed samples [n, channels] to packed tokens.

    rotations   z_t = gamma e^{i theta} z_{t-1} + sqrt(1 - gamma^2) x_t, gamma = exp(-exp(gamma_log)), of every channel and
                band; token_j = (log(mean over its hop of |z_t|^2 + 1e-7) - mean) / deviation, [channels, bands]
    patch       `size` consecutive samples of all channels, `stride` apart; of a shorter sequence one, with zeros behind it

A last partial hop or patch counts only when it is the only one. Tensors: theta, gamma_log [bands], mean, deviation
[channels * bands]."""

from typing import List, Mapping, Tuple

import torch
from torch import Tensor

from .packed import lengths_of, to_grid
from .settings import Settings

FLOOR = 1e-7


def tokens_of(settings: Settings, length: int) -> int:
    """Tokens of a sequence of so many samples."""
    if settings["frontend.kind"] == "rotations":
        return max(1, length // settings["frontend.hop"])
    if settings["frontend.kind"] == "patch":
        return max(0, length - settings["frontend.size"]) // settings["frontend.stride"] + 1
    return length


def rotations(p: Mapping[str, Tensor], settings: Settings, x: Tensor, offsets: Tensor) -> List[Tensor]:
    grid, _ = to_grid(x, offsets)  # [sequences, time, channels]
    gamma = torch.exp(-torch.exp(p["gamma_log"]))
    turn_re, turn_im = gamma * torch.cos(p["theta"]), gamma * torch.sin(p["theta"])
    drive = torch.sqrt(-torch.expm1(-2 * torch.exp(p["gamma_log"]))) * grid[..., None]
    re = im = drive.new_zeros(drive.shape[0], *drive.shape[2:])
    powers = []
    for t in range(drive.shape[1]):
        re, im = turn_re * re - turn_im * im + drive[:, t], turn_im * re + turn_re * im
        powers.append(re * re + im * im)
    power, hop, tokens = torch.stack(powers, 1).flatten(2), settings["frontend.hop"], []
    for i, length in enumerate(lengths_of(offsets).tolist()):
        for j in range(tokens_of(settings, length)):
            tokens.append(power[i, j * hop:min((j + 1) * hop, length)].mean(0))
    return [(torch.log(token + FLOOR) - p["mean"]) / p["deviation"] for token in tokens]


def patches(settings: Settings, x: Tensor, offsets: Tensor) -> List[Tensor]:
    size, stride, tokens = settings["frontend.size"], settings["frontend.stride"], []
    for begin, length in zip(offsets[:-1].tolist(), lengths_of(offsets).tolist()):
        for j in range(tokens_of(settings, length)):
            samples = x[begin + j * stride:begin + min(j * stride + size, length)]
            tokens.append(torch.cat([samples.flatten(), x.new_zeros((size - len(samples)) * x.shape[1])]))
    return tokens


def run(p: Mapping[str, Tensor], settings: Settings, x: Tensor, offsets: Tensor) -> Tuple[Tensor, Tensor]:
    """The tokens and their offsets; x as it is where there is no front end."""
    kind = settings["frontend.kind"]
    if kind == "none":
        return x, offsets
    tokens = rotations(p, settings, x, offsets) if kind == "rotations" else patches(settings, x, offsets)
    counts = [tokens_of(settings, length) for length in lengths_of(offsets).tolist()]
    return torch.stack(tokens), torch.tensor([0, *counts], device=offsets.device).cumsum(0)

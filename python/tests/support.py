"""What the tests share."""

import json
from pathlib import Path

import torch

import rotrnn

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
FIXTURES = GOLDEN.parent / "fixtures"


def golden(layer):
    with open(GOLDEN / f"{layer}.json", encoding="ascii") as file:
        return json.load(file)


def read_safetensors(path):
    """Metadata and tensors by name."""
    content = bytearray(path.read_bytes())
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    metadata = header.pop("__metadata__")
    types = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64}
    tensors = {}
    for name, entry in header.items():
        begin, stop = entry["data_offsets"]
        values = torch.frombuffer(content[end + begin:end + stop], dtype=types[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return metadata, tensors


def tensor(value):
    return torch.tensor(value["values"], dtype=torch.float64).reshape(value["shape"])


def error(actual, expected, least=0.0):
    """The largest difference, relative to the largest number expected (or `least`)."""
    if expected.numel() == 0:
        assert actual.shape == expected.shape
        return 0.0
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    scale = max(float(expected.detach().abs().max()), least)
    worst = float((actual.detach().double() - expected.detach().double()).abs().max())
    assert worst == worst, "not a number"
    return worst / scale if scale > 0 else worst


# Every layer with settings that take other paths: sizes are multiples of nothing.
LAYERS = {
    "rotrnn": lambda **k: rotrnn.RotRNN(7, 12, 3, **k),
    "rotrnn_odd": lambda **k: rotrnn.RotRNN(5, 15, 3, c=2.5, **k),
    "rotrnn_stationary": lambda **k: rotrnn.RotRNN(6, 8, 2, stationary_start=True, init="authors", **k),
    "rotrnn_alpha": lambda **k: rotrnn.RotRNN(6, 10, 2, normalisation="alpha", learn_rotation=False, **k),
    "lru": lambda **k: rotrnn.LRU(6, 14, **k),
    "lru_fixed": lambda **k: rotrnn.LRU(5, 8, gamma="fixed", r_min=0.9, r_max=0.999, **k),
    "s5": lambda **k: rotrnn.S5(6, 8, blocks=2, **k),
    "s5_bilinear": lambda **k: rotrnn.S5(5, 12, blocks=1, discretisation="bilinear", clip=True, **k),
}


def make(name, bidirectional=False, seed=0, **options):
    torch.manual_seed(seed)
    return LAYERS[name](bidirectional=bidirectional, **options)


def random_state(layer, batch, dtype=torch.float32, requires_grad=False):
    def one():
        return torch.randn(batch, 2 * layer.states, dtype=dtype, requires_grad=requires_grad)
    return (one(), one()) if layer.bidirectional else one()


def flat(state):
    """The tensors of a state."""
    return list(state) if isinstance(state, tuple) else [state]

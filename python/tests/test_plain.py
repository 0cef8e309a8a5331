"""rotrnn.plain in float64 against what the ATen path of version 0.1 computed (tests/fixtures)."""

import json

import pytest
import torch

from rotrnn.plain import dropout, layers, losses, network
from rotrnn.plain import rotrnn as rotations
from rotrnn.plain.network import part
from support import FIXTURES, error, read_safetensors

# Only rounding is left; gradients lose some digits where terms cancel, so they are compared with at least 1e-4.
OUTPUT, GRADIENT = 1e-10, 1e-8
LAYERS = ["rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"]
OF_THE_DATA = {"input", "inputs", "outputs", "target", "per_token", "training", "seed", "step", "sequences"}

FILES = {name: read_safetensors(FIXTURES / f"{name}.safetensors")
         for name in [*(f"layers_{layer}" for layer in LAYERS), "networks"]}
SETTINGS = {name: json.loads(metadata["cases"]) for name, (metadata, _) in FILES.items()}
CASES = [(name, case) for name in FILES if name != "networks" for case in SETTINGS[name]]


def weights(tensors, settings, longest):
    """Parameters, as leaves in double, and buffers, of a layer or a network after it has grown: to what the engine
    took it for, rounded to float32, once it was seen that it grows to that."""
    p = {}
    for kind in ("param", "buffer"):
        for name, value in part(tensors, f"{kind}/").items():
            p[name] = value.double() if value.is_floating_point() else value
    grown = {**part(tensors, "grown_param/"), **part(tensors, "grown_buffer/")}
    if grown:
        found = (network if "encoder.weight" in p else layers).prepare(p, settings, longest)
        for name, value in grown.items():
            assert error(found[name], value) <= 1e-7, name
            p[name] = value.double() if value.is_floating_point() else value
    for name in part(tensors, "param/"):
        p[name].requires_grad_()
    return p


def leaf(tensors, name):
    return tensors[name].double().clone().requires_grad_() if name in tensors else None


def is_recorded(tensors, name, value, bound, least=0.0):
    """Whether a result is the recorded one, and missing where nothing was recorded."""
    assert (value is None) == (name not in tensors), name
    if value is not None:
        assert error(value, tensors[name].reshape(value.shape), least) <= bound, name


def are_recorded(tensors, objective, leaves):
    """The gradients of a loss; leaves by the recorded names."""
    found = torch.autograd.grad(objective, list(leaves.values()), allow_unused=True)
    for (name, value), gradient in zip(leaves.items(), found):
        is_recorded(tensors, name, torch.zeros_like(value) if gradient is None else gradient, GRADIENT, least=1e-4)
    assert set(leaves) == {name for name in tensors if name.startswith("grad")}


def test_all_cases_are_here():
    assert len(CASES) == 144 and len(SETTINGS["networks"]) == 47


@pytest.mark.parametrize("file, case", CASES)
def test_layers_compute_what_was_recorded(file, case):
    settings, tensors = SETTINGS[file][case], part(FILES[file][1], case + "/")
    offsets = tensors["offsets"]
    p = weights(tensors, settings, int((offsets[1:] - offsets[:-1]).max()))
    inputs = {"u": leaf(tensors, "u"), "initial": leaf(tensors, "initial"),
              "initial_reverse": leaf(tensors, "initial_reverse")}
    out = layers.run(p, settings, inputs["u"], offsets, inputs["initial"], inputs["initial_reverse"])
    objective = 0
    for name in ("y", "final", "final_reverse"):
        value = getattr(out, name)
        is_recorded(tensors, name, value, OUTPUT)
        if value is not None:
            objective = objective + (value * tensors["d" + name]).sum()
    leaves = {"grad/" + name: p[name] for name in part(tensors, "param/")}
    leaves.update({"grad_" + name: value for name, value in inputs.items() if value is not None})
    are_recorded(tensors, objective, leaves)


@pytest.mark.parametrize("case", SETTINGS["networks"])
def test_networks_compute_what_was_recorded(case):
    data, tensors = SETTINGS["networks"][case], part(FILES["networks"][1], case + "/")
    settings = {key: value for key, value in data.items() if key not in OF_THE_DATA}
    offsets, depth = tensors["offsets"], settings["depth"]
    p = weights(tensors, settings, int((offsets[1:] - offsets[:-1]).max()))
    masks = None
    if data["training"] and settings.get("dropout"):
        masks = [tuple(dropout.mask(settings["dropout"], data["seed"], data["step"], block, site, data["sequences"],
                                    settings["width"]) for site in range(2)) for block in range(depth)]
    values = leaf(tensors, "values")
    initial = [(leaf(tensors, f"initial/{k}"), leaf(tensors, f"initial_reverse/{k}")) for k in range(depth)]
    out = network.run(p, settings, tensors["tokens"] if values is None else values, offsets, data["training"], masks,
                      initial)
    is_recorded(tensors, "y", out.y, OUTPUT)
    found = losses.loss("cross_entropy" if data["target"] == "classes" else "mean_square", out.y, tensors["targets"],
                        class_weights=tensors.get("class_weights"))
    is_recorded(tensors, "loss", found, OUTPUT)
    for name in part(tensors, "running/"):
        is_recorded(tensors, "running/" + name, out.running[name], OUTPUT)
    assert set(out.running) == set(part(tensors, "running/"))
    leaves = {"grad/" + name: p[name] for name in part(tensors, "param/")}
    if values is not None:
        leaves["grad_values"] = values
    objective = found
    for k in range(depth):
        for i, direction in enumerate(["", "_reverse"]):
            if initial[k][i] is not None:
                leaves[f"grad_initial{direction}/{k}"] = initial[k][i]
            if f"dfinal{direction}/{k}" in tensors:
                is_recorded(tensors, f"final{direction}/{k}", out.final[k][i], OUTPUT)
                objective = objective + (out.final[k][i] * tensors[f"dfinal{direction}/{k}"]).sum()
    if "objective" in tensors:
        is_recorded(tensors, "objective", objective, OUTPUT)
    are_recorded(tensors, objective, leaves)


@pytest.mark.parametrize("angle", [0.0, 0.1, 0.5, 1.0, 3.0, 40.0])
def test_rotations_of_two_dimensions(angle):
    """expm of [[0, a], [-a, 0]] is [[cos a, sin a], [-sin a, cos a]]."""
    M = torch.tensor([[[0.3, angle], [0.0, -2.0]]], dtype=torch.float64, requires_grad=True)
    P = rotations.rotation(M)
    a = torch.tensor(angle, dtype=torch.float64)
    exact = torch.stack([torch.stack([a.cos(), a.sin()]), torch.stack([-a.sin(), a.cos()])])
    assert error(P[0], exact) <= 1e-13
    slope, = torch.autograd.grad(P[0, 0, 1], M)
    exact = a.cos() * torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    assert float((slope[0] - exact).abs().max()) <= 1e-13


def test_masks_come_from_the_published_generator():
    """Known answers that Random123, the authors' code of Philox, ships."""
    assert dropout.philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    ones = 2**32 - 1
    assert dropout.philox((ones,) * 4, (ones, ones)) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)

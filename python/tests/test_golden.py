"""Parity with tests/golden, which the C++ layers are tested against too: the equations in NumPy alone."""

import copy

import pytest
import torch

import rotrnn
from rotrnn.hippo import hippo_normal
from support import error, golden, tensor

# In double only rounding is left. In float32 the parameters themselves are rounded (6e-8), and a state that
# remembers 200 steps adds that up; gradients lose some more where terms cancel, so they are compared with at
# least 1. test_layers.py compares with double after rounding.
DOUBLE, FLOAT_OUTPUT, FLOAT_GRADIENT = 1e-10, 2e-5, 5e-5

FILES = {name: golden(name) for name in ("rotrnn", "lru", "s5")}
CASES = [(name, case) for name, file in FILES.items() for case in file["cases"]]


def make(name, options):
    o, both = options, {"bidirectional": options["bidirectional"]}
    if name == "rotrnn":
        return rotrnn.RotRNN(o["D"], o["N"], o["H"], normalisation=o["normalisation"], c=o["c"],
                             stationary_start=o["stationary_start"], **both)
    if name == "lru":
        return rotrnn.LRU(o["D"], 2 * o["S"], gamma=o["gamma"], **both)
    return rotrnn.S5(o["D"], o["P"], blocks=o["J"], discretisation=o["discretisation"], clip=o["clip"],
                     step_rescale=o["step_rescale"], **both)


def run(layer, case, dtype):
    """Outputs by golden's names, and the leaves whose gradients it has."""
    leaves = {key: tensor(case["input"][key]).to(dtype).requires_grad_()
              for key in ("u", "x_0", "x_0_reverse") if key in case["input"]}
    state = leaves.get("x_0")
    paper = isinstance(layer, rotrnn.RotRNN)  # its golden states are x = P z
    if state is not None and paper:
        state = layer.folded(state)
    if state is not None and layer.bidirectional:
        state = (state, leaves.get("x_0_reverse"))
    y, final = layer.forward_packed(leaves["u"], case["offsets"], state=state, return_state=True)
    forward, reverse = final if layer.bidirectional else (final, None)
    outputs = {"y": y, "x_T": layer.hidden(forward) if paper else forward}
    if reverse is not None:
        outputs["x_T_reverse"] = reverse
    return outputs, leaves


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name, key", CASES)
def test_outputs_and_gradients(name, key, dtype):
    case = FILES[name]["cases"][key]
    layer = make(name, case["options"]).to(dtype)
    parameters = {k: tensor(v).to(dtype) for k, v in case["parameters"].items()}
    assert {k: p.shape for k, p in layer.named_parameters()} == {k: p.shape for k, p in parameters.items()}
    layer.load_state_dict(parameters)
    outputs, leaves = run(layer, case, dtype)
    output_bound = DOUBLE if dtype == torch.float64 else FLOAT_OUTPUT
    gradient_bound = DOUBLE if dtype == torch.float64 else FLOAT_GRADIENT
    loss = 0
    for output, cotangent in (("y", "G"), ("x_T", "G_T"), ("x_T_reverse", "G_T_reverse")):
        if output not in case["outputs"]:
            continue
        assert error(outputs[output], tensor(case["outputs"][output])) <= output_bound, output
        if cotangent in case["input"]:
            loss = loss + (outputs[output] * tensor(case["input"][cotangent]).to(dtype)).sum()
    if not case.get("gradients"):
        return
    loss.backward()
    leaves.update(layer.named_parameters())
    assert set(leaves) == set(case["gradients"])
    for leaf, value in leaves.items():
        assert error(value.grad, tensor(case["gradients"][leaf]), least=1.0) <= gradient_bound, leaf


@pytest.mark.parametrize("key", FILES["rotrnn"]["lru"])
def test_rotrnn_is_an_lru(key):
    """The LRU that the paper's special case makes of a RotRNN gives the same outputs."""
    source, lru = FILES["rotrnn"]["cases"][key], FILES["rotrnn"]["lru"][key]
    o = lru["options"]
    layer = rotrnn.LRU(o["D"], 2 * o["S"], bidirectional=o["bidirectional"]).double()
    layer.load_state_dict({k: tensor(v) for k, v in lru["parameters"].items()})
    y = layer.forward_packed(tensor(source["input"]["u"]), source["offsets"])
    assert error(y, tensor(source["outputs"]["y"])) <= DOUBLE


@pytest.mark.parametrize("size", FILES["s5"]["hippo"])
def test_hippo(size):
    case = FILES["s5"]["hippo"][size]
    values, vectors = hippo_normal(int(size))
    for name, actual in (("Lambda", values), ("V", vectors)):
        assert error(actual.real, tensor(case[name + "_re"])) <= DOUBLE
        assert float((actual.imag - tensor(case[name + "_im"])).abs().max()) <= DOUBLE


@pytest.mark.parametrize("method", ["zoh", "bilinear"])
def test_discretisation_near_zero_and_far(method):
    """Exact arithmetic, every entry by itself: they lie many orders of magnitude apart."""
    table = FILES["s5"]["discretisation"]
    dt = tensor(table["Delta"])
    layer = rotrnn.S5(1, 2 * len(dt), blocks=1, discretisation=method).double()
    with torch.no_grad():
        layer.Lambda_re.copy_(tensor(table["Lambda_re"]))
        layer.Lambda_im.copy_(tensor(table["Lambda_im"]))
        layer.log_step.copy_(torch.log(dt))
        layer.B_re.fill_(1)
        layer.B_im.fill_(0)
        s = layer.system()
    W = s.W.reshape(2, -1)
    for name, actual in (("Lambda_bar", torch.complex(s.lambda_re, s.lambda_im)), ("factor", torch.complex(W[0], W[1]))):
        expected = torch.complex(tensor(table[f"{method}_{name}_re"]), tensor(table[f"{method}_{name}_im"]))
        assert float((actual / expected - 1).abs().max()) <= 1e-12, name


@pytest.mark.parametrize("key", FILES["lru"]["init"])
def test_lru_starts_on_the_ring(key):
    case = FILES["lru"]["init"][key]
    u1, u2 = tensor(case["u1"]), tensor(case["u2"])
    layer = rotrnn.LRU(1, 2 * len(u1), gamma="fixed").double()
    with torch.no_grad():
        layer.nu_log.copy_(tensor(case["nu_log"]))
        layer.theta_log.copy_(tensor(case["theta_log"]))
        layer.B_re.fill_(1)
        layer.B_im.fill_(1)
        s = layer.system()
    low, high = case["r_min"], case["r_max"]
    radius = torch.sqrt(low**2 + (high**2 - low**2) * u1)
    expected = torch.polar(radius, case["max_phase"] * u2)
    assert float((torch.complex(s.lambda_re, s.lambda_im) - expected).abs().max()) <= DOUBLE
    gamma = torch.exp(tensor(case["gamma_log"])).repeat(2)
    assert float((s.W[:, 0] / gamma - 1).abs().max()) <= DOUBLE


def test_float32_map_is_made_in_double():
    """A rotation in float32 would lose 1e-6 of its length, and 1 - gamma^2 near 1 all its digits."""
    layer = rotrnn.RotRNN(8, 16, 2, gamma_min=0.999999, gamma_max=0.9999999)
    exact = copy.deepcopy(layer).double()
    for a, b in zip(layer.system(), exact.system()):
        assert a is None or (a.dtype == torch.float64 and error(a, b) <= 1e-12)
    P = layer.rotation()
    assert float((P @ P.transpose(1, 2) - torch.eye(8, dtype=torch.float64)).abs().max()) <= 1e-12

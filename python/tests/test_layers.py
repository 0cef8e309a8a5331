"""One layer, many ways to run it: they must agree. Fused float32 against the plain form in double."""

import copy
import io
import pickle
import threading

import pytest
import torch
from torch import nn

import rotrnn
from support import LAYERS, error, flat, make, random_state

# Fused float32 against double: sums of a few hundred terms, 6e-8 each; gradients where terms cancel.
OUTPUT, GRADIENT = 5e-6, 1e-4
LENGTHS = [[5, 1, 23], [130], [0, 4, 0], [97, 97]]
every_layer = pytest.mark.parametrize("name", LAYERS)
both_ways = pytest.mark.parametrize("bidirectional", [False, True])
both_kernels = pytest.mark.parametrize("kernels", ["fused", "reference"])


def offsets_of(lengths):
    return [0] + torch.tensor(lengths).cumsum(0).tolist()


def gradients(layer, values, offsets, state, seed=1):
    """Outputs, final states, and gradients of all leaves for random cotangents."""
    values = values.clone().requires_grad_()
    states = [s.clone().requires_grad_() for s in flat(state)] if state is not None else []
    given = tuple(states) if layer.bidirectional and states else (states[0] if states else None)
    y, final = layer.forward_packed(values, offsets, state=given, return_state=True)
    torch.manual_seed(seed)
    loss = sum((out * torch.randn(out.shape, dtype=torch.float64).to(out.dtype)).sum() for out in [y, *flat(final)])
    found = torch.autograd.grad(loss, [values, *states, *layer.parameters()])
    names = ["values", *(f"state {i}" for i in range(len(states))), *(n for n, _ in layer.named_parameters())]
    return [y, *flat(final)], dict(zip(names, found))


@every_layer
@both_ways
@pytest.mark.parametrize("with_state", [False, True])
def test_fused_is_the_plain_form_in_double(name, bidirectional, with_state):
    for lengths in LENGTHS:
        layer = make(name, bidirectional)
        exact = copy.deepcopy(layer).double()
        values = torch.randn(sum(lengths), layer.width)
        state = random_state(layer, len(lengths)) if with_state else None
        wide = tuple(s.double() for s in flat(state)) if with_state else None
        if with_state and not bidirectional:
            wide = wide[0]
        outputs, found = gradients(layer, values, offsets_of(lengths), state)
        expected_outputs, expected = gradients(exact, values.double(), offsets_of(lengths), wide)
        for a, b in zip(outputs, expected_outputs):
            assert a.dtype == torch.float32 and error(a, b, least=1e-3) <= OUTPUT
        for leaf in expected:
            assert error(found[leaf], expected[leaf], least=0.1) <= GRADIENT, (leaf, lengths)


@both_ways
@pytest.mark.parametrize("options", [dict(), dict(normalisation="alpha", c=2.0), dict(normalisation="none"),
                                     dict(stationary_start=True), dict(init="authors"), dict(learn_rotation=False)])
@pytest.mark.parametrize("sizes", [(7, 12, 3), (5, 15, 5), (16, 64, 4)])
def test_map_is_the_programs(sizes, options, bidirectional):
    """RotRNN's map in PyTorch and the program's own kernel were written apart; both are in double inside."""
    torch.manual_seed(4)
    layer = rotrnn.RotRNN(*sizes, bidirectional=bidirectional, **options)
    ours, programs = layer.system(), layer.fused_system()
    weights = [None if t is None else torch.randn_like(t) for t in programs]
    for a, b in zip(programs, ours):
        assert (a is None) == (b is None)
        assert a is None or (a.dtype == torch.float32 and error(a, b) <= 1e-7)  # rounded once
    found = []
    for system in (programs, ours):
        loss = sum((t * w).sum() for t, w in zip(system, weights) if t is not None)
        found.append(torch.autograd.grad(loss, list(layer.parameters())))
    for (name, _), a, b in zip(layer.named_parameters(), *found):
        assert error(a, b) <= 1e-6, name
    only, = torch.autograd.grad(layer.fused_system().lambda_re.sum(), layer.gamma_log)  # W and V are not used
    assert error(only, torch.autograd.grad(layer.system().lambda_re.sum(), layer.gamma_log)[0]) <= 1e-6


@every_layer
@both_ways
def test_gradcheck(name, bidirectional):
    """Finite differences in double, by input, states and parameters."""
    layer = make(name, bidirectional).double()
    for with_state in (False, True):
        values = torch.randn(6, layer.width, dtype=torch.float64, requires_grad=True)
        states = flat(random_state(layer, 3, torch.float64, requires_grad=True)) if with_state else []
        names = [n for n, _ in layer.named_parameters()]
        # By a few numbers of every parameter, all at once: full Jacobians of B and C add time, not certainty.
        torch.manual_seed(3)
        tangents = [torch.randn_like(p) for p in layer.parameters()]
        base = [p.detach().clone() for p in layer.parameters()]
        amounts = torch.zeros(len(names), dtype=torch.float64, requires_grad=True)

        def run(values, amounts, *states):
            moved = copy.copy(layer)
            moved._parameters = {n: b + a * t for n, b, a, t in zip(names, base, amounts, tangents)}
            given = (states if bidirectional else states[0]) if states else None
            y, final = moved.forward_packed(values, [0, 4, 4, 6], state=given, return_state=True)
            return (y, *flat(final))

        # copy.copy of a module shares everything but what is assigned.
        assert torch.autograd.gradcheck(run, (values, amounts, *states))


def test_second_derivatives():
    layer = make("rotrnn").double()
    u = torch.randn(1, 4, layer.width, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda u: (layer(u)**2).sum(), (u,))
    fused = make("rotrnn")
    x = torch.randn(1, 4, fused.width, requires_grad=True)
    with pytest.raises(RuntimeError, match='no second derivative.*kernels="reference"'):
        torch.autograd.grad(fused(x).sum(), x, create_graph=True)
    fused.kernels = "reference"
    first, = torch.autograd.grad((fused(x)**2).sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.abs().sum() > 0


@every_layer
@both_ways
@both_kernels
def test_padded_is_packed(name, bidirectional, kernels):
    layer = make(name, bidirectional, kernels=kernels)
    lengths = [7, 0, 12, 3]
    u = torch.randn(4, 12, layer.width)
    for i, length in enumerate(lengths):
        u[i, length:] = float("nan")  # never read
    state = random_state(layer, 4)
    values = torch.cat([u[i, :length] for i, length in enumerate(lengths)])
    leaf = u.clone().requires_grad_()
    y, final = layer(leaf, lengths=lengths, state=state, return_state=True)
    packed, packed_final = layer.forward_packed(values, offsets_of(lengths), state=state, return_state=True)
    assert y.shape == u.shape
    for i, length in enumerate(lengths):
        begin = sum(lengths[:i])
        assert torch.equal(y[i, :length], packed[begin:begin + length])
        assert torch.equal(y[i, length:], torch.zeros(12 - length, layer.width))
    for a, b in zip(flat(final), flat(packed_final)):
        assert torch.equal(a, b)
    y.sum().backward()
    for i, length in enumerate(lengths):
        assert torch.equal(leaf.grad[i, length:], torch.zeros(12 - length, layer.width))
    tensors = layer(u, lengths=torch.tensor(lengths), state=state)
    assert torch.equal(tensors, y)
    one_by_one = torch.cat([layer(u[i:i + 1, :n], state=_row(state, i))[0] for i, n in enumerate(lengths)])
    assert error(one_by_one, packed) <= OUTPUT


def _row(state, i):
    rows = [s[i:i + 1] for s in flat(state)]
    return tuple(rows) if isinstance(state, tuple) else rows[0]


@every_layer
@both_kernels
def test_steps_and_chunks_are_the_whole(name, kernels):
    layer = make(name, kernels=kernels)
    u = torch.randn(3, 150, layer.width)
    whole, final = layer(u, return_state=True)
    system = layer.system()
    for given in (None, system):
        state, steps = None, []
        for t in range(u.shape[1]):
            y, state = layer.step(u[:, t], state, given)
            steps.append(y)
        assert error(torch.stack(steps, 1), whole) <= OUTPUT
        assert error(state, final) <= OUTPUT
    for chunk in (1, 7, 64, 149):
        state, parts = None, []
        for part in u.split(chunk, dim=1):
            y, state = layer(part, state=state, return_state=True)
            parts.append(y)
        assert error(torch.cat(parts, 1), whole) <= OUTPUT, chunk
        assert error(state, final) <= OUTPUT, chunk


@both_kernels
def test_gradients_flow_through_the_state(kernels):
    """Two halves joined by the state have the gradients of the whole; so have steps."""
    layer = make("rotrnn_stationary", kernels=kernels).double() if kernels == "reference" else make("rotrnn_stationary")
    bound = 1e-10 if kernels == "reference" else GRADIENT
    u = torch.randn(2, 20, layer.width).to(next(layer.parameters()).dtype)
    weights = torch.randn_like(u)
    (layer(u) * weights).sum().backward()
    expected = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    first, state = layer(u[:, :11], return_state=True)
    (torch.cat([first, layer(u[:, 11:], state=state)], 1) * weights).sum().backward()
    for a, b in zip(layer.parameters(), expected):
        assert error(a.grad, b) <= bound
    layer.zero_grad()
    state, loss = None, 0
    for t in range(20):
        y, state = layer.step(u[:, t], state)
        loss = loss + (y * weights[:, t]).sum()
    loss.backward()
    for a, b in zip(layer.parameters(), expected):
        assert error(a.grad, b) <= bound


@both_ways
@both_kernels
def test_nothing_to_do(bidirectional, kernels):
    layer = make("rotrnn", bidirectional, kernels=kernels)
    for shape in ((0, 5), (3, 0), (0, 0)):
        u = torch.zeros(*shape, layer.width, requires_grad=True)
        state = random_state(layer, shape[0])
        y, final = layer(u, state=state, return_state=True)
        assert y.shape == u.shape
        for a, b in zip(flat(final), flat(state)):
            assert torch.equal(a, b)
        (y.sum() + sum(f.sum() for f in flat(final))).backward()
        assert all(p.grad is None or not p.grad.any() for p in layer.parameters())
    y, final = layer.forward_packed(torch.zeros(0, layer.width), [0], return_state=True)
    assert y.shape == (0, layer.width) and flat(final)[0].shape == (0, 2 * layer.states)


def test_unusual_tensors():
    layer = make("lru")
    u = torch.randn(layer.width, 40, 2)
    expected = layer(u.permute(2, 1, 0).contiguous())
    assert torch.equal(layer(u.permute(2, 1, 0)), expected)
    assert torch.equal(layer(u.permute(2, 1, 0), state=torch.zeros(28, 2)[:14].t()), expected)
    y = layer(u.permute(2, 1, 0))
    y.sum().backward()  # an expanded gradient
    summed = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    layer(u.permute(2, 1, 0)).backward(torch.ones_like(y))
    assert all(torch.equal(p.grad, g) for p, g in zip(layer.parameters(), summed))


def test_no_grad_eval_and_frozen():
    layer = make("s5", True)
    u = torch.randn(2, 9, layer.width)
    y = layer(u)
    with torch.no_grad():
        assert torch.equal(layer.eval()(u), y) and not layer(u).requires_grad
    for p in layer.parameters():
        p.requires_grad_(False)
    assert not layer(u).requires_grad
    leaf = u.clone().requires_grad_()
    layer(leaf).sum().backward()
    assert leaf.grad.abs().sum() > 0
    state = [s.requires_grad_() for s in flat(random_state(layer, 2))]
    layer(u, state=tuple(state), return_state=True)[1][1].sum().backward()  # y itself is not used
    assert state[1].grad.abs().sum() > 0 and not state[0].grad.any()


def test_copies():
    layer = make("rotrnn_odd", True)
    u = torch.randn(2, 9, layer.width)
    layer(u).sum().backward()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(u), layer(u))
        with torch.no_grad():
            other.C.add_(1)
        assert not torch.equal(other(u), layer(u))
    saved = io.BytesIO()
    torch.save(layer.state_dict(), saved)
    saved.seek(0)
    fresh = make("rotrnn_odd", True, seed=5)
    assert not torch.equal(fresh(u), layer(u))
    assert not any(fresh.load_state_dict(torch.load(saved)))
    assert torch.equal(fresh(u), layer(u))
    plain = rotrnn.RotRNN(4, 8, 2, learn_rotation=False)
    assert "M" in plain.state_dict() and "M" not in dict(plain.named_parameters())
    assert "bidirectional=True" in repr(layer)


def test_several_graphs_at_once():
    """Every forward call has its own memory until its backward call, and gives it back then."""
    layer = make("rotrnn")
    inputs = [torch.randn(2, n, layer.width) for n in (200, 150, 10)]
    alone = []
    for u in inputs:
        layer.zero_grad()
        (layer(u)**2).sum().backward()
        alone.append([p.grad.clone() for p in layer.parameters()])
    layer.zero_grad()
    losses = [(layer(u)**2).sum() for u in inputs]
    for loss, expected in zip(losses[::-1], alone[::-1]):
        layer.zero_grad()
        loss.backward()
        assert all(torch.equal(p.grad, g) for p, g in zip(layer.parameters(), expected))
    with pytest.raises(RuntimeError, match="second time"):
        losses[0].backward()
    loss = (layer(inputs[0])**2).sum()
    for _ in range(2):
        layer.zero_grad()
        loss.backward(retain_graph=True)
        assert all(torch.equal(p.grad, g) for p, g in zip(layer.parameters(), alone[0]))


def test_memory_is_reused():
    rotrnn.release_memory()
    layer = make("rotrnn")
    u = torch.randn(4, 500, layer.width)

    def train(steps):
        kept = None
        for _ in range(steps):
            loss = layer(u).square().mean()
            loss.backward()
            kept = loss  # a graph that is still referred to holds nothing
        return kept

    kept = train(3)
    assert kept.grad_fn is not None and len(rotrnn.fused._leases) == 0
    after_3 = rotrnn.release_memory()
    assert after_3 >= 4 * 500 * 2 * layer.states * 4  # the states of one step are among it
    train(30)
    assert 0 < rotrnn.release_memory() <= after_3
    assert rotrnn.release_memory() == 0


def test_checkpointing_and_saved_tensor_hooks():
    from torch.utils.checkpoint import checkpoint
    layer = make("lru")
    u = torch.randn(2, 50, layer.width, requires_grad=True)
    expected = torch.autograd.grad((layer(u)**2).sum(), [u, *layer.parameters()])
    for reentrant in (True, False):
        u.grad = None
        layer.zero_grad()
        (checkpoint(layer, u, use_reentrant=reentrant)**2).sum().backward()
        assert all(torch.equal(p.grad, g) for p, g in zip([u, *layer.parameters()], expected)), reentrant
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = layer(u)
    found = torch.autograd.grad((y**2).sum(), [u, *layer.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(found, expected))


def test_changed_in_place():
    layer = make("lru")
    u = torch.randn(2, 5, layer.width).requires_grad_()
    inner = u * 1
    y = layer(inner)
    with torch.no_grad():
        inner.zero_()
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


def test_any_number_of_threads():
    """The same bits as long as there are as many sequences as threads."""
    layer = make("rotrnn", True)
    u = torch.randn(4, 333, layer.width)
    results = []
    try:
        for threads in (1, 2, 3, 4):
            rotrnn.set_num_threads(threads)
            assert rotrnn.get_num_threads() == threads
            layer.zero_grad()
            y = layer(u)
            y.square().sum().backward()
            results.append([y, *(p.grad for p in layer.parameters())])
    finally:
        rotrnn.set_num_threads(None)
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other))


def test_threads_of_python():
    """Several threads with a layer each, at once."""
    layers = [make("rotrnn", seed=i) for i in range(4)]
    u = torch.randn(3, 300, 7)
    expected = [torch.autograd.grad(layer(u).square().sum(), list(layer.parameters())) for layer in layers]
    failures = []

    def work(layer, wanted):
        for _ in range(10):
            found = torch.autograd.grad(layer(u).square().sum(), list(layer.parameters()))
            if not all(torch.equal(a, b) for a, b in zip(found, wanted)):
                failures.append(layer)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(layers, expected)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_network_learns():
    """Where in a sequence of noise was the pulse? In a Sequential, with AdamW, from padded batches."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 16), rotrnn.RotRNN(16, 32, 4, theta_max=1.0), nn.GELU(),
                          rotrnn.S5(16, 16, blocks=2), nn.GELU(), nn.Linear(16, 4))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def batch(count=64, time=40):
        label = torch.randint(4, (count,))
        x = 0.3 * torch.randn(count, time, 1)
        x[torch.arange(count), label * 10 + torch.randint(10, (count,)), 0] += 4
        return x, label

    for _ in range(120):
        x, label = batch()
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x)[:, -1], label).backward()
        optimiser.step()
    with torch.no_grad():
        x, label = batch(500)
        accuracy = float((model(x)[:, -1].argmax(1) == label).float().mean())
    assert accuracy > 0.9  # a guess has 0.25


@every_layer
def test_initial_values(name):
    """Standard deviations and ranges as the equations of the design say; drawn anew with every seed."""
    first, again, other = make(name, seed=1), make(name, seed=1), make(name, seed=2)
    for (key, p), q, r in zip(first.named_parameters(), again.parameters(), other.parameters()):
        assert p.dtype == torch.float32 and torch.equal(p, q)
        assert key.startswith("Lambda") or not torch.equal(p, r)
    assert rotrnn.LRU(3, 4, dtype=torch.float64).C_re.dtype == torch.float64


def test_initial_distributions():
    torch.manual_seed(0)
    big = rotrnn.RotRNN(200, 400, 100, gamma_min=0.9, gamma_max=0.99, theta_max=0.5)
    assert float(big.B.std()) == pytest.approx(200**-0.5, rel=0.02)
    assert float(big.C.std()) == pytest.approx(400**-0.5, rel=0.02)
    assert float(big.M.std()) == pytest.approx(1, rel=0.1)
    gamma = big.gamma()
    assert 0.9 <= float(gamma.min()) and float(gamma.max()) <= 0.99
    assert float((gamma**2).mean()) == pytest.approx((0.9**2 + 0.99**2) / 2, rel=0.01)
    assert 0 < float(big.angles().min()) and 0.4 < float(big.angles().max()) <= 0.5
    authors = rotrnn.RotRNN(200, 400, 100, init="authors", gamma_min=0.9, gamma_max=0.99)
    assert float(authors.B.std()) == pytest.approx(600**-0.5, rel=0.02)
    assert float(authors.M.std()) == pytest.approx(404**-0.5, rel=0.1)
    assert 0.9 <= float(authors.gamma().min()) and float(authors.gamma().max()) <= 0.99
    assert "theta_log" in authors.state_dict()
    lru = rotrnn.LRU(100, 400, r_min=0.5, r_max=0.9, max_phase=1.0)
    s = lru.system()
    size = torch.hypot(s.lambda_re, s.lambda_im)
    assert 0.5 <= float(size.min()) and float(size.max()) <= 0.9
    assert float((torch.exp(lru.gamma_log.double())**2 + size**2 - 1).abs().max()) < 1e-6
    assert float(lru.B_re.std()) == pytest.approx(200**-0.5, rel=0.03)
    assert float(lru.C_im.std()) == pytest.approx(200**-0.5, rel=0.03)
    s5 = rotrnn.S5(100, 200, blocks=4)
    values, vectors = rotrnn.s5.hippo_normal(50)
    assert torch.equal(s5.Lambda_im, values.imag.repeat(4).float())
    assert -7 < float(s5.log_step.min()) and float(s5.log_step.max()) < -2.3
    # The real B comes back as 2 Re(V B~); its entries are cut off at two standard deviations.
    B = 2 * (torch.block_diag(*[vectors] * 4) @ torch.complex(s5.B_re, s5.B_im).to(vectors.dtype)).real
    assert float(B.std()) == pytest.approx(200**-0.5, rel=0.03)
    assert float(B.abs().max()) <= 2 * 1.13685 * 200**-0.5 * (1 + 1e-5)

#!/usr/bin/python3
"""What plain PyTorch (python/rotrnn/plain) computes in float64, for the engine to be compared with.

    plain_torch.py --make DIR [--seed N]    layers.safetensors, networks.safetensors and training.safetensors

Cases are drawn at random, every value of every setting in some of them. The files are those of tests/fixtures/README.md,
and have besides:

networks: `loss` ("cross_entropy", …), `delta` and `quantiles` among the settings, and `example_weights` [rows].
training: steps of AdamW on a network, all on the same batch. `global_lr`, `recurrent_lr`, `weight_decay` and `steps` among
the settings; `step/K/loss` (before the step), `step/K/grad/NAME`, `step/K/param/NAME` (after it), K from 1;
`first/NAME` and `second/NAME`, the moments after the last step. Beside them `noise/K/…`: the same from the same start with
gradients that are random, of magnitudes from 1e-12 to 10.

Where PyTorch is not installed it writes the file `skipped` instead, and returns 77, which ctest takes as skipped."""

import argparse
import json
import math
import os
import struct
import sys

os.environ["OMP_NUM_THREADS"] = "1"  # the matrices here are a few numbers wide
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "python", "rotrnn"))  # not the package, which needs the engine
sys.dont_write_bytecode = True

FILES = ("layers", "networks", "training")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", metavar="DIR", required=True, help="where the files go")
    parser.add_argument("--seed", type=int, default=1, help="of the cases")
    return parser.parse_args()


def skip(folder, reason):
    """Says that there are no cases: old ones would be of another version."""
    os.makedirs(folder, exist_ok=True)
    for name in FILES:
        if os.path.exists(os.path.join(folder, name + ".safetensors")):
            os.remove(os.path.join(folder, name + ".safetensors"))
    with open(os.path.join(folder, "skipped"), "w", encoding="ascii") as file:
        file.write(f"{reason}; Debian: apt install python3-torch\n")
    sys.exit(77)


try:
    import torch
except ModuleNotFoundError as missing:
    skip(parse().make, missing)

from plain import adamw, dropout, frontend, layers, losses, network  # noqa: E402

# ------------------------------------------------------------------------------------------------------- draws


class Draw:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape):
        return torch.randn(*shape, dtype=torch.float64, generator=self.generator)

    def uniform(self, low, high, *shape):
        return low + (high - low) * torch.rand(*shape, dtype=torch.float64, generator=self.generator)

    def integer(self, low, high):
        return int(torch.randint(low, high + 1, (1,), generator=self.generator))

    def choice(self, values):
        return values[self.integer(0, len(values) - 1)]

    def shuffled(self, values):
        return [values[i] for i in torch.randperm(len(values), generator=self.generator)]

    def rows(self, table, count):
        """So many dicts of {key: one of its values}, every value in about as many of them."""
        columns = {}
        for key, values in table.items():
            order = self.shuffled(values)
            columns[key] = self.shuffled([order[i % len(order)] for i in range(count)])
        return [{key: column[i] for key, column in columns.items()} for i in range(count)]


def as_float32(value):
    """In double, but a number that float32 has."""
    return value.float().double()


# --------------------------------------------------------------------------------------------------- settings

BOTH = [False, True]
SETTINGS = {
    "rotrnn": {"heads": [1, 2, 3], "head_size": [2, 3, 4, 5, 8], "normalisation": ["xi", "xi", "alpha", "none"],
               "c": [1.0, 0.4, 2.5], "stationary_start": BOTH, "learn_rotation": [True, True, False],
               "init.theta_form": ["plain", "log"]},
    "lru": {"state": [2, 6, 12, 14], "lru.gamma": ["learned", "fixed"]},
    "s5": {"state": [2, 6, 12, 16], "s5.discretisation": ["zoh", "bilinear"], "s5.clip": BOTH,
           "s5.step_rescale": [1.0, 2.0, 0.5], "s5.groups": ["standard", "BandCdecay", "BfastandCdecay", "noBCdecay"],
           "s5.dt_global": BOTH},
    "s4d": {"state": [2, 7, 8, 12], "s4d.discretisation": ["zoh", "bilinear"], "s4d.tied": BOTH, "s4d.train_b": BOTH,
            "s4d.step_rescale": [1.0, 2.0], "s4d.dt_global": BOTH},
    "s4": {"state": [2, 5, 8, 12], "s4.tied": BOTH, "s4.dt_global": BOTH},
    "liquid_s4": {"state": [2, 5, 8, 12], "s4.tied": BOTH, "liquid_s4.form": ["pb", "pb", "kb"],
                  "liquid_s4.mode": ["causal", "causal", "reference"], "liquid_s4.coefficient": ["power", "reference"],
                  "liquid_s4.degree": [2, 3, 4], "liquid_s4.train_liquid": BOTH},
}
# S4's length against the longest sequence: as long, longer, and such that it has to grow, also from nothing.
LENGTH = ["longest", "longer", "shorter", "none"]


def settings_of(layer, row):
    """As the program has them; a row that makes no layer is changed a little."""
    row = {"layer": layer, **row}
    if layer == "rotrnn":
        row["state"] = row["heads"] * row.pop("head_size")
        row["stationary_start"] = row["stationary_start"] and row["normalisation"] == "xi"
    if layer == "s5":
        row["s5.blocks"] = 1
    if layer == "liquid_s4" and row["liquid_s4.form"] == "kb":
        row["liquid_s4.mode"] = "causal"
    return row


def layer_settings(draw, layer, count):
    return [settings_of(layer, row) for row in draw.rows(SETTINGS[layer], count)]


def lengths_of(draw, settings, sequences):
    shortest = 7 if settings.get("liquid_s4.mode") == "reference" else 1
    return [draw.integer(shortest, draw.choice([shortest, 8, 8, 23])) for _ in range(sequences)]


# -------------------------------------------------------------------------------------------------- parameters


def layer_tensors(draw, settings, longest):
    """Parameters and buffers that a layer may have after some training."""
    layer, D, N = settings["layer"], settings["width"], settings["state"]
    both = settings["bidirectional"]
    p, buffers = {}, {}

    def add_complex(target, name, scale, *shape):
        target[name + "_re"], target[name + "_im"] = scale * draw.normal(*shape), scale * draw.normal(*shape)

    def add_outputs(name, scale, *shape):
        for suffix in ["", "_reverse"] if both else [""]:
            add_complex(p, name + suffix, scale, *shape)

    def log_steps(count):
        return draw.uniform(math.log(0.003), math.log(0.3), count)

    p["D"] = draw.normal(D)
    if layer == "rotrnn":
        H = settings["heads"]
        dh = N // H
        theta = draw.uniform(0.01, math.pi, H, dh // 2)
        p.update({"theta_log": theta.log()} if settings["init.theta_form"] == "log" else {"theta": theta})
        p["gamma_log"] = torch.log(-torch.log(draw.uniform(0.4, 0.999, H)))
        M = draw.normal(H, dh, dh)
        if settings["learn_rotation"]:
            p["M"] = M
        else:
            buffers["M"] = torch.zeros_like(M)
        p["B"], p["C"] = draw.normal(H, dh, D) / D**0.5, draw.normal(D, N) / N**0.5
        if both:
            p["C_reverse"] = draw.normal(D, N) / N**0.5
    elif layer == "lru":
        S = N // 2
        p["nu_log"] = torch.log(-torch.log(draw.uniform(0.3, 0.999, S)))
        p["theta_log"] = torch.log(draw.uniform(0.01, math.pi, S))
        if settings["lru.gamma"] == "learned":
            p["gamma_log"] = 0.3 * draw.normal(S) - 1
        add_complex(p, "B", (2 * D)**-0.5, S, D)
        add_outputs("C", S**-0.5, D, S)
    elif layer == "s5":
        S = N // 2
        p["Lambda_re"], p["Lambda_im"] = -draw.uniform(0.1, 1.0, S), -draw.uniform(0.0, 20.0, S)
        if settings["s5.clip"]:
            p["Lambda_re"][S // 2] = 0.2  # not where S5 is stable
        p["log_step"] = log_steps(S)
        add_complex(p, "B", 1.0, S, D)
        add_outputs("C", S**-0.5, D, S)
    else:
        n, shared = N // 2, settings.get(("s4d" if layer == "s4d" else "s4") + ".tied")
        H = 1 if shared else D
        p["A_log_re"], p["A_im"] = torch.log(draw.uniform(0.2, 1.0, H, n)), -draw.uniform(0.0, 15.0, H, n)
        p["log_step"] = log_steps(D)
        add_complex(p if settings.get("s4d.train_b", True) else buffers, "B", 1.0, H, n)
        add_outputs("C", n**-0.5, D, n)
        if layer != "s4d":
            add_complex(p, "P", 0.7, H, n)
            kind = draw.choice(LENGTH) if settings["grows"] else draw.choice(LENGTH[:2])
            buffers["length"] = torch.tensor({"longest": longest, "longer": longest + draw.integer(1, 9),
                                              "shorter": max(1, longest // draw.choice([2, 3])), "none": 0}[kind])
    return ({name: as_float32(value) for name, value in p.items()},
            {name: as_float32(value) if value.is_floating_point() else value for name, value in buffers.items()})


def network_tensors(draw, settings, longest):
    p, buffers, D = {}, {}, settings["width"]

    def linear(name, outputs, inputs):
        p[name + ".weight"], p[name + ".bias"] = draw.normal(outputs, inputs) / inputs**0.5, 0.2 * draw.normal(outputs)

    channels, kind = settings["inputs"], settings.get("frontend.kind", "none")
    if kind == "patch":
        channels *= settings["frontend.size"]
    if kind == "rotations":
        count = settings["frontend.bands"]
        channels *= count
        trained = p if settings["frontend.learn"] else buffers
        trained["frontend.theta"] = draw.uniform(0.02, 3.0, count)
        trained["frontend.gamma_log"] = torch.log(-torch.log(draw.uniform(0.5, 0.995, count)))
        buffers["frontend.mean"] = draw.normal(channels) - 1
        buffers["frontend.deviation"] = draw.uniform(0.5, 2.0, channels)
    if settings["input"] == "tokens":
        p["encoder.weight"] = draw.normal(channels, D)
    else:
        linear("encoder", D, channels)
    for k in range(settings["depth"]):
        prefix = f"blocks.{k}."
        p[prefix + "norm.weight"], p[prefix + "norm.bias"] = 1 + 0.2 * draw.normal(D), 0.2 * draw.normal(D)
        if settings["norm"] == "batch":
            buffers[prefix + "norm.running_mean"] = 0.3 * draw.normal(D)
            buffers[prefix + "norm.running_var"] = draw.uniform(0.5, 2.0, D)
        for target, found in zip((p, buffers), layer_tensors(draw, settings, longest)):
            target.update({prefix + "layer." + name: value for name, value in found.items()})
        if settings["activation"] in ("full_glu", "exact_glu"):
            linear(prefix + "value", D, D)
        if settings["activation"] != "gelu":
            linear(prefix + "gate", D, D)
    if settings["towers"] == 2:
        linear("hidden", D, 4 * D)
    linear("head", settings["outputs"], D)
    return ({name: as_float32(value) for name, value in p.items()},
            {name: as_float32(value) if value.is_floating_point() else value for name, value in buffers.items()})


def grown(case, p, buffers, settings, longest, module):
    """The tensors after the layers have grown to the batch, rounded to float32; recorded where they have."""
    after = module.prepare({**p, **buffers}, settings, longest)
    lengths = [name for name in buffers if name.endswith("length")]
    if all(int(after[name]) == int(buffers[name]) for name in lengths):
        return {**p, **buffers}
    after = {name: as_float32(value) if value.is_floating_point() else value for name, value in after.items()}
    case.update({f"grown_param/{name}": after[name].float() for name in p})
    case.update({f"grown_buffer/{name}": after[name] for name in lengths})
    return after


# ------------------------------------------------------------------------------------------------------- cases


def record(case, p, buffers):
    case.update({f"param/{name}": value.float() for name, value in p.items()})
    for name, value in buffers.items():
        case[f"buffer/{name}"] = value.float() if value.is_floating_point() else value


def gradients(objective, leaves):
    found = torch.autograd.grad(objective, list(leaves.values()), allow_unused=True)
    return {name: torch.zeros_like(value) if g is None else g for (name, value), g in zip(leaves.items(), found)}


def known(settings):
    """Those that rotrnn.plain knows."""
    of_the_data = ("input", "inputs", "outputs", "target", "per_token", "training", "seed", "step", "sequences", "loss",
                   "delta", "quantiles", "grows", "global_lr", "recurrent_lr", "weight_decay", "steps")
    return {key: value for key, value in settings.items() if key not in of_the_data}


def state_size(settings):
    """Real numbers of a sequence in the states of a layer; 0: it shows none."""
    D, N = settings["width"], settings["state"]
    if settings["layer"] == "rotrnn":
        return 2 * settings["heads"] * math.ceil(N / settings["heads"] / 2)
    return {"lru": N, "s5": N, "s4d": 2 * D * (N // 2)}.get(settings["layer"], 0)


def offsets_of(lengths):
    return torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()])


def layer_case(draw, settings, states):
    """states: "none", "initial" or "final" (both). Tensors of the case, and its errors in float32."""
    settings.update(width=draw.integer(3, 6), bidirectional=settings.pop("both"), grows=True)
    lengths = lengths_of(draw, settings, draw.integer(1, 4))
    offsets, sequences = offsets_of(lengths), len(lengths)
    case = {"offsets": offsets}
    p, buffers = layer_tensors(draw, settings, max(lengths))
    record(case, p, buffers)
    after = grown(case, p, buffers, known(settings), max(lengths), layers)
    size = state_size(settings)
    ends = ["", "_reverse"] if settings["bidirectional"] else [""]
    case["u"] = as_float32(draw.normal(sum(lengths), settings["width"]))
    case["dy"] = as_float32(draw.normal(sum(lengths), settings["width"]))
    for end in ends if states != "none" and size else []:
        case["initial" + end] = as_float32(draw.normal(sequences, size))
        if states == "final":
            case["dfinal" + end] = as_float32(draw.normal(sequences, size))

    def compute(dtype):
        values = {name: value.to(dtype) if value.is_floating_point() else value for name, value in after.items()}
        leaves = {f"grad/{name}": values[name].clone().requires_grad_() for name in p}
        inputs = {}
        for name in ("u", "initial", "initial_reverse"):
            inputs[name] = case[name].to(dtype).requires_grad_() if name in case else None
            if name in case:
                leaves[f"grad_{name}"] = inputs[name]
        values.update({name: leaves[f"grad/{name}"] for name in p})
        out = layers.run(values, known(settings), inputs["u"], offsets, inputs["initial"], inputs["initial_reverse"])
        objective = sum((getattr(out, name) * case["d" + name].to(dtype)).sum()
                        for name in ("y", "final", "final_reverse") if "d" + name in case)
        results = gradients(objective, leaves)
        results.update({name: getattr(out, name).detach() for name in ("y", "final", "final_reverse")
                        if name == "y" or "d" + name in case})
        return results

    exact, rounded = compute(torch.float64), compute(torch.float32)
    case.update(exact)
    errors = {name: float((rounded[name].double() - value).abs().max()) for name, value in exact.items() if value.numel()}
    settings.pop("grows")
    return case, errors


def make_layers(draw):
    cases, settings, errors = {}, {}, {}
    for layer in SETTINGS:
        rows = layer_settings(draw, layer, 24)
        for i, (row, more) in enumerate(zip(rows, draw.rows({"both": BOTH, "states": ["none", "initial", "final"]}, 24))):
            name = f"{layer}_{i}"
            row["both"] = more["both"]
            cases[name], errors[name] = layer_case(draw, row, more["states"])
            settings[name] = row
    return cases, {"cases": settings, "float32_error": errors}


NETWORK = {
    "layer": list(SETTINGS), "width": [3, 4, 6], "depth": [1, 2, 2], "bidirectional": BOTH,
    "activation": ["half_glu1", "full_glu", "half_glu2", "gelu", "exact_glu"], "norm": ["batch", "batch", "layer"],
    "norm_momentum": [0.95, 0.5], "prenorm": [True, True, False], "pooling": ["mean", "last", "none"],
    "dropout": [0.0, 0.3], "input": ["tokens", "values"], "towers": [1, 1, 2], "training": [True, True, True, False],
    "states": ["none", "none", "initial", "final"], "class_weights": BOTH, "example_weights": BOTH,
    "loss": ["cross_entropy", "binary", "mean_square", "mean_absolute", "huber", "quantile"],
}


FRONTENDS = {
    **NETWORK, "layer": ["rotrnn", "lru", "s5", "s4d", "s4"], "input": ["values"], "pooling": ["mean", "last"],
    "frontend.kind": ["rotations", "rotations", "patch"], "frontend.learn": BOTH, "frontend.hop": [2, 3, 5],
    "frontend.bands": [1, 3, 4], "frontend.size": [1, 3, 4], "frontend.stride": [1, 2, 5],
}


def network_rows(draw, table, count):
    """Rows with the settings of their layers."""
    rows = draw.rows(table, count)
    of_layers = {layer: layer_settings(draw, layer, sum(row["layer"] == layer for row in rows)) for layer in SETTINGS}
    return [{**row, **of_layers[row["layer"]].pop()} for row in rows]


def network_settings(draw, row):
    """The row as the program has it, with the shape of its data."""
    settings = dict(row)
    for key in ("states", "class_weights", "example_weights"):
        settings.pop(key)
    settings["per_token"] = settings["pooling"] == "none"
    settings["towers"] = 1 if settings["per_token"] else settings["towers"]
    settings["inputs"] = 7 if settings["input"] == "tokens" else draw.integer(1, 3)
    settings["target"] = "classes" if settings["loss"] == "cross_entropy" else "values"
    settings["outputs"] = draw.integer(2, 4)
    if settings["loss"] == "huber":
        settings["delta"] = draw.choice([0.3, 1.0])
    if settings["loss"] == "quantile":
        settings["quantiles"] = draw.choice([[0.5], [0.1, 0.5, 0.9]])
        settings["outputs"] = len(settings["quantiles"]) * draw.integer(1, 2)
    settings.update(seed=draw.integer(0, 2**31), step=draw.integer(1, 1000))
    return settings


class NetworkCase:
    """A network with a batch and targets."""

    def __init__(self, draw, row, grows):
        self.settings = s = network_settings(draw, row)
        s["grows"] = grows
        count = 2 * draw.integer(2, 3)
        lengths = lengths_of(draw, s, count)
        lengths[0] += 8  # batch norm has some tokens
        if "frontend.kind" in s:
            lengths = [5 * length + draw.integer(0, 4) for length in lengths]
        longest = max(frontend.tokens_of({"frontend.kind": "none", **s}, length) for length in lengths)
        s["sequences"] = sorted(draw.shuffled(list(range(40)))[:count])
        self.offsets, self.depth = offsets_of(lengths), s["depth"]
        self.tensors = case = {"offsets": self.offsets}
        self.p, self.buffers = network_tensors(draw, s, longest)
        record(case, self.p, self.buffers)
        self.after = grown(case, self.p, self.buffers, known(s), longest, network)
        tokens = sum(lengths)
        if s["input"] == "tokens":
            self.batch = case["tokens"] = torch.tensor([draw.integer(0, s["inputs"] - 1) for _ in range(tokens)])
        else:
            self.batch = case["values"] = as_float32(draw.normal(tokens, s["inputs"]))
        rows = tokens if s["per_token"] else count // s["towers"]
        if s["target"] == "classes":
            case["targets"] = torch.tensor([draw.integer(0, s["outputs"] - 1) for _ in range(rows)])
        elif s["loss"] == "binary":
            case["targets"] = as_float32(draw.uniform(0, 1, rows, s["outputs"]).round())
        else:
            case["targets"] = as_float32(draw.normal(rows, s["outputs"] // len(s.get("quantiles", [0]))))
        if row["class_weights"] and s["loss"] in ("cross_entropy", "binary"):
            case["class_weights"] = draw.uniform(0.2, 2.0, s["outputs"])
        if row["example_weights"]:
            case["example_weights"] = as_float32(draw.uniform(0.0, 2.0, rows))
        size, ends = state_size(s), ["", "_reverse"] if s["bidirectional"] else [""]
        # The fused kernels of S4D have states in the forward direction only.
        only_forward = row["layer"] == "s4d" and s["bidirectional"]
        for k in range(self.depth) if row["states"] != "none" and size else []:
            for end in [""] if only_forward else ends:
                case[f"initial{end}/{k}"] = as_float32(draw.normal(count, size))
            for end in ends if row["states"] == "final" and not only_forward else []:
                case[f"dfinal{end}/{k}"] = as_float32(draw.normal(count, size))

    def masks(self, step):
        s = self.settings
        if not s["training"] or s["dropout"] == 0:
            return None
        return [tuple(dropout.mask(s["dropout"], s["seed"], step, k, site, s["sequences"], s["width"])
                      for site in range(2)) for k in range(self.depth)]

    def run(self, p, step, leaves):
        """The loss, what the gradients are of, and the output; adds inputs to the leaves."""
        s, case, batch, initial = self.settings, self.tensors, self.batch, []
        if s["input"] == "values":
            batch = leaves["grad_values"] = batch.clone().requires_grad_()
        for k in range(self.depth):
            found = []
            for end in ("", "_reverse"):
                state = case.get(f"initial{end}/{k}")
                if state is not None:
                    state = leaves[f"grad_initial{end}/{k}"] = state.clone().requires_grad_()
                found.append(state)
            initial.append(tuple(found))
        out = network.run(p, known(s), batch, self.offsets, s["training"], self.masks(step), initial)
        loss = losses.loss(s["loss"], out.y, case["targets"], case.get("example_weights"), case.get("class_weights"),
                           s.get("delta", 1.0), s.get("quantiles", ()))
        objective = loss
        for k in range(self.depth):
            for i, end in enumerate(("", "_reverse")):
                if f"dfinal{end}/{k}" in case:
                    objective = objective + (case[f"dfinal{end}/{k}"] * out.final[k][i]).sum()
        return loss, objective, out


def network_case(draw, row):
    c = NetworkCase(draw, row, grows=True)
    leaves = {f"grad/{name}": c.after[name].clone().requires_grad_() for name in c.p}
    loss, objective, out = c.run({**c.after, **{name: leaves[f"grad/{name}"] for name in c.p}}, c.settings["step"], leaves)
    case = c.tensors
    case.update(gradients(objective, leaves))
    case.update({"y": out.y.detach(), "loss": loss.detach().reshape(1)})
    case.update({f"running/{name}": value for name, value in out.running.items()})
    for k in range(c.depth):
        for i, end in enumerate(("", "_reverse")):
            if f"dfinal{end}/{k}" in case:
                case[f"final{end}/{k}"] = out.final[k][i].detach()
    c.settings.pop("grows")
    return case, c.settings


def make_networks(draw):
    cases, settings = {}, {}
    for table, count, what in ((NETWORK, 90, ""), (FRONTENDS, 24, "_frontend")):
        for i, row in enumerate(network_rows(draw, table, count)):
            name = f"{row['layer']}{what}_{i}"
            cases[name], settings[name] = network_case(draw, row)
    return cases, {"cases": settings}


def training_case(draw, row):
    c = NetworkCase(draw, row, grows=False)
    s = c.settings
    s.update({"global_lr": 0.002, "recurrent_lr": 0.0005, "weight_decay": 0.1, "steps": 5, "step": 1})
    rates = adamw.Rates(s["global_lr"], s["recurrent_lr"], s["weight_decay"])
    groups = {name: network.group(name, known(s)) for name in c.p}
    p, moments, buffers = c.p, adamw.start(c.p), c.buffers
    for t in range(1, s["steps"] + 1):
        leaves = {name: value.clone().requires_grad_() for name, value in p.items()}
        loss, _, out = c.run({**buffers, **leaves}, t, {})
        g = gradients(loss, leaves)
        p, moments = adamw.step(t, p, g, moments, groups, rates)
        buffers = {**buffers, **out.running}
        c.tensors[f"step/{t}/loss"] = loss.detach().reshape(1)
        c.tensors.update({f"step/{t}/grad/{name}": value for name, value in g.items()})
        c.tensors.update({f"step/{t}/param/{name}": value for name, value in p.items()})
    c.tensors.update({f"first/{name}": value for name, value in moments.first.items()})
    c.tensors.update({f"second/{name}": value for name, value in moments.second.items()})
    p, moments = c.p, adamw.start(c.p)
    for t in range(1, s["steps"] + 1):
        g = {name: as_float32(draw.normal(*w.shape) * 10**draw.uniform(-12.0, 1.0, *w.shape)) for name, w in p.items()}
        p, moments = adamw.step(t, p, g, moments, groups, rates)
        c.tensors.update({f"noise/{t}/grad/{name}": value for name, value in g.items()})
        c.tensors.update({f"noise/{t}/param/{name}": value for name, value in p.items()})
    s.pop("grows")
    return c.tensors, s


def make_training(draw):
    cases, settings = {}, {}
    for i, row in enumerate(network_rows(draw, {**NETWORK, "training": [True], "states": ["none"]}, 24)):
        name = f"{row['layer']}_{i}"
        cases[name], settings[name] = training_case(draw, row)
    return cases, {"cases": settings}


# -------------------------------------------------------------------------------------------------------- file


def write_file(path, cases, metadata):
    """A safetensors file; metadata are JSON texts."""
    types = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
    header, data, at = {"__metadata__": {key: json.dumps(value) for key, value in metadata.items()}}, [], 0
    for case, tensors in cases.items():
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                sys.exit(f"{case}/{name}: a number that is not finite")
            content = tensor.detach().contiguous().numpy().tobytes()
            header[f"{case}/{name}"] = {"dtype": types[tensor.dtype], "shape": list(tensor.shape),
                                        "data_offsets": [at, at + len(content)]}
            data.append(content)
            at += len(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))
    os.replace(path + ".part", path)
    print(f"{path}: {len(cases)} cases, {at + len(text)} bytes")


def main():
    arguments = parse()
    os.makedirs(arguments.make, exist_ok=True)
    if os.path.exists(os.path.join(arguments.make, "skipped")):
        os.remove(os.path.join(arguments.make, "skipped"))
    for i, (name, make) in enumerate(zip(FILES, (make_layers, make_networks, make_training))):
        write_file(os.path.join(arguments.make, name + ".safetensors"), *make(Draw(3 * arguments.seed + i)))


main()

#!/usr/bin/python3
"""Golden numbers for the LRU, from the equations of the paper and nothing else.

"Resurrecting Recurrent Neural Networks for Long Sequences" (Orvieto et al. 2023), S complex states:

    lambda = exp(-exp(nu_log) + i exp(theta_log))
    x_t    = lambda * x_{t-1} + exp(gamma_log) * (B u_t)         B complex [S, D]
    y_t    = Re(C x_t) + D * u_t                                 C complex [D, S]

gamma "learned": gamma_log is a parameter. gamma "fixed": gamma_log = log(1 - |lambda|^2) / 2 in every forward,
and the gradient of nu_log flows through it. Bidirectional: lambda, gamma and B are shared, and
y = Re(C x) + Re(C_reverse x_reverse) + D * u, x_reverse being run from the end of each sequence.

The outputs are of this form, in complex numbers; the gradients come from the same in real ones (see common.py).

    lru.py --write    check the mathematics, compute all cases, write lru.json beside this file
    lru.py --check    the same, but compare with lru.json (1e-12 relative); exit 1 if they differ

lru.json: "cases" {name: options, parameters, input, offsets, outputs, gradients} and "init" {name: r_min, r_max,
max_phase, u1, u2, nu_log, theta_log, gamma_log}. States x_0, x_T, x_0_reverse, x_T_reverse are [sequences, 2S],
real parts first; G, G_T and G_T_reverse are what y, x_T and x_T_reverse are multiplied by in the loss.
"""

from decimal import Decimal, localcontext

import common
from common import largest, np, require

# -------------------------------------------------------------------------------------------------- the layer


def gamma_of(p, options):
    """exp(gamma_log). 1 - |lambda|^2 keeps its digits when |lambda| is near 1."""
    if options["gamma"] == "fixed":
        return np.sqrt(-np.expm1(-2 * np.exp(p["nu_log"])))
    return np.exp(p["gamma_log"])


def outputs_of(options):
    return ["C", "C_reverse"] if options["bidirectional"] else ["C"]


def lru(p, options, offsets):
    """In complex numbers, as the paper has it."""
    lam = np.exp(-np.exp(p["nu_log"]) + 1j * np.exp(p["theta_log"]))
    B = gamma_of(p, options)[..., None] * (p["B_re"] + 1j * p["B_im"])
    C = [p[name + "_re"] + 1j * p[name + "_im"] for name in outputs_of(options)]
    return common.run_complex(lam, B, C[0], C[1] if len(C) > 1 else None, p, offsets)


def lru_real(p, options, offsets):
    """In real numbers: |lambda| (cos, sin), planes of B, and Re(Cx) = Re C Re x - Im C Im x."""
    radius, angle = np.exp(-np.exp(p["nu_log"])), np.exp(p["theta_log"])
    lam = common.as_matrices(radius * np.cos(angle), radius * np.sin(angle))
    gamma = gamma_of(p, options)[..., None]
    W = np.concatenate([gamma * p["B_re"], gamma * p["B_im"]], axis=-2)
    V = [np.concatenate([p[name + "_re"], -p[name + "_im"]], axis=-1) for name in outputs_of(options)]
    return common.run_real(lam, W, V[0], V[1] if len(V) > 1 else None, p, offsets)


# --------------------------------------------------------------------------------------------- initial values


def initial(r_min, r_max, max_phase, u1, u2):
    """From uniform u1, u2: |lambda| between the radii, uniform by area; the phase below max_phase; and gamma_log.

        nu_log = log(-log(u1 (r_max^2 - r_min^2) + r_min^2) / 2)
        theta_log = log(max_phase u2)
        gamma_log = log(1 - |lambda|^2) / 2

    With 40 digits: in double, 1 - |lambda|^2 loses some when |lambda| is near 1."""
    result = {"nu_log": [], "theta_log": [], "gamma_log": []}
    with localcontext() as context:
        context.prec = 40
        low, high, phase = Decimal(r_min), Decimal(r_max), Decimal(max_phase)
        for a, b in zip(map(Decimal, u1.tolist()), map(Decimal, u2.tolist())):
            square = a * (high * high - low * low) + low * low
            result["nu_log"].append(float((-square.ln() / 2).ln()))
            result["theta_log"].append(float((phase * b).ln()))
            result["gamma_log"].append(float((1 - square).ln() / 2))
    return {name: np.array(value) for name, value in result.items()}


def init_case(name, seed, r_min, r_max, max_phase, **given):
    rng = np.random.default_rng(seed)
    u1, u2 = given.get("u1", rng.uniform(size=6)), given.get("u2", rng.uniform(size=6))
    values = initial(r_min, r_max, max_phase, u1, u2)
    radius = np.exp(-np.exp(values["nu_log"]))
    require((radius >= r_min - 1e-15).all() and (radius <= r_max + 1e-15).all(), f"{name}: |lambda| out of range")
    require(largest(radius**2 - u1 * (r_max**2 - r_min**2) - r_min**2) < 1e-14, f"{name}: |lambda|^2 not uniform")
    require(largest(np.exp(values["theta_log"]) / (max_phase * u2) - 1) < 1e-14, f"{name}: the phase")
    fixed = gamma_of(values, {"gamma": "fixed"})
    require(largest(np.exp(values["gamma_log"]) / fixed - 1) < 1e-14, f"{name}: gamma learned is not gamma fixed")
    return {"r_min": r_min, "r_max": r_max, "max_phase": max_phase, "u1": u1, "u2": u2, **values}


def init_cases():
    edge = {"u1": np.array([1e-12, 0.5, 1 - 2.0**-20]), "u2": np.array([1 - 2.0**-20, 1e-12, 0.5])}
    return {"paper": init_case("paper", 1, 0.9, 0.999, np.pi / 10),
            "whole_disk": init_case("whole_disk", 2, 0.0, 1.0, 2 * np.pi),
            "comparison": init_case("comparison", 3, 0.999, 0.9999, np.pi / 10),
            "edge": init_case("edge", 4, 0.0, 1.0, 2 * np.pi, **edge)}


# -------------------------------------------------------------------------------------------------- the cases


def parameters_of(rng, options):
    D, S = options["D"], options["S"]
    p = {"nu_log": np.log(-np.log(rng.uniform(0.5, 0.99, S))),
         "theta_log": np.log(rng.uniform(0.1, 6.0, S)),
         "gamma_log": rng.uniform(-1.5, 0.5, S)}  # not that of the fixed form
    if options["gamma"] == "fixed":
        del p["gamma_log"]
    for name, shape, variance in [("B", (S, D), 0.5 / D)] + [(c, (D, S), 1 / S) for c in outputs_of(options)]:
        for part in ("re", "im"):
            p[f"{name}_{part}"] = np.sqrt(variance) * rng.standard_normal(shape)
    p["D"] = rng.standard_normal(D)
    return p


def case(name, seed, lengths=(7, 4), initial_states=False, change=None, **changes):
    options = common.checked_options({"D": 3, "S": 5, "gamma": "learned", "bidirectional": False}, changes)
    rng = np.random.default_rng(seed)
    parameters = parameters_of(rng, options)
    if change:
        change(parameters)
    parameters = common.as_kept(parameters)
    return common.layer_case(name, rng, options, parameters, lengths, initial_states, lru, lru_real)


def cases():
    def long_memory(p):  # 1 - |lambda|^2 about 1e-8; D = 0, so that y shows whether gamma kept its digits
        p["nu_log"][:] = np.log(np.linspace(3e-9, 8e-9, len(p["nu_log"])))
        p["D"][:] = 0.0

    arguments = [
        ("learned", 101, {}),
        ("learned_initial_state", 102, {"initial_states": True, "lengths": (4, 1, 7)}),
        ("learned_bidirectional", 103, {"bidirectional": True, "initial_states": True}),
        ("fixed", 104, {"gamma": "fixed"}),
        ("fixed_initial_state", 105, {"gamma": "fixed", "initial_states": True, "S": 4}),
        ("fixed_bidirectional", 106, {"gamma": "fixed", "bidirectional": True}),
        ("fixed_long_memory", 107, {"gamma": "fixed", "change": long_memory}),
    ]
    return {name: case(name, seed, **more) for name, seed, more in arguments}


# -------------------------------------------------------------------------------------- checks of mathematics


def check_convolution(name, case):
    """The recurrence is the convolution y_t = Re sum_{s <= t} C lambda^(t-s) B u_s + Re C lambda^(t+1) x_0 + D u_t
    (t from 0), and its mirror image."""
    p, options, inputs = case["parameters"], case["options"], case["input"]
    lam = np.exp(-np.exp(p["nu_log"])) * np.exp(1j * np.exp(p["theta_log"]))
    B = gamma_of(p, options)[:, None] * (p["B_re"] + 1j * p["B_im"])

    def one_direction(u, C, x_0):
        y = np.zeros_like(u)
        for t in range(len(u)):
            y[t] += (C @ (lam**(t + 1) * x_0)).real
            for s in range(t + 1):
                y[t] += ((C * lam**(t - s)) @ B @ u[s]).real
        return y

    for i, tokens in enumerate(common.sequences(case["offsets"])):
        u = inputs["u"][tokens]
        y = p["D"] * u
        for output, turn, start in [("C", 1, "x_0"), ("C_reverse", -1, "x_0_reverse")]:
            if output in outputs_of(options):
                C = p[output + "_re"] + 1j * p[output + "_im"]
                x_0 = common.to_complex(inputs[start][i]) if start in inputs else np.zeros(len(lam))
                y = y + one_direction(u[::turn], C, x_0)[::turn]
        require(largest(y - case["outputs"]["y"][tokens]) < 1e-13 * largest(case["outputs"]["y"]),
                f"{name}: recurrence and convolution differ")


def check_long_memory(case):
    """The plain difference 1 - |lambda|^2 must be seen in the case that is there to show it."""
    p, options = case["parameters"], case["options"]
    plain = np.log(1 - np.exp(-np.exp(p["nu_log"]))**2) / 2
    y = lru({**p, **case["input"], "gamma_log": plain}, {**options, "gamma": "learned"}, case["offsets"])["y"]
    error = largest(y - case["outputs"]["y"]) / largest(y)
    require(error > 1e-9, f"the plain difference is wrong by {error:.1e} only")


def compute():
    tree = {"cases": cases(), "init": init_cases()}
    for name, item in tree["cases"].items():
        check_convolution(name, item)
    check_long_memory(tree["cases"]["fixed_long_memory"])
    return tree


if __name__ == "__main__":
    common.main(compute, __doc__.splitlines()[0])

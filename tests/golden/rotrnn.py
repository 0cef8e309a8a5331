#!/usr/bin/python3
"""Golden numbers for RotRNN, from the equations of the paper and nothing else.

"RotRNN: Modelling Long Sequences with Rotations" (Biegun, Dolga, Cunningham, Barber 2024).
This script is the independent oracle of the C++ library: it shares no code and no trick with it.
Where the library folds P away, keeps complex states and works on tiles, this script builds the dense
A = P Theta P^T of every head and walks over time with a plain loop, in double precision:

    gamma = exp(-exp(gamma_log))                      in (0, 1)
    P     = expm(M - M^T)                             a rotation of dh coordinates
    Theta = 2x2 rotations by theta on the coordinates (0, 1), (2, 3), ...
    A     = P Theta P^T
    xi    = sqrt(c (1 - gamma^2) / |B|_F^2)
    x_t   = gamma A x_{t-1} + xi B u_t                for each head
    y_t   = C concat_over_heads(x_t) + D * u_t

Sizes: D width of the input, N state, H heads, dh = N / H. A batch is packed: the tokens of all its
sequences one after the other, u [tokens, D], sequence s being the rows offsets[s] .. offsets[s+1]-1.

    rotrnn.py --write    check the mathematics, compute all cases, write rotrnn.json beside this file
    rotrnn.py --check    the same, but compare with rotrnn.json (1e-12 relative); exit 1 if they differ

Read in order: the layer (one function an equation), the network around it, the LRU form, gradients,
the checks of the mathematics, the cases. Only NumPy is needed.

In rotrnn.json an array is {"shape": [...], "values": [flat, row-major]}, every number with all its digits.
"""

import common
from common import np, offsets_of, require, sequences

EPS = 1e-5  # of the norms
RUNNING_MOMENTUM = 0.95  # running <- 0.95 running + 0.05 batch

# ---------------------------------------------------------------------------------------- matrix exponential


def expm_of_skew(K):
    """exp(K) for a skew-symmetric K. iK is Hermitian: iK = V diag(w) V^H, so exp(K) = V diag(exp(-iw)) V^H."""
    w, V = np.linalg.eigh(1j * K)
    return ((V * np.exp(-1j * w)) @ V.conj().T).real


def expm_by_taylor(K):
    """exp(K) for any K, real or complex: exp(K) = exp(K / 2^s)^(2^s), the inner one by its Taylor series."""
    norm = np.abs(K).sum(axis=1).max()
    squarings = max(0, int(np.ceil(np.log2(norm / 0.5)))) if norm > 0 else 0
    K = K / 2.0**squarings
    term = np.eye(len(K), dtype=K.dtype)
    total = term.copy()
    for k in range(1, 19):  # 0.5^19 / 19! = 1.6e-23
        term = term @ K / k
        total = total + term
    for _ in range(squarings):
        total = total @ total
    return total


def expm(K):
    """The eigen-decomposition; for complex-step derivatives (see `gradients`) the series, which is analytic."""
    return expm_by_taylor(K) if np.iscomplexobj(K) else expm_of_skew(K)


# -------------------------------------------------------------------------------------------------- the layer


def gamma_of(gamma_log):
    """gamma = exp(-exp(gamma_log)): the decay, always in (0, 1)."""
    return np.exp(-np.exp(gamma_log))


def one_minus_gamma_squared(gamma_log):
    """1 - gamma^2, without losing digits when gamma is near 1."""
    return -np.expm1(-2.0 * np.exp(gamma_log))


def orthogonal(M):
    """P = expm(M - M^T), in SO(dh) for every M."""
    return expm(M - M.T)


def block_rotation(theta, dh):
    """Theta: [[cos, -sin], [sin, cos]] on the coordinates (2j, 2j+1). With odd dh the last coordinate stays."""
    Theta = np.eye(dh, dtype=theta.dtype)
    for j, angle in enumerate(theta):
        a, b = 2 * j, 2 * j + 1
        Theta[a, a], Theta[a, b] = np.cos(angle), -np.sin(angle)
        Theta[b, a], Theta[b, b] = np.sin(angle), np.cos(angle)
    return Theta


def rotation(theta, M):
    """A = P Theta P^T: any rotation of dh coordinates can be written so."""
    P = orthogonal(M)
    return P @ block_rotation(theta, len(M)) @ P.T


def squared_norm(B):
    """|B|_F^2 = trace(B^T B)."""
    return (B * B).sum()


def transition_and_input(theta, gamma_log, M, B, normalisation, c):
    """The matrices F, E of one head in x_t = F x_{t-1} + E u_t, for the three normalisations."""
    gamma, A = gamma_of(gamma_log), rotation(theta, M)
    if normalisation == "xi":  # x_t = gamma A x_{t-1} + xi B u_t
        xi = np.sqrt(c * one_minus_gamma_squared(gamma_log) / squared_norm(B))
        return gamma * A, xi * B
    if normalisation == "alpha":  # x_t = alpha (gamma A x_{t-1} + B u_t), the paper's first attempt
        alpha = 1.0 / np.sqrt(c * gamma**2 + squared_norm(B))
        return alpha * gamma * A, alpha * B
    if normalisation == "none":  # x_t = gamma A x_{t-1} + B u_t
        return gamma * A, B
    raise ValueError(normalisation)


def run_head(F, E, u, x_0, first_input_scale):
    """x_t = F x_{t-1} + E u_t over one sequence u [T, D]: all states [T, dh].

    first_input_scale multiplies u_1 alone: 1, or 1/sqrt(1 - gamma^2) for the stationary start."""
    x = x_0
    states = []
    for t in range(len(u)):
        scale = first_input_scale if t == 0 else 1.0
        x = F @ x + E @ (scale * u[t])
        states.append(x)
    return np.array(states)


def run_heads(parameters, options, u, x_0):
    """concat_over_heads(x_t) for one sequence u [T, D] from x_0 [N]: [T, N]."""
    H, dh = options["H"], options["dh"]
    heads = []
    for h in range(H):
        gamma_log = parameters["gamma_log"][h]
        F, E = transition_and_input(parameters["theta"][h], gamma_log, parameters["M"][h], parameters["B"][h],
                                    options["normalisation"], options["c"])
        scale = 1.0
        if options["stationary_start"]:
            scale = 1.0 / np.sqrt(one_minus_gamma_squared(gamma_log))
        heads.append(run_head(F, E, u, x_0[h * dh:(h + 1) * dh], scale))
    return np.concatenate(heads, axis=1)


def rotrnn(parameters, options, u, offsets, x_0=None):
    """The layer on a packed batch: y [tokens, D], x [tokens, N] (forward direction), x_T [batch, N].

    Bidirectional: the same P, Theta, gamma, B run over the sequence from its end, starting at zero (x_0 is of
    the forward direction only); the stationary start there scales the first input it meets, the last token.
        y = C x_forward + C_reverse x_reverse + D * u"""
    y, x, final = [], [], []
    for s, tokens in enumerate(sequences(offsets)):
        u_s = u[tokens]
        start = np.zeros(options["N"]) if x_0 is None else x_0[s]
        forward = run_heads(parameters, options, u_s, start)
        y_s = forward @ parameters["C"].T + parameters["D"] * u_s
        if options["bidirectional"]:
            reverse = run_heads(parameters, options, u_s[::-1], np.zeros(options["N"]))[::-1]
            y_s = y_s + reverse @ parameters["C_reverse"].T
        y.append(y_s)
        x.append(forward)
        final.append(forward[-1])
    return np.concatenate(y), np.concatenate(x), np.array(final)


def head_norms(x, H):
    """|x_t| of each head: [tokens, H]."""
    return np.sqrt((x.reshape(len(x), H, -1)**2).sum(axis=2))


# ------------------------------------------------------------------------------------------------ the network


def linear(x, weight, bias):
    """Wx + b for every row of x; weight [out, in]."""
    return x @ weight.T + bias


def gelu(x):
    """The tanh form."""
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def activation(kind, x, p):
    """What follows the layer within a block; dropout is off."""
    if kind == "gelu":
        return gelu(x)
    if kind == "half_glu1":
        h = gelu(x)
        return h * sigmoid(linear(h, p["W2.weight"], p["W2.bias"]))
    if kind == "half_glu2":
        return x * sigmoid(linear(gelu(x), p["W2.weight"], p["W2.bias"]))
    if kind == "full_glu":
        h = gelu(x)
        return linear(h, p["W1.weight"], p["W1.bias"]) * sigmoid(linear(h, p["W2.weight"], p["W2.bias"]))
    raise ValueError(kind)


def batch_statistics(x):
    """Mean and biased variance of each channel over all tokens of the batch."""
    mean = x.sum(axis=0) / len(x)
    return mean, ((x - mean)**2).sum(axis=0) / len(x)


def norm(options, x, p, updates):
    """BatchNorm with running statistics (eval) or those of the batch (training), or LayerNorm over channels."""
    if options["norm"] == "layer":
        width = x.shape[1]
        mean = x.sum(axis=1, keepdims=True) / width
        variance = ((x - mean)**2).sum(axis=1, keepdims=True) / width
    elif options["training"]:
        mean, variance = batch_statistics(x)
        for name, value in [("running_mean", mean), ("running_var", variance)]:
            updates["norm." + name] = RUNNING_MOMENTUM * p["norm." + name] + (1 - RUNNING_MOMENTUM) * value
    else:
        mean, variance = p["norm.running_mean"], p["norm.running_var"]
    return (x - mean) / np.sqrt(variance + EPS) * p["norm.weight"] + p["norm.bias"]


def part(parameters, prefix):
    """The parameters whose names begin with prefix, without it."""
    return {name[len(prefix):]: value for name, value in parameters.items() if name.startswith(prefix)}


def block(options, x, offsets, p, updates):
    """Prenorm x + branch(norm(x)), or postnorm norm(x + branch(x)); branch = activation of layer."""
    def branch(v):
        return activation(options["activation"], rotrnn(part(p, "layer."), options, v, offsets)[0], p)

    if options["prenorm"]:
        return x + branch(norm(options, x, p, updates))
    return norm(options, x + branch(x), p, updates)


def network(options, parameters, u, offsets):
    """encoder -> blocks -> mean over the true length -> head. Returns all stages by name, "logits" the last."""
    stages = {"encoded": linear(u, parameters["encoder.weight"], parameters["encoder.bias"])}
    x = stages["encoded"]
    for i in range(options["depth"]):
        updates = {}
        x = block(options, x, offsets, part(parameters, f"blocks.{i}."), updates)
        stages[f"blocks.{i}.output"] = x
        for name, value in updates.items():
            stages[f"blocks.{i}.{name}"] = value
    stages["pooled"] = np.array([x[s].sum(axis=0) / len(x[s]) for s in sequences(offsets)])
    stages["logits"] = linear(stages["pooled"], parameters["head.weight"], parameters["head.bias"])
    return stages


# ----------------------------------------------------------------------------------------------- RotRNN as LRU


def to_lru(parameters, options):
    """The LRU that computes the same outputs: one complex state per pair of coordinates of z = P^T x.

    z_t = gamma Theta z_{t-1} + xi P^T B u_t and y = C P z: a pair rotated by theta is one complex number times
    exp(i theta). Real part of C z: (a - ib)(p + iq) has the real part ap + bq, hence the minus in C."""
    H, dh = options["H"], options["dh"]
    pairs = (dh + 1) // 2
    outputs = ["C", "C_reverse"] if options["bidirectional"] else ["C"]
    lru = {name: [] for name in ["nu_log", "theta_log", "gamma_log", "B_re", "B_im"]}
    lru.update({f"{name}_{side}": [] for name in outputs for side in ["re", "im"]})
    for h in range(H):
        gamma_log, B = parameters["gamma_log"][h], parameters["B"][h]
        P = orthogonal(parameters["M"][h])
        rest = one_minus_gamma_squared(gamma_log)
        xi = np.sqrt(options["c"] * rest / squared_norm(B))
        W = xi * P.T @ B
        for j in range(pairs):
            alone = 2 * j + 1 == dh  # the last coordinate of an odd dh: theta = 0, no imaginary part
            theta = 0.0 if alone else np.mod(parameters["theta"][h][j], 2.0 * np.pi)
            lru["nu_log"].append(gamma_log)
            lru["theta_log"].append(np.log(theta if theta > 0.0 else 2.0 * np.pi))
            lru["gamma_log"].append(0.5 * np.log(rest))
            lru["B_re"].append(W[2 * j] / np.sqrt(rest))
            lru["B_im"].append(np.zeros_like(B[0]) if alone else W[2 * j + 1] / np.sqrt(rest))
            for name in outputs:
                V = parameters[name][:, h * dh:(h + 1) * dh] @ P
                lru[name + "_re"].append(V[:, 2 * j])
                lru[name + "_im"].append(np.zeros(len(V)) if alone else -V[:, 2 * j + 1])
    lru = {name: np.array(value) for name, value in lru.items()}
    for name in outputs:  # from one row per state to [D, S]
        lru[name + "_re"], lru[name + "_im"] = lru[name + "_re"].T, lru[name + "_im"].T
    lru["D"] = parameters["D"]
    return lru


def run_lru(p, u, offsets):
    """x_t = lambda * x_{t-1} + exp(gamma_log) * (B u_t) and y = Re(C x) + D * u, with
    lambda = exp(-exp(nu_log) + i exp(theta_log)); x is complex."""
    lam = np.exp(-np.exp(p["nu_log"]) + 1j * np.exp(p["theta_log"]))
    B = p["B_re"] + 1j * p["B_im"]

    def outputs(u_s, name):
        C = p[name + "_re"] + 1j * p[name + "_im"]
        x = np.zeros(len(lam), dtype=complex)
        y = []
        for u_t in u_s:
            x = lam * x + np.exp(p["gamma_log"]) * (B @ u_t)
            y.append((C @ x).real)
        return np.array(y)

    y = []
    for tokens in sequences(offsets):
        u_s = u[tokens]
        y_s = outputs(u_s, "C") + p["D"] * u_s
        if "C_reverse_re" in p:
            y_s = y_s + outputs(u_s[::-1], "C_reverse")[::-1]
        y.append(y_s)
    return np.concatenate(y)


# -------------------------------------------------------------------------------------------------- gradients


def finite_difference(f, h=1e-2):
    """f'(0): central differences at h, h/2, h/4, extrapolated twice (Richardson), so that h^2 and h^4 cancel."""
    d = [(f(step) - f(-step)) / (2.0 * step) for step in (h, h / 2, h / 4)]
    d = [(4.0 * d[1] - d[0]) / 3.0, (4.0 * d[2] - d[1]) / 3.0]
    return (16.0 * d[1] - d[0]) / 15.0


def complex_step(f, h=1e-30):
    """f'(0) = Im f(ih) / h: nothing is subtracted, so it is good to rounding."""
    return f(1j * h).imag / h


def gradients(loss, values, where):
    """The derivative of loss(values) by every number in values {name: array}, by complex step.

    The finite differences of the real function (with the other matrix exponential) must agree with it."""
    exact, differences = {}, {}
    for name, value in values.items():
        exact[name], differences[name] = np.zeros(value.shape), np.zeros(value.shape)
        for index in np.ndindex(value.shape):
            def moved(step):
                changed = value.astype(np.result_type(value, type(step)))
                changed[index] += step
                return loss({**values, name: changed})

            exact[name][index] = complex_step(moved)
            differences[name][index] = finite_difference(moved)
    scale = max(np.abs(g).max() for g in exact.values())
    worst = max(np.abs(exact[name] - differences[name]).max() for name in exact)
    require(worst <= 1e-9 * scale, f"{where}: complex step and finite differences differ by {worst / scale:.1e}")
    return exact


# ------------------------------------------------------------------------------- checks of the paper's lemmas


def check_mathematics():
    rng = np.random.default_rng(1)

    def largest(a):
        return np.abs(a).max()

    for dh in (2, 3, 5, 8):
        for scale in (0.1, 1.0, 10.0):
            M = scale * rng.standard_normal((dh, dh))
            theta = rng.uniform(0.0, 2.0 * np.pi, dh // 2)
            P, A, one = orthogonal(M), rotation(theta, M), np.eye(dh)
            # An eigenvalue w of M - M^T is known to about eps |M|, and so is its phase.
            tolerance = 1e-14 * max(1.0, np.abs(M - M.T).sum(axis=1).max())
            where = f"dh {dh}, M of scale {scale}"
            require(largest(P - expm_by_taylor(M - M.T)) < 10 * tolerance, f"{where}: two expm disagree")
            require(largest(P @ P.T - one) < 1e-13, f"{where}: P P^T is not I")
            require(abs(np.linalg.det(P) - 1.0) < 1e-12, f"{where}: det P is not 1")
            require(largest(A @ A.T - one) < 1e-13, f"{where}: A A^T is not I")
            require(abs(np.linalg.det(A) - 1.0) < 1e-12, f"{where}: det A is not 1")
            power = one
            for k in range(1, 33):
                power = A @ power
                turned = P @ block_rotation(k * theta, dh) @ P.T
                require(largest(power - turned) < 1e-12, f"{where}: A^{k} is not P Theta^{k} P^T")

    # Lemma 3, with u white: Cov x_t = F Cov x_{t-1} F^T + E E^T, and E|x_t|^2 is its trace.
    for gamma in (0.5, 0.9, 0.99, 0.999):
        for dh, D in ((2, 3), (5, 4), (8, 6)):
            gamma_log = np.log(-np.log(gamma))
            theta, M = rng.uniform(0.0, 6.0, dh // 2), rng.standard_normal((dh, dh))
            B = 3.0 * rng.standard_normal((dh, D))
            for c in (1.0, 2.5):
                # A step rounds by a few eps of each of dh variances, and 1 / (1 - gamma^2) steps are remembered.
                rounding = 8 * np.finfo(float).eps * dh * c / (1.0 - gamma**2)
                F, E = transition_and_input(theta, gamma_log, M, B, "xi", c)
                covariance = np.zeros((dh, dh))
                stationary = None
                for t in range(1, 501):
                    covariance = F @ covariance @ F.T + E @ E.T
                    expected = c * (1.0 - gamma**(2 * t))
                    require(abs(np.trace(covariance) - expected) < rounding,
                            f"gamma {gamma}, dh {dh}, c {c}: E|x_{t}|^2 is not c (1 - gamma^(2t))")
                    if stationary is None:
                        stationary = E @ E.T / one_minus_gamma_squared(gamma_log)
                    else:
                        stationary = F @ stationary @ F.T + E @ E.T
                    require(abs(np.trace(stationary) - c) < rounding,
                            f"gamma {gamma}, dh {dh}, c {c}: stationary E|x_{t}|^2 is not c")

    # The stationary start is also an initial state: x_0 = ((1 - gamma^2)^(-1/2) - 1) F^(-1) E u_1.
    gamma_log, u = np.log(-np.log(0.9)), rng.standard_normal((7, 3))
    F, E = transition_and_input(rng.uniform(0.0, 6.0, 2), gamma_log, rng.standard_normal((4, 4)),
                                rng.standard_normal((4, 3)), "xi", 1.0)
    scale = 1.0 / np.sqrt(one_minus_gamma_squared(gamma_log))
    x_0 = (scale - 1.0) * np.linalg.solve(F, E @ u[0])
    require(largest(run_head(F, E, u, np.zeros(4), scale) - run_head(F, E, u, x_0, 1.0)) < 1e-13,
            "the stationary start is not the initial state it is said to be")


# -------------------------------------------------------------------------------------------------- the cases


def layer_options(D, N, H, **changes):
    options = {"D": D, "N": N, "H": H, "dh": N // H, "bidirectional": False, "normalisation": "xi", "c": 1.0,
               "stationary_start": False}
    require(set(changes) <= set(options), f"unknown option in {changes}")
    return {**options, **changes}


def layer_parameters(rng, options, gamma=(0.5, 0.99), m_scale=0.5):
    D, N, H, dh = (options[k] for k in ("D", "N", "H", "dh"))
    parameters = {
        "theta": rng.uniform(0.0, 2.0 * np.pi, (H, dh // 2)),
        "gamma_log": np.log(-np.log(rng.uniform(gamma[0], gamma[1], H))),
        "M": m_scale * rng.standard_normal((H, dh, dh)),
        "B": rng.standard_normal((H, dh, D)) / np.sqrt(D),
        "C": rng.standard_normal((D, N)) / np.sqrt(N),
        "D": rng.standard_normal(D),
    }
    if options["bidirectional"]:
        parameters["C_reverse"] = rng.standard_normal((D, N)) / np.sqrt(N)
    return parameters


def layer_case(name, seed, options, lengths, initial_state=False, with_gradients=True, change=None, **init):
    rng = np.random.default_rng(seed)
    parameters = layer_parameters(rng, options, **init)
    if change:
        change(parameters)
    parameters = common.as_kept(parameters)
    offsets = offsets_of(lengths)
    inputs = {"u": rng.standard_normal((offsets[-1], options["D"]))}
    if initial_state:
        inputs["x_0"] = rng.standard_normal((len(lengths), options["N"]))
    y, x, final = rotrnn(parameters, options, inputs["u"], offsets, inputs.get("x_0"))
    case = {"options": options, "parameters": parameters, "input": dict(inputs), "offsets": offsets,
            "outputs": {"y": y, "x": x, "head_norms": head_norms(x, options["H"]), "x_T": final},
            "gradients": {}}
    if with_gradients:
        G = rng.standard_normal(y.shape)
        case["input"]["G"] = G

        def loss(v):
            return (rotrnn(v, options, v["u"], offsets, v.get("x_0"))[0] * G).sum()

        case["outputs"]["loss"] = np.array(loss({**parameters, **inputs}))
        case["gradients"] = gradients(loss, {**parameters, **inputs}, name)
    return case


def layer_cases():
    def unusual_angles(p):  # not in [0, 2 pi): to_lru must take them modulo 2 pi
        p["theta"][:] = [[-0.7], [7.5]]

    def zero_angle(p):  # the logarithm of an angle 0 is that of 2 pi
        p["theta"][1, 0] = 0.0

    def long_memory(p):
        p["gamma_log"][:] = np.log(-np.log([0.5, 0.99, 0.999]))

    bidirectional = {"bidirectional": True}
    plain = (4, 6, 2)  # D, N, H of the variants: dh = 3
    arguments = [
        ("small", 101, layer_options(3, 4, 2), (5, 1, 3), {"change": unusual_angles}),
        ("odd", 102, layer_options(4, 6, 2), (4, 1, 6), {}),
        ("bidirectional", 103, layer_options(5, 15, 3, **bidirectional), (4, 1, 5), {"change": zero_angle}),
        ("one_head", 104, layer_options(6, 8, 1, **bidirectional), (1, 6, 3), {"m_scale": 1.0}),
        ("initial_state", 105, layer_options(*plain), (4, 1, 3), {"initial_state": True}),
        ("alpha_c1", 106, layer_options(*plain, normalisation="alpha"), (4, 1, 3), {}),
        ("alpha_c2.5", 107, layer_options(*plain, normalisation="alpha", c=2.5), (4, 1, 3), {}),
        ("none", 108, layer_options(*plain, normalisation="none"), (4, 1, 3), {}),
        ("xi_c2.5", 109, layer_options(*plain, c=2.5), (4, 1, 3), {}),
        ("stationary_start", 110, layer_options(*plain, stationary_start=True), (4, 1, 3), {}),
        ("stationary_start_bidirectional", 111, layer_options(*plain, stationary_start=True, **bidirectional),
         (4, 1, 3), {}),
        ("long", 112, layer_options(4, 12, 3), (200, 1, 17), {"change": long_memory, "with_gradients": False}),
    ]
    return {name: layer_case(name, seed, options, lengths, **more)
            for name, seed, options, lengths, more in arguments}


def network_parameters(rng, options):
    D, channels, classes = options["D"], options["channels"], options["classes"]

    def dense(name, rows, columns):
        return {name + ".weight": rng.standard_normal((rows, columns)) / np.sqrt(columns),
                name + ".bias": 0.5 * rng.standard_normal(rows)}

    parameters = dense("encoder", D, channels)
    for i in range(options["depth"]):
        at = f"blocks.{i}."
        parameters[at + "norm.weight"] = rng.uniform(0.5, 1.5, D)
        parameters[at + "norm.bias"] = 0.5 * rng.standard_normal(D)
        if options["norm"] == "batch":
            parameters[at + "norm.running_mean"] = 0.5 * rng.standard_normal(D)
            parameters[at + "norm.running_var"] = rng.uniform(0.5, 2.0, D)
        for name, value in layer_parameters(rng, options).items():
            parameters[at + "layer." + name] = value
        if options["activation"] == "full_glu":
            parameters.update(dense(at + "W1", D, D))
        if options["activation"] != "gelu":
            parameters.update(dense(at + "W2", D, D))
    parameters.update(dense("head", classes, D))
    return parameters


def network_case(name, seed, with_gradients=False, **changes):
    options = {**layer_options(4, 6, 2), "channels": 2, "classes": 3, "depth": 2, "activation": "half_glu1",
               "norm": "batch", "prenorm": True, "training": False, "pooling": "mean"}
    require(set(changes) <= set(options), f"unknown option in {changes}")
    options.update(changes)
    rng = np.random.default_rng(seed)
    parameters = common.as_kept(network_parameters(rng, options))
    offsets = offsets_of((5, 1, 3))
    u = common.as_kept({"u": rng.standard_normal((offsets[-1], options["channels"]))})["u"]
    stages = network(options, parameters, u, offsets)
    case = {"options": options, "parameters": parameters, "input": {"u": u}, "offsets": offsets,
            "outputs": stages, "gradients": {}}
    if with_gradients:
        G = rng.standard_normal(stages["logits"].shape)
        case["input"]["G"] = G

        def loss(v):
            return (network(options, v, v["u"], offsets)["logits"] * G).sum()

        stages["loss"] = np.array(loss({**parameters, "u": u}))
        learnt = {k: v for k, v in parameters.items() if ".running_" not in k}
        buffers = {k: v for k, v in parameters.items() if ".running_" in k}
        case["gradients"] = gradients(lambda v: loss({**buffers, **v}), {**learnt, "u": u}, name)
    return case


def network_cases():
    arguments = [
        ("prenorm_batch_half_glu1", 201, {"with_gradients": True}),
        ("prenorm_batch_full_glu", 202, {"activation": "full_glu"}),
        ("prenorm_batch_half_glu2", 203, {"activation": "half_glu2"}),
        ("prenorm_batch_gelu", 204, {"activation": "gelu"}),
        ("postnorm_batch_half_glu1", 205, {"prenorm": False}),
        ("prenorm_layer_half_glu1", 206, {"norm": "layer"}),
        ("postnorm_layer_half_glu1", 207, {"norm": "layer", "prenorm": False}),
        ("prenorm_batch_half_glu1_training", 208, {"training": True, "with_gradients": True}),
    ]
    return {name: network_case(name, seed, **more) for name, seed, more in arguments}


def lru_cases(cases):
    result = {}
    for name in ("small", "odd", "bidirectional"):
        case = cases[name]
        lru = to_lru(case["parameters"], case["options"])
        y = run_lru(lru, case["input"]["u"], case["offsets"])
        error = np.abs(y - case["outputs"]["y"]).max()
        require(error < 1e-12, f"{name}: the LRU form differs by {error:.1e}")
        result[name] = {"options": {"D": case["options"]["D"], "S": len(lru["nu_log"]),
                                    "bidirectional": case["options"]["bidirectional"]},
                        "parameters": lru}
    return result


def compute():
    check_mathematics()
    cases = layer_cases()
    return {"cases": cases, "networks": network_cases(), "lru": lru_cases(cases)}


if __name__ == "__main__":
    common.main(compute, __doc__.splitlines()[0])

#!/usr/bin/python3
"""Golden numbers for S4, from the equations of the paper and nothing else.

"Efficiently Modeling Long Sequences with Structured State Spaces" (Gu et al. 2022), diagonal plus low rank. Every
one of the D channels is a system of its own with n = floor(N/2) complex states x and their conjugates:

    A = Lambda - P P*, on the doubled vector [x, conj x]     Lambda = -exp(A_log_re) + i A_im, P, B complex [H, n],
                                                             H = D, or 1 if tied: one for all channels
    Delta = exp(log_step)                                    [D]
    A_bar = (1 - Delta A / 2)^-1 (1 + Delta A / 2)           bilinear
    B_bar = (1 - Delta A / 2)^-1 Delta B
    x_t = A_bar x_{t-1} + B_bar u_t,   y_t = 2 Re(sum_n C_n x_{t,n}) + D u_t           K_l = 2 Re(C A_bar^l B_bar)

Trained is not C but C~ = C (1 - A_bar^L), of a length L kept with the layer, [D, n]. A sequence of at most L
tokens takes the first numbers of K; for a longer one C~ becomes C~ (1 + A_bar^L) and L becomes 2L. From C~, with
w_j = exp(-2 pi i j / L), q = 1 + w, j = 0 .. floor(L/2):

    rho(a, b) = sum_n Delta a_n b_n / (2 (1-w) - q Delta Lambda_n) + the same of conj(a_n b_n), conj(Lambda_n)
    K^ = 2 (rho(B, C~) - q rho(B, P*) rho(P, C~) / (1 + q rho(P, P*))),   K = irfft(K^, L)

A step in O(N): D0 = 1 / (2/Delta - Lambda), E = 2/Delta + Lambda, R = conj(P) D0 / (1 + 2 Re sum |P|^2 D0),

    s = E x - P 2 Re(sum conj(P) x) + 2 B u,   x' = D0 (s - P 2 Re(sum R s))

Bidirectional: all is shared but C~, and the reverse part starts at the next sample (see s4d.py).
Initial values: Lambda of HiPPO-N, P = V^H sqrt(n+1/2), B = V^H sqrt(2n+1) with its imaginary part clipped to +-2.

Where the equations leave a choice: both C~ of a bidirectional layer have the same L, and L is doubled until it is
at least the longest sequence. A step of another sampling rate is not among the cases.

The outputs are those of K^. They and the gradients are compared with the dense recurrence in real numbers: A acts
on [Re x, Im x] as [[Re, -Im], [Im, Re]] of Lambda less 2 [Re P, Im P] [Re P, Im P]^T.

    s4.py --write    check the mathematics, compute all cases, write s4.json beside this file
    s4.py --check    the same, but compare with s4.json (1e-12 relative); exit 1 if they differ

s4.json:
    cases   {name: options, parameters, input, offsets, outputs, gradients, kernel, plain, doubled, step}.
            C_re, C_im (C_reverse_*) of parameters are C~. The loss is sum(G * y).
            kernel: K (and K_reverse) [D, L].  plain: C (and C_reverse) as *_re, *_im [D, n], without ~.
            doubled: L, C (and C_reverse) with ~ as *_re, *_im, K (and K_reverse) [D, L], all of twice the length.
            step: D0, E, R as *_re, *_im [D, n]; for the first sequence, forward alone: x after every token as x_re,
            x_im [tokens, D, n] and y [tokens, D], with D u
    longer  {name: options, parameters, input, offsets, outputs, doubled}: a sequence longer than L; doubled has L
            and C~ (as C_*) after as many doublings as it needs
    init    {N: A_log_re, A_im, P_re, P_im, B_re, B_im, Lambda_re, Lambda_im, B_unclipped_re, B_unclipped_im; all [n]}
"""

import common
from common import largest, np, require
from s4d import clip_B, common_parameters, complex_of, convolve, legs, rate_parts, rates, run_channels
from s5 import hippo, hippo_eigen, outputs_of, parts

# ----------------------------------------------------------------------------------------- the frequency form


def channels(p):
    """Lambda, P, B [..., H, n] and Delta [..., D, 1]."""
    return rates(p), complex_of(p, "P"), complex_of(p, "B"), np.exp(p["log_step"])[..., None]


def inverse_dft(K, L):
    """irfft as the sum it is, [..., floor(L/2) + 1] to [..., L]."""
    real = K.real.dtype
    pi = np.arccos(-np.ones((), dtype=real))
    j = np.arange(K.shape[-1])
    weight = np.where((j == 0) | (2 * j == L), 1, 2).astype(real) / L
    turn = np.exp(2j * pi * (np.outer(j, np.arange(L)) % L).astype(real) / L)
    return (weight[:, None] * (K[..., None] * turn).real).sum(axis=-2)


def kernel(p, C, L):
    """K [..., D, L] of C~."""
    Lambda, P, B, Delta = (value[..., None] for value in channels(p))
    real = Delta.dtype
    pi = np.arccos(-np.ones((), dtype=real))
    w = np.exp(-2j * pi * np.arange(L // 2 + 1, dtype=real) / L)
    q = 1 + w

    def rho(a, b):
        ab = a * b
        return (Delta * ab / (2 * (1 - w) - q * Delta * Lambda)
                + Delta * ab.conj() / (2 * (1 - w) - q * Delta * Lambda.conj())).sum(axis=-2)

    C = C[..., None]
    return inverse_dft(2 * (rho(B, C) - q * rho(B, P.conj()) * rho(P, C) / (1 + q * rho(P, P.conj()))), L)


def kernels(p, options, L):
    return {K: kernel(p, complex_of(p, C), L) for K, C in zip(("K", "K_reverse"), outputs_of(options))}


def s4(p, options, offsets):
    """y by the convolution with K, for arrays with leading axes."""
    K, u = kernels(p, options, options["L"]), p["u"]
    y = []
    for tokens in common.sequences(offsets):
        for t in range(tokens.start, tokens.stop):
            y_t = p["D"] * u[..., t, :]
            for s in range(tokens.start, tokens.stop):
                if s <= t:
                    y_t = y_t + K["K"][..., t - s] * u[..., s, :]
                elif "K_reverse" in K:
                    y_t = y_t + K["K_reverse"][..., s - t - 1] * u[..., s, :]
            y.append(y_t)
    return {"y": np.stack(y, axis=-2)}


# ---------------------------------------------------------------------------------------- the dense recurrence


def dense_real(p):
    """A_bar [..., D, 2n, 2n] and B_bar [..., D, 2n] in real numbers."""
    re, im = -np.exp(p["A_log_re"]), p["A_im"]
    n = re.shape[-1]
    A = np.zeros(re.shape[:-1] + (2 * n, 2 * n), dtype=re.dtype)
    k = np.arange(n)
    A[..., k, k], A[..., k, n + k], A[..., n + k, k], A[..., n + k, n + k] = re, -im, im, re
    P = np.concatenate([p["P_re"], p["P_im"]], axis=-1)
    A = A - 2 * P[..., :, None] * P[..., None, :]
    B = np.concatenate([p["B_re"], p["B_im"]], axis=-1)
    Delta = np.exp(p["log_step"])[..., None, None]
    inverse = np.linalg.inv(np.eye(2 * n) - Delta * A / 2)
    return inverse @ (np.eye(2 * n) + Delta * A / 2), common.apply(inverse, Delta[..., 0] * B)


def power(A, L):
    result = np.eye(A.shape[-1])
    for _ in range(L):
        result = result @ A
    return result


def row(p, name):
    """2 Re(C x) as a row for [Re x, Im x]."""
    return 2 * np.concatenate([p[name + "_re"], -p[name + "_im"]], axis=-1)


def plain_row(p, name, A, L):
    """The row of C from that of C~."""
    inverse = np.linalg.inv(np.eye(A.shape[-1]) - power(A, L))
    return (row(p, name)[..., None, :] @ inverse)[..., 0, :]


def s4_real(p, options, offsets):
    A, B = dense_real(p)
    zero = [np.zeros(B.shape[-2:])] * (len(offsets) - 1)

    def reader(C):
        return lambda x: (C * x).sum(axis=-1)

    reads = [reader(plain_row(p, name, A, options["L"])) for name in outputs_of(options)]
    y, _ = run_channels(lambda x, u: common.apply(A, x) + B * u[..., None], reads, [zero] * len(reads), p, offsets)
    return {"y": y}


# ------------------------------------------------------------------------------------ the doubled vector, steps


def doubled_vector(value):
    return np.concatenate([value, value.conj()], axis=-1)


def dense_complex(p):
    """A_bar [..., D, 2n, 2n] and B_bar [..., D, 2n] on [x, conj x], by the Woodbury identity

        (2/Delta - A)^-1 = D0 - D0 P P* D0 / (1 + P* D0 P),

    which needs no solver and so works in extended precision too."""
    Lambda, P, B, Delta = channels(p)
    Lambda, P, B = doubled_vector(Lambda), doubled_vector(P), doubled_vector(B)
    D0 = 1 / (2 / Delta - Lambda)
    one = np.eye(Lambda.shape[-1])
    outer = P[..., :, None] * P.conj()[..., None, :]
    low_rank = D0[..., :, None] * outer * D0[..., None, :] / (1 + (P.conj() * D0 * P).sum(axis=-1))[..., None, None]
    inverse = D0[..., :, None] * one - low_rank
    return inverse @ ((2 / Delta + Lambda)[..., :, None] * one - outer), 2 * common.apply(inverse, B)


def plain_solved(p, name, L):
    """C [D, n]: (1 - A_bar^L)^T c = [C~, conj C~]^T, the first half."""
    A, _ = dense_complex(p)
    C = complex_of(p, name)
    solved = np.linalg.solve(np.swapaxes(np.eye(A.shape[-1]) - power(A, L), -1, -2), doubled_vector(C)[..., None])
    return solved[..., :C.shape[-1], 0]


def trained_of(p, C, L):
    """C~ = C (1 - A_bar^L), the first half."""
    A, _ = dense_complex(p)
    return (doubled_vector(C)[..., None, :] @ (np.eye(A.shape[-1]) - power(A, L)))[..., 0, :C.shape[-1]]


def twice(p, C, L):
    """C~ of 2L from that of L."""
    A, _ = dense_complex(p)
    return (doubled_vector(C)[..., None, :] @ (np.eye(A.shape[-1]) + power(A, L)))[..., 0, :C.shape[-1]]


def step_values(p):
    Lambda, P, _, Delta = channels(p)
    D0 = 1 / (2 / Delta - Lambda)
    R = P.conj() * D0 / (1 + 2 * (np.abs(P)**2 * D0).sum(axis=-1, keepdims=True).real)
    return D0, 2 / Delta + Lambda, R


def o_n_step(p, x, u):
    """x' [D, n] of x and u [D]."""
    _, P, B, _ = channels(p)
    D0, E, R = step_values(p)
    s = E * x - P * 2 * (P.conj() * x).sum(axis=-1, keepdims=True).real + 2 * B * u[:, None]
    return D0 * (s - P * 2 * (R * s).sum(axis=-1, keepdims=True).real)


def steps_case(p, offsets, C):
    """The steps of the first sequence, C without ~."""
    x, states, y = np.zeros(C.shape, dtype=complex), [], []
    for u in p["u"][offsets[0]:offsets[1]]:
        x = o_n_step(p, x, u)
        states.append(x)
        y.append(2 * (C * x).sum(axis=-1).real + p["D"] * u)
    D0, E, R = step_values(p)
    return {**parts("D0", D0), **parts("E", E), **parts("R", R), **parts("x", np.array(states)), "y": np.array(y)}


# -------------------------------------------------------------------------------------------------- the cases


def initial(N):
    """Lambda, P, B [n]."""
    Lambda, P, B = legs(N)
    return Lambda, P, clip_B(B)


def init_case(N):
    Lambda, P, B = initial(N)
    return {**rate_parts(Lambda), **parts("P", P), **parts("B", B), **parts("Lambda", Lambda),
            **parts("B_unclipped", legs(N)[2])}


def parameters_of(rng, options, Lambda, P, B):
    p = common_parameters(rng, options, Lambda, B)
    rows = p["A_im"].shape
    p.update(parts("P", P + 0.2 * (rng.standard_normal(rows) + 1j * rng.standard_normal(rows))))
    for name in outputs_of(options):  # C was drawn
        p.update(parts(name, trained_of(p, complex_of(p, name), options["L"])))
    return p


def settings(defaults, changes):
    options = common.checked_options(defaults, changes)
    options["S"] = options["D"] * (options["N"] // 2)
    return options


OPTIONS = {"D": 3, "N": 4, "L": 8, "tied": False, "bidirectional": False}


def derived(p, options, offsets):
    """kernel, plain, doubled and step of a case."""
    L = options["L"]
    plain, double, doubled = {}, {"L": 2 * L}, {}
    for name in outputs_of(options):
        plain[name] = plain_solved(p, name, L)
        doubled.update(parts(name, twice(p, complex_of(p, name), L)))
    double.update({**doubled, **kernels({**p, **doubled}, options, 2 * L)})
    plain_parts = {key: value for name, C in plain.items() for key, value in parts(name, C).items()}
    return {"kernel": kernels(p, options, L), "plain": plain_parts, "doubled": double,
            "step": steps_case(p, offsets, plain["C"])}


def case(name, seed, lengths=(7, 4), untrained=False, **changes):
    options = settings(OPTIONS, changes)
    rng = np.random.default_rng(seed)
    Lambda, P, B = initial(options["N"])
    parameters = parameters_of(rng, options, Lambda, P, B)
    if untrained:
        for key, value in {**rate_parts(Lambda), **parts("P", P), **parts("B", B)}.items():
            parameters[key][:] = value
    parameters = common.as_kept(parameters)
    result = common.layer_case(name, rng, options, parameters, lengths, False, s4, s4_real)
    return {**result, **derived({**parameters, **result["input"]}, options, result["offsets"])}


def cases():
    both, tied = {"bidirectional": True}, {"tied": True}
    arguments = [
        ("untrained", 101, {"untrained": True}),
        ("plain", 102, {"N": 8, "D": 2}),
        ("tied", 103, {"N": 8, "L": 11, "lengths": (11, 1, 5), **tied}),
        ("odd_length", 104, {"L": 7, "lengths": (7, 6)}),
        ("odd_state", 105, {"N": 7, "D": 2, "L": 12, "lengths": (3, 12)}),
        ("one_state", 106, {"N": 2, "D": 2, "L": 5, "lengths": (5, 5)}),
        ("one_token", 107, {"L": 3, "lengths": (1, 1, 1)}),
        ("two_tokens", 108, {"D": 2, "L": 2, "lengths": (2, 1), **both}),
        ("far_longer", 109, {"D": 2, "L": 32, "lengths": (6, 2)}),
        ("bidirectional", 110, {"lengths": (5, 1, 8), **both}),
        ("bidirectional_tied", 111, {"N": 8, "D": 2, "L": 9, "lengths": (9, 2), **both, **tied}),
    ]
    return {name: case(name, seed, **more) for name, seed, more in arguments}


def longer_case(seed, lengths, **changes):
    options = settings(OPTIONS, changes)
    rng = np.random.default_rng(seed)
    p = common.as_kept(parameters_of(rng, options, *initial(options["N"])))
    offsets = common.offsets_of(lengths)
    u = rng.standard_normal((offsets[-1], options["D"]))
    long, L = dict(p), options["L"]
    while L < max(lengths):
        for name in outputs_of(options):
            long.update(parts(name, twice(p, complex_of(long, name), L)))
        L *= 2
    y = s4({**long, "u": u}, {**options, "L": L}, offsets)["y"]
    same = s4_real({**p, "u": u}, options, offsets)["y"]
    require(largest(y - same) < 1e-12 * largest(y), "doubled, the layer is another one")
    changed = {key: value for key, value in long.items() if key.startswith("C_")}
    return {"options": options, "parameters": p, "input": {"u": u}, "offsets": offsets, "outputs": {"y": y},
            "doubled": {"L": L, **changed}}


# -------------------------------------------------------------------------------------- checks of mathematics


def check_initial():
    """Lambda - P P* is HiPPO-LegS: V (Lambda - P P*) V^H of the whole basis gives A, and V B gives sqrt(2n+1)."""
    for N in (2, 4, 8, 16):
        A, B, P = hippo(N)
        Lambda, V = hippo_eigen(N)
        _, P_half, B_half = legs(N)
        whole = np.concatenate([V, V.conj()], axis=1)
        low = doubled_vector(P_half)
        A_half = np.diag(doubled_vector(Lambda)) - np.outer(low, low.conj())
        require(largest(whole @ A_half @ whole.conj().T - A) < 1e-13 * N**2, f"N {N}: not the A of HiPPO")
        require(largest(whole @ doubled_vector(B_half) - B) < 1e-13 * N, f"N {N}: not the B of HiPPO")
        require(largest(whole @ low - P) < 1e-13 * N, f"N {N}: not the P of HiPPO")
        require(largest(initial(N)[2].imag) <= 2, f"N {N}: Im B is not clipped")
    require((initial(4)[2] != legs(4)[2]).any(), "the clip does not act at size 4")


def check_hippo():
    """The whole layer, B not clipped, is the dense real x' = A x + B u of HiPPO-LegS, bilinear."""
    rng = np.random.default_rng(7)
    for N in (4, 8):
        A, B, _ = hippo(N)
        _, V = hippo_eigen(N)
        Lambda, P, B_half = legs(N)
        p = {**rate_parts(Lambda[None]), **parts("P", P[None]), **parts("B", B_half[None]),
             "log_step": np.log(np.array([0.3]))}
        C = rng.standard_normal(N)
        trained = trained_of(p, (C @ V)[None], 12)
        K = kernel(p, trained, 12)[0]
        inverse = np.linalg.inv(np.eye(N) - 0.15 * A)
        x = inverse @ (0.3 * B)
        for K_l in K:
            require(abs(K_l - C @ x) < 1e-12 * N, f"N {N}: K is not that of HiPPO-LegS")
            x = inverse @ (np.eye(N) + 0.15 * A) @ x


def check_forms(name, case):
    """Frequency form, its doubled self, powers of A_bar in both dense forms, the steps: one layer."""
    options, offsets = case["options"], case["offsets"]
    p = {**case["parameters"], **case["input"]}
    L, n = options["L"], options["N"] // 2

    def near(a, b, what):
        error = largest(a - b) / largest(b)
        require(error < 1e-12, f"{name}: {what} differs by {error:.1e}")

    A_real, B_real = dense_real(p)
    A, B = dense_complex(p)
    near(A[..., :n, :n].real + A[..., :n, n:].real, A_real[..., :n, :n], "A_bar")
    near(A[..., n:, :n].conj(), A[..., :n, n:], "the conjugate half of A_bar")
    near(B, doubled_vector(B_real[..., :n] + 1j * B_real[..., n:]), "B_bar")
    for K_name, C_name in zip(("K", "K_reverse"), outputs_of(options)):
        C = complex_of(case["plain"], C_name)
        near(trained_of(p, C, L), complex_of(p, C_name), f"C~ of {C_name}")
        near(trained_of(p, C, 2 * L), complex_of(case["doubled"], C_name), f"doubled C~ of {C_name}")
        plain = plain_row(p, C_name, A_real, L)
        near(row(case["plain"], C_name), plain, f"{C_name} without ~")
        x, x_real, K, K_real = B, B_real, [], []
        for _ in range(2 * L):
            K.append((doubled_vector(C) * x).sum(axis=-1).real)
            K_real.append((plain * x_real).sum(axis=-1))
            x, x_real = common.apply(A, x), common.apply(A_real, x_real)
        K, K_real = np.array(K).T, np.array(K_real).T
        near(K, K_real, f"{K_name} of the two dense forms")
        near(case["kernel"][K_name], K[:, :L], K_name)
        near(case["doubled"][K_name], K, f"doubled {K_name}")
    near(convolve(case["kernel"], p, offsets), case["outputs"]["y"], "y")

    first, x = slice(offsets[0], offsets[1]), 0 * B
    forward = s4_real(p, {**options, "bidirectional": False}, offsets)["y"]
    near(case["step"]["y"], forward[first], "y of the steps")
    for u, state in zip(p["u"][first], complex_of(case["step"], "x")):
        x = common.apply(A, x) + B * u[:, None]
        near(doubled_vector(state), x, "x of the steps")
    if not options["bidirectional"]:
        near(case["step"]["y"], case["outputs"]["y"][first], "y of the steps and of the layer")


def check_transform():
    rng = np.random.default_rng(8)
    for L in (1, 2, 5, 8):
        K = rng.standard_normal(L)
        require(largest(inverse_dft(np.fft.rfft(K, L), L) - K) < 1e-14, f"L {L}: the inverse transform by sums")


def compute():
    check_initial()
    check_transform()
    check_hippo()
    longer = {"once": longer_case(201, (7, 3), L=5, D=2), "from_one": longer_case(203, (4, 1), L=1, D=2),
              "twice_bidirectional": longer_case(202, (11, 2), L=3, D=2, bidirectional=True)}
    tree = {"cases": cases(), "longer": longer, "init": {str(N): init_case(N) for N in (4, 7, 8, 64)}}
    for name, item in tree["cases"].items():
        check_forms(name, item)
    return tree


if __name__ == "__main__":
    common.main(compute, __doc__.splitlines()[0])

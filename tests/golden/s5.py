#!/usr/bin/python3
"""Golden numbers for S5, from the equations of the paper and nothing else.

"Simplified State Space Layers for Sequence Modeling" (Smith, Warrington, Linderman 2023). A state of P real
numbers in J blocks; conjugate symmetry keeps S = P/2 complex ones:

    Lambda = Lambda_re + i Lambda_im                         [S]; with clip, min(Lambda_re, -1e-4) + i Lambda_im
    Delta  = step_rescale exp(log_step)                      [S]
    zoh:       Lambda_bar = exp(Lambda Delta),               B_bar = expm1(Lambda Delta) / Lambda * B
    bilinear:  Lambda_bar = (1 + z) / (1 - z), z = Lambda Delta / 2,      B_bar = Delta / (1 - z) * B
    x_t = Lambda_bar * x_{t-1} + B_bar u_t                   B complex [S, D]
    y_t = 2 Re(C x_t) + D * u_t                              C complex [D, S]

Bidirectional: all is shared but C, and y = 2 Re(C x) + 2 Re(C_reverse x_reverse) + D * u.

Initial values, HiPPO-LegS of size N = P/J in each block: A = -sqrt((2n+1)(2k+1)) below the diagonal, -(n+1) on it;
B_n = sqrt(2n+1), P_n = sqrt(n+1/2); the normal matrix A + P P^T = -1/2 + skew has the eigenvalues
-1/2 + i w, w ascending, of which the floor(N/2) with w < 0 are kept, each eigenvector of length 1 with a first
entry that is real and positive. V holds them in columns, block after block; B = V^H (real B), C = (complex C) V.

The outputs are of this form, in complex numbers; the gradients come from real ones (see common.py), with
exp(Lambda Delta) and expm1(Lambda Delta) / (Lambda Delta) from one matrix exponential by its series.

    s5.py --write    check the mathematics, compute all cases, write s5.json beside this file
    s5.py --check    the same, but compare with s5.json (1e-12 relative); exit 1 if they differ

s5.json:
    cases            {name: options, parameters, input, offsets, outputs, gradients}. States x_0, x_T, x_0_reverse,
                     x_T_reverse are [sequences, 2S], real parts first; G, G_T and G_T_reverse are what y, x_T and
                     x_T_reverse are multiplied by in the loss
    hippo            {N: A, B, P, and of the kept half Lambda, V, VhB, VhP as *_re and *_im}
    init             {name: P, J, D, given B and C, and Lambda, V, B_tilde, C_tilde}
    discretisation   arrays, an entry for a pair of Lambda and Delta: Lambda_bar and the factor of B, per method
"""

from decimal import Decimal, localcontext

import common
from common import as_matrices, largest, np, require

CLIP = -1e-4  # of Re Lambda

# ---------------------------------------------------------------------------------------------- discretisation


def discretise(method, Lambda, Delta):
    """Lambda_bar and the factor of B, in complex numbers, as the paper has them."""
    if method == "zoh":
        return np.exp(Lambda * Delta), np.expm1(Lambda * Delta) / Lambda
    if method == "bilinear":
        z = Lambda * Delta / 2
        return (1 + z) / (1 - z), Delta / (1 - z)
    raise ValueError(method)


def expm(K):
    """exp of matrices [..., n, n] by scaling, series and squaring. Analytic, also for the complex step."""
    norm = np.abs(K).sum(axis=-1).max()
    squarings = max(0, int(np.ceil(np.log2(norm / 0.5)))) if norm > 0 else 0
    K = K / 2.0**squarings
    total = term = np.broadcast_to(np.eye(K.shape[-1], dtype=K.dtype), K.shape)
    for k in range(1, 19):  # 0.5^19 / 19! = 1.6e-23
        term = term @ K / k
        total = total + term
    for _ in range(squarings):
        total = total @ total
    return total


def exp_and_phi(Z):
    """exp(Z) and phi(Z) = integral_0^1 exp(sZ) ds = 1 + Z/2 + Z^2/6 + ..., for matrices [..., n, n]: blocks of
    the exponential of [[Z, 1], [0, 0]]. There is no division by Z, so that Z may be as small as it likes."""
    n = Z.shape[-1]
    K = np.zeros(Z.shape[:-2] + (2 * n, 2 * n), dtype=Z.dtype)
    K[..., :n, :n], K[..., :n, n:] = Z, np.eye(n)
    E = expm(K)
    return E[..., :n, :n], E[..., :n, n:]


def discretise_matrices(method, A, Delta):
    """The same for real matrices A [..., n, n] in x' = A x + B u, held over a step Delta [..., n, n], which
    commutes with A: Lambda_bar and the factor of B as matrices."""
    if method == "zoh":
        E, phi = exp_and_phi(A @ Delta)
        return E, phi @ Delta
    one, half = np.eye(A.shape[-1]), A @ Delta / 2
    inverse = np.linalg.inv(one - half)
    return inverse @ (one + half), inverse @ Delta


# -------------------------------------------------------------------------------------------------- the layer


def outputs_of(options):
    return ["C", "C_reverse"] if options["bidirectional"] else ["C"]


def clipped(Lambda_re, options):
    """The derivative is 0 where the clip acts."""
    if not options["clip"]:
        return Lambda_re
    return np.where(Lambda_re.real > CLIP, CLIP, Lambda_re)


def s5(p, options, offsets):
    """In complex numbers, as the paper has it."""
    Lambda = clipped(p["Lambda_re"], options) + 1j * p["Lambda_im"]
    Delta = options["step_rescale"] * np.exp(p["log_step"])
    lam, factor = discretise(options["discretisation"], Lambda, Delta)
    B = factor[..., None] * (p["B_re"] + 1j * p["B_im"])
    C = [2 * (p[name + "_re"] + 1j * p[name + "_im"]) for name in outputs_of(options)]
    return common.run_complex(lam, B, C[0], C[1] if len(C) > 1 else None, p, offsets)


def s5_real(p, options, offsets):
    """In real numbers, every complex one as a 2x2 matrix."""
    A = as_matrices(clipped(p["Lambda_re"], options), p["Lambda_im"])
    Delta = options["step_rescale"] * np.exp(p["log_step"])
    lam, factor = discretise_matrices(options["discretisation"], A, as_matrices(Delta, 0 * Delta))
    B = factor[..., :, None, :, :] @ as_matrices(p["B_re"], p["B_im"])
    W = np.concatenate([B[..., 0, 0], B[..., 1, 0]], axis=-2)
    V = [2 * np.concatenate([p[name + "_re"], -p[name + "_im"]], axis=-1) for name in outputs_of(options)]
    return common.run_real(lam, W, V[0], V[1] if len(V) > 1 else None, p, offsets)


# ------------------------------------------------------------------------------------------------------ HiPPO


def hippo(N):
    """A, B, P of HiPPO-LegS."""
    n = np.arange(N, dtype=float)
    A = -np.tril(np.sqrt(np.outer(2 * n + 1, 2 * n + 1)), -1) - np.diag(n + 1)
    return A, np.sqrt(2 * n + 1), np.sqrt(n + 0.5)


def hippo_eigen(N):
    """Lambda and V of the kept half of HiPPO-N: [N // 2] and [N, N // 2]."""
    A, _, P = hippo(N)
    skew = A + np.outer(P, P) + 0.5 * np.eye(N)
    w, V = np.linalg.eigh(-1j * skew)
    w, V = w[:N // 2], V[:, :N // 2]
    return -0.5 + 1j * w, V * (V[0].conj() / np.abs(V[0]))


def blocks_of(P, J):
    """Lambda [P / 2] and the block-diagonal V [P, P / 2] of J blocks."""
    require(P % J == 0 and P // J % 2 == 0, f"P = {P} is not J = {J} blocks of even size")
    Lambda, V = hippo_eigen(P // J)
    return np.tile(Lambda, J), np.kron(np.eye(J), V)


def parts(name, value):
    return {name + "_re": value.real.copy(), name + "_im": value.imag.copy()}


def hippo_case(N):
    A, B, P = hippo(N)
    Lambda, V = hippo_eigen(N)
    return {"A": A, "B": B, "P": P, **parts("Lambda", Lambda), **parts("V", V), **parts("VhB", V.conj().T @ B),
            **parts("VhP", V.conj().T @ P)}


def init_case(seed, P, J, D):
    rng = np.random.default_rng(seed)
    Lambda, V = blocks_of(P, J)
    B = rng.standard_normal((P, D)) / np.sqrt(P)
    C = rng.standard_normal((D, P)) + 1j * rng.standard_normal((D, P))
    return {"P": P, "J": J, "D": D, "B": B, **parts("C", C), **parts("Lambda", Lambda), **parts("V", V),
            **parts("B_tilde", V.conj().T @ B), **parts("C_tilde", C @ V)}


# -------------------------------------------------------------------------------------------------- the cases


def parameters_of(rng, options):
    """The layer's own initial values, with steps long enough to show within a few tokens."""
    P, J, D = options["P"], options["J"], options["D"]
    Lambda, V = blocks_of(P, J)
    Lambda = Lambda + 0.2 * (rng.standard_normal(P // 2) + 1j * rng.standard_normal(P // 2))  # as if trained
    p = {**parts("Lambda", Lambda), **parts("B", V.conj().T @ rng.standard_normal((P, D)) / np.sqrt(P))}
    for name in outputs_of(options):
        C = rng.standard_normal((D, P)) + 1j * rng.standard_normal((D, P))
        p.update(parts(name, C @ V / np.sqrt(P)))
    p["D"] = rng.standard_normal(D)
    p["log_step"] = np.log(rng.uniform(0.05, 0.8, P // 2))
    return p


def case(name, seed, lengths=(7, 4), initial_states=False, change=None, **changes):
    options = common.checked_options({"D": 3, "P": 8, "J": 1, "discretisation": "zoh", "step_rescale": 1.0,
                                      "clip": False, "bidirectional": False}, changes)
    options["S"] = options["P"] // 2
    rng = np.random.default_rng(seed)
    parameters = parameters_of(rng, options)
    if change:
        change(parameters)
    parameters = common.as_kept(parameters)
    return common.layer_case(name, rng, options, parameters, lengths, initial_states, s5, s5_real)


def cases():
    def beyond_the_clip(p):  # above zero, between the clip and zero, just below it, well below it
        p["Lambda_re"][:] = [0.3, -5e-5, -2e-4, -0.6]

    def tiny(p):  # |Lambda Delta| = 1e-9: exp(z) - 1 would be good to 7 digits only
        phase = np.array([0.6, 0.8, 1.0, 0.0])
        p["Lambda_re"][:], p["Lambda_im"][:] = -1e-8 * np.sqrt(1 - phase**2), -1e-8 * phase
        p["log_step"][:] = np.log([0.1, 0.08, 0.11, 0.12])

    both, clip, bilinear = {"bidirectional": True}, {"clip": True, "change": beyond_the_clip}, "bilinear"
    arguments = [
        ("zoh", 101, {}),
        ("zoh_initial_state", 102, {"J": 2, "initial_states": True, "lengths": (4, 1, 7)}),
        ("zoh_bidirectional", 103, {"J": 2, "initial_states": True, **both}),
        ("zoh_half_rate", 104, {"P": 6, "step_rescale": 2.0}),
        ("zoh_clip", 105, clip),
        ("zoh_no_clip", 105, {**clip, "clip": False}),
        ("zoh_tiny", 106, {"change": tiny}),
        ("bilinear", 107, {"discretisation": bilinear}),
        ("bilinear_bidirectional", 108, {"discretisation": bilinear, "J": 2, "step_rescale": 2.0, **both}),
        ("bilinear_clip", 109, {"discretisation": bilinear, "initial_states": True, **clip}),
    ]
    return {name: case(name, seed, **more) for name, seed, more in arguments}


# -------------------------------------------------------------------------------------- discretisation, exact


def times(a, b):
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def over(a, b):
    square = b[0] * b[0] + b[1] * b[1]
    return times(a, (b[0] / square, -b[1] / square))


def exact_zoh(Lambda, Delta):
    """exp(z) = sum z^k / k! and Delta sum z^k / (k+1)!, in pairs (re, im) of Decimal."""
    z = Lambda[0] * Delta, Lambda[1] * Delta
    term, k = (Decimal(1), Decimal(0)), 0
    E, phi = [Decimal(0)] * 2, [Decimal(0)] * 2
    while k < 10 or max(map(abs, term)) > Decimal(10)**-50:
        k += 1
        E = [e + t for e, t in zip(E, term)]
        phi = [f + t / k for f, t in zip(phi, term)]
        term = tuple(t / k for t in times(term, z))
    return E, [Delta * f for f in phi]


def exact_bilinear(Lambda, Delta):
    half = Lambda[0] * Delta / 2, Lambda[1] * Delta / 2
    below = 1 - half[0], -half[1]
    return over((1 + half[0], half[1]), below), over((Delta, Decimal(0)), below)


def discretisation_table():
    """Lambda and Delta are taken as the doubles they are. 150 digits: the terms of exp(100i) grow to 1e42."""
    Lambdas = [-0.5 - 0.75j, -0.5 - 1000j, -0.5 + 0j, -1e-4 - 3j, -1e-4 + 0j, -1e-8 - 1e-8j, 0.25 - 2j, -40 - 40j, 1j]
    Deltas = [1e-9, 1e-3, 0.1, 1.0]
    pairs = [(L, d) for L in Lambdas for d in Deltas if abs(L * d) <= 100]
    # About where an implementation may change from a series to the closed form.
    pairs += [(near * decade * (-0.6 - 0.8j), 1.0) for decade in (1e-4, 1e-3, 1e-2, 0.1, 1) for near in (0.99, 1.01)]
    table = {"Lambda_re": [L.real for L, _ in pairs], "Lambda_im": [L.imag for L, _ in pairs],
             "Delta": [d for _, d in pairs]}
    with localcontext() as context:
        context.prec = 150
        for method, exact in [("zoh", exact_zoh), ("bilinear", exact_bilinear)]:
            for L, d in pairs:
                values = exact((Decimal(L.real), Decimal(L.imag)), Decimal(d))
                for name, value in zip(("Lambda_bar", "factor"), values):
                    for part, number in zip(("re", "im"), value):
                        table.setdefault(f"{method}_{name}_{part}", []).append(float(number))
    table = {name: np.array(value) for name, value in table.items()}

    Lambda, Delta = table["Lambda_re"] + 1j * table["Lambda_im"], table["Delta"]
    for method in ("zoh", "bilinear"):
        for name, value in zip(("Lambda_bar", "factor"), discretise(method, Lambda, Delta)):
            exact = table[f"{method}_{name}_re"] + 1j * table[f"{method}_{name}_im"]
            # A rounding of z = Lambda Delta is one of exp(z), absolutely.
            error = np.abs(value - exact) / np.abs(exact) / np.maximum(1, np.abs(Lambda * Delta))
            require(largest(error) < 1e-15, f"{method}: {name} in double differs by {largest(error):.1e}")
    return table


# -------------------------------------------------------------------------------------- checks of mathematics


def check_hippo():
    root = np.sqrt
    A = -np.array([[1, 0, 0, 0],
                   [root(3), 2, 0, 0],
                   [root(5), root(15), 3, 0],
                   [root(7), root(21), root(35), 4]])
    B = root([1, 3, 5, 7])
    P = root(np.array([1, 3, 5, 7]) / 2)
    for name, by_hand, formula in zip("ABP", (A, B, P), hippo(4)):
        require(largest(by_hand - formula) < 1e-15, f"HiPPO {name} of size 4 is not the one written by hand")

    Lambda, V = hippo_eigen(2)  # skew = [[0, r], [-r, 0]], r = sqrt(3) / 2
    require(largest(Lambda - (-0.5 - 1j * root(3) / 2)) < 1e-15, "Lambda of size 2")
    require(largest(V - root(0.5) * np.array([[1], [-1j]])) < 1e-15, "V of size 2")

    for N in (2, 4, 5, 6, 8, 16):
        A, B, P = hippo(N)
        normal = A + np.outer(P, P)
        skew = normal + 0.5 * np.eye(N)
        require(largest(skew + skew.T) < 1e-14 * N, f"N {N}: A + P P^T + 1/2 is not skew")
        Lambda, V = hippo_eigen(N)
        require(len(Lambda) == N // 2 and (Lambda.imag < 0).all(), f"N {N}: not the negative half")
        require((np.diff(Lambda.imag) > 0).all(), f"N {N}: not ascending")
        require(largest(V[0].imag) < 1e-15 and (V[0].real > 1e-3).all(), f"N {N}: the first entry is not real")
        require(largest(V.conj().T @ V - np.eye(N // 2)) < 1e-14, f"N {N}: V^H V is not 1")
        require(largest(normal @ V - V * Lambda) < 1e-14 * N**2, f"N {N}: no eigenvectors")
        if N % 2 == 0:
            require(largest(2 * (V @ V.conj().T).real - np.eye(N)) < 1e-14, f"N {N}: V and its conjugate miss some")
            whole = 2 * (V * Lambda @ V.conj().T).real
            require(largest(whole - normal) < 1e-14 * N**2, f"N {N}: V Lambda V^H and its conjugate are not A + PP^T")
        else:
            require(abs(np.linalg.det(skew)) < 1e-12, f"N {N}: no real eigenvalue to drop")


def check_dense():
    """The complex diagonal layer with real C is the real dense one x' = A x + B u, y = C x, of P states:

        A = V Lambda V^H + its conjugate        Delta = V diag(Delta) V^H + its conjugate, commuting with A"""
    rng = np.random.default_rng(7)
    for P, J in ((4, 1), (8, 1), (8, 2), (12, 3)):
        for method in ("zoh", "bilinear"):
            for one_step in (True, False):
                where = f"P {P}, J {J}, {method}, {'one step' if one_step else 'a step for each state'}"
                Lambda, V = blocks_of(P, J)
                step = 0.3 if one_step else rng.uniform(0.05, 0.8, P // 2)
                B, C, u = rng.standard_normal((P, 3)), rng.standard_normal((2, P)), rng.standard_normal((20, 3))

                def whole(diagonal):
                    return 2 * (V * diagonal @ V.conj().T).real

                A, Delta = whole(Lambda), whole(step * np.ones(P // 2))
                if one_step:  # A of HiPPO itself, not put together from eigenvectors
                    legs, _, low_rank = hippo(P // J)
                    A, Delta = np.kron(np.eye(J), legs + np.outer(low_rank, low_rank)), step * np.eye(P)
                F, factor = discretise_matrices(method, A, Delta)
                if method == "zoh":
                    other = np.linalg.solve(A, F - np.eye(P)) @ B
                    require(largest(factor @ B - other) < 1e-13 * P, f"{where}: A^-1 (exp(A Delta) - 1) B")
                    halves = expm(A @ Delta / 2)
                    require(largest(F - halves @ halves) < 1e-13, f"{where}: exp is not that of two half steps")

                lam, scale = discretise(method, Lambda, step)
                B_bar, C_tilde = scale[:, None] * (V.conj().T @ B), C @ V
                x, z = np.zeros(P), np.zeros(P // 2, dtype=complex)
                for u_t in u:
                    x = F @ x + factor @ B @ u_t
                    z = lam * z + B_bar @ u_t
                    require(largest(2 * (V @ z).real - x) < 1e-12, f"{where}: states of the dense recurrence")
                    require(largest(2 * (C_tilde @ z).real - C @ x) < 1e-12, f"{where}: its outputs")


def check_cases(tree):
    clip, no_clip = tree["zoh_clip"], tree["zoh_no_clip"]
    for acted in (clip, tree["bilinear_clip"]):
        gradient = acted["gradients"]["Lambda_re"]
        require((gradient[:2] == 0).all() and (gradient[2:] != 0).all(), "the clip's gradient")
    require(largest(clip["parameters"]["Lambda_re"] - no_clip["parameters"]["Lambda_re"]) == 0, "the same layer")
    require(largest(clip["outputs"]["y"] - no_clip["outputs"]["y"]) > 0.1, "the clip does not show")

    # The plain difference exp(z) - 1 must be seen in the case that is there to show it.
    tiny = tree["zoh_tiny"]
    p, options = tiny["parameters"], tiny["options"]
    z = (p["Lambda_re"] + 1j * p["Lambda_im"]) * np.exp(p["log_step"])
    require(largest(np.abs(np.log10(np.abs(z)) + 9)) < 0.2, "|Lambda Delta| is not about 1e-9")
    plain = {**p, **tiny["input"]}
    ratio = ((np.exp(z) - 1) / np.expm1(z))[:, None] * (p["B_re"] + 1j * p["B_im"])
    plain["B_re"], plain["B_im"] = ratio.real, ratio.imag
    error = largest(s5(plain, options, tiny["offsets"])["y"] - tiny["outputs"]["y"])
    require(error > 1e-9 * largest(tiny["outputs"]["y"]), f"the plain difference is wrong by {error:.1e} only")


def compute():
    check_hippo()
    check_dense()
    tree = {"cases": cases(), "hippo": {str(N): hippo_case(N) for N in (2, 4, 5, 6, 8)},
            "init": {"one_block": init_case(201, 6, 1, 2), "two_blocks": init_case(202, 8, 2, 3)},
            "discretisation": discretisation_table()}
    check_cases(tree["cases"])
    return tree


if __name__ == "__main__":
    common.main(compute, __doc__.splitlines()[0])

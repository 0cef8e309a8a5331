#!/usr/bin/python3
"""Golden numbers for Liquid-S4, from the equations of the paper and nothing else.

"Liquid Structural State-Space Models" (Hasani et al. 2022). x_k = (A_bar + diag(B_bar) u_k) x_{k-1} + B_bar u_k: the
layer is S4 (see s4.py; the same parameters, C~ with its length L) plus correlation terms of order p = 2 .. degree in
every channel. With b_n = Delta B_n / (1 - Delta Lambda_n / 2), the low rank ignored, and s = 2 Re(sum_n b_n):

    coefficient "power"      c_p = 2 Re(sum_n C_n b_n^p)
    coefficient "reference"  c_p = s^(2^(p-1) - 1) 2 Re(sum_n C_n b_n)
    form pb, mode "causal"     y_t += sum_p c_p u_t u_{t-1} .. u_{t-p+1}, u = 0 before the start
    form pb, mode "reference"  not causal, for a sequence of T tokens: w the smallest number below T with
                               binomial(w, p) >= T; the products of p of the last w inputs in lexicographic order
                               of their places; of these the last T; y_t += c_p products[T-1-t]. This needs
                               T >= 5, 6, 7 for p = 2, 3, 4
    form kb, causal            y_t += sum_p s^(p-1) sum_{l>=0} K_l u_{t-l} u_{t-l-1} .. u_{t-l-p+1}

With train_liquid the gradient flows through c_p, or s^(p-1); without, these are constants and only the rest has one.

Where the equations leave a choice: C_n in c_p is C without ~, that of the recurrence. B starts without a clip, which
is all that "not clipped" means; the clip of S4 is of initial values only. In a bidirectional layer the correlation
terms are those of the forward direction, with C and K; the reverse part is S4's. T is the length of a sequence, not
L. In form kb `coefficient` says nothing, as there is one, and `mode` is "causal". Without a gradient of s^(p-1), K in
the terms of kb still has its own.

The outputs are of these equations in complex numbers, K by its frequency form and C by doubling C~ without end,
C = C~ (1 + A_bar^L) (1 + A_bar^2L) (1 + A_bar^4L) ..; the gradients come from the dense recurrence in real numbers.

    liquid_s4.py --write    check the mathematics, compute all cases, write liquid_s4.json beside this file
    liquid_s4.py --check    the same, but compare with liquid_s4.json (1e-12 relative); exit 1 if they differ

liquid_s4.json:
    cases   {name: options, parameters, input, offsets, outputs, gradients, derived}. The loss is sum(G * y). derived:
            s [D]; c [degree - 1, D], c_p from p = 2 on, in form kb s^(p-1); C (and C_reverse) without ~ as *_re and
            *_im [D, n]; K (and K_reverse) [D, L]; y_s4 [tokens, D], what S4 alone gives
    zero    {name: options, parameters, input, offsets, outputs}: all c are 0 but for rounding; y is that of S4
    init    {N: A_log_re, A_im, P_re, P_im, B_re, B_im; all [n]}
"""

import itertools
import math

import common
import s4
from common import as_matrices, largest, np, require
from s4d import complex_of, legs, rate_parts, run_channels
from s5 import outputs_of, parts

# ----------------------------------------------------------------------------------------------- coefficients


def plain_by_doubling(p, L):
    """C [..., D, n] without ~."""
    A, _ = s4.dense_complex(p)
    C = complex_of(p, "C")
    n = C.shape[-1]
    C, X = s4.doubled_vector(C)[..., None, :], s4.power(A, L)
    while largest(X) > np.finfo(X.real.dtype).eps / 1e4:
        C = C + C @ X
        X = X @ X
    return C[..., 0, :n]


def b_of(p):
    Lambda, _, B, Delta = s4.channels(p)
    return Delta * B / (1 - Delta * Lambda / 2)


def coefficients(p, options):
    """c_p (form kb: s^(p-1)) [..., D] for p = 2 .. degree."""
    b, orders = b_of(p), range(2, options["degree"] + 1)
    s = 2 * b.sum(axis=-1).real
    if options["form"] == "kb":
        return [s**(order - 1) for order in orders]
    C = plain_by_doubling(p, options["L"])
    if options["coefficient"] == "power":
        return [2 * (C * b**order).sum(axis=-1).real for order in orders]
    return [s**(2**(order - 1) - 1) * 2 * (C * b).sum(axis=-1).real for order in orders]


def coefficients_real(p, options, C):
    """The same in real numbers; C [..., D, 2n] is the row that reads [Re x, Im x]."""
    Delta = np.exp(p["log_step"])[..., None]
    half = as_matrices(-np.exp(p["A_log_re"]) * Delta / 2, p["A_im"] * Delta / 2)
    b = Delta[..., None, None] * np.linalg.inv(np.eye(2) - half) @ as_matrices(p["B_re"], p["B_im"])
    s, orders = 2 * b[..., 0, 0].sum(axis=-1), range(2, options["degree"] + 1)
    if options["form"] == "kb":
        return [s**(order - 1) for order in orders]

    def read(matrices):
        return (C * np.concatenate([matrices[..., 0, 0], matrices[..., 1, 0]], axis=-1)).sum(axis=-1)

    result, power = [], b
    for order in orders:
        power = power @ b
        result.append(read(power) if options["coefficient"] == "power" else s**(2**(order - 1) - 1) * read(b))
    return result


# -------------------------------------------------------------------------------------------------- the terms


def causal_products(u, offsets, order):
    """u_t u_{t-1} .. u_{t-order+1} [..., tokens, D], 0 where one of them is before the start."""
    result = [None] * offsets[-1]
    for tokens in common.sequences(offsets):
        for t in range(tokens.start, tokens.stop):
            first = t - order + 1
            result[t] = 0 * u[..., t, :] if first < tokens.start else u[..., first:t + 1, :].prod(axis=-2)
    return np.stack(result, axis=-2)


def window(T, order):
    """The smallest w < T with binomial(w, order) >= T."""
    w = next((w for w in range(order, T) if math.comb(w, order) >= T), None)
    require(w is not None, f"a sequence of {T} tokens is too short for order {order}")
    return w


def reference_products(u, offsets, order):
    result = []
    for tokens in common.sequences(offsets):
        T = tokens.stop - tokens.start
        places = range(tokens.stop - window(T, order), tokens.stop)
        last = list(itertools.combinations(places, order))[-T:]
        result += [u[..., chosen, :].prod(axis=-2) for chosen in last[::-1]]
    return np.stack(result, axis=-2)


def products(u, options, offsets, order):
    if options["form"] == "pb" and options["mode"] == "reference":
        return reference_products(u, offsets, order)
    return causal_products(u, offsets, order)


# -------------------------------------------------------------------------------------------------- the layer


def liquid(p, options, offsets, fixed=None):
    """In complex numbers. fixed: coefficients that are constants."""
    y = s4.s4(p, options, offsets)["y"]
    K = s4.kernel(p, complex_of(p, "C"), options["L"]) if options["form"] == "kb" else None
    for order, c in enumerate(fixed or coefficients(p, options), 2):
        term = products(p["u"], options, offsets, order)
        if options["form"] == "kb":
            term = convolved(K, term, offsets)
        y = y + c[..., None, :] * term
    return {"y": y}


def convolved(K, v, offsets):
    """sum_{l>=0} K_l v_{t-l}."""
    result = []
    for tokens in common.sequences(offsets):
        for t in range(tokens.start, tokens.stop):
            result.append(sum(K[..., l] * v[..., t - l, :] for l in range(t - tokens.start + 1)))
    return np.stack(result, axis=-2)


def liquid_real(p, options, offsets, fixed=None):
    """In real numbers: kb as S4's recurrence driven by products of inputs; pb's products one factor at a time."""
    y = s4.s4_real(p, options, offsets)["y"]
    A, B = s4.dense_real(p)
    C = s4.plain_row(p, "C", A, options["L"])
    zero = [np.zeros(B.shape[-2:])] * (len(offsets) - 1)
    u = p["u"]
    product = u
    for order, c in enumerate(fixed or coefficients_real(p, options, C), 2):
        if options["form"] == "pb" and options["mode"] == "reference":
            term = reference_products(u, offsets, order)
        else:  # the product of one order less, a token before, times u
            late = 0 * u
            for tokens in common.sequences(offsets):
                late[..., tokens.start + 1:tokens.stop, :] = product[..., tokens.start:tokens.stop - 1, :]
            term = product = u * late
        if options["form"] == "kb":
            driven = {"u": term, "D": 0 * p["D"]}
            term, _ = run_channels(lambda x, v: common.apply(A, x) + B * v[..., None],
                                   [lambda x: (C * x).sum(axis=-1)], [zero], driven, offsets)
        y = y + c[..., None, :] * term
    return {"y": y}


# -------------------------------------------------------------------------------------------------- the cases

OPTIONS = {"D": 2, "N": 4, "L": 8, "tied": False, "bidirectional": False, "form": "pb", "mode": "causal",
           "coefficient": "power", "degree": 2, "train_liquid": True}


def init_case(N):
    Lambda, P, B = legs(N)
    return {**rate_parts(Lambda), **parts("P", P), **parts("B", B)}


def parameters_of(rng, options):
    p = s4.parameters_of(rng, options, *legs(options["N"]))
    p["log_step"] = np.log(rng.uniform(0.3, 0.8, options["D"]))  # so that s is about 1 and no power of it is lost
    return p


def derived(p, options, offsets):
    plain = {name: s4.plain_solved(p, name, options["L"]) for name in outputs_of(options)}
    result = {"s": 2 * b_of(p).sum(axis=-1).real, "c": np.array(coefficients(p, options))}
    for name, C in plain.items():
        result.update(parts(name, C))
    return {**result, **s4.kernels(p, options, options["L"]), "y_s4": s4.s4(p, options, offsets)["y"]}


def case(name, seed, lengths=(8, 5), **changes):
    options = s4.settings(OPTIONS, changes)
    rng = np.random.default_rng(seed)
    parameters = common.as_kept(parameters_of(rng, options))
    fixed = None if options["train_liquid"] else coefficients(parameters, options)

    def with_fixed(run):
        return lambda p, o, offsets: run(p, o, offsets, fixed)

    result = common.layer_case(name, rng, options, parameters, lengths, False, with_fixed(liquid),
                               with_fixed(liquid_real))
    return {**result, "derived": derived({**parameters, **result["input"]}, options, result["offsets"])}


def cases():
    reference, kb = {"coefficient": "reference"}, {"form": "kb"}
    not_causal, both, tied = {"mode": "reference"}, {"bidirectional": True}, {"tied": True}
    constant, short = {"train_liquid": False}, {"lengths": (6, 1, 3)}
    arguments = [
        ("pb_power_2", 101, {"N": 7, **short}),
        ("pb_power_3", 102, {"degree": 3, "lengths": (2, 8)}),
        ("pb_power_4", 103, {"degree": 4}),
        ("pb_reference_2", 104, {"N": 7, **reference, **short}),
        ("pb_reference_3", 105, {"degree": 3, **reference}),
        ("pb_reference_4", 106, {"degree": 4, **reference}),
        ("kb_2", 107, {**kb, "N": 7, **short}),
        ("kb_3", 108, {**kb, "degree": 3}),
        ("kb_4", 109, {**kb, "degree": 4}),
        ("not_causal_power_2", 110, {**not_causal}),
        ("not_causal_power_4", 111, {"degree": 4, "L": 12, "lengths": (7, 12), **not_causal}),
        ("not_causal_reference_2", 112, {"L": 11, "lengths": (5, 11), **not_causal, **reference}),
        ("not_causal_reference_3", 113, {"degree": 3, "lengths": (6, 8), **not_causal, **reference}),
        ("not_causal_reference_4", 114, {"degree": 4, "lengths": (8,), **not_causal, **reference}),
        ("pb_power_constant", 115, {"degree": 3, **constant}),
        ("pb_reference_constant", 116, {"degree": 3, **constant, **reference}),
        ("kb_constant", 117, {"degree": 3, **constant, **kb}),
        ("not_causal_constant", 118, {"lengths": (7,), **constant, **not_causal, **reference}),
        ("pb_bidirectional", 119, {"degree": 3, **short, **both}),
        ("kb_bidirectional", 120, {"degree": 3, **short, **both, **kb}),
        ("pb_tied", 121, {"D": 3, "lengths": (4, 3), **tied}),
    ]
    return {name: case(name, seed, **more) for name, seed, more in arguments}


def zero_case(name, seed, **changes):
    """Coefficients that are 0 by symmetry, so that rounding to float32 leaves them 0.

    s = 0 for kb and for coefficients of the reference: half of the states have the Lambda of the others and -B.
    2 Re(C b^p) = 0 for those of the power, p = 2, 3, 4: four states differ in B i^k and C~ i^-k alone, k = 0 ... 3, so
    C has these factors too, and the sum over k is 0 unless p is 1."""
    options = s4.settings(OPTIONS, changes)
    rng = np.random.default_rng(seed)
    p = common.as_kept(parameters_of(rng, options))
    n = options["N"] // 2
    power = options["form"] == "pb" and options["coefficient"] == "power"
    require(n == 4 if power else n % 2 == 0, f"{name}: {n} states")
    copies = 4 if power else 2
    for key in ("A_log_re", "A_im") + (("P_re", "P_im") if power else ()):
        p[key][:] = np.tile(p[key][:, :n // copies], copies)
    turns = np.repeat([1, 1j, -1, -1j] if power else [1, -1], n // copies)
    p.update(parts("B", np.tile(complex_of(p, "B")[:, :n // copies], copies) * turns))
    if power:
        p.update(parts("C", np.tile(complex_of(p, "C")[:, :1], 4) * turns.conj()))
    offsets = common.offsets_of((8, 7))
    inputs = {"u": rng.standard_normal((offsets[-1], options["D"]))}
    require(largest(np.array(coefficients(p, options))) < 1e-14, f"{name}: the coefficients are not 0")
    y = s4.s4_real({**p, **inputs}, options, offsets)["y"]
    for run in (liquid, liquid_real):
        error = largest(run({**p, **inputs}, options, offsets)["y"] - y) / largest(y)
        require(error < 1e-13, f"{name}: without coefficients the layer is not S4, {error:.1e}")
    return {"options": options, "parameters": p, "input": inputs, "offsets": offsets, "outputs": {"y": y}}


def zero_cases():
    reference = {"coefficient": "reference"}
    arguments = [("pb_power", 201, {"N": 8, "degree": 4}), ("pb_reference", 202, {"degree": 4, **reference}),
                 ("kb", 203, {"form": "kb", "degree": 3}),
                 ("not_causal", 204, {"mode": "reference", "degree": 4, **reference})]
    return {name: zero_case(name, seed, **more) for name, seed, more in arguments}


# -------------------------------------------------------------------------------------- checks of mathematics


def check_window():
    """The shortest sequences; and by hand, for 5 tokens, the last 5 of the pairs 01 02 03 12 13 23 of 4 inputs."""
    for order, shortest in ((2, 5), (3, 6), (4, 7)):
        for T in range(1, 30):
            possible = any(math.comb(w, order) >= T for w in range(T))
            require(possible == (T >= shortest), f"order {order}: {T} tokens")
    u = np.array([[2.0], [3], [5], [7], [11]])
    by_hand = [7 * 11, 5 * 11, 5 * 7, 3 * 11, 3 * 7]
    require(reference_products(u, [0, 5], 2)[:, 0].tolist() == by_hand, "the products of the reference mode")
    require(causal_products(u, [0, 5], 3)[:, 0].tolist() == [0, 0, 30, 105, 385], "the causal products")
    require(causal_products(u, [0, 3, 5], 2)[:, 0].tolist() == [0, 6, 15, 0, 77], "products across sequences")


def check_theory(name, case):
    """"power", causal: the terms are what x^(1)_t = b u_t, x^(p)_t = b u_t x^(p-1)_{t-1} adds, which is the liquid
    recurrence x_t = (0 + diag(b) u_t) x_{t-1} + b u_t taken apart by order."""
    p, options, offsets = case["parameters"], case["options"], case["offsets"]
    b, C, u = b_of(p), complex_of(case["derived"], "C"), case["input"]["u"]
    y = case["derived"]["y_s4"].copy()
    for tokens in common.sequences(offsets):
        x = [np.zeros_like(C)] * options["degree"]
        for t in range(tokens.start, tokens.stop):
            x = [b * u[t][:, None]] + [b * u[t][:, None] * lower for lower in x[:-1]]
            y[t] += 2 * (C * sum(x[1:])).sum(axis=-1).real
    require(largest(y - case["outputs"]["y"]) < 1e-13 * largest(y), f"{name}: not the terms of the theory")


def check_cases(tree):
    for name, item in tree.items():
        options, extra = item["options"], item["derived"]
        p = {**item["parameters"], **item["input"]}
        error = largest(plain_by_doubling(p, options["L"]) - complex_of(extra, "C"))
        require(error < 1e-12, f"{name}: C of endless doubling and of the solver differ by {error:.1e}")
        real = coefficients_real(p, options, s4.plain_row(p, "C", s4.dense_real(p)[0], options["L"]))
        require(largest(np.array(real) - extra["c"]) < 1e-12 * largest(extra["c"]), f"{name}: the coefficients")
        require(largest(item["outputs"]["y"] - extra["y_s4"]) > 0.1, f"{name}: the terms do not show")
        require((np.abs(extra["c"]) > 1e-4).all(), f"{name}: a coefficient is next to nothing")
        if options["mode"] == "causal":  # no output before a changed input changes, forward
            at = item["offsets"][1] - 1
            moved = {**p, "u": p["u"].copy()}
            moved["u"][at] += 1
            forward = {**options, "bidirectional": False}
            change = liquid(moved, forward, item["offsets"])["y"] - liquid(p, forward, item["offsets"])["y"]
            require((change[:at] == 0).all(), f"{name}: not causal")
            require(largest(change[at]) > 0, f"{name}: the last input has no effect")
        if options["form"] == "pb" and options["mode"] == "causal" and options["coefficient"] == "power":
            check_theory(name, item)


def compute():
    check_window()
    tree = {"cases": cases(), "zero": zero_cases(), "init": {str(N): init_case(N) for N in (4, 7)}}
    check_cases(tree["cases"])
    return tree


if __name__ == "__main__":
    common.main(compute, __doc__.splitlines()[0])

#!/usr/bin/python3
"""Golden numbers for S4D, from the equations of the paper and nothing else.

"On the Parameterization and Initialization of Diagonal State Space Models" (Gu et al. 2022). Every one of the D
channels is a system of its own with n = floor(N/2) complex states:

    Lambda = -exp(A_log_re) + i A_im                         [H, n], H = D, or 1 if tied: one for all channels
    Delta  = step_rescale exp(log_step)                      [D]
    zoh:       Lambda_bar = exp(Lambda Delta),               B_bar = expm1(Lambda Delta) / Lambda * B
    bilinear:  Lambda_bar = (1 + z) / (1 - z), z = Lambda Delta / 2,      B_bar = Delta / (1 - z) * B
    x_t = Lambda_bar * x_{t-1} + B_bar u_t                   B complex [H, n]
    y_t = 2 Re(sum_n C_n x_{t,n}) + D u_t                    C complex [D, n]

which is the convolution of u with K_l = 2 Re(sum_n C_n B_bar_n Lambda_bar_n^l). Bidirectional: all is shared but
C, and the reverse part starts at the next sample,

    y_t = sum_{s<=t} K_{t-s} u_s + sum_{s>t} K_reverse_{s-t-1} u_s + D u_t
    z_t = Lambda_bar * z_{t+1} + B_bar u_{t+1},              y_t = ... + 2 Re(sum_n C_reverse_n z_{t,n})

Initial values, n = 0, 1, ...: lin Lambda = -1/2 + i pi n; inv -1/2 + i (N/pi) (N/(2n+1) - 1); both B = 1. legs:
Lambda of HiPPO-N (see s5.py), B = V^H sqrt(2n+1), its imaginary part clipped to +-2, as in S4.

Where the equations leave a choice: N odd has floor(N/2) states for lin and inv as for legs. x_0_reverse is z at
the last token, and x_T_reverse has met all tokens, the first one too, as in S5. B is a buffer if it is not trained.

The outputs are of this form, in complex numbers; the gradients come from real ones (see common.py, s5.py).

    s4d.py --write    check the mathematics, compute all cases, write s4d.json beside this file
    s4d.py --check    the same, but compare with s4d.json (1e-12 relative); exit 1 if they differ

s4d.json:
    cases   {name: options, parameters, buffers, input, offsets, outputs, gradients, system, kernel}. options S is D n.
            buffers: B_re, B_im if they are not trained. system: Lambda_bar and B_bar [D, n] as *_re and *_im; kernel:
            K (and K_reverse) [D, longest sequence]. States x_0, x_T, x_0_reverse, x_T_reverse are [sequences, 2S]:
            real parts [D, n], then imaginary parts; only the cases with initial states have x_T. The loss is
            sum(G * y), and there also + sum(G_T * x_T) + sum(G_T_reverse * x_T_reverse)
    init    {lin, inv, legs: {N: A_log_re, A_im, B_re, B_im, Lambda_re, Lambda_im, all [n]}}
"""

import common
from common import as_matrices, largest, np, require
from s5 import discretise, discretise_matrices, hippo, hippo_eigen, outputs_of, parts

CLIP = 2.0  # of Im B

# --------------------------------------------------------------------------------------------- initial values


def legs(N):
    """Lambda, P, B of HiPPO-LegS in the kept half of its eigenbasis; B as it is, not clipped."""
    _, B, P = hippo(N)
    Lambda, V = hippo_eigen(N)
    return Lambda, V.conj().T @ P, V.conj().T @ B


def clip_B(B):
    return B.real + 1j * np.clip(B.imag, -CLIP, CLIP)


def initial(kind, N):
    """Lambda and B [n]."""
    n = np.arange(N // 2)
    if kind == "lin":
        return -0.5 + 1j * np.pi * n, np.ones(len(n), dtype=complex)
    if kind == "inv":
        return -0.5 + 1j * (N / np.pi) * (N / (2 * n + 1) - 1), np.ones(len(n), dtype=complex)
    require(kind == "legs", f"unknown initial values {kind}")
    Lambda, _, B = legs(N)
    return Lambda, clip_B(B)


def rate_parts(Lambda):
    """Lambda as the layer keeps it."""
    return {"A_log_re": np.log(-Lambda.real), "A_im": Lambda.imag.copy()}


def init_case(kind, N):
    Lambda, B = initial(kind, N)
    return {**rate_parts(Lambda), **parts("B", B), **parts("Lambda", Lambda)}


# -------------------------------------------------------------------------------------------------- the layer
#
# As in common.py any array may have leading axes. A state is of any shape; x_0 and x_T are read and written by the
# layer.


def complex_of(p, name):
    return p[name + "_re"] + 1j * p[name + "_im"]


def rates(p):
    return -np.exp(p["A_log_re"]) + 1j * p["A_im"]


def steps(p, options):
    """Delta [..., D]."""
    return options["step_rescale"] * np.exp(p["log_step"])


def walk(step, read, starts, u, offsets, reverse):
    """read(x) of every token and the last x of every sequence. Forward x has met the token when it is read, in
    reverse it has met those after it only."""
    y, finals = [None] * offsets[-1], []
    for x, tokens in zip(starts, common.sequences(offsets)):
        order = range(tokens.start, tokens.stop)
        for t in reversed(order) if reverse else order:
            if reverse:
                y[t] = read(x)
            x = step(x, u[..., t, :])
            if not reverse:
                y[t] = read(x)
        finals.append(x)
    return np.stack(y, axis=-2), finals


def run_channels(step, reads, starts, p, offsets):
    """y and the final states of one or two directions, a list of reads and of starts each."""
    y, finals = p["D"][..., None, :] * p["u"], []
    for reverse, (read, start) in enumerate(zip(reads, starts)):
        part, final = walk(step, read, start, p["u"], offsets, reverse)
        y = y + part
        finals.append(final)
    return y, finals


def with_states(y, finals, p):
    """x_T for those x_0 that are given; finals are lists of planes [..., 2S]."""
    outputs = {"y": y}
    for end, final in zip(("", "_reverse"), finals):
        if "x_0" + end in p:
            outputs["x_T" + end] = np.stack(final, axis=-2)
    return outputs


def starts_of(p, options, offsets):
    """x_0 of every direction and sequence as planes [..., 2, D, n]."""
    D, n = options["D"], options["N"] // 2
    zero = np.zeros((len(offsets) - 1, 2 * D * n), dtype=p["u"].dtype)
    for end in ["", "_reverse"] if options["bidirectional"] else [""]:
        x_0 = p.get("x_0" + end, zero)
        yield [x_0[..., s, :].reshape(*x_0.shape[:-2], 2, D, n) for s in range(len(offsets) - 1)]


def system(p, options):
    """Lambda_bar and B_bar [..., D, n]."""
    lam, factor = discretise(options["discretisation"], rates(p), steps(p, options)[..., None])
    return lam, factor * complex_of(p, "B")


def s4d(p, options, offsets):
    """In complex numbers, as the paper has it."""
    lam, B = system(p, options)

    def reader(C):
        return lambda x: 2 * (C * x).sum(axis=-1).real

    starts = [[x[..., 0, :, :] + 1j * x[..., 1, :, :] for x in start] for start in starts_of(p, options, offsets)]
    y, finals = run_channels(lambda x, u: lam * x + B * u[..., None],
                             [reader(complex_of(p, name)) for name in outputs_of(options)], starts, p, offsets)
    flat = [[common.to_planes(x.reshape(*x.shape[:-2], -1)) for x in final] for final in finals]
    return with_states(y, flat, p)


def s4d_real(p, options, offsets):
    """In real numbers, every complex one as a 2x2 matrix, a state as (re, im) in the last axis."""
    A = as_matrices(-np.exp(p["A_log_re"]), p["A_im"])
    Delta = steps(p, options)[..., None]
    lam, factor = discretise_matrices(options["discretisation"], A, as_matrices(Delta, 0 * Delta))
    B = common.apply(factor, np.stack([p["B_re"], p["B_im"]], axis=-1))

    def reader(name):
        C = 2 * np.stack([p[name + "_re"], -p[name + "_im"]], axis=-1)
        return lambda x: (C * x).sum(axis=(-2, -1))

    starts = [[np.moveaxis(x, -3, -1) for x in start] for start in starts_of(p, options, offsets)]
    y, finals = run_channels(lambda x, u: common.apply(lam, x) + B * u[..., None, None],
                             [reader(name) for name in outputs_of(options)], starts, p, offsets)
    flat = [[np.moveaxis(x, -1, -3).reshape(*x.shape[:-3], -1) for x in final] for final in finals]
    return with_states(y, flat, p)


def kernels(p, options, length):
    """K and K_reverse [D, length]."""
    lam, B = system(p, options)
    powers = lam[..., None]**np.arange(length)
    return {K: 2 * ((complex_of(p, C) * B)[..., None] * powers).sum(axis=-2).real
            for K, C in zip(("K", "K_reverse"), outputs_of(options))}


def convolve(K, p, offsets):
    """y [tokens, D] of kernels K (and K_reverse), from the sums."""
    y = p["D"] * p["u"]
    for tokens in common.sequences(offsets):
        for t in range(tokens.start, tokens.stop):
            for s in range(tokens.start, tokens.stop):
                if s <= t:
                    y[t] += K["K"][:, t - s] * p["u"][s]
                elif "K_reverse" in K:
                    y[t] += K["K_reverse"][:, s - t - 1] * p["u"][s]
    return y


# -------------------------------------------------------------------------------------------------- the cases


def common_parameters(rng, options, Lambda, B):
    """What the layers of channels share. Lambda and B [n] are moved for every system, as if they were trained."""
    D, n, H = options["D"], options["N"] // 2, 1 if options["tied"] else options["D"]

    def noise(rows, scale=1.0):
        return scale * (rng.standard_normal((rows, n)) + 1j * rng.standard_normal((rows, n)))

    shift = noise(H, 0.2)
    Lambda = Lambda.real * np.exp(shift.real) + 1j * (Lambda.imag + shift.imag)
    p = {**rate_parts(Lambda), **parts("B", B + noise(H, 0.3))}
    for name in outputs_of(options):
        p.update(parts(name, noise(D, np.sqrt(0.5))))
    p["D"] = rng.standard_normal(D)
    p["log_step"] = np.log(rng.uniform(0.05, 0.8, D))  # long enough to show within a few tokens
    return p


def case(name, seed, lengths=(7, 4), initial_states=False, change=None, **changes):
    options = common.checked_options({"D": 3, "N": 8, "init": "legs", "discretisation": "zoh", "tied": False,
                                      "train_b": True, "step_rescale": 1.0, "bidirectional": False}, changes)
    options["S"] = options["D"] * (options["N"] // 2)
    rng = np.random.default_rng(seed)
    Lambda, B = initial(options["init"], options["N"])
    parameters = common_parameters(rng, options, Lambda, B)
    if change:
        change(parameters)
    parameters = common.as_kept(parameters)
    buffers = {}
    if not options["train_b"]:
        rows = parameters["B_re"].shape[0]
        parameters = {key: value for key, value in parameters.items() if key not in ("B_re", "B_im")}
        buffers = common.as_kept(parts("B", np.tile(B, (rows, 1))))

    def with_buffers(run):
        return lambda p, o, offsets: run({**buffers, **p}, o, offsets)

    result = common.layer_case(name, rng, options, parameters, lengths, initial_states, with_buffers(s4d),
                               with_buffers(s4d_real))
    lam, B_bar = system({**buffers, **parameters}, options)
    return {"options": options, "parameters": parameters, "buffers": buffers, **result,
            "system": {**parts("Lambda_bar", lam), **parts("B_bar", B_bar)},
            "kernel": kernels({**buffers, **parameters}, options, max(lengths))}


def cases():
    def untrained(kind):
        def change(p):
            Lambda, B = initial(kind, 8)
            for key, value in {**rate_parts(Lambda), **parts("B", B)}.items():
                p[key][:] = value
        return change

    def tiny(p):  # |Lambda Delta| = 1e-9: exp(z) - 1 would be good to 7 digits only
        phase = np.array([0.6, 0.96])
        p["A_log_re"][:], p["A_im"][:] = np.log(1e-8 * np.sqrt(1 - phase**2)), 1e-8 * phase
        p["log_step"][:] = np.log([0.08, 0.12])
        p["D"][:] = 0.0  # so that y shows whether B_bar kept its digits
        for part in ("C_re", "C_im"):  # the gradient of A_log_re is 1e-9: a large loss would drown it in differences
            p[part] *= 0.2

    both, bilinear = {"bidirectional": True}, {"discretisation": "bilinear"}
    tied, fixed = {"tied": True}, {"train_b": False}
    arguments = [
        ("lin_untrained", 101, {"init": "lin", "change": untrained("lin"), **fixed}),
        ("lin_tied_bidirectional", 102, {"init": "lin", "lengths": (5, 1, 8), **tied, **fixed, **both}),
        ("lin_bilinear", 103, {"init": "lin", **bilinear}),
        ("inv_untrained", 104, {"init": "inv", "change": untrained("inv"), **tied}),
        ("inv_bilinear_tied", 105, {"init": "inv", **bilinear, **tied, **fixed}),
        ("inv_odd", 106, {"init": "inv", "N": 7, "D": 2, "lengths": (12, 1, 2)}),
        ("legs", 107, {}),
        ("legs_tied_fixed", 108, {**tied, **fixed}),
        ("legs_bidirectional", 109, {"lengths": (6, 2, 1), **both}),
        ("legs_bilinear_bidirectional", 110, {"N": 4, "lengths": (1, 9), **bilinear, **both}),
        ("legs_half_rate", 111, {"N": 4, "D": 2, "step_rescale": 2.0, **tied}),
        ("initial_state", 112, {"N": 6, "D": 2, "initial_states": True, "lengths": (4, 1, 7)}),
        ("bidirectional_initial_state", 113, {"N": 6, "D": 2, "initial_states": True, **tied, **both, **bilinear}),
        ("zoh_tiny", 114, {"N": 4, "D": 2, "change": tiny, "lengths": (5, 2)}),
    ]
    return {name: case(name, seed, **more) for name, seed, more in arguments}


# -------------------------------------------------------------------------------------- checks of mathematics


def check_initial():
    for N in (2, 3, 4, 7, 8, 64):
        for kind in ("lin", "inv", "legs"):
            Lambda, B = initial(kind, N)
            require(len(Lambda) == len(B) == N // 2, f"{kind} {N}: not floor(N/2) states")
            require(largest(Lambda.real + 0.5) < 1e-13, f"{kind} {N}: the real part is not -1/2")
            require(largest(B.imag) <= CLIP, f"{kind} {N}: Im B is not clipped")
    by_hand = (8 / np.pi) * np.array([7, 5 / 3, 3 / 5, 1 / 7])
    require(largest(initial("inv", 8)[0].imag - by_hand) < 1e-14, "inv of size 8")
    require(largest(initial("lin", 8)[0].imag - np.pi * np.array([0, 1, 2, 3])) == 0, "lin of size 8")
    Lambda, B = initial("legs", 2)  # V = sqrt(1/2) (1, -i)
    require(largest(Lambda - (-0.5 - 0.5j * np.sqrt(3))) < 1e-15, "Lambda of legs of size 2")
    require(largest(B - np.sqrt(0.5) * (1 + 1j * np.sqrt(3))) < 1e-15, "B of legs of size 2")
    require(initial("legs", 4)[1].imag[0] == CLIP < legs(4)[2].imag[0], "the clip does not act at size 4")


def check_convolution(name, case):
    """Recurrence and convolution are the same, x_0 adding 2 Re(C Lambda_bar^(t+1) x_0) and its mirror image, which is
    a power less."""
    options, inputs, offsets = case["options"], case["input"], case["offsets"]
    p = {**case["parameters"], **case["buffers"], **inputs}
    y = convolve(case["kernel"], p, offsets)
    lam = system(p, options)[0]
    for C, end in zip(outputs_of(options), ("", "_reverse")):
        if "x_0" + end not in inputs:
            continue
        for s, tokens in enumerate(common.sequences(offsets)):
            x_0 = common.to_complex(inputs["x_0" + end][s]).reshape(options["D"], -1)
            for t in range(tokens.start, tokens.stop):
                power = tokens.stop - 1 - t if end else t - tokens.start + 1
                y[t] += 2 * (complex_of(p, C) * lam**power * x_0).sum(axis=-1).real
    error = largest(y - case["outputs"]["y"]) / largest(y)
    require(error < 1e-13, f"{name}: recurrence and convolution differ by {error:.1e}")


def check_fft(case):
    """y = irfft(rfft(u, 2L) rfft(K, 2L))[:L] + D u; in both directions K_reverse is at the end, turned round."""
    p = {**case["parameters"], **case["input"]}
    both = "K_reverse" in case["kernel"]
    for tokens in common.sequences(case["offsets"]):
        u = p["u"][tokens]
        L = len(u)
        k = np.zeros((case["options"]["D"], 2 * L))
        k[:, :L] = case["kernel"]["K"][:, :L]
        if both:
            k[:, L:] = case["kernel"]["K_reverse"][:, :L][:, ::-1]
        y = np.fft.irfft(np.fft.rfft(u.T, 2 * L) * np.fft.rfft(k, 2 * L), 2 * L)[:, :L].T + p["D"] * u
        require(largest(y - case["outputs"]["y"][tokens]) < 1e-13 * largest(y), "recurrence and FFT differ")


def check_dense():
    """With one step for all, Lambda of legs and an unclipped B the layer is the dense x' = (A + P P^T) x + B u."""
    rng = np.random.default_rng(7)
    for method in ("zoh", "bilinear"):
        A, B, P = hippo(8)
        _, V = hippo_eigen(8)
        Lambda, _, B_half = legs(8)
        F, factor = discretise_matrices(method, A + np.outer(P, P), 0.3 * np.eye(8))
        lam, scale = discretise(method, Lambda, 0.3)
        C = rng.standard_normal(8)
        K, x = 2 * ((C @ V * scale * B_half) * lam**np.arange(20)[:, None]).sum(axis=-1).real, factor @ B
        for K_l in K:
            require(abs(K_l - C @ x) < 1e-12, f"{method}: K is not that of the dense system")
            x = F @ x


def check_cases(tree):
    for name, item in tree.items():
        check_convolution(name, item)
        require(("B_re" in item["gradients"]) == item["options"]["train_b"], f"{name}: B is trained or not")
        rows = 1 if item["options"]["tied"] else item["options"]["D"]
        require(item["parameters"]["A_im"].shape == (rows, item["options"]["N"] // 2), f"{name}: shape of A_im")
    for name in ("legs", "legs_bidirectional", "legs_bilinear_bidirectional"):
        check_fft(tree[name])

    # The plain difference exp(z) - 1 must be seen in the case that is there to show it.
    item = tree["zoh_tiny"]
    p = {**item["parameters"], **item["input"]}
    z = rates(p) * steps(p, item["options"])[:, None]
    require(largest(np.abs(np.log10(np.abs(z)) + 9)) < 0.2, "|Lambda Delta| is not about 1e-9")
    ratio = (np.exp(z) - 1) / np.expm1(z) * complex_of(p, "B")
    y = s4d({**p, **parts("B", ratio)}, item["options"], item["offsets"])["y"]
    error = largest(y - item["outputs"]["y"]) / largest(y)
    require(error > 1e-9, f"the plain difference is wrong by {error:.1e} only")


def compute():
    check_initial()
    check_dense()
    tree = {"cases": cases(),
            "init": {kind: {str(N): init_case(kind, N) for N in (4, 7, 8, 64)} for kind in ("lin", "inv", "legs")}}
    check_cases(tree["cases"])
    return tree


if __name__ == "__main__":
    common.main(compute, __doc__.splitlines()[0])

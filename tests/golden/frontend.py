#!/usr/bin/env python3
"""Tokens of the front end of rotations from its equations, and all gradients of a weighted sum of them.

    z_t = gamma e^{i theta} z_{t-1} + xi x_t,  xi = sqrt(1 - gamma^2),  gamma = exp(-exp(gamma_log))
    token_j = (log(mean over its hop of |z_t|^2 + 1e-7) - mean) / deviation

of every channel and band; a last partial hop counts only when it is the only one. x [n, channels], tokens
[tokens, channels, bands]. Also θ and γ of the bands: geometric frequencies, widths f/8 + 25 Hz at 16 kHz.

    frontend.py --write | --check"""

import common
import numpy as np

FLOOR = 1e-7


def hops(offsets, hop):
    """Of every sequence: the samples of its tokens."""
    for s in common.sequences(offsets):
        length = s.stop - s.start
        for j in range(max(1, length // hop)):
            yield s, slice(s.start + j * hop, min(s.start + (j + 1) * hop, s.stop))


def tokens_of(values, power):
    """power [..., tokens, C, K]."""
    return (np.log(power + FLOOR) - values["mean"]) / values["deviation"]


def literal(values, options, offsets):
    """Every state as the sum of all inputs before it: no recurrence."""
    x, theta, decay = values["x"], values["theta"], np.exp(values["gamma_log"])
    xi = np.sqrt(1 - np.exp(-2 * decay))
    means = []
    for s, samples in hops(offsets, options["hop"]):
        total = 0
        for t in range(samples.start, samples.stop):
            ages = (t - np.arange(s.start, t + 1)).astype(theta.dtype)[:, None]  # [inputs, 1]
            weight = np.exp(-ages * decay[..., None, :])  # [..., inputs, K]
            given = x[..., s.start:t + 1, :]
            re = np.einsum("...sc,...sk->...ck", given, weight * np.cos(ages * theta[..., None, :]))
            im = np.einsum("...sc,...sk->...ck", given, weight * np.sin(ages * theta[..., None, :]))
            total = total + (re * re + im * im) * xi[..., None, :]**2
        means.append(total / (samples.stop - samples.start))
    return tokens_of(values, np.stack(means, axis=-3))


def analytic(values, options, offsets):
    """The recurrence in real numbers."""
    x, theta, gamma = values["x"], values["theta"], np.exp(-np.exp(values["gamma_log"]))
    re_step, im_step = (gamma * np.cos(theta))[..., None, :], (gamma * np.sin(theta))[..., None, :]
    xi = np.sqrt(1 - gamma * gamma)[..., None, :]
    means, sequence = [], None
    for s, samples in hops(offsets, options["hop"]):
        if s != sequence:
            sequence, re, im = s, 0, 0
        total = 0
        for t in range(samples.start, samples.stop):
            re, im = re_step * re - im_step * im + xi * x[..., t, :, None], re_step * im + im_step * re
            total = total + re * re + im * im
        means.append(total / (samples.stop - samples.start))
    return tokens_of(values, np.stack(means, axis=-3))


def bands(low, high, count, rate):
    f = low * (high / low)**(np.arange(count) / (count - 1))
    width = f / 8 + 25 * rate / 16000
    return {"options": {"low": low, "high": high, "bands": count, "rate": rate},
            "theta": 2 * np.pi * f / rate, "gamma": np.exp(-2 * np.pi * width / rate)}


def case(name, rng, channels, count, hop, lengths):
    offsets, options = common.offsets_of(lengths), {"channels": channels, "bands": count, "hop": hop}
    trained = common.as_kept({
        "theta": rng.uniform(0.02, 3.0, count), "gamma_log": np.log(-np.log(rng.uniform(0.5, 0.995, count))),
        "x": rng.standard_normal((offsets[-1], channels))})
    fixed = common.as_kept({"mean": rng.standard_normal((channels, count)),
                            "deviation": rng.uniform(0.5, 2.0, (channels, count))})
    tokens = literal({**trained, **fixed}, options, offsets)
    error = common.largest(tokens - analytic({**trained, **fixed}, options, offsets)) / common.largest(tokens)
    common.require(error < 1e-12, f"{name}: the two forms differ by {error:.1e}")
    cotangent = rng.standard_normal(tokens.shape)

    def loss(run):
        return lambda v: (cotangent * run({**v, **fixed}, options, offsets)).sum(axis=(-3, -2, -1))

    return {"options": options, "offsets": offsets, "given": {**trained, **fixed}, "cotangent": cotangent,
            "tokens": tokens, "gradients": common.gradients(loss(analytic), loss(literal), trained, name)}


def compute():
    rng = np.random.default_rng(26)
    return {"bands": {"speech": bands(60.0, 7700.0, 7, 16000.0), "slow": bands(0.5, 20.0, 5, 50.0)},
            "cases": {"one": case("one", rng, 1, 5, 4, [9, 4, 3]),
                      "channels": case("channels", rng, 3, 2, 3, [7, 1]),
                      "samples": case("samples", rng, 2, 1, 1, [5])}}


if __name__ == "__main__":
    common.main(compute, __doc__)

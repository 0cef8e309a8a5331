#!/usr/bin/python3
"""Golden numbers for fitted models, from their equations and nothing else.

A bank of rotations over x [L, C], with u_t = [x_t, x_t - x_{t-1}] and x_0 = x_1:

    z_t = lambda * z_{t-1} + sum_r w_r u_{t, i(r)},  z_0 = 0,  v = Re z
    features: for each level c_k the share of t with v_t > c_k; then max_t v_t          [K + 1, states]

Ridge regression with weights and an intercept b that is not penalised, on columns of weighted mean 0:

    minimise sum_i w_i |y_i - b - beta^T x_i|^2 + alpha |beta|^2

`left_out` are predictions for a row (or a group of rows) by a fit to all others, one fit after the other.

    fit.py --write    compute all cases, write fit.json beside this file
    fit.py --check    the same, but compare with fit.json (1e-12 relative); exit 1 if they differ
"""

import common
from common import np

LANES = 16


def bank_case(seed, channels, groups, taps, lengths):
    rng = np.random.default_rng(seed)
    states = LANES * groups
    f32 = lambda a: np.asarray(a, dtype=np.float32).astype(float)  # noqa: E731
    inputs = rng.integers(0, 2 * channels, (groups, taps))
    weights = f32(0.4 * rng.standard_normal((groups, taps, 2, LANES)))
    lam = rng.uniform(0.5, 0.99, states) * np.exp(1j * rng.uniform(0, 3, states))
    lam = f32(lam.real) + 1j * f32(lam.imag)
    levels = f32(0.4 * rng.standard_normal((5, states)))
    offsets = common.offsets_of(lengths)
    x = f32(rng.standard_normal((offsets[-1], channels)))
    features, gap = [], np.inf
    for rows in common.sequences(offsets):
        series = x[rows]
        u = np.concatenate([series, np.diff(series, axis=0, prepend=series[:1])], axis=1)
        z, v = np.zeros(states, complex), []
        for row in u:
            z = lam * z
            for g in range(groups):
                own = slice(LANES * g, LANES * (g + 1))
                for r in range(taps):
                    z[own] += (weights[g, r, 0] + 1j * weights[g, r, 1]) * row[inputs[g, r]]
            v.append(z.real.copy())
        v = np.array(v)
        gap = min(gap, np.abs(v[None] - levels[:, None]).min())
        features.append(np.concatenate([(v[None] > levels[:, None]).mean(axis=1), v.max(axis=0)[None]]))
    common.require(gap > 1e-6, f"a value is {gap:.1e} from a level: another seed, or rounding decides")
    return {"channels": channels, "groups": groups, "taps": taps, "inputs": inputs.ravel().tolist(),
            "weights": weights, "lambda": np.stack([lam.real, lam.imag]), "levels": levels,
            "offsets": offsets, "x": x, "features": np.array(features)}


def ridge_fit(x, y, w, alpha):
    """beta [F, m] and b [m], by the normal equations with a column of ones."""
    ones = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    penalty = alpha * np.eye(x.shape[1] + 1)
    penalty[-1, -1] = 0
    solution = np.linalg.solve(ones.T @ (w[:, None] * ones) + penalty, ones.T @ (w[:, None] * y))
    return solution[:-1], solution[-1]


def ridge_case(seed, n, features, outputs, alpha):
    rng = np.random.default_rng(seed)
    half = rng.integers(-16, 17, (n // 2, features)) / 8  # in pairs x, -x of one weight: exact mean 0
    x = np.stack([half, -half], axis=1).reshape(n, features)
    w = np.repeat(0.3 + rng.random(n // 2), 2)
    y = x[:, :outputs] + rng.standard_normal((n, outputs)) + 1
    groups = np.where(np.arange(n) < n // 3, 0, 1 + np.arange(n) % 4)
    beta, b = ridge_fit(x, y, w, alpha)

    def left_out(group_of):
        out = np.zeros_like(y)
        for group in np.unique(group_of):
            inside = group_of == group
            rest_beta, rest_b = ridge_fit(x[~inside], y[~inside], w[~inside], alpha)
            out[inside] = x[inside] @ rest_beta + rest_b
        return out

    return {"n": n, "features": features, "outputs": outputs, "alpha": alpha, "x": x, "y": y, "w": w,
            "groups": groups.tolist(), "beta": beta.T.copy(), "b": b, "left_out": left_out(np.arange(n)),
            "groups_left_out": left_out(groups)}


def compute():
    return {"bank": {"one": bank_case(1, 1, 1, 2, [1, 2, 40]), "many": bank_case(2, 3, 3, 3, [17, 300, 5])},
            "ridge": {"wide": ridge_case(3, 24, 60, 3, 0.5), "tall": ridge_case(4, 150, 11, 2, 20.0)}}


if __name__ == "__main__":
    common.main(compute, __doc__.splitlines()[0])

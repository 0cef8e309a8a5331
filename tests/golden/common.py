"""What the golden scripts share: the recurrence of diagonal systems, gradients, and the JSON file.

A script computes a tree of cases from the equations of a layer. Its JSON holds the same tree, an array in it
as {"shape": [...], "values": [flat, row-major]}, every number with all its digits.

A complex state of S numbers is stored as 2S real ones: all real parts, then all imaginary parts.
"""

import argparse
import json
import os
import sys

# The matrices here are a few numbers wide. BLAS threads would only wait for each other, and on a busy machine
# they wait twenty times longer than they work. Read by BLAS when NumPy loads it.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402

SCRIPT = os.path.abspath(sys.argv[0])


def require(condition, message):
    """An assert that python -O does not remove."""
    if not condition:
        print(f"{os.path.basename(SCRIPT)}: FAILED: {message}", file=sys.stderr)
        sys.exit(1)


def largest(a):
    return np.abs(a).max()


def checked_options(options, changes):
    require(set(changes) <= set(options), f"unknown option in {changes}")
    return {**options, **changes}


def as_kept(parameters):
    """Rounded to float32, as layers keep their parameters: they can then take a case over without an error."""
    return {name: value.astype(np.float32).astype(float) for name, value in parameters.items()}


# --------------------------------------------------------------------------------------------- packed batches


def offsets_of(lengths):
    return [0] + [int(n) for n in np.cumsum(lengths)]


def sequences(offsets):
    return [slice(begin, end) for begin, end in zip(offsets[:-1], offsets[1:])]


# ------------------------------------------------------------------------------------------- diagonal systems
#
# Any array may have leading axes, one system for each index of them: this is how `gradients` moves every number
# of a case at once. v [..., n] and u [..., tokens, D].


def apply(matrix, vector):
    return np.einsum("...ij,...j->...i", matrix, vector)


def to_complex(planes):
    S = planes.shape[-1] // 2
    return planes[..., :S] + 1j * planes[..., S:]


def to_planes(x):
    return np.concatenate([x.real, x.imag], axis=-1)


def walk(step, u, offsets, starts, reverse):
    """x_t = step(x_{t-1}, u_t) over every sequence from starts [..., sequences, n], from its end if reverse.

    All states [..., tokens, n] and the last one met in each sequence [..., sequences, n]."""
    states, finals = [None] * offsets[-1], []
    for s, tokens in enumerate(sequences(offsets)):
        x = starts[..., s, :]
        order = range(tokens.start, tokens.stop)
        for t in reversed(order) if reverse else order:
            x = step(x, u[..., t, :])
            states[t] = x
        finals.append(x)
    return np.stack(states, axis=-2), np.stack(finals, axis=-2)


def run_system(step, read, read_reverse, states, values, offsets):
    """y, x_T and, with a read_reverse, x_T_reverse of a layer with a skip D * u. The reverse direction runs the
    same recurrence from the end of each sequence. x_0 and x_0_reverse are of `states` numbers, 0 if not given."""
    u = values["u"]
    zero = np.zeros((len(offsets) - 1, states), dtype=u.dtype)
    x, final = walk(step, u, offsets, values.get("x_0", zero), False)
    outputs = {"y": read(x) + values["D"][..., None, :] * u, "x_T": final}
    if read_reverse:
        x, final = walk(step, u, offsets, values.get("x_0_reverse", zero), True)
        outputs["y"] = outputs["y"] + read_reverse(x)
        outputs["x_T_reverse"] = final
    return outputs


def run_complex(lam, B, C, C_reverse, values, offsets):
    """x_t = lam * x_{t-1} + B u_t and y = Re(C x) + D * u (+ Re(C_reverse x_reverse)), in complex numbers."""
    def step(x, u_t):
        return to_planes(lam * to_complex(x) + apply(B, u_t))

    def reader(matrix):
        return lambda x: apply(matrix[..., None, :, :], to_complex(x)).real

    return run_system(step, reader(C), None if C_reverse is None else reader(C_reverse), 2 * lam.shape[-1],
                      values, offsets)


def as_matrices(re, im):
    """[[re, -im], [im, re]]: the complex number as a real matrix; sums and products are those of matrices."""
    return np.stack([np.stack([re, -im], axis=-1), np.stack([im, re], axis=-1)], axis=-2)


def run_real(lam, W, V, V_reverse, values, offsets):
    """The same in real numbers alone: lam [..., S, 2, 2] of `as_matrices` acts on (re, im) of each state,
    W [..., 2S, D] and V [..., D, 2S] on planes. Analytic in all its arguments, which Re and Im are not."""
    def step(x, u_t):
        S = x.shape[-1] // 2
        pairs = np.stack([x[..., :S], x[..., S:]], axis=-1)
        turned = apply(lam, pairs)
        return np.concatenate([turned[..., 0], turned[..., 1]], axis=-1) + apply(W, u_t)

    def reader(matrix):
        return lambda x: apply(matrix[..., None, :, :], x)

    return run_system(step, reader(V), None if V_reverse is None else reader(V_reverse), 2 * lam.shape[-3],
                      values, offsets)


# -------------------------------------------------------------------------------------------------- gradients


def moved(values, step):
    """Every array of values with a new first axis: at index k of it, number k of all numbers has `step` added."""
    dtype = np.result_type(step, *values.values())
    count = sum(v.size for v in values.values())
    result, k = {}, 0
    for name, v in values.items():
        change = np.zeros((count, v.size), dtype=dtype)
        change[k:k + v.size] = step * np.eye(v.size, dtype=dtype)
        result[name] = v + change.reshape(count, *v.shape)
        k += v.size
    return result


def gradients(analytic, literal, values, where):
    """The derivative of a loss by every number in values {name: array}.

    By complex step on `analytic`, the loss in real arithmetic: f'(x) = Im f(x + ih) / h, nothing is subtracted,
    so it is good to rounding. Central differences of `literal`, the loss as the paper writes it, in extended
    precision, must agree: they are extrapolated once, so that h^2 cancels and h^4 is below rounding, and keep
    all digits but those of 1/h and of the sum."""
    tiny, h, long = 1e-30, np.longdouble(2e-5), np.longdouble
    exact = analytic(moved(values, 1j * tiny)).imag / tiny
    wide = {name: v.astype(long) for name, v in values.items()}
    d = [(literal(moved(wide, step)) - literal(moved(wide, -step))) / (2 * step) for step in (h, h / 2)]
    difference = (4 * d[1] - d[0]) / 3

    result, k, tolerance = {}, 0, 1e8 * np.finfo(long).eps
    for name, v in values.items():
        result[name] = exact[k:k + v.size].reshape(v.shape)
        error = largest(exact[k:k + v.size] - difference[k:k + v.size])
        scale = max(largest(result[name]), 1e-3)
        require(error <= tolerance * scale, f"{where}: two gradients of {name} differ by {error / scale:.1e}")
        k += v.size
    return result


def layer_case(name, rng, options, parameters, lengths, initial_states, literal, analytic):
    """A case: y and final states of a layer on a batch, and all gradients of the loss

        sum(G * y) + sum(G_T * x_T) + sum(G_T_reverse * x_T_reverse)

    literal and analytic: functions of (values, options, offsets), values being parameters and input."""
    offsets, states = offsets_of(lengths), 2 * options["S"]
    inputs = {"u": rng.standard_normal((offsets[-1], options["D"]))}
    if initial_states:
        inputs["x_0"] = rng.standard_normal((len(lengths), states))
        if options["bidirectional"]:
            inputs["x_0_reverse"] = rng.standard_normal((len(lengths), states))
    values = {**parameters, **inputs}
    outputs = literal(values, options, offsets)
    output_of = {"G": "y", "G_T": "x_T", "G_T_reverse": "x_T_reverse"}
    cotangents = {g: rng.standard_normal(outputs[of].shape) for g, of in output_of.items() if of in outputs}

    def loss(run):
        def of_values(v):
            out = run(v, options, offsets)
            return sum((cotangent * out[output_of[g]]).sum(axis=(-2, -1)) for g, cotangent in cotangents.items())
        return of_values

    same = analytic(values, options, offsets)
    for key, value in outputs.items():
        error = largest(value - same[key]) / largest(value)
        require(error < 1e-13, f"{name}: {key} of the two forms differs by {error:.1e}")
    gradient = gradients(loss(analytic), loss(literal), values, name)
    by_hand = (cotangents["G"] * inputs["u"]).sum(axis=0)
    require(largest(gradient["D"] - by_hand) < 1e-13, f"{name}: the gradient of D is not sum(G * u)")
    return {"options": options, "parameters": parameters, "input": {**inputs, **cotangents}, "offsets": offsets,
            "outputs": {**outputs, "loss": np.array(loss(literal)(values))}, "gradients": gradient}


# ---------------------------------------------------------------------------------------------- file, compare


def as_json(value):
    """The tree with every array as {"shape", "values"}."""
    if isinstance(value, np.ndarray):
        require(value.dtype == np.float64, f"an array of {value.dtype} where double was meant")
        require(np.isfinite(value).all(), "a number that is not finite")
        return {"shape": list(value.shape), "values": value.ravel().tolist()}
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    return value


def dump(value, indent=0):
    """JSON with an object a line, arrays on one line. Python's repr of a float round-trips."""
    if not isinstance(value, dict) or "values" in value:
        return json.dumps(value, allow_nan=False)
    if not value:
        return "{}"
    space = " " * (indent + 1)
    items = [f"{space}{json.dumps(key)}: {dump(item, indent + 1)}" for key, item in value.items()]
    return "{\n" + ",\n".join(items) + "\n" + " " * indent + "}"


def compare(stored, computed, path, problems):
    """How many numbers were compared. Arrays: 1e-12 of the largest magnitude in them (gradients: of 1 if that is
    larger); all else: equal."""
    if isinstance(computed, dict) and isinstance(stored, dict):
        if set(stored) != set(computed):
            problems.append(f"{path}: keys differ: {sorted(set(stored) ^ set(computed))}")
            return 0
        if "values" not in computed:
            return sum(compare(stored[k], computed[k], f"{path}/{k}", problems) for k in computed)
        a, b = stored["values"], computed["values"]
        if stored["shape"] != computed["shape"] or len(a) != len(b):
            problems.append(f"{path}: shape {stored['shape']}, {len(a)} numbers; computed {computed['shape']}")
            return 0
        # An all-but-zero gradient (RotRNN with dh = 2: that of M, as A does not depend on P) has only an
        # absolute scale.
        scale = max(np.abs(b).max(), 1.0 if "/gradients/" in path else 0.0)
        error = np.abs(np.array(a, dtype=float) - np.array(b)).max()
        if not error <= 1e-12 * scale:
            problems.append(f"{path}: differs by {error:.1e}, largest magnitude {scale:.1e}")
        return len(a)
    if type(stored) is not type(computed) or stored != computed:
        problems.append(f"{path}: stored {stored!r}, computed {computed!r}")
    return len(computed) if isinstance(computed, list) else int(isinstance(computed, (int, float)))


def main(compute, description):
    """--write or --check of the JSON beside the script; compute() gives the tree."""
    path = os.path.splitext(SCRIPT)[0] + ".json"
    name = os.path.basename(path)
    parser = argparse.ArgumentParser(description=description)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help=f"compute and write {name}")
    mode.add_argument("--check", action="store_true", help=f"compute and compare with {name}")
    arguments = parser.parse_args()

    tree = as_json(compute())
    if arguments.write:
        with open(path, "w", encoding="ascii") as file:
            file.write(dump(tree) + "\n")
        print(f"{path}: {os.path.getsize(path)} bytes")
        return
    require(os.path.exists(path), f"{path} is missing; make it with --write")
    with open(path, encoding="ascii") as file:
        stored = json.load(file)
    problems = []
    count = compare(stored, tree, "", problems)
    require(not problems, "the stored numbers differ:\n  " + "\n  ".join(problems))
    print(f"{count} numbers compared, all within 1e-12")

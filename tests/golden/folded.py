"""An independent reader and evaluator of folded models, from docs/deploy.md (and the block of
docs/layers.md) alone, in float64.

    folded.py --make DIR                     models of every kind, and cases.json: inputs and what they give
    folded.py --write FILE [--seed N] K=V…   one random model, such as width=96 states=64 depth=6 outputs=35
    folded.py --check                        the evaluator against a loop over steps that is the text of the format

cases.json is {"cases": [{"name", "file", "lengths", "values"|"tokens"|"text", "logits", "answer", …}]}: see `case`.
"""

import argparse
import json
import math
import os
import sys

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402

END = 2  # the token of the end mark; 0 pads, 1 is unknown
FIRST = 3  # the token of byte 0


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def exact_gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def layer_norm(x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


# ------------------------------------------------------------------------------------------------------- file


def read_file(path):
    with open(path, "rb") as f:
        content = f.read()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32", name
        begin, stop = entry["data_offsets"]
        tensors[name] = np.frombuffer(content[end + begin:end + stop], "<f4").reshape(entry["shape"])
    return metadata, tensors


def write_file(path, metadata, tensors):
    header, data = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        part = np.ascontiguousarray(values, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


# -------------------------------------------------------------------------------------------------- evaluator


class Folded:
    def __init__(self, path):
        metadata, tensors = read_file(path)
        assert metadata["format"] == "rotrnn-model" and metadata["format_version"] == "1"
        self.model = json.loads(metadata["model"])
        self.tensors = {name: t.astype(np.float64) for name, t in tensors.items()}
        self.norms = []  # of the states that the last scans ended with

    # What is stored, to what the network sees.

    def tokens_of_text(self, text):
        """Token numbers of bytes, as `preprocessing` has it."""
        p = self.model["preprocessing"]
        if p["kind"] == "bytes":
            numbers = [FIRST + b for b in text]
        else:
            table = {c: i for i, c in enumerate(p["vocabulary"]) if i >= FIRST}
            numbers = [table.get(c, 1) for c in text.decode()]
        if p["max_length"]:
            numbers = numbers[:p["max_length"] - p["end_mark"]]
        return numbers + [END] * p["end_mark"]

    def inputs(self, sequence):
        """Rows of the first block: of token numbers, or of values [steps, channels] in natural units."""
        t, p = self.tensors, self.model["preprocessing"]
        if self.model["input"] == "tokens":
            return t["encoder.weight"][np.asarray(sequence)]
        v = np.asarray(sequence, np.float64)
        mean, deviation = np.array(p["mean"]), np.array(p["deviation"])
        if p["max_length"]:
            v = v[:p["max_length"]]
        if p["per_step"]:
            v = (v - mean[:len(v), None]) / deviation[:len(v), None]
        else:
            v = (v - mean) / deviation
        v = v[::p["keep_every"]]
        if p["order"]:
            v = v[p["order"]]
        if "frontend" in self.model:
            v = self.frontend(v)
        return v @ t["encoder.weight"].T + t["encoder.bias"]

    def frontend(self, v):
        """Tokens [., channels] of the steps v [steps, channels]; the last is left out unless it is whole or alone."""
        f, t = self.model["frontend"], self.tensors
        if f["kind"] == "patch":
            size, stride = f["size"], f["stride"]
            if len(v) < size:
                return np.concatenate([v, np.zeros((size - len(v), v.shape[1]))]).reshape(1, -1)
            return np.array([v[i:i + size].ravel() for i in range(0, len(v) - size + 1, stride)])
        hop, decay = f["hop"], np.exp(t["frontend.gamma_log"])
        turn, xi = np.exp(-decay + 1j * t["frontend.theta"]), np.sqrt(-np.expm1(-2 * decay))
        z, powers = np.zeros((v.shape[1], len(turn)), complex), []
        for x in v:
            z = turn * z + xi * x[:, None]
            powers.append((np.abs(z)**2).ravel())
        power = np.array([np.mean(powers[i:i + hop], 0) for i in range(0, max(1, len(v) - hop + 1), hop)])
        return (np.log(power + 1e-7) - t["frontend.mean"]) / t["frontend.deviation"]

    # The network.

    def scan(self, name, drive):
        """z_t = lambda z_{t-1} + drive_t over rows [steps, S], complex."""
        t = self.tensors
        lam = t[name + "lambda_re"] + 1j * t[name + "lambda_im"]
        z = np.zeros_like(lam)
        if name + "start_re" in t:
            z = (t[name + "start_re"] + 1j * t[name + "start_im"]) * drive[0]
        out = np.empty_like(drive)
        for i, row in enumerate(drive):
            z = lam * z + row
            out[i] = z
        self.norms.append(np.linalg.norm(z))
        return out

    def linear(self, name, x):
        return x @ self.tensors[name + ".weight"].T + self.tensors[name + ".bias"]

    def norm(self, name, x):
        if self.model["norm"] == "none":
            return x
        scale, shift = self.tensors[name + "norm.scale"], self.tensors[name + "norm.shift"]
        return scale * x + shift if self.model["norm"] == "affine" else layer_norm(x, scale, shift)

    def pair_of(self, name, other):
        """A complex tensor of two parts, or what stands for it where there is none."""
        t = self.tensors
        return t[name + "_re"] + 1j * t[name + "_im"] if name + "_re" in t else np.full(t[other + "_re"].shape, 0j)

    def channel_states(self, name, drive):
        """z_t [steps, D, N] of channels, driven by rows [steps, D]."""
        lam, p, q, b = (self.pair_of(name + k, name + "lambda") for k in ("lambda", "p", "q", "b"))
        if name + "b_re" not in self.tensors:
            b = b + 1
        z, out = np.zeros_like(lam), []
        for row in drive:
            z = lam * z + p * (q * z).sum(1).real[:, None] + b * row[:, None]
            out.append(z)
        self.norms.append(np.linalg.norm(z))
        return np.array(out)

    def channels(self, name, u):
        t, m = self.tensors, self.model
        terms, product = np.zeros_like(u), u
        for i in range(2, m["degree"] + 1):
            late = np.vstack([np.zeros((i - 1, u.shape[1])), u])[:len(u)]
            product = product * late
            terms = terms + t[name + "liquid"][i - 2] * product
        inside = m["liquid"] == "kb"
        z = self.channel_states(name, u + terms if inside else u)
        y = (self.pair_of(name + "c", name + "c") * z).sum(2).real + t[name + "D"] * u
        if m["bidirectional"]:
            z = self.channel_states(name, u[::-1])[::-1]
            z = np.concatenate([z[1:], np.zeros_like(z[:1])])
            y = y + (self.pair_of(name + "c_reverse", name + "c") * z).sum(2).real
        return y if inside else y + terms

    def diagonal(self, name, u):
        t, m = self.tensors, self.model
        planes = u @ t[name + "W"].T + t.get(name + "b", 0)
        S = planes.shape[1] // 2
        drive = planes[:, :S] + 1j * planes[:, S:]
        z = self.scan(name, drive)
        y = np.hstack([z.real, z.imag]) @ t[name + "V"].T
        if m["bidirectional"]:
            z = self.scan(name, drive[::-1])[::-1]
            y = y + np.hstack([z.real, z.imag]) @ t[name + "V_reverse"].T
        return y + t[name + "D"] * u + t.get(name + "e", 0)

    def block(self, i, x):
        m, name = self.model, f"blocks.{i}."
        u = self.norm(name, x) if m["prenorm"] else x
        y = self.channels(name, u) if m["system"] == "channel" else self.diagonal(name, u)
        h = exact_gelu(y) if m["activation"] == "exact_glu" else gelu(y)
        if m["activation"] == "gelu":
            out = h
        else:
            gate = sigmoid(self.linear(name + "gate", h))
            out = {"half_glu1": h, "half_glu2": y}.get(m["activation"])
            out = gate * (self.linear(name + "value", h) if out is None else out)
        x = x + out
        return x if m["prenorm"] else self.norm(name, x)

    def rows(self, sequence):
        """What the last block gives, [steps, D]."""
        x = self.inputs(sequence)
        for i in range(self.model["depth"]):
            x = self.block(i, x)
        return x

    def pooled(self, x):
        """The pooled row after every step; of a bidirectional model only the last one means something."""
        if self.model["pooling"] == "mean":
            return np.cumsum(x, 0) / np.arange(1, len(x) + 1)[:, None]
        return x

    def logits(self, sequence):
        """Logits [steps, K] after every step; of a bidirectional model with pooling only [1, K] of the whole."""
        p = self.pooled(self.rows(sequence))
        if self.model["bidirectional"] and self.model["pooling"] != "none":
            p = p[-1:]
        return self.linear("head", p)

    def pair(self, first, second):
        """Logits [1, K] of a pair."""
        a, b = (self.pooled(self.rows(s))[-1] for s in (first, second))
        h = gelu(self.linear("hidden", np.concatenate([a, b, a - b, a * b])))
        return self.linear("head", h)[None]

    def answer(self, logits):
        """Probabilities, or values in the units of the data, of rows [., K]."""
        if self.model["target"] == "classes":
            e = np.exp(logits - logits.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)
        p = self.model["preprocessing"]
        mean, deviation = np.array(p["target_mean"]), np.array(p["target_deviation"])
        if p["horizon"]:  # the channels of one step after another, in the units of the input
            channels = p["target_channels"] * p["horizon"]
            mean, deviation = np.array(p["mean"])[channels], np.array(p["deviation"])[channels]
        return logits * deviation + mean


# ---------------------------------------------------------------------------------------------- random models


CHOICES = dict(
    width=7, states=5, depth=2, activation="half_glu1", norm="none", prenorm=True, bidirectional=False,
    pooling="mean", input="values", inputs=1, kind=None, target="classes", outputs=4, towers=1, per_token=False,
    start=False, biases=True, rate=0, names=None, max_length=0, per_step=False, keep_every=1, order=None,
    end_mark=False, horizon=0, radius=(0.5, 0.999), frontend=None, system="diagonal", rank=False, b=False, liquid="none", degree=1)


def s4_step(Lambda, P, B, step):
    """Lambda, P, B [D, N] and step [D, 1] of S4 as the format has it: lambda, p, q, b."""
    D0 = 1 / (2 / step - Lambda)
    p = -D0 * P
    q = 8 / step * P.conj() * D0 / (1 + 2 * (np.abs(P)**2 * D0).sum(1, keepdims=True).real)
    return 4 / step * D0 - 1, p, q, 2 * D0 * B + p * (q * B).sum(1, keepdims=True).real * step / 2


def channel_tensors(c, rng, name, t):
    """Channels with states near 1: of S4 with low rank, else with eigenvalues of these radii."""
    D, N = c["width"], c["states"]

    def normal(*shape):
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    size, angle = rng.uniform(*c["radius"], (D, N)), rng.uniform(0, np.pi, (D, N))
    parts = {"lambda": size * np.exp(1j * angle)}
    memory = np.sqrt(1 - size**2)
    if c["rank"]:
        Lambda = -0.5 + 1j * rng.uniform(0, 2 * N, (D, N))
        step = np.exp(rng.uniform(np.log(0.01), np.log(0.3), (D, 1)))
        parts["lambda"], parts["p"], parts["q"], b = s4_step(Lambda, normal(D, N), normal(D, N), step)
        memory = 1 / np.sqrt(step)
        if not c["b"]:  # as if z were divided by it
            parts["p"], parts["q"] = parts["p"] / b, parts["q"] * b
            memory = memory * b
    if c["b"]:
        parts["b"] = b if c["rank"] else 0.5 * normal(D, N)
    parts["c"] = normal(D, N) * memory / np.sqrt(4 * N)
    if c["bidirectional"]:
        parts["c_reverse"] = normal(D, N) * memory / np.sqrt(4 * N)
    for key, value in parts.items():
        t[name + key + "_re"], t[name + key + "_im"] = value.real, value.imag
    if c["degree"] > 1:
        t[name + "liquid"] = rng.normal(size=(c["degree"] - 1, D)) / 4.0**np.arange(1, c["degree"])[:, None]


def random_model(path, seed, **changes):
    """Writes a model of these choices, with weights that keep the rows near 1."""
    unknown = set(changes) - set(CHOICES)
    assert not unknown, unknown
    c = {**CHOICES, **changes}
    rng = np.random.default_rng(seed)
    D, S, C, K = c["width"], c["states"], c["inputs"], c["outputs"]

    def normal(*shape, fan=1):
        return rng.normal(size=shape) / np.sqrt(fan)

    def about_one(n):
        return rng.uniform(0.6, 1.4, n)

    kind = c["kind"] or ("ids" if c["input"] == "tokens" else "values")
    vocabulary = []
    if kind == "characters":
        vocabulary = ["<pad>", "<unk>", "<eos>", " ", "a", "b", "e", "n", "é", "ß", "Ω", "世", "界", "😀"]
        C = len(vocabulary)
    elif kind == "bytes":
        vocabulary = ["<pad>", "<unk>", "<eos>"] + [f"0x{b:02x}" for b in range(256)]
        C = len(vocabulary)
    elif kind == "ids":
        vocabulary = [f"t{i}" for i in range(C)]

    t, tokens = {}, C
    if c["frontend"]:
        f = c["frontend"]
        tokens = C * (f["bands"] if f["kind"] == "rotations" else f["size"])
        if f["kind"] == "rotations":
            t["frontend.theta"] = rng.uniform(0.02, 3.0, f["bands"])
            t["frontend.gamma_log"] = np.log(-np.log(rng.uniform(0.6, 0.99, f["bands"])))
            t["frontend.mean"], t["frontend.deviation"] = normal(tokens) - 1, about_one(tokens)
    if kind == "values":
        t["encoder.weight"], t["encoder.bias"] = normal(D, tokens, fan=tokens), normal(D, fan=4)
    else:
        t["encoder.weight"] = normal(C, D)
    for i in range(c["depth"]):
        name = f"blocks.{i}."
        t[name + "D"] = normal(D)
        if c["system"] == "channel":
            channel_tensors(c, rng, name, t)
        else:
            size, angle = rng.uniform(*c["radius"], S), rng.uniform(0, np.pi, S)
            t[name + "lambda_re"], t[name + "lambda_im"] = size * np.cos(angle), size * np.sin(angle)
            # As the layers do: what enters a long memory is small, so that states stay near 1.
            t[name + "W"] = normal(2 * S, D, fan=2 * D) * np.sqrt(1 - np.tile(size, 2)[:, None]**2)
            t[name + "V"] = normal(D, 2 * S, fan=S)
            if c["bidirectional"]:
                t[name + "V_reverse"] = normal(D, 2 * S, fan=S)
            if c["biases"]:
                t[name + "b"], t[name + "e"] = normal(2 * S, fan=50), normal(D, fan=4)
            if c["start"]:
                t[name + "start_re"], t[name + "start_im"] = normal(S), normal(S)
        if c["norm"] != "none":
            t[name + "norm.scale"], t[name + "norm.shift"] = about_one(D), normal(D, fan=4)
        if c["activation"] != "gelu":
            t[name + "gate.weight"], t[name + "gate.bias"] = normal(D, D, fan=D), normal(D)
        if c["activation"] in ("full_glu", "exact_glu"):
            t[name + "value.weight"], t[name + "value.bias"] = normal(D, D, fan=D), normal(D, fan=4)
    if c["towers"] == 2:
        t["hidden.weight"], t["hidden.bias"] = normal(D, 4 * D, fan=4 * D), normal(D, fan=4)
    t["head.weight"], t["head.bias"] = normal(K, D, fan=D), normal(K)

    values, classes = kind == "values", c["target"] == "classes"
    places = (c["max_length"] if c["per_step"] else C) if values else 0
    targets = range(0 if classes or c["horizon"] else K)
    preprocessing = dict(
        kind=kind,
        form=dict(element="f32" if values else "i32" if kind == "ids" else "u8", channels=C if values else 1, scale=1.0,
                  towers=c["towers"], rate=c["rate"], names=c["names"] or []),
        max_length=c["max_length"], vocabulary=vocabulary, end_mark=c["end_mark"],
        mean=normal(places).tolist(), deviation=about_one(places).tolist(), per_step=c["per_step"],
        order=c["order"] or [], keep_every=c["keep_every"],
        target_mean=normal(len(targets), fan=0.1).tolist(), target_deviation=about_one(len(targets)).tolist(),
        target_names=[f"value {i}" for i in targets],
        target_channels=list(range(K // c["horizon"])) if c["horizon"] else [], horizon=c["horizon"])
    model = dict(
        system=c["system"], layer="s4" if c["system"] == "channel" else "rotrnn", task="test", version="0.0.0", width=D, states=S, depth=c["depth"],
        activation=c["activation"], norm=c["norm"], prenorm=c["prenorm"], bidirectional=c["bidirectional"],
        pooling=c["pooling"], input="values" if values else "tokens", inputs=C, target=c["target"], outputs=K,
        towers=c["towers"], per_token=c["per_token"] or c["pooling"] == "none",
        classes=[f"class {i}" for i in range(K)] if classes else [], preprocessing=preprocessing)
    if c["frontend"]:
        model["frontend"] = c["frontend"]
    if c["system"] == "channel":
        model.update(degree=c["degree"], liquid=c["liquid"])
    write_file(path, dict(format="rotrnn-model", format_version="1", model=json.dumps(model)), t)


# ------------------------------------------------------------------------------------------------------ cases


def kinds():
    """(name, choices, steps) of the models that the runtime is compared on."""
    yield "plain", {}, 1100
    for activation in ("half_glu1", "half_glu2", "full_glu", "gelu", "exact_glu"):
        for norm, prenorm in (("none", True), ("affine", False), ("layer", True), ("layer", False)):
            yield (f"{activation} {norm} {'pre' if prenorm else 'post'}",
                   dict(activation=activation, norm=norm, prenorm=prenorm), 90)
    yield "last", dict(pooling="last", width=13, states=3, depth=3), 1100
    yield "none", dict(pooling="none", width=8, states=8, inputs=3), 1100
    yield "start", dict(start=True, inputs=2, norm="affine", prenorm=False), 200
    yield "no biases", dict(biases=False, width=5, states=9), 200
    yield "wide", dict(width=33, states=17, outputs=11, norm="layer", activation="full_glu"), 200
    yield "one of all", dict(width=1, states=1, depth=1, outputs=1, target="values"), 100
    yield "long memory", dict(radius=(0.999, 0.9999), pooling="last", depth=1), 1100
    yield "millions", dict(width=4, states=6, radius=(0.999, 0.99999), pooling="last"), 100
    yield "values", dict(target="values", outputs=3, inputs=4, pooling="last"), 100
    yield "forecast", dict(target="values", outputs=6, horizon=3, inputs=2, pooling="none", rate=100), 100
    yield "per step", dict(per_step=True, max_length=300), 300
    yield "keep every", dict(keep_every=3, inputs=2, rate=8000), 400
    yield "tokens", dict(input="tokens", inputs=11, pooling="last"), 1100
    yield "tokens, a class a step", dict(input="tokens", inputs=5, pooling="none", start=True), 100
    yield "tokens with an end mark", dict(input="tokens", inputs=11, end_mark=True), 50
    yield "bytes", dict(kind="bytes", end_mark=True), 300
    yield "characters", dict(kind="characters", end_mark=True, max_length=120), 100
    for pooling in ("mean", "last", "none"):
        yield f"bidirectional {pooling}", dict(bidirectional=True, pooling=pooling, norm="layer"), 150
    yield "bidirectional start", dict(bidirectional=True, start=True, input="tokens", inputs=6), 150
    yield "pairs", dict(towers=2, input="tokens", inputs=9), 70
    yield "bidirectional pairs", dict(towers=2, bidirectional=True, inputs=2, activation="gelu"), 70
    # Channels: those of S4D, then with low rank, then with products.
    s4d = dict(system="channel", norm="affine", activation="exact_glu")
    s4 = dict(s4d, rank=True, b=True)
    yield "s4d", dict(s4d, width=20, states=9), 1100
    yield "s4", dict(s4, width=20, states=9), 1100
    for form in ("kb", "pb"):
        for degree in (2, 3, 4):
            yield f"liquid {form} {degree}", dict(s4, liquid=form, degree=degree, width=5, states=6), 1100
    for activation in ("half_glu1", "half_glu2", "full_glu", "gelu", "exact_glu"):
        for norm, prenorm in (("none", True), ("affine", True), ("affine", False), ("layer", True), ("layer", False)):
            yield (f"channels {activation} {norm} {'pre' if prenorm else 'post'}",
                   dict(s4, activation=activation, norm=norm, prenorm=prenorm), 90)
    yield "s4 with b of 1", dict(s4, b=False, states=3), 200
    yield "s4d with b", dict(s4d, b=True), 200
    yield "s4d with products", dict(s4d, liquid="kb", degree=3), 200
    yield "s4d last", dict(s4d, width=33, states=16, pooling="last", depth=3), 1100
    yield "s4 last", dict(s4, width=33, states=5, pooling="last", depth=3), 1100
    yield "liquid last", dict(s4, width=17, states=5, pooling="last", depth=3, liquid="pb", degree=2), 1100
    yield "s4d none", dict(s4d, width=16, states=8, pooling="none", inputs=3), 1100
    yield "liquid none", dict(s4, width=16, states=4, pooling="none", inputs=3, liquid="kb", degree=2), 1100
    yield "channels, one of all", dict(s4, width=1, states=1, depth=1, outputs=1, target="values"), 100
    yield "channels, tokens", dict(s4, input="tokens", inputs=11, liquid="pb", degree=2), 300
    yield "channels, text", dict(s4d, kind="characters", end_mark=True, max_length=120), 100
    yield "channels, keep every", dict(s4, keep_every=3, inputs=2, rate=8000), 400
    yield "channels, long memory", dict(s4d, radius=(0.999, 0.9999), pooling="last", depth=1), 1100
    for kind, choices in (("s4d", s4d), ("s4", s4)):
        for pooling in ("mean", "last", "none"):
            yield (f"{kind} bidirectional {pooling}",
                   dict(choices, bidirectional=True, pooling=pooling, width=18, states=7), 250)
    for form in ("kb", "pb"):
        yield (f"liquid {form} bidirectional",
               dict(s4, bidirectional=True, liquid=form, degree=3, norm="layer", prenorm=False), 150)
    yield "s4d pairs", dict(s4d, towers=2, input="tokens", inputs=9), 70
    yield "s4 bidirectional pairs", dict(s4, towers=2, bidirectional=True, inputs=2, activation="gelu"), 70
    yield "permuted", dict(order=np.random.default_rng(1).permutation(40).tolist()), 40
    yield "many states", dict(width=3, states=70, depth=1), 60
    yield "bidirectional many states", dict(width=3, states=70, bidirectional=True, start=True), 60
    yield "audio", dict(rate=8000, width=16, states=12), 1100
    yield "audio, both directions", dict(rate=8000, bidirectional=True), 200
    # Front ends; no number of tokens fills the steps.
    rotations = dict(frontend=dict(kind="rotations", hop=8, bands=21))
    patch = dict(frontend=dict(kind="patch", size=6, stride=6))
    yield "rotations", dict(rotations, rate=8000, width=16, states=12), 1003
    yield "rotations last", dict(rotations, inputs=3, pooling="last", norm="affine", prenorm=False), 403
    yield "rotations keep every", dict(rotations, inputs=2, keep_every=3, rate=8000), 500
    yield "rotations s4d", dict(s4d, **rotations, width=20, states=9), 403
    yield "rotations bidirectional", dict(rotations, bidirectional=True, norm="layer"), 203
    yield "rotations pairs", dict(rotations, towers=2, inputs=2), 63
    yield "patch", dict(patch, width=16, states=12), 403
    yield "patch overlapping", dict(frontend=dict(kind="patch", size=7, stride=2), inputs=2, pooling="last"), 203
    yield "patch apart", dict(frontend=dict(kind="patch", size=3, stride=5), inputs=2), 203


def random_text(rng, characters, steps):
    letters = ["a", "b", "e", "n", " ", "é", "ß", "Ω", "世", "界", "😀", "x", "ж"]
    if not characters:
        return bytes(rng.integers(0, 256, steps, dtype=np.uint8))
    return "".join(rng.choice(letters, steps)).encode()


def case(folder, number, name, choices, steps):
    """One model with its input and what it gives.

    `logits` are [steps, K] after every step where the model can stream, else one row for each example of
    `lengths`; a model without pooling has a row for every step in any case. Texts are in hexadecimal; an end
    mark is the last token. Rows are those of the network's steps: every k-th of the input with keep_every. `norms` are
    |z| of the blocks after the last step, of models that stream."""
    file = f"{number:02}.safetensors"
    path = os.path.join(folder, file)
    random_model(path, number, **choices)
    model, rng = Folded(path), np.random.default_rng(1000 + number)
    m = model.model
    out = dict(name=name, file=file, inputs=m["inputs"], outputs=m["outputs"], streams=False, lengths=[steps],
               end_mark=m["preprocessing"]["end_mark"])
    if m["preprocessing"]["kind"] in ("bytes", "characters"):
        text = random_text(rng, m["preprocessing"]["kind"] == "characters", steps)
        sequence = model.tokens_of_text(text)
        out.update(text=text.hex(), tokens=sequence, lengths=[len(sequence)])
    elif m["input"] == "tokens":
        sequence = rng.integers(0, m["inputs"], steps)
        if m["preprocessing"]["end_mark"]:
            sequence[-1] = END
        out["tokens"] = sequence.tolist()
    else:
        sequence = rng.normal(size=(steps, m["inputs"])).astype(np.float32)
        out["values"] = sequence.astype(np.float64).ravel().tolist()
    if m["towers"] == 2:
        out["lengths"] = [steps // 3, steps - steps // 3]
        logits = model.pair(sequence[:steps // 3], sequence[steps // 3:])
    else:
        logits = model.logits(sequence)
        out["streams"] = not m["bidirectional"] and not m["preprocessing"]["order"]
        out["norms"] = model.norms
        if m["preprocessing"]["order"] and m["pooling"] != "none":
            logits = logits[-1:]
    out["logits"] = logits.ravel().tolist()
    out["answer"] = model.answer(logits[-1:]).ravel().tolist()
    return out


def make(folder):
    os.makedirs(folder, exist_ok=True)
    cases = [case(folder, i, *kind) for i, kind in enumerate(kinds())]
    with open(os.path.join(folder, "cases.json"), "w") as f:
        json.dump({"cases": cases}, f)


# ------------------------------------------------------------------------------------------------------ check


def literal_branch(model, n, x, y):
    """x + activation(y) of one step."""
    t, activation = model.tensors, model.model["activation"]
    h = y * (0.5 + 0.5 * np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
    if activation == "exact_glu":
        h = np.array([v * (1 - 0.5 * math.erfc(v / math.sqrt(2))) for v in y])
    if activation == "gelu":
        return x + h
    gate = 0.5 + 0.5 * np.tanh((t[n + "gate.weight"] @ h + t[n + "gate.bias"]) / 2)
    if activation in ("full_glu", "exact_glu"):
        return x + (t[n + "value.weight"] @ h + t[n + "value.bias"]) * gate
    return x + (h if activation == "half_glu1" else y) * gate


def literal_channel(model, n, d, past, states, i):
    """y of channel d after the last of its inputs; a state for each conjugate pair, as planes."""
    t, m, N = model.tensors, model.model, model.model["states"]
    if states[i] is None:
        states[i] = {}
    re, im = states[i].get(d, (np.zeros(N), np.zeros(N)))
    u, terms = past[-1][d], 0.0
    for degree in range(2, min(m["degree"], len(past)) + 1):
        terms += t[n + "liquid"][degree - 2, d] * np.prod([row[d] for row in past[-degree:]])
    w = u + terms if m["liquid"] == "kb" else u
    joined = 0.0
    if n + "q_re" in t:
        joined = t[n + "q_re"][d] @ re - t[n + "q_im"][d] @ im
    a, b = t[n + "lambda_re"][d], t[n + "lambda_im"][d]
    zero, one = np.zeros((d + 1, N)), np.ones((d + 1, N))
    states[i][d] = re, im = (
        a * re - b * im + t.get(n + "p_re", zero)[d] * joined + t.get(n + "b_re", one)[d] * w,
        a * im + b * re + t.get(n + "p_im", zero)[d] * joined + t.get(n + "b_im", zero)[d] * w)
    y = t[n + "c_re"][d] @ re - t[n + "c_im"][d] @ im + t[n + "D"][d] * u
    return y + terms if m["liquid"] == "pb" else y


def check_s4_step():
    """The rank-one form against A = diag(Lambda) - PP* on z and its conjugate, by dense bilinear matrices."""
    rng = np.random.default_rng(0)
    for N in (1, 2, 5, 32):
        Lambda = -rng.uniform(0.1, 1, N) + 1j * rng.uniform(0, 3 * N, N)
        P, B = (rng.normal(size=N) + 1j * rng.normal(size=N) for _ in range(2))
        step = rng.uniform(0.01, 0.5)
        lam, p, q, b = (x[0] for x in s4_step(Lambda[None], P[None], B[None], np.array([[step]])))
        both = np.concatenate([P, P.conj()])
        A = np.diag(np.concatenate([Lambda, Lambda.conj()])) - np.outer(both, both.conj())
        inverse = np.linalg.inv(2 / step * np.eye(2 * N) - A)
        A_bar, B_bar = inverse @ (2 / step * np.eye(2 * N) + A), 2 * inverse @ np.concatenate([B, B.conj()])
        dense, z = np.zeros(2 * N, complex), np.zeros(N, complex)
        for u in rng.normal(size=50):
            dense = A_bar @ dense + B_bar * u
            z = lam * z + p * (q * z).sum().real + b * u
            if not np.abs(dense[:N] - z).max() < 1e-11 * (1 + np.abs(z).max()):
                sys.exit(f"folded.py: FAILED: the step of S4 differs by {np.abs(dense[:N] - z).max()}")


def literal(model, sequence):
    """The format's equations word by word for a model that streams: a loop over steps, planes instead of complex
    numbers; the pooled logits after every step."""
    t, m = model.tensors, model.model
    S, states, total, out = m["states"], [None] * m["depth"], 0.0, []
    past = [[] for _ in range(m["depth"])]
    rows = model.inputs(sequence)

    def norm(n, x):
        if m["norm"] == "none":
            return x
        if m["norm"] == "layer":
            x = (x - np.mean(x)) / np.sqrt(np.var(x) + 1e-5)
        return x * t[n + "norm.scale"] + t[n + "norm.shift"]

    for step, x in enumerate(rows):
        for i in range(m["depth"]):
            n = f"blocks.{i}."
            u = norm(n, x) if m["prenorm"] else x
            if m["system"] == "channel":
                past[i].append(u)
                y = np.array([literal_channel(model, n, d, past[i], states, i) for d in range(len(u))])
                x = literal_branch(model, n, x, y)
                x = x if m["prenorm"] else norm(n, x)
                continue
            v = t[n + "W"] @ u + t.get(n + "b", np.zeros(2 * S))
            a, b = t[n + "lambda_re"], t[n + "lambda_im"]
            if states[i] is None:
                p, q = t.get(n + "start_re", np.zeros(S)), t.get(n + "start_im", np.zeros(S))
                states[i] = p * v[:S] - q * v[S:], p * v[S:] + q * v[:S]
            re, im = states[i]
            states[i] = re, im = a * re - b * im + v[:S], a * im + b * re + v[S:]
            y = t[n + "V"][:, :S] @ re + t[n + "V"][:, S:] @ im + t[n + "D"] * u + t.get(n + "e", 0)
            x = literal_branch(model, n, x, y)
            x = x if m["prenorm"] else norm(n, x)
        total = total + x
        pooled = total / (step + 1) if m["pooling"] == "mean" else x
        out.append(t["head.weight"] @ pooled + t["head.bias"])
    return np.array(out)


def check():
    import tempfile
    checked = 0
    check_s4_step()
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        with open(os.path.join(folder, "cases.json")) as f:
            cases = json.load(f)["cases"]
        for c in cases:
            if not c["streams"]:
                continue
            model = Folded(os.path.join(folder, c["file"]))
            sequence = c["tokens"] if "tokens" in c else np.array(c["values"]).reshape(-1, c["inputs"])
            if model.model["system"] == "channel":  # a loop over channels too: the beginning is enough
                sequence = sequence[:60]
            expected = literal(model, sequence)
            difference = np.abs(np.array(c["logits"]).reshape(-1, c["outputs"])[:len(expected)] - expected).max()
            if not difference < 1e-11:
                sys.exit(f"folded.py: FAILED: {c['name']}: {difference}")
            checked += 1
    if checked < 25:
        sys.exit(f"folded.py: FAILED: only {checked} cases were checked")


def parsed(text):
    key, value = text.split("=", 1)
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--make", metavar="DIR")
    p.add_argument("--write", metavar="FILE")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--check", action="store_true")
    p.add_argument("choices", nargs="*", type=parsed)
    a = p.parse_args()
    if a.make:
        make(a.make)
    if a.write:
        random_model(a.write, a.seed, **dict(a.choices))
    if a.check:
        check()


if __name__ == "__main__":
    main()

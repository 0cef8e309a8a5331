"""Exported graphs in ONNX Runtime against the float64 evaluator of folded models.

    graphs_test.py FOLDED GRAPHS     folders of models (golden/folded.py --make) and of their graphs (onnx_tests)
"""

import json
import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "golden")]

import folded  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from session import run_jobs, tensor  # noqa: E402

FOLDED, GRAPHS = (Path(p) for p in sys.argv[1:3])
LENGTHS = (23, 1, 31, 8)  # of a batch of whole sequences; pairs are two each
CHUNKS = (5, 1, 9)  # of a batch of streams, which then goes on by single steps
STEPS = 6


def models():
    """(name, stem, Folded): all that have one state matrix for all channels, and some of channels."""
    seen = set()
    for case in json.loads((FOLDED / "cases.json").read_text())["cases"]:
        model = folded.Folded(FOLDED / case["file"])
        m = model.model
        # Activations and norms are the same nodes behind either system.
        key = case["name"] if m["system"] == "diagonal" or "frontend" in m else (m["liquid"], m["degree"], m["bidirectional"], m["pooling"],
                                                               m["prenorm"], "blocks.0.p_re" in model.tensors,
                                                               "blocks.0.b_re" in model.tensors)
        if key not in seen:
            seen.add(key)
            yield case["name"], Path(case["file"]).stem, model


def samples_of_token(model):
    """Of the step graph; 0: patches that overlap or leave samples out have none."""
    f = model.model.get("frontend", {"kind": "none"})
    if f["kind"] == "patch":
        return f["size"] if f["size"] == f["stride"] else 0
    return f.get("hop", 1)


def draw(model, rng, steps):
    """Stored steps of one sequence, and those of them that are given to a graph."""
    m, p = model.model, model.model["preprocessing"]
    if m["input"] == "tokens":
        tokens = rng.integers(0, m["inputs"], steps)
        return tokens, tokens
    values = rng.normal(size=(steps * p["keep_every"], m["inputs"])).astype(np.float32)
    return values, values[::p["keep_every"]]


def feed(model, rows):
    """{name: tensor} of rows [batch, …]."""
    if model.model["input"] == "tokens":
        return {"tokens": tensor(rows, "int64")}
    return {"x": tensor(rows, "float32")}


def padded(sequences, rng):
    """[batch, steps, …], filled up with rows that would be seen in the results."""
    out = []
    for s in sequences:
        more = max(map(len, sequences)) - len(s)
        end = rng.permutation(np.repeat(s, more + 1, 0))[:more]
        out.append(np.concatenate([s, 3 * end if s.dtype.kind == "f" else end]))
    return np.array(out)


def whole(model, stored):
    """Logits of whole sequences: [K] each, or [steps, K]."""
    if model.model["towers"] == 2:
        return [model.pair(a, b)[0] for a, b in zip(stored[::2], stored[1::2])]
    logits = [model.logits(s) for s in stored]
    return logits if model.model["pooling"] == "none" else [x[-1] for x in logits]


def zeros(graph, batch):
    """The states of streams that begin."""
    types = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.DOUBLE: "float64", onnx.TensorProto.INT64: "int64"}
    out = {}
    for value in graph.input:
        dims = [batch if d.dim_param else d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.name in ("state", "sum", "count"):
            out[value.name] = tensor(np.zeros(dims), types[value.type.tensor_type.elem_type])
    return out


class Case:
    """What one model is asked, and what it must say."""

    def __init__(self, name, stem, model):
        self.name, self.stem, self.model = name, stem, model
        self.rng = np.random.default_rng(3)
        self.jobs, self.want = [], []
        self.add_sequences()
        m = model.model
        self.streams = (not m["bidirectional"] and m["towers"] == 1 and not m["preprocessing"]["order"]
                        and samples_of_token(model) > 0)
        if self.streams:
            self.add_streams()

    def add_sequences(self):
        order = self.model.model["preprocessing"]["order"]
        lengths = [len(order)] * 3 if order else LENGTHS
        if "frontend" in self.model.model:
            lengths = [3 * n for n in LENGTHS]  # shorter than a token, and with a rest
        for part in (lengths, lengths[2:3] if self.model.model["towers"] == 1 else lengths[:2]):
            drawn = [draw(self.model, self.rng, n) for n in part]
            call = feed(self.model, padded([given for _, given in drawn], self.rng))
            call["lengths"] = tensor(np.array(part), "int64")
            self.jobs.append(dict(file=self.file("sequence"), calls=[call]))
            self.want.append([whole(self.model, [stored for stored, _ in drawn])])

    def add_streams(self):
        """Two streams: by chunks, then on by steps; and by steps from the beginning."""
        unit, front = samples_of_token(self.model), "frontend" in self.model.model
        drawn = [draw(self.model, self.rng, unit * (sum(CHUNKS) + STEPS)) for _ in range(2)]
        rows = np.array([given for _, given in drawn])
        logits = np.array([self.model.logits(stored) for stored, _ in drawn])
        every = self.model.model["pooling"] == "none"
        calls, want, at = [], [], 0
        for n in CHUNKS:
            calls.append(feed(self.model, rows[:, unit * at:unit * (at + n)]))
            want.append(logits[:, at:at + n] if every else logits[:, at + n - 1])
            at += n
        steps = [feed(self.model, rows[:, unit * t:unit * (t + 1)] if front else rows[:, t])
                 for t in range(rows.shape[1] // unit)]
        expected = [logits[:, t] for t in range(len(steps))]
        start = zeros(onnx.load(self.file("chunk")).graph, 2)
        calls[0].update(start)
        self.jobs.append(dict(file=self.file("chunk"), calls=calls))
        self.want.append(want)
        self.jobs.append(dict(file=self.file("step"), calls=steps[at:], go_on=True))
        self.want.append(expected[at:])
        # Of the chunk graph's streams the last job is independent.
        self.jobs.append(dict(file=self.file("step"), calls=[{**steps[0], **start}, *steps[1:8]]))
        self.want.append(expected[:8])

    def file(self, graph):
        return str(GRAPHS / f"{self.stem}.{graph}.onnx")

    def check(self, test, results):
        for job, want, calls in zip(self.jobs, self.want, results):
            for expected, said in zip(want, calls):
                self.check_call(test, job, expected, said)

    def check_call(self, test, job, expected, said):
        where = f"{self.name}: {os.path.basename(job['file'])}"
        for i, e in enumerate(expected):
            for name, right in (("y", e), ("answer", self.model.answer(np.atleast_2d(e)).reshape(np.shape(e)))):
                got = said[name][i]
                if self.model.model["pooling"] == "none" and got.ndim == 2 and len(got) > len(e):
                    if name == "y":  # behind the end
                        test.assertTrue((got[len(e):] == 0).all(), where)
                    got = got[:len(e)]
                test.assertEqual(got.shape, np.shape(right), where)
                np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-4, err_msg=f"{where}: {name}, sequence {i}")


class Graphs(unittest.TestCase):
    def test_outputs_are_those_of_the_equations(self):
        cases = [Case(*m) for m in models()]
        results = run_jobs([job for c in cases for job in c.jobs])
        for c in cases:
            mine, results = results[:len(c.jobs)], results[len(c.jobs):]
            with self.subTest(c.name):
                c.check(self, mine)
        self.assertGreater(sum(c.streams for c in cases), 35)

    def test_checker_and_shapes(self):
        files = sorted(GRAPHS.glob("*.onnx"))
        for file in files:
            model = onnx.load(file)
            onnx.checker.check_model(model, full_check=True)
            with self.subTest(file.name):
                for node in self.nodes(model.graph):
                    self.assertEqual(node.domain, "")
                    self.assertNotIn(node.op_type, ("Loop", "DFT", "STFT", "BatchNormalization"))
                scans = [n for n in model.graph.node if n.op_type == "Scan"]
                depth = int(self.facts(model)["depth"])
                rotations = self.facts(model)["frontend"].count("rotations")  # a scan over the samples of a token
                self.assertEqual(len(scans), (0 if ".step." in file.name else depth) + rotations)
        self.assertGreater(len(files), 150)

    def nodes(self, graph):
        for node in graph.node:
            yield node
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    yield from self.nodes(attribute.g)

    def facts(self, model):
        return {entry.key: entry.value for entry in model.metadata_props}

    def test_metadata(self):
        checked = 0
        for name, stem, model in models():
            m, p = model.model, model.model["preprocessing"]
            file = onnx.load(GRAPHS / f"{stem}.sequence.onnx")
            facts = self.facts(file)
            want = dict(format="rotrnn-onnx", format_version="1", graph="sequence", layer=m["layer"], task=m["task"],
                        pooling=m["pooling"], input=m["input"], target=m["target"], inputs=m["inputs"],
                        outputs=m["outputs"], classes=m["classes"], bidirectional=m["bidirectional"],
                        pairs=m["towers"] == 2, max_length=p["max_length"], frontend=m.get("frontend", "none"))
            if m["input"] == "tokens":
                want.update(vocabulary=p["vocabulary"], end_mark=p["end_mark"],
                            text=p["kind"] if p["kind"] != "ids" else "no")
            else:
                want.update(mean=p["mean"], deviation=p["deviation"], keep_every=p["keep_every"],
                            mean_of_every_step=p["per_step"], sample_rate=p["form"]["rate"],
                            channels=p["form"]["names"])
            if m["target"] == "values":
                want.update({key: p[key] for key in ("target_mean", "target_deviation", "target_names", "horizon")})
            with self.subTest(name):
                for key, value in want.items():
                    got = facts[key] if isinstance(value, str) else json.loads(facts[key])
                    self.assertEqual(got, value, key)
                self.assertEqual(facts["usage"], file.doc_string)
                self.assertEqual("every 3th" in facts["usage"], p["keep_every"] == 3)
                self.assertEqual("pair i" in facts["usage"], m["towers"] == 2)
                self.assertEqual("ends with 2" in facts["usage"], p["end_mark"])
            checked += 1
        self.assertGreater(checked, 40)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])

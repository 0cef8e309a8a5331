"""`rotrnn export --format onnx` of trained runs: what ONNX Runtime says is what `rotrnn predict` says. Feeds are made
from the metadata of the graphs alone."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "golden")]

import folded  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from session import run_jobs, tensor  # noqa: E402

PROGRAM = os.environ["ROTRNN_PROGRAM"]

TRAINING = """
[model]
layer = "{layer}"
bidirectional = {bidirectional}
width = 8
state = 8
depth = 2
{model}
[training]
steps = 6
batch = 8
global_lr = 1e-2
evaluate_every = 6
threads = 1
"""
WAVES = '[task]\nname = "csv"\npath = "waves.csv"\nseries_column = "wave"\nlabel_column = "kind"\ntest_share = 0.3\n'
LISTOPS = "[task]\ntrain = 60\nvalidation = 20\ntest = 20\nmin_length = 5\nmax_length = 30\nmax_depth = 3\nmax_args = 4\n"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, *arguments, code=0, stdin=""):
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, input=stdin, capture_output=True,
                              text=True, timeout=120, env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")})
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def train(self, task, layer, bidirectional=False, model=""):
        (self.folder / "config.toml").write_text(task + TRAINING.format(
            layer=layer, bidirectional=str(bidirectional).lower(), model=model))
        self.run_program("train", "config.toml", "--out", "run", "--quiet", "--overwrite")

    def export(self, *options):
        said = json.loads(self.run_program("export", "run", "--format", "onnx", "--json", "--force", *options).stdout)
        self.assertLess(said["largest_difference"], 1e-4)
        return {f["graph"]: self.folder / f["file"] for f in said["files"]}

    def write_waves(self, count):
        rng = np.random.default_rng(2)
        self.waves = []
        for i in range(count):
            t = np.arange(20 + 7 * (i % 6))
            wave = 40 + 3 * np.sin(t * (0.2 if i % 2 else 0.9) + rng.random())
            self.waves.append([float(f"{v:.4f}") for v in wave])
        with open(self.folder / "waves.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["wave", "kind"])
            for i, wave in enumerate(self.waves):
                writer.writerow([" ".join(map(str, wave)), "slow" if i % 2 else "fast"])

    def facts(self, file):
        return {e.key: e.value for e in onnx.load(file).metadata_props}

    def probabilities(self, answers, classes):
        return np.array([[a["probabilities"][c] for c in classes] for a in answers])


def padded(sequences):
    longest = max(map(len, sequences))
    return np.array([list(s) + [0] * (longest - len(s)) for s in sequences])


def stepwise(graphs, name, kind, sequence):
    """Jobs of one stream: whole by steps, and by chunks of 7; zeros to begin with."""
    start = {}
    for value in onnx.load(graphs["step"]).graph.input:
        dims = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        if value.name != name:
            start[value.name] = tensor(np.zeros(dims), {1: "float32", 7: "int64", 11: "float64"}[
                value.type.tensor_type.elem_type])
    rows = np.asarray(sequence)
    rows = rows if name == "tokens" else rows[:, None]
    steps = [{name: tensor(row[None], kind)} for row in rows]
    chunks = [{name: tensor(rows[None, i:i + 7], kind)} for i in range(0, len(rows), 7)]
    steps[0].update(start)
    chunks[0].update(start)
    return [dict(file=str(graphs["step"]), calls=steps), dict(file=str(graphs["chunk"]), calls=chunks)]


class Runs(Case):
    def check(self, graphs, name, kind, sequences, want):
        rows = padded(sequences)
        call = {name: tensor(rows if name == "tokens" else rows[:, :, None], kind),
                "lengths": tensor([len(s) for s in sequences], "int64")}
        jobs = [dict(file=str(graphs["sequence"]), calls=[call])]
        if "step" in graphs:
            jobs += stepwise(graphs, name, kind, sequences[3])
        results = run_jobs(jobs)
        np.testing.assert_allclose(results[0][0]["answer"], want, rtol=0, atol=1e-4)
        for job in results[1:]:
            np.testing.assert_allclose(job[-1]["answer"][0], want[3], rtol=0, atol=1e-4)

    def waves(self, layer, model=""):
        self.write_waves(40)
        for bidirectional in (False, True):
            self.train(WAVES, layer, bidirectional, model)
            graphs = self.export()
            self.assertEqual(set(graphs), {"sequence"} if bidirectional else {"step", "chunk", "sequence"})
            answers = [json.loads(line) for line in
                       self.run_program("predict", "run", "waves.csv", "--json").stdout.splitlines()]
            classes = json.loads(self.facts(graphs["sequence"])["classes"])
            self.assertEqual(sorted(classes), ["fast", "slow"])
            self.check(graphs, "x", "float32", self.waves, self.probabilities(answers, classes))

    def test_rotrnn(self):
        self.waves("rotrnn", "heads = 2")

    def test_lru(self):
        self.waves("lru")

    def test_s5(self):
        self.waves("s5", "s5.blocks = 2")

    def test_tokens(self):
        """By the vocabulary of the file; the stream of the exported model says the same."""
        lines = ["[MAX 2 9 [MIN 4 7 ] 0 ]", "( ( ( [SM 6 ) 5 ) ] )", "7", "[MED 1 2 3 ]"]
        for layer, model in (("rotrnn", 'heads = 2\npooling = "last"'), ("s4d", 'pooling = "mean"')):
            self.train(LISTOPS, layer, model=model)
            graphs = self.export()
            facts = self.facts(graphs["sequence"])
            vocabulary = json.loads(facts["vocabulary"])
            printed = self.run_program("predict", "run", "--json", stdin="\n".join(lines) + "\n").stdout
            want = self.probabilities([json.loads(line) for line in printed.splitlines()], json.loads(facts["classes"]))
            words = [line.replace("(", "").replace(")", "").split() for line in lines]
            tokens = [[vocabulary.index(word) for word in line] for line in words]
            end = [vocabulary.index("<eos>")] * json.loads(facts["end_mark"])
            self.assertEqual(end, [2])
            self.check(graphs, "tokens", "int64", [line + end for line in tokens], want)
            self.run_program("export", "run", "--force")
            said = self.run_program("stream", "run/model.safetensors", "--format", "tokens", "--all", "--json",
                                    stdin=" ".join(map(str, tokens[3]))).stdout.splitlines()
            stream = self.probabilities([json.loads(said[-2])], json.loads(facts["classes"]))
            np.testing.assert_allclose(stream[0], want[3], atol=1e-4)


class Program(Case):
    def model(self, **choices):
        folded.random_model(str(self.folder / "m.safetensors"), 7, **choices)

    def fails(self, code, part, *arguments):
        before = sorted(p for p in self.folder.rglob("*"))
        said = self.run_program("export", *arguments, code=code).stderr
        self.assertIn(part, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertEqual(sorted(p for p in self.folder.rglob("*")), before)

    def test_of_a_model_file(self):
        self.model()
        said = self.run_program("export", "m.safetensors", "--format", "onnx").stdout
        for graph in ("step", "chunk", "sequence"):
            self.assertIn(f"m.{graph}.onnx: {graph} graph", said)
            onnx.checker.check_model(str(self.folder / f"m.{graph}.onnx"))
        self.run_program("export", "m.safetensors", "--format", "onnx", "--graph", "step", "--out", "one.onnx")
        self.assertEqual((self.folder / "one.onnx").read_bytes(), (self.folder / "m.step.onnx").read_bytes())
        self.model(bidirectional=True)
        said = self.run_program("export", "m.safetensors", "--format", "onnx", "--out", "b.onnx").stdout
        self.assertIn("no step and no chunk graph: a bidirectional model", said)
        self.assertFalse((self.folder / "b.step.onnx").exists())
        help_text = self.run_program("export", "--help").stdout
        for part in ("--graph", "onnx", "docs/deploy.md", "--force", "bidirectional"):
            self.assertIn(part, help_text)

    def test_values_far_from_zero(self):
        """The mean is subtracted with more than float32 has."""
        path = str(self.folder / "m.safetensors")
        self.model()
        metadata, tensors = folded.read_file(path)
        model = json.loads(metadata["model"])
        model["preprocessing"].update(mean=[123456.789], deviation=[0.05])
        folded.write_file(path, dict(metadata, model=json.dumps(model)), tensors)
        self.run_program("export", path, "--format", "onnx", "--graph", "sequence", "--out", "m.onnx")
        x = (123456.789 + 0.05 * np.random.default_rng(1).normal(size=(50, 1))).astype(np.float32)
        call = {"x": tensor(x[None], "float32"), "lengths": tensor([50], "int64")}
        y = run_jobs([dict(file=str(self.folder / "m.onnx"), calls=[call])])[0][0]["y"]
        np.testing.assert_allclose(y[0], folded.Folded(path).logits(x)[-1], atol=1e-4)

    def test_wrong_use(self):
        self.model()
        self.run_program("export", "m.safetensors", "--format", "tflite", code=2)
        self.fails(2, "--graph is of --format onnx", "m.safetensors", "--graph", "step")
        self.fails(2, "is a file", "m.safetensors")
        (self.folder / "empty").mkdir()
        self.fails(1, "empty", "empty", "--format", "onnx")
        self.fails(1, "nowhere", "nowhere", "--format", "onnx")
        (self.folder / "text").write_text("not a model, but a text that is long enough to be read")
        self.fails(1, "text: ", "text", "--format", "onnx")
        self.fails(1, "no/such/place", "m.safetensors", "--format", "onnx", "--out", "no/such/place/m.onnx")
        (self.folder / "m.chunk.onnx").write_text("mine")
        self.fails(2, "m.chunk.onnx: exists", "m.safetensors", "--format", "onnx")
        self.assertEqual((self.folder / "m.chunk.onnx").read_text(), "mine")
        self.run_program("export", "m.safetensors", "--format", "onnx", "--force")
        self.model(bidirectional=True)
        self.fails(2, "no step graph; use --graph sequence", "m.safetensors", "--format", "onnx", "--graph", "step",
                   "--out", "x.onnx")
        self.fails(1, "full", "m.safetensors", "--format", "onnx", "--graph", "sequence", "--out", "/dev/full/x.onnx")


if __name__ == "__main__":
    unittest.main()

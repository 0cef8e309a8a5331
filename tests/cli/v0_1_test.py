"""What version 0.1 wrote loads, goes on and predicts as it did: tests/fixtures/v0_1, of each layer.

The engine of then computed its parameters' maps by other code and another libm, and another CPU takes sums in another
order: what one pass gives differs by a few roundings of float32, 6e-8 each. Training carries them along, six or twelve
steps of AdamW, whose division by the root of the second moment lets the rounding of a small gradient count as much as
that of a large one: up to 1e-3 of a step of 6e-3. The largest seen are 1.2e-7 of a weight and 7e-7 of a metric; the
steps move weights by up to 0.26.
"""

import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

PROGRAM = os.environ["ROTRNN_PROGRAM"]
FIXTURES = Path(os.environ["ROTRNN_SOURCE"]) / "tests/fixtures/v0_1"
LAYERS = ("rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4")

PASS = 2e-6  # of a probability or a loss
TRAINED = 1e-5  # of a weight or a metric, absolute: all are around 1
CLOCK = ("seconds", "tokens_per_second", "memory_mb")


def tensors(path):
    """Name to array, of a safetensors file."""
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        kind = {"F32": "<f4", "I64": "<i8"}[entry["dtype"]]
        out[name] = np.frombuffer(data[begin:end], kind).reshape(entry["shape"])
    return out


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


class Case(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def run_program(self, *arguments, stdin=""):
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, input=stdin, capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def for_layers(self, check):
        for layer in LAYERS:
            with self.subTest(layer=layer):
                self.run_folder = self.folder / layer
                shutil.copytree(FIXTURES / layer, self.run_folder)
                self.predictions = json.loads((self.run_folder / "predictions.json").read_text())
                check(layer)

    def same_eigenvalues(self, mine, theirs):
        """As sets: eigenvalues on the real axis have no order by angle. They are written with six digits."""
        self.assertEqual(mine["of"], theirs["of"])
        a, b = (np.array(x["re"]) + 1j * np.array(x["im"]) for x in (mine, theirs))
        self.assertEqual(len(a), len(b))
        distances = np.abs(a[:, None] - b)
        self.assertLess(distances.min(0).max(), TRAINED)
        self.assertLess(distances.min(1).max(), TRAINED)

    def same_metrics(self, mine, theirs):
        self.assertEqual(len(mine), len(theirs))
        for line, want in zip(mine, theirs):
            self.assertEqual(list(line), list(want))
            for key, value in want.items():
                if key in CLOCK:
                    continue
                if key == "layers":
                    for a, b in zip(line[key], value, strict=True):
                        self.same_eigenvalues(a, b)
                elif key in ("whole", "head") or isinstance(value, float):
                    np.testing.assert_allclose(line[key], value, rtol=TRAINED, atol=TRAINED, err_msg=f"{key} of {want}")
                else:
                    self.assertEqual(line[key], value, key)


class Runs(Case):
    def test_checkpoints_predict_what_they_did(self):
        def check(layer):
            for which in ("best", "last"):
                want = self.predictions[which]
                out = self.run_program("predict", self.run_folder, FIXTURES / "lists.txt", "--checkpoint", which,
                                       "--json")
                answers = [json.loads(line) for line in out.splitlines()]
                self.assertEqual([a["label"] for a in answers], want["labels"])
                got = [list(a["probabilities"].values()) for a in answers]
                np.testing.assert_allclose(got, want["probabilities"], rtol=0, atol=PASS)
                # The logits are of the ATen path in double.
                exact = np.exp(want["logits"])
                np.testing.assert_allclose(got, exact / exact.sum(1, keepdims=True), rtol=0, atol=PASS)

        self.for_layers(check)

    def test_eval_gives_the_scores_of_then(self):
        def check(layer):
            want = lines(self.run_folder / "metrics.jsonl")[-1]
            self.assertEqual(want["split"], "test")
            scores = json.loads(self.run_program("eval", self.run_folder, "--json"))
            self.assertEqual(scores["accuracy"], want["accuracy"])
            self.assertAlmostEqual(scores["loss"], want["loss"], delta=PASS)

        self.for_layers(check)

    def test_a_run_of_then_goes_on_as_it_did(self):
        def check(layer):
            self.run_program("train", "--resume", "--out", self.run_folder, "--set", "training.steps=12")
            got = tensors(self.run_folder / "last/weights.safetensors")
            want = tensors(self.run_folder / "resumed_weights.safetensors")
            self.assertEqual(got.keys(), want.keys())
            for name, value in want.items():
                self.assertEqual(got[name].dtype, value.dtype, name)
                np.testing.assert_allclose(got[name], value, rtol=0, atol=TRAINED, err_msg=name)
            self.same_metrics(lines(self.run_folder / "metrics.jsonl"),
                              lines(self.run_folder / "resumed_metrics.jsonl"))

        self.for_layers(check)

    def test_the_same_config_trains_the_same_run_anew(self):
        """Initial values, order, dropout and steps are those of then."""

        def check(layer):
            out = self.folder / f"{layer}_anew"
            self.run_program("train", self.run_folder / "tiny.toml", "--out", out)
            self.same_metrics(lines(out / "metrics.jsonl"), lines(self.run_folder / "metrics.jsonl"))
            got, want = tensors(out / "last/weights.safetensors"), tensors(self.run_folder / "last/weights.safetensors")
            self.assertEqual(got.keys(), want.keys())
            for name, value in want.items():
                np.testing.assert_allclose(got[name], value, rtol=0, atol=TRAINED, err_msg=name)

        self.for_layers(check)


class Models(Case):
    def test_exported_models_stream_the_same_answers(self):
        def check(layer):
            want = self.predictions["best"]
            # The program adds the end mark itself.
            for label, logits, tokens in zip(want["labels"], want["logits"], self.predictions["tokens"], strict=True):
                out = self.run_program("stream", self.run_folder / "model.safetensors", "--format", "tokens", "--all",
                                       "--json", stdin=" ".join(map(str, tokens[:-1])))
                final = next(line for line in map(json.loads, out.splitlines()) if line.get("final"))
                self.assertEqual(final["step"], len(tokens) - 1)
                self.assertEqual(final["label"], label)
                exact = np.exp(logits)
                got = [final["probabilities"][str(digit)] for digit in range(10)]
                np.testing.assert_allclose(got, exact / exact.sum(), rtol=0, atol=PASS)

        self.for_layers(check)

    def test_a_run_of_then_is_exported_as_it_was(self):
        """The same file but for the version, and tensors to rounding."""

        def check(layer):
            self.run_program("export", self.run_folder, "--out", "again.safetensors", "--force")
            got, want = tensors(self.folder / "again.safetensors"), tensors(self.run_folder / "model.safetensors")
            self.assertEqual(list(got), list(want))
            for name, value in want.items():
                scale = max(1, np.abs(value).max())
                np.testing.assert_allclose(got[name], value, rtol=0, atol=PASS * scale, err_msg=name)

        self.for_layers(check)


if __name__ == "__main__":
    unittest.main()

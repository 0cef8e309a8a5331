"""rotrnn fit through the program: what eval, predict, export and stream say of a fitted run agrees."""

import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest
import wave as wave_file
from pathlib import Path

import numpy as np

PROGRAM = os.environ["ROTRNN_PROGRAM"]


def wave(draw, label, length):
    phase = 6.28 * draw.random()
    return [math.sin(phase + 0.3 * (label + 1) * t) + 0.3 * draw.gauss(0, 1) for t in range(length)]


class FitCase(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.random = random.Random(1)

    def run_program(self, *arguments, code=0, stdin=""):
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, input=stdin,
                              capture_output=True, text=True, timeout=120,
                              env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")})
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def fit(self, *arguments):
        out = self.run_program("fit", *arguments, "--out", "run", "--states", 64, "--json").stdout
        return json.loads(out.splitlines()[-1])

    def write_ts(self, name, rows):
        text = "@problemName waves\n@univariate true\n@classLabel true a b c\n@data\n"
        for label, series in rows:
            text += ",".join(f"{x:.6g}" for x in series) + ":" + label + "\n"
        (self.folder / name).write_text(text)

    def waves(self, count):
        return [("abc"[i % 3], wave(self.random, i % 3, 50)) for i in range(count)]


class Classes(FitCase):
    def setUp(self):
        super().setUp()
        self.write_ts("waves_TRAIN.ts", self.waves(60))
        self.write_ts("waves_TEST.ts", self.waves(90))

    def test_a_fit_is_a_run_like_any_other(self):
        result = self.fit("waves_TRAIN.ts", "waves_TEST.ts")
        self.assertGreater(result["test_accuracy"], 0.9)
        self.assertIsNone(result["validation_accuracy"])
        self.assertEqual(result["estimate"], "leave one out")
        self.assertEqual(result["train"], 60)  # what was held out for validation is learned from
        self.assertEqual([e["share"] for e in result["early"]], [0.1, 0.25, 0.5, 1])
        self.assertEqual(result["early"][-1]["accuracy"], result["test_accuracy"])
        evaluated = json.loads(self.run_program("eval", "run", "--json").stdout)
        self.assertEqual(evaluated["accuracy"], result["test_accuracy"])
        twin = json.loads(self.run_program("eval", "run", "--json", "--kernels", "reference").stdout)
        self.assertAlmostEqual(twin["loss"], evaluated["loss"], places=2)
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["split"] for line in lines], ["estimate", "test", "early"])
        self.assertIn("<circle", (self.folder / "run/rotations.svg").read_text())
        self.run_program("info", "run")
        self.run_program("report", "run")
        predicted = [json.loads(line) for line in self.run_program(
            "predict", "run", "waves_TEST.ts", "--json").stdout.splitlines()]
        self.assertEqual(len(predicted), 90)

    def test_the_same_command_gives_the_same_weights(self):
        files = []
        for threads in (1, 2):
            self.fit("waves_TRAIN.ts", "waves_TEST.ts", "--overwrite", "--threads", threads)
            files.append((self.folder / "run/best/weights.safetensors").read_bytes())
        self.assertEqual(*files)

    def test_a_fitted_run_is_not_trained(self):
        self.fit("waves_TRAIN.ts", "waves_TEST.ts")
        done = self.run_program("train", "run/config.toml", "--out", "other", code=2)
        self.assertIn("rotrnn fit", done.stderr)

    def test_a_run_is_not_replaced_by_accident(self):
        self.fit("waves_TRAIN.ts", "waves_TEST.ts")
        done = self.run_program("fit", "waves_TRAIN.ts", "--out", "run", code=2)
        self.assertIn("--overwrite", done.stderr)


class Exported(FitCase):
    def setUp(self):
        super().setUp()
        self.test = self.waves(20)
        self.write_ts("waves_TRAIN.ts", self.waves(60))
        self.write_ts("waves_TEST.ts", self.test)
        self.fit("waves_TRAIN.ts", "waves_TEST.ts")
        self.run_program("export", "run", "--out", "model.safetensors")

    def stream(self, series, *arguments):
        numbers = "".join(f"{x:.6g}\n" for x in series)
        out = self.run_program("stream", "model.safetensors", "--json", "--all", *arguments, stdin=numbers).stdout
        return [json.loads(line) for line in out.splitlines()]

    def test_streams_say_what_predict_says(self):
        self.assertIn("rotations", self.run_program("info", "model.safetensors").stdout)
        predicted = [json.loads(line) for line in self.run_program(
            "predict", "run", "waves_TEST.ts", "--json").stdout.splitlines()]
        for prediction, (_, series) in zip(predicted, self.test):
            for chunk in (1, 7, 256):
                final = [line for line in self.stream(series, "--chunk", chunk) if line.get("final")][0]
                self.assertEqual(final["label"], prediction["label"])
                for name, p in prediction["probabilities"].items():
                    self.assertAlmostEqual(final["probabilities"][name], p, delta=1e-4)

    def test_a_memory_follows_what_changes(self):
        slow, fast = (wave(self.random, label, 400) for label in (0, 2))
        kept, forgotten = ([line for line in self.stream(slow + slow + fast, *arguments) if line.get("final")][0]
                           for arguments in ((), ("--memory", 60)))
        self.assertEqual(forgotten["label"], "c")
        self.assertGreater(kept["probabilities"]["a"], forgotten["probabilities"]["a"])

    def test_no_graph(self):
        done = self.run_program("export", "run", "--format", "onnx", "--out", "graphs", code=2)
        self.assertIn("fitted", done.stderr)


class Bands(FitCase):
    RATE = 8000

    def write_wav(self, name, samples):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with wave_file.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(self.RATE)
            file.writeframes(np.clip(32767 * samples, -32768, 32767).astype("<i2").tobytes())

    def sound(self, rng, label):
        t = np.arange(rng.integers(1500, 2500)) / self.RATE
        pitch = (300, 800, 2000)[label] * rng.uniform(0.9, 1.1)
        return 0.3 * np.sin(2 * np.pi * pitch * t + rng.uniform(0, 6)) + 0.1 * rng.standard_normal(len(t))

    def test_sounds_by_their_bands(self):
        rng = np.random.default_rng(1)
        for i in range(60):
            self.write_wav(f"sounds/{'abc'[i % 3]}/{i}.wav", self.sound(rng, i % 3))
        result = self.fit("sounds", "--input", "bands")
        self.assertEqual(result["input"], "bands")
        self.assertGreater(result["estimate_accuracy"], 0.9)
        evaluated = json.loads(self.run_program("eval", "run", "--json").stdout)
        self.assertEqual(evaluated["accuracy"], result["test_accuracy"])
        twin = json.loads(self.run_program("eval", "run", "--json", "--kernels", "reference").stdout)
        self.assertAlmostEqual(twin["loss"], evaluated["loss"], delta=0.02)
        self.run_program("export", "run", "--out", "model.safetensors")
        self.write_wav("new.wav", self.sound(rng, 1))
        predicted = json.loads(self.run_program("predict", "run", "new.wav", "--json").stdout)
        for chunk in (100, 4096):
            out = self.run_program("stream", "model.safetensors", "new.wav", "--json", "--all", "--chunk", chunk).stdout
            final = [line for line in map(json.loads, out.splitlines()) if line.get("final")][0]
            for name, p in predicted["probabilities"].items():
                self.assertAlmostEqual(final["probabilities"][name], p, delta=1e-3)


class Values(FitCase):
    def test_regression_of_a_csv(self):
        rows = []
        for _ in range(120):
            frequency = 0.2 + self.random.random()
            phase = 6.28 * self.random.random()
            series = " ".join(f"{math.sin(phase + frequency * t):.6g}" for t in range(60))
            rows.append([series, f"{10 * frequency:.6g}"])
        with open(self.folder / "waves.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["series", "speed"])
            writer.writerows(rows)
        result = self.fit("waves.csv", "--set", "task.target=value", "--set",
                          "task.target_columns=speed", "--set", "task.series_column=series")
        self.assertLess(result["test_rmse"], 1.2)  # of a deviation of 2.9
        evaluated = json.loads(self.run_program("eval", "run", "--json").stdout)
        self.assertAlmostEqual(math.sqrt(evaluated["mse"]), result["test_rmse"], places=9)


class Groups(FitCase):
    def test_groups_are_left_out_together(self):
        # A level that belongs to the group and, in the training data, to the label: by leaving
        # single series out it seems to tell everything, by leaving groups out nothing.
        def series(level, label):
            return [[level + 0.1 * self.random.gauss(0, 1) + 0.15 * math.sin((0.4 + 0.5 * label) * t)]
                    for t in range(40)]

        def split(groups, per_group, seed):
            draw = random.Random(seed)
            x, y, g = [], [], []
            for group in range(groups):
                level, label = 3 * draw.gauss(0, 1), group % 2
                for _ in range(per_group):
                    x.append(series(level, label))
                    y.append(label)
                    g.append(group)
            return np.array(x, np.float32), np.array(y), np.array(g)

        for name, seed in (("train", 1), ("test", 2)):
            x, y, g = split(16, 8, seed)
            for what, values in (("X", x), ("y", y), ("groups", g)):
                np.save(self.folder / f"{what}_{name}.npy", values)
        result = self.fit(".")
        self.assertEqual(result["estimate"], "leave one group out")
        margin = 3 * result["estimate_error"] + 0.1
        self.assertLess(abs(result["estimate_accuracy"] - result["test_accuracy"]), margin)


class Wrong(FitCase):
    def test_texts_are_for_train(self):
        with open(self.folder / "text.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            for i in range(40):
                writer.writerow([f"some words {i % 2} and more", "ab"[i % 2]])
        done = self.run_program("fit", "text.csv", "--out", "run", code=2)
        self.assertIn("rotrnn train", done.stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_no_data(self):
        self.run_program("fit", "nothing.ts", "--out", "run", code=1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)

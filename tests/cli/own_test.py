"""Data of one's own through the program: what eval and predict say is computed again here."""

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

import numpy as np

PROGRAM = os.environ["ROTRNN_PROGRAM"]

MODEL = """
[model]
width = 12
state = 12
heads = 3
depth = 2
{model}

[training]
steps = {steps}
batch = 8
global_lr = 1e-2
evaluate_every = {steps}
threads = 1
{training}
"""


class Own(unittest.TestCase):
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

    def train(self, task, steps=60, model="", training="", code=0):
        (self.folder / "own.toml").write_text(
            "[task]\n" + task + MODEL.format(steps=steps, model=model, training=training))
        return self.run_program("train", "own.toml", "--out", "run", "--overwrite", "--quiet",
                                code=code)

    def evaluate(self, *arguments):
        return json.loads(self.run_program("eval", "run", "--json", *arguments).stdout)

    def predict(self, *files, stdin=""):
        done = self.run_program("predict", "run", *files, "--json", stdin=stdin)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def split_names(self, split):
        lines = (self.folder / "run/splits.tsv").read_text().splitlines()[1:]
        return [line.split("\t")[1] for line in lines if line.startswith(split + "\t")]

    def write_csv(self, name, header, rows):
        with open(self.folder / name, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)


class Text(Own):
    WORDS = {"good": "nice great fine".split(), "bad": "dull awful sad".split(),
             "so-so": "okay plain usual".split()}

    def setUp(self):
        super().setUp()
        self.rows = []
        for i in range(120):
            label = "good" if i % 2 else "bad" if i % 3 else "so-so"
            text = " ".join(self.random.choice(self.WORDS[label] + ["the", 'a "film", really'])
                            for _ in range(6))
            score = {"good": 3, "bad": 1, "so-so": 2}[label] + self.random.gauss(0, 0.1)
            self.rows.append([text, label, score, f"user{i % 10}"])
        self.write_csv("reviews.csv", ["text", "label", "score", "who"], self.rows)

    def row_of(self, name):
        return self.rows[int(name.rsplit(":", 1)[1]) - 2]  # a line of the file, after the header

    def test_classes_every_figure_is_that_of_the_predictions(self):
        self.train('name = "csv"\npath = "reviews.csv"\ntext_column = "text"\n'
                   'label_column = "label"\nmin_frequency = 1\ntest_share = 0.3\n', steps=40)
        e = self.evaluate()
        test = self.split_names("test")
        self.assertEqual(len(test), 36)
        said = {p["name"]: p["label"] for p in self.predict("reviews.csv")}
        classes = sorted(self.WORDS)
        matrix = [[sum(self.row_of(n)[1] == t and said[n] == s for n in test) for s in classes]
                  for t in classes]
        self.assertEqual(e["confusion"], matrix)
        right = sum(matrix[i][i] for i in range(3))
        self.assertAlmostEqual(e["accuracy"], right / 36, places=12)
        for i, c in enumerate(e["classes"]):
            there, predicted = sum(matrix[i]), sum(row[i] for row in matrix)
            self.assertEqual(c["class"], classes[i])
            self.assertEqual(c["examples"], there)
            self.assertAlmostEqual(c["recall"], matrix[i][i] / there if there else 0, places=12)
            self.assertAlmostEqual(c["precision"], matrix[i][i] / predicted if predicted else 0, places=12)
        self.assertGreater(e["accuracy"], e["majority_share"] + 0.2)
        # Stratified: the shares of the classes in the test are those of the whole.
        for i, c in enumerate(classes):
            share = sum(row[1] == c for row in self.rows) / 120
            self.assertLessEqual(abs(sum(matrix[i]) - 36 * share), 1)
        # The table for people names the classes; a line of text is answered too.
        self.assertIn("so-so", self.run_program("eval", "run").stdout)
        self.assertEqual(self.predict(stdin="nice great fine\n")[0]["label"], "good")

    def test_groups_are_whole(self):
        self.train('name = "csv"\npath = "reviews.csv"\ntext_column = "text"\n'
                   'label_column = "label"\nsplit = "group"\ngroup_column = "who"\n', steps=2)
        groups = [{self.row_of(n)[3] for n in self.split_names(s)}
                  for s in ("train", "validation", "test")]
        self.assertEqual(sum(map(len, groups)), 10)
        self.assertEqual(len(set.union(*groups)), 10)

    def test_values_are_in_their_own_units(self):
        self.train('name = "csv"\npath = "reviews.csv"\ntext_column = "text"\n'
                   'target = "value"\ntarget_columns = "score"\nmin_frequency = 1\n')
        e = self.evaluate()
        score = {n: self.row_of(n)[2] for s in ("train", "test") for n in self.split_names(s)}
        test = self.split_names("test")
        mean = np.mean([score[n] for n in self.split_names("train")])
        truth = np.array([score[n] for n in test])
        self.assertAlmostEqual(e["naive_mae"], np.abs(truth - mean).mean(), places=5)
        self.assertAlmostEqual(e["naive_mse"], ((truth - mean) ** 2).mean(), places=5)
        said = {p["name"]: p["values"][0] for p in self.predict("reviews.csv")}
        error = np.array([said[n] for n in test]) - truth
        self.assertAlmostEqual(e["mae"], np.abs(error).mean(), places=4)
        self.assertAlmostEqual(e["mse"], (error ** 2).mean(), places=4)
        self.assertLess(e["mse"], 0.5 * e["naive_mse"])

    def test_balanced_classes_find_the_rare_one(self):
        rows = [[("x" if i % 12 == 0 and self.random.random() < 0.8 else "o") + "abab",
                 "rare" if i % 12 == 0 else "often"] for i in range(360)]
        rows += [["xabab", "often"] for _ in range(60)]
        self.write_csv("rare.csv", ["text", "label"], rows)
        task = ('name = "csv"\npath = "rare.csv"\ntext_column = "text"\nlabel_column = "label"\n'
                'min_frequency = 1\ntest_share = 0.4\n')
        recall = {}
        for weights in ("none", "balanced"):
            self.train(task, steps=150, training=f'class_weights = "{weights}"')
            recall[weights] = self.evaluate()["classes"][1]["recall"]
        # "x…" is more often "often" than "rare": without weights the prediction would never be "rare".
        self.assertLess(recall["none"], 0.5)
        self.assertGreater(recall["balanced"], 0.5)


class Pairs(Own):
    def test_two_documents_are_compared(self):
        """Retrieval in the public format: pairs cite each other when they are of one kind."""
        def text(kind):
            return "".join(self.random.choice("abc" if kind else "xyz") + " "
                           for _ in range(self.random.randrange(5, 12)))

        os.mkdir(self.folder / "aan")
        for name, count in (("train", 160), ("eval", 40), ("test", 60)):
            with open(self.folder / f"aan/new_aan_pairs.{name}.tsv", "w") as file:
                for i in range(count):
                    a, b = i % 2, i // 2 % 2
                    file.write(f"{float(a == b)}\tP{i}\tQ{i}\t{text(a)}\t{text(b)}\n")
        self.train('name = "retrieval"\npath = "aan"\nmin_frequency = 1\n', steps=150)
        e = self.evaluate()
        self.assertEqual(e["examples"], 60)
        self.assertGreater(e["accuracy"], 0.9)  # neither document alone is enough: 0.5
        lines = (self.folder / "aan/new_aan_pairs.test.tsv").read_text().splitlines()
        fields = [line.split("\t") for line in lines]
        said = self.predict(stdin="".join(f"{f[3]}\t{f[4]}\n" for f in fields))
        right = sum(float(p["label"]) == float(f[0]) for p, f in zip(said, fields, strict=True))
        self.assertAlmostEqual(e["accuracy"], right / 60, places=12)


class Series(Own):
    def test_forecast_against_the_last_value(self):
        t = np.arange(1500)
        noise = np.random.default_rng(0).standard_normal((1500, 2))
        x = np.stack([np.sin(t / 8), 100 + 30 * np.cos(t / 8)], 1) + noise * [0.05, 1]
        self.write_csv("s.csv", ["hour", "a", "b"], [[i, *row] for i, row in enumerate(x)])
        self.train('name = "series"\npath = "s.csv"\nchannel_columns = "a,b"\n'
                   'target = "forecast"\nhorizon = 4\nwindow = 100\n', steps=120,
                   model='pooling = "none"')
        e = self.evaluate()
        # By hand: the last 150 rows are the test, predicted up to its fourth-last; in units of the
        # standard deviation of the inputs of train, the first 1,200 rows without the four that are only targets.
        train, test = x[:1196], x[1350:]
        mean, deviation = train.mean(0), train.std(0)
        z = (test - mean) / deviation
        naive = np.concatenate([z[k:len(z) - 4 + k] - z[:len(z) - 4] for k in range(1, 5)])
        self.assertAlmostEqual(e["naive_mae"], np.abs(naive).mean(), places=4)
        self.assertAlmostEqual(e["naive_mse"], (naive ** 2).mean(), places=4)
        self.assertLess(e["mse"], 0.3 * e["naive_mse"])
        # What follows the rows that are given, in the units of the columns.
        self.write_csv("begin.csv", ["hour", "a", "b"], [[i, *row] for i, row in enumerate(x[:1400])])
        values = self.predict("begin.csv")[0]["values"]
        self.assertEqual(len(values), 8)
        said = np.array(values).reshape(4, 2)
        self.assertLess(np.abs((said - x[1400:1404]) / deviation).mean(), 0.5)

    def test_a_class_for_every_step(self):
        rows = []
        for s in range(30):
            for i in range(40 + s % 5):
                fast = (i // 10 + s) % 2
                rows.append([f"series{s}", np.sin(i * (1.5 if fast else 0.2)), "fast" if fast else "slow"])
        self.write_csv("t.csv", ["id", "v", "state"], rows)
        self.train('name = "series"\npath = "t.csv"\nid_column = "id"\nlabel_column = "state"\n'
                   'target = "token_class"\n', steps=150, model='pooling = "none"')
        e = self.evaluate()
        truth = {}
        for name, _, state in rows:
            truth.setdefault(name, []).append(state)
        said = {p["name"].rsplit(":", 1)[-1]: p["labels"] for p in self.predict("t.csv")}
        test = [n.rsplit(":", 1)[-1] for n in self.split_names("test")]
        pairs = [p for n in test for p in zip(truth[n], said[n], strict=True)]
        self.assertAlmostEqual(e["accuracy"], sum(a == b for a, b in pairs) / len(pairs), places=12)
        self.assertGreater(e["accuracy"], 0.8)

    def test_half_the_rate(self):
        """A layer with a time step keeps its answers on every second sample, twice as long."""
        rng = np.random.default_rng(3)
        t = np.arange(200)
        rows = [[" ".join(f"{v:.4f}" for v in np.sin(t * (0.05 if i % 2 else 0.12) + rng.random() * 6)),
                 "slow" if i % 2 else "fast"] for i in range(80)]
        self.write_csv("w.csv", ["wave", "kind"], rows)
        task = ('name = "csv"\npath = "w.csv"\nseries_column = "wave"\nlabel_column = "kind"\n'
                'test_share = 0.4\n')
        self.train(task, steps=60, model='layer = "s5"\ns5.blocks = 3')
        self.assertGreater(self.evaluate()["accuracy"], 0.9)
        self.assertGreater(self.evaluate("--keep-every", "2")["accuracy"], 0.9)
        self.train(task, steps=1)
        self.assertIn("rotrnn has no time step",
                      self.run_program("eval", "run", "--keep-every", "2", code=2).stderr)

    def test_arrays(self):
        rng = np.random.default_rng(2)
        labels = np.arange(80) % 2
        x = rng.standard_normal((80, 30, 3)) + labels[:, None, None]
        np.save(self.folder / "x.npy", x.astype("f4"))
        np.save(self.folder / "y.npy", labels)
        os.mkdir(self.folder / "arrays")
        for name in ("x.npy", "y.npy"):
            os.rename(self.folder / name, self.folder / "arrays" / name)
        self.train('name = "npy"\npath = "arrays"\n', steps=40)
        self.assertGreater(self.evaluate()["accuracy"], 0.9)


class Wrong(Own):
    def error(self, task, code=1, **more):
        return self.train(task, code=code, **more).stderr

    def test_settings_that_do_not_fit(self):
        self.write_csv("s.csv", ["a", "b"], [[i, i] for i in range(50)])
        series = 'name = "series"\npath = "s.csv"\ntarget = "forecast"\n'
        self.assertIn('set model.pooling = "none"', self.error(series, code=2))
        self.assertIn("must not see the future",
                      self.error(series, code=2, model='pooling = "none"\nbidirectional = true'))
        for setting in ("max_tokens = 20\n", 'normalisation = "upstream"\n'):
            self.assertIn(setting.split()[0] + ":",
                          self.error(series + setting, code=2, model='pooling = "none"'))
        self.assertIn("predicts classes", self.error('name = "mnist"\npath = "."\ntarget = "value"\n', code=2))
        self.assertIn("nothing is left",
                      self.error(series + "horizon = 60\n", code=2, model='pooling = "none"'))
        self.assertIn("there is no such file", self.error('name = "csv"\npath = "none.csv"\n'))
        self.write_csv("c.csv", ["series", "answer"], [["1 2", "a"]])
        self.assertIn('did you mean "answer"', self.error(
            'name = "csv"\npath = "c.csv"\nseries_column = "series"\nlabel_column = "anwser"\n'))
        self.assertFalse((self.folder / "run").exists())

    def test_what_is_not_like_the_training_data_is_refused(self):
        def wav(name, rate):
            with wave.open(str(self.folder / name), "wb") as file:
                file.setparams((1, 2, rate, 0, "NONE", ""))
                file.writeframes(bytes(self.random.randrange(256) for _ in range(200)))

        for i in range(20):
            os.makedirs(self.folder / f"sounds/{'ab'[i % 2]}", exist_ok=True)
            wav(f"sounds/{'ab'[i % 2]}/{i}.wav", 8000)
        wav("fast.wav", 16000)
        self.train('name = "audio_folder"\npath = "sounds"\n', steps=1)
        self.assertEqual(len(self.predict("sounds/a/0.wav")), 1)
        self.assertIn("16000 samples per second, the model was trained on 8000",
                      self.run_program("predict", "run", "fast.wav", code=1).stderr)

        self.write_csv("s.csv", ["a", "b"], [[i, i] for i in range(200)])
        self.write_csv("swapped.csv", ["b", "a"], [[i, i] for i in range(20)])
        self.train('name = "series"\npath = "s.csv"\ntarget = "forecast"\nwindow = 10\n', steps=1,
                   model='pooling = "none"')
        self.assertIn("its channels are b, a, the model was trained on a, b",
                      self.run_program("predict", "run", "swapped.csv", code=1).stderr)

    def test_values_have_no_accuracy_and_keep_their_number(self):
        rng = np.random.default_rng(4)
        for name, width in (("one", 1), ("two", 2)):
            os.mkdir(self.folder / name)
            np.save(self.folder / name / "x.npy", rng.standard_normal((40, 6)).astype("f4"))
            np.save(self.folder / name / "y.npy", rng.standard_normal((40, width)))
        self.train('name = "npy"\npath = "one"\ntarget = "value"\n', steps=1)
        self.evaluate("--data", "one")
        self.assertIn("2 target values, the model was trained on 1",
                      self.run_program("eval", "run", "--data", "two", code=1).stderr)
        self.assertIn("compare: it compares accuracies",
                      self.run_program("compare", "own.toml", "--out", "c", code=2).stderr)
        self.assertFalse((self.folder / "c").exists())

    def test_bad_rows_are_named(self):
        def series(rows):
            (self.folder / "s.csv").write_text("a,b\n" + rows)
            return self.error('name = "series"\npath = "s.csv"\ntarget = "forecast"\n',
                              model='pooling = "none"')

        self.assertIn("s.csv:3:", series("1,2\n1,nan\n"))
        self.assertIn("s.csv:4:", series("1,2\n1,2\n1,2,3\n"))
        self.assertIn("s.csv:2:", series("1,x\n"))
        (self.folder / "s.csv").write_bytes(b"a,b\n1,\xff\n")
        self.assertIn("s.csv:2:", self.error('name = "series"\npath = "s.csv"\ntarget = "forecast"\n',
                                             model='pooling = "none"'))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)

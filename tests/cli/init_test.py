"""`rotrnn init`: from data to a config that trains and beats the majority class, without edits."""

import json
import math
import os
import random
import signal
import struct
import subprocess
import tempfile
import time
import tomllib
import unittest
import wave
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]


class Base(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.random = random.Random(1)

    def run_program(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, text=True,
                              capture_output=True, errors="replace", timeout=300,
                              env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")})
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def init(self, *arguments):
        """Without a measurement, so that the result is the same on every machine."""
        return self.run_program("init", *arguments, "--measure", 0)

    def fails(self, *arguments, code, says):
        done = self.run_program("init", *arguments, "--measure", 0, code=code)
        self.assertIn(says, done.stderr)

    def trains(self, config, majority, steps=80):
        """Trains a few of the steps that the config asks for; the accuracy is to be far above the
        share of the most frequent class."""
        self.run_program("train", config, "--out", "run", "--overwrite", "--quiet", "--set",
                         f"training.steps={steps}", "--set", f"training.evaluate_every={steps // 4}")
        lines = [json.loads(line) for line in
                 (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        accuracy = lines[-1]["accuracy"]
        self.assertEqual(lines[-1]["split"], "test")
        self.assertGreater(accuracy, majority + 0.2, config)

    # Data in public forms: two classes that are easy to separate.

    def write_ts(self, name="waves.ts", count=80, length=60):
        lines = ["# two kinds of waves", "@problemName waves", "@timeStamps false",
                 "@univariate true", "@classLabel true slow fast", "@data"]
        for i in range(count):
            turn, start = [(0.2, "slow"), (0.9, "fast")][i % 2], self.random.random()
            values = [math.sin(turn[0] * t + 6 * start) + self.random.gauss(0, 0.1)
                      for t in range(length)]
            lines.append(",".join(f"{v:.4f}" for v in values) + ":" + turn[1])
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def write_reviews(self, name="reviews.csv", count=120):
        good, bad = ["fine", "great", "lovely"], ["awful", "boring", "dull"]
        lines = ["date,review,verdict"]
        for i in range(count):
            words = [self.random.choice(bad if i % 2 else good) for _ in range(6)]
            lines.append(f"2024-01-02 10:00:{i % 60:02},\"It was {', '.join(words)}.\","
                         f"{'no' if i % 2 else 'yes'}")
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def write_sounds(self, name="sounds", count=40, flat=False):
        for i in range(count):
            kind, tone = [("low", 0.15), ("high", 0.6)][i % 2]
            path = self.folder / name / (f"{kind}_{i}.wav" if flat else f"{kind}/{i}.wav")
            path.parent.mkdir(parents=True, exist_ok=True)
            samples = [int(9000 * math.sin(tone * t + i)) for t in range(300 + 10 * (i % 7))]
            with wave.open(str(path), "wb") as out:
                out.setparams((1, 2, 8000, 0, "NONE", ""))
                out.writeframes(struct.pack(f"<{len(samples)}h", *samples))


class Init(Base):
    def test_ts(self):
        self.write_ts()
        done = self.init("waves.ts")
        self.assertIn("2 classes: fast (25), slow (26)", done.stdout)
        self.assertIn("next:\n  rotrnn train waves.toml", done.stdout)
        self.trains("waves.toml", 0.5)

    def test_a_table_of_texts(self):
        self.write_reviews()
        self.init("reviews.csv")
        config = tomllib.loads((self.folder / "reviews.toml").read_text())
        self.assertEqual(config["task"]["text_column"], "review")
        self.assertEqual(config["task"]["label_column"], "verdict")
        self.trains("reviews.toml", 0.5)

    def test_a_folder_of_sound(self):
        self.write_sounds()
        self.init("sounds", "--out", "mine.toml")
        self.trains("mine.toml", 0.5)

    def test_sound_by_its_names(self):
        self.write_sounds(flat=True)
        self.init("sounds")
        config = (self.folder / "sounds.toml").read_text()
        self.assertIn("2 classes, high, low", config)
        self.trains("sounds.toml", 0.5)

    def test_rows_that_are_steps_of_time(self):
        lines = ["id,t,x,y,label"]
        for series in range(80):
            for t in range(30):
                turn = 0.3 if series % 2 else 1.2
                lines.append(f"s{series},{t},{math.sin(turn * t + series):.3f},"
                             f"{self.random.gauss(0, 1):.3f},{series % 2}")
        (self.folder / "walks.csv").write_text("\n".join(lines) + "\n")
        self.init("walks.csv")
        self.trains("walks.toml", 0.5)

    def test_a_forecast_beats_the_last_value(self):
        lines = ["x"] + [f"{math.sin(0.5 * t) + self.random.gauss(0, 0.05):.4f}"
                         for t in range(2000)]
        (self.folder / "power.csv").write_text("\n".join(lines) + "\n")
        said = self.init("power.csv").stdout
        self.assertRegex(said, r"6\d examples to train on")  # windows, as training counts them
        self.assertIn("half of them up to 24", said)
        self.run_program("train", "power.toml", "--out", "run", "--quiet", "--set",
                         "training.steps=100", "--set", "training.evaluate_every=50")
        last = json.loads((self.folder / "run/metrics.jsonl").read_text().splitlines()[-1])
        self.assertLess(last["mse"], 0.5 * last["naive_mse"])

    def test_a_measurement_gives_the_time(self):
        self.write_ts()
        done = self.run_program("init", "waves.ts", "--measure", 0.2, "--minutes", 0.1)
        self.assertRegex(done.stdout, r"training: [\d,]+ steps of .*; about \d+ s\n")
        config = (self.folder / "waves.toml").read_text()
        # A fast machine sees all examples often enough in less.
        self.assertRegex(config, "# what 0.1 minutes allow|, which is enough")
        self.assertRegex(config, r"# training takes about \d+ s on")
        self.trains("waves.toml", 0.5)

    def test_every_key_has_a_comment(self):
        self.write_ts()
        self.init("waves.ts")
        lines = (self.folder / "waves.toml").read_text().splitlines()
        for i, line in enumerate(lines):
            if " = " in line and not line.startswith("#"):
                self.assertTrue("  # " in line or lines[i - 1].startswith("# "), line)

    def test_printing_writes_nothing_but_the_config(self):
        self.write_ts()
        printed = self.init("waves.ts", "--print")
        self.assertFalse((self.folder / "waves.toml").exists())
        self.assertIn("2 classes", printed.stderr)
        self.init("waves.ts")
        self.assertEqual((self.folder / "waves.toml").read_text(), printed.stdout)
        tomllib.loads(printed.stdout)


class InitUse(Base):
    def test_nothing_is_replaced_unasked(self):
        self.write_ts()
        (self.folder / "waves.toml").write_text("# mine\n")
        self.fails("waves.ts", code=2, says="--force replaces it")
        self.assertEqual((self.folder / "waves.toml").read_text(), "# mine\n")
        self.init("waves.ts", "--force")
        self.assertIn("[task]", (self.folder / "waves.toml").read_text())
        self.fails("waves.ts", "--out", ".", code=2, says="it is a folder")

    def test_settings_of_the_user_win(self):
        self.write_reviews()
        self.init("reviews.csv", "--set", "model.width=16", "--set", "model.state=16", "--set",
                  "model.heads=4", "--set", "training.batch=5", "--set", "task.seed=3")
        config = tomllib.loads((self.folder / "reviews.toml").read_text())
        self.assertEqual(config["model"]["width"], 16)
        self.assertEqual(config["training"]["batch"], 5)
        self.assertNotIn("batch_tokens", config["training"])
        self.assertEqual(config["task"]["seed"], 3)
        # With the kind and its settings given, nothing is guessed.
        self.init("reviews.csv", "--force", "--task", "csv", "--set", "task.text_column=date",
                  "--set", "task.label_column=verdict")
        config = tomllib.loads((self.folder / "reviews.toml").read_text())
        self.assertEqual(config["task"]["text_column"], "date")

    def test_what_the_error_says_to_do_works(self):
        lines = ["text"] + [f"some words, number {i}" for i in range(80)]
        (self.folder / "notes.csv").write_text("\n".join(f'"{line}"' for line in lines) + "\n")
        self.fails("notes.csv", code=1, says="--set task.label_column=NAME")
        lines = ["text,id"] + [f'"{["fine", "awful"][i % 2]} words, number {i}",{i % 2}'
                               for i in range(80)]
        (self.folder / "notes.csv").write_text("\n".join(lines) + "\n")
        self.fails("notes.csv", code=1, says="--set task.target_columns=NAME")
        self.init("notes.csv", "--set", "task.label_column=id")
        self.trains("notes.toml", 0.5)
        self.init("notes.csv", "--force", "--set", "task.target_columns=id")
        config = tomllib.loads((self.folder / "notes.toml").read_text())
        self.assertEqual(config["task"]["target"], "value")
        self.fails("notes.csv", "--force", "--set", "task.label_column=kind", code=1,
                   says='there is no column "kind"')
        # Names of files that show no class, and a pattern that finds one.
        self.write_sounds("loose", flat=True)
        for i, path in enumerate(sorted((self.folder / "loose").iterdir())):
            path.rename(path.with_name(f"{i:03}{path.name[0]}.wav"))
        self.fails("loose", code=1, says="--set task.label_pattern=REGEX")
        self.init("loose", "--set", "task.label_pattern=([hl])[.]wav$")
        self.trains("loose.toml", 0.5)

    def test_a_name_that_no_config_can_hold(self):
        name = os.fsdecode(b"w\xe4ves.ts")
        self.write_ts()
        (self.folder / "waves.ts").rename(self.folder / name)
        self.fails(name, code=2, says="the name is not UTF-8")
        self.assertEqual(list(self.folder.glob("*.toml")), [])

    def test_short_series_of_a_forecast(self):
        lines = ["id,x"] + [f"{i},{i + 0.5 * t}" for i in range(40) for t in range(12)]
        (self.folder / "short.csv").write_text("\n".join(lines) + "\n")
        self.fails("short.csv", code=2, says='task.split = "random" holds out whole series')
        self.init("short.csv", "--set", "task.split=random")

    def test_wrong_data_say_what_is_wrong(self):
        self.fails("nowhere", code=1, says="nowhere: there is no such file or folder")
        (self.folder / "empty").mkdir()
        self.fails("empty", code=1, says="empty: the folder is empty")
        (self.folder / "odd").mkdir()
        (self.folder / "odd/a.xyz").write_text("x")
        self.fails("odd", code=1, says="is of a kind that is read here")
        self.write_sounds("mixed", count=6)
        for i in range(6):
            (self.folder / f"mixed/low/{i}.png").write_bytes(b"x")
        self.fails("mixed", code=1, says="are mixed in it")
        self.write_sounds("few", count=6)
        self.fails("few", code=1, says="too few to learn from")
        self.write_sounds("broken", count=40)
        (self.folder / "broken/low/2.wav").write_bytes(b"no sound")
        self.fails("broken", code=1, says="broken/low/2.wav")
        self.write_sounds("one", count=40)
        for path in (self.folder / "one/high").iterdir():
            path.rename(self.folder / "one/low" / path.name)
        self.fails("one", code=1, says="one")
        self.write_ts(count=8)
        self.fails("waves.ts", code=1, says="too few to learn from")
        (self.folder / "bad.ts").write_text("@classLabel true a b\n@data\n1,2,x:a\n")
        self.fails("bad.ts", code=1, says="bad.ts:3")
        self.fails("waves.ts", "--task", "tz", code=2, says="unknown task")
        self.fails("waves.ts", "--set", "model.widht=3", code=2, says="did you mean \"width\"")
        self.fails("waves.ts", "--minutes", 1, code=2, says="--minutes needs a measurement")
        self.assertEqual(list(self.folder.glob("*.toml")), [])

    def test_an_interrupt_writes_nothing(self):
        self.write_ts()
        process = subprocess.Popen([PROGRAM, "init", "waves.ts", "--measure", "60"], text=True,
                                   cwd=self.folder, stdout=subprocess.PIPE)
        for line in process.stdout:
            if line.startswith("measuring"):
                break
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assertIn("nothing was written", process.communicate(timeout=30)[0])
        self.assertEqual(process.returncode, 1)
        self.assertFalse((self.folder / "waves.toml").exists())

    def test_the_help_names_every_option(self):
        text = self.run_program("init", "--help").stdout
        for option in ["--out", "--force", "--print", "--task", "--set", "--minutes", "--measure",
                       "--threads"]:
            self.assertIn(option, text)
        self.assertIn("init", self.run_program("--help").stdout)


if __name__ == "__main__":
    unittest.main()

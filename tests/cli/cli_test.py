"""The program from outside: every documented command, wrong input, kill and resume."""

import gzip
import json
import os
import random
import resource
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]
SOURCE = Path(os.environ["ROTRNN_SOURCE"])

TINY = """
[task]
train = 300
validation = 50
test = 60
min_length = 5
max_length = 30
max_depth = 3
max_args = 4

[model]
width = 8
state = 12
heads = 4
depth = 2
dropout = 0.1

[training]
steps = 40
batch = 10
log_every = 4
evaluate_every = 10
checkpoint_every = 7
global_lr = 1e-2
threads = 1
"""

MNIST = ["--set", "task.name=mnist", "--set", "task.path=mnist", "--set", "task.train=0",
         "--set", "task.validation=6", "--set", "task.test=0"]


def without_clock(path):
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    for line in lines:
        line.pop("seconds", None)
        line.pop("tokens_per_second", None)
        line.pop("memory_mb", None)
    return lines


class Cli(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.config = self.folder / "tiny.toml"
        self.config.write_text(TINY)

    def run_program(self, *arguments, code=0, stdin=""):
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, input=stdin,
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def write_mnist(self, train, test):
        """Files as published: images of odd number are bright and have label 1, others 0."""
        folder = self.folder / "mnist"
        folder.mkdir()
        for name, count in [("train", train), ("t10k", test)]:
            pixels = b"".join(bytes((p * (i + 3)) % 50 + 200 * (i % 2) for p in range(784))
                              for i in range(count))
            images = struct.pack(">IIII", 0x803, count, 28, 28) + pixels
            labels = struct.pack(">II", 0x801, count) + bytes(i % 2 for i in range(count))
            (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
            (folder / f"{name}-labels-idx1-ubyte").write_bytes(labels)

    def fails(self, *arguments, code, says, stdin=""):
        done = self.run_program(*arguments, code=code, stdin=stdin)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, done.stderr)
        self.assertNotIn("terminate called", done.stderr)
        return done


class Use(Cli):
    def test_train_eval_predict_info(self):
        done = self.run_program("train", self.config, "--out", "run")
        self.assertIn("test accuracy", done.stdout)
        self.assertIn("majority class", done.stdout)
        self.assertNotIn("\033", done.stdout + done.stderr)  # no control codes when piped
        for name in ["config.toml", "metrics.jsonl", "last/weights.safetensors",
                     "last/optimiser.safetensors", "last/state.json", "best/weights.safetensors"]:
            self.assertTrue((self.folder / "run" / name).is_file(), name)

        metrics = without_clock(self.folder / "run/metrics.jsonl")
        test = [line for line in metrics if line["split"] == "test"]
        self.assertEqual(len(test), 1)
        scores = json.loads(self.run_program("eval", "run", "--json").stdout)
        self.assertEqual(scores["examples"], 60)
        self.assertEqual(scores["accuracy"], test[0]["accuracy"])
        best = max(line["accuracy"] for line in metrics if line["split"] == "validation")
        for folder, checkpoint, step in [("run", [], "best"), ("run", ["--checkpoint", "last"], "last"),
                                         ("run/last/", ["--checkpoint", "last"], "last"), ("run/last", [], "last")]:
            state = json.loads((self.folder / "run" / step / "state.json").read_text())["state"]
            seen = json.loads(self.run_program("eval", folder, *checkpoint, "--json").stdout)
            self.assertEqual(seen["step"], state["step"], folder)
        validation = json.loads(
            self.run_program("eval", "run", "--split", "validation", "--json").stdout)
        self.assertEqual(validation["accuracy"], best)

        lines = "[MAX 2 9 [MIN 4 7 ] 0 ]\n\n( ( ( [SM 6 ) 5 ) ] )\n"
        answers = [json.loads(line) for line in
                   self.run_program("predict", "run", "--json", stdin=lines).stdout.splitlines()]
        self.assertEqual([a["line"] for a in answers], [1, 3])
        for answer in answers:
            p = answer["probabilities"]
            self.assertEqual(list(p), [str(i) for i in range(10)])
            self.assertAlmostEqual(sum(p.values()), 1, places=6)
            self.assertEqual(answer["label"], max(p, key=p.get))
        (self.folder / "input.txt").write_text(lines)
        (self.folder / "input.txt.gz").write_bytes(gzip.compress(lines.encode()))
        for file in ("input.txt", "input.txt.gz"):
            plain = self.run_program("predict", "run", file).stdout.splitlines()
            self.assertEqual([line.split("\t")[0] for line in plain], [a["label"] for a in answers], file)
        self.fails("predict", "run", stdin="[MAX 2 9 ]\n[MAX 2 9\n", code=1, says="standard input:2:")

        info = json.loads(self.run_program("info", "run", "--no-measure", "--json").stdout)
        weights = (self.folder / "run/best/weights.safetensors").read_bytes()
        header = json.loads(weights[8:8 + int.from_bytes(weights[:8], "little")])
        count = 0
        for name, tensor in header.items():
            if name == "__metadata__" or ".running_" in name:
                continue
            size = 1
            for n in tensor["shape"]:
                size *= n
            count += size
        self.assertEqual(info["parameters"], count)

    def test_prediction_equals_evaluation(self):
        self.run_program("data", "make", "listops", "--out", "data", "--train", 200,
                         "--validation", 30, "--test", 40, "--seed", 3, "--min-length", 5,
                         "--max-length", 30, "--max-depth", 3, "--max-args", 4)
        self.run_program("train", self.config, "--out", "run", "--set", "task.path=data")
        scores = json.loads(self.run_program("eval", "run", "--json").stdout)
        self.assertEqual(scores["examples"], 40)
        rows = (self.folder / "data/basic_test.tsv").read_text().splitlines()[1:]
        answers = self.run_program("predict", "run", "data/basic_test.tsv").stdout.splitlines()
        right = sum(row.split("\t")[1] == answer.split("\t")[0]
                    for row, answer in zip(rows, answers, strict=True))
        self.assertAlmostEqual(right / 40, scores["accuracy"])

    def test_made_files_are_right_by_an_independent_evaluator(self):
        self.run_program("data", "make", "listops", "--out", "data", "--train", 300,
                         "--validation", 20, "--test", 30, "--min-length", 20,
                         "--max-length", 200)
        for name, count in [("train", 300), ("val", 20), ("test", 30)]:
            file = self.folder / f"data/basic_{name}.tsv"
            check = subprocess.run([sys.executable, SOURCE / "tests/golden/listops_check.py",
                                    "--min", "20", "--max", "200", file],
                                   capture_output=True, text=True)
            self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
            self.assertEqual(len(file.read_text().splitlines()), count + 1)
        seen = json.loads(self.run_program("data", "inspect", "data", "--json").stdout)
        self.assertEqual([s["examples"] for s in seen], [300, 20, 30])
        self.assertEqual(sum(seen[0]["labels"]), 300)
        self.assertIn("mean", self.run_program("data", "inspect", "data").stdout)

    def test_info_counts_of_speech_commands(self):
        config = SOURCE / "configs/speech_commands.toml"
        for settings, count in [([], 212291), (["--set", "model.bidirectional=true"], 286019)]:
            done = self.run_program("info", config, "--no-measure", "--json", *settings)
            self.assertEqual(json.loads(done.stdout)["parameters"], count)
        self.assertIn("212,291 parameters", self.run_program("info", config, "--no-measure").stdout)

    def test_bench_step(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.monotonic()
        done = self.run_program("bench", "step", "--batch", 16, "--length", 500, "--threads", 1,
                                "--repeats", 30, "--json")
        wall = time.monotonic() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.assertLessEqual(used / wall, 1.1, "--threads 1 must not use a second CPU")
        line = json.loads(done.stdout)
        for key in ["seconds_per_step", "tokens_per_second", "useful_gflops", "peak_gflops",
                    "fraction_of_peak", "peak_memory_mb"]:
            self.assertGreater(line[key], 0, key)
        self.assertAlmostEqual(line["tokens_per_second"] * line["seconds_per_step"], 8000, places=3)
        self.assertGreaterEqual(len(line["stages"]), 12)
        text = self.run_program("bench", "step", "--config", self.config, "--lengths", "30,7,1",
                                "--kernels", "reference").stdout
        self.assertIn("reference kernels", text)
        self.fails("bench", "step", "--lengths", "3,x", code=2, says="--lengths")
        self.fails("bench", "step", "--kernels", "cuda", code=2, says="--kernels")

    def test_mnist(self):
        self.write_mnist(train=60, test=30)
        self.run_program("train", self.config, "--out", "run", *MNIST)
        scores = json.loads(self.run_program("eval", "run", "--json").stdout)
        self.assertEqual(scores["examples"], 30)
        self.assertEqual(scores["accuracy"], 1, "bright against dark images")
        images = self.folder / "mnist/t10k-images-idx3-ubyte.gz"
        answers = [json.loads(line) for line in
                   self.run_program("predict", "run", images, "--json").stdout.splitlines()]
        self.assertEqual([a["index"] for a in answers], list(range(30)))
        self.assertEqual([a["label"] for a in answers], [str(i % 2) for i in range(30)])
        done = self.run_program("train", self.config, "--out", "short", *MNIST, "--set",
                                "task.train=20", "--set", "task.test=5", "--set",
                                "task.permuted=true", "--set", "training.steps=2")
        self.assertIn("20 train, 6 validation, 5 test", done.stderr)
        self.assertIn("predict short mnist/t10k-images-idx3-ubyte.gz", done.stdout)
        seen = json.loads(self.run_program("data", "inspect", "mnist", "--json").stdout)
        self.assertEqual([s["examples"] for s in seen], [60, 30])
        self.assertEqual(seen[1]["labels"], [15, 15] + 8 * [0])
        self.assertIn("label 1", self.run_program("data", "inspect", "mnist").stdout)
        info = json.loads(self.run_program("info", SOURCE / "configs/small/mnist.toml", "--no-measure",
                                           "--json").stdout)
        self.assertEqual(info["tokens_per_step"], 784 * 50)
        self.fails("predict", "run", code=2, says="reads files")
        self.fails("predict", "run", self.config, code=1, says=["tiny.toml", "IDX"])
        images.write_bytes(images.read_bytes()[:-9])
        self.fails("predict", "run", images, code=1, says=["t10k-images-idx3-ubyte.gz", "gzip"])
        self.fails("eval", "run", code=1, says="t10k-images-idx3-ubyte.gz")
        self.fails("data", "inspect", "mnist", code=1, says="t10k-images-idx3-ubyte.gz")
        self.fails("train", self.config, "--set", "task.name=mnist", code=2, says="task.path")
        self.fails("train", self.config, *MNIST, "--set", "task.path=nowhere", code=1,
                   says="nowhere: there is no such file or folder")

    def test_init_from(self):
        self.run_program("train", self.config, "--out", "a")
        done = self.run_program("train", self.config, "--out", "b", "--init-from", "a")
        self.assertIn("weights from a/best", done.stderr)
        first, cold = (next(m["loss"] for m in without_clock(self.folder / run / "metrics.jsonl") if "loss" in m)
                       for run in ("b", "a"))
        self.assertLess(first, cold)
        self.fails("train", self.config, "--out", "c", "--init-from", "a",
                   "--set", "model.width=10", code=2, says="--init-from")
        self.assertFalse((self.folder / "c").exists(), "nothing is left behind")

    def test_init_from_touches_nothing_when_it_cannot_be(self):
        self.run_program("train", self.config, "--out", "a")
        before = (self.folder / "a/metrics.jsonl").read_bytes()
        self.fails("train", self.config, "--init-from", "nowhere", code=1, says="no such run folder")
        self.assertFalse((self.folder / "runs").exists())
        self.fails("train", self.config, "--out", "a", "--overwrite", "--init-from", "nowhere",
                   code=1, says="no such run folder")
        self.fails("train", self.config, "--out", "a", "--overwrite", "--init-from", "a/best",
                   code=2, says="which --init-from needs")
        self.fails("train", "--resume", "--out", "a", "--init-from", "a", code=2,
                   says="leave out --init-from")
        self.fails("train", "--resume", "--overwrite", "--out", "a", code=2, says="give one")
        self.assertEqual((self.folder / "a/metrics.jsonl").read_bytes(), before)
        # An empty folder, such as an older version left behind, is free.
        (self.folder / "runs/tiny").mkdir(parents=True)
        self.run_program("train", self.config, "--init-from", "a")
        self.assertTrue((self.folder / "runs/tiny/best").is_dir())

    def test_init_from_survives_a_kill_before_the_first_checkpoint(self):
        self.run_program("train", self.config, "--out", "a")
        settings = ["--set", "training.steps=600", "--set", "training.checkpoint_every=600",
                    "--set", "training.evaluate_every=600"]
        self.run_program("train", self.config, "--out", "whole", "--init-from", "a", *settings)
        process = subprocess.Popen([PROGRAM, "train", self.config, "--out", "cut", "--init-from",
                                    "a", "--quiet", *settings], cwd=self.folder)
        state = self.folder / "cut/last/state.json"
        until = time.monotonic() + 60
        while not state.exists() and time.monotonic() < until:
            time.sleep(0.005)
        process.kill()
        process.wait()
        self.assertEqual(json.loads(state.read_text())["state"]["step"], 0)
        self.run_program("train", "--resume", "--out", "cut")
        self.assertEqual(without_clock(self.folder / "cut/metrics.jsonl"),
                         without_clock(self.folder / "whole/metrics.jsonl"))

    def test_default_output_folder_never_overwrites(self):
        for name in ["tiny", "tiny-2"]:
            self.run_program("train", self.config, "--set", "training.steps=2")
            self.assertTrue((self.folder / "runs" / name / "last").is_dir())

    def test_help_of_every_command(self):
        for command in [[], ["train"], ["eval"], ["predict"], ["info"], ["data"],
                        ["data", "make"], ["data", "make", "listops"], ["data", "inspect"],
                        ["bench"], ["bench", "step"], ["compare"]]:
            self.assertIn("--help", self.run_program(*command, "--help").stdout)
        self.assertRegex(self.run_program("--version").stdout, r"rotrnn \d+\.\d+\.\d+")


class Repeatability(Cli):
    def start(self, *arguments):
        return subprocess.Popen([PROGRAM, "train", *map(str, arguments)], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def assert_same_run(self, a, b):
        for name in ["last/weights.safetensors", "last/optimiser.safetensors",
                     "best/weights.safetensors"]:
            self.assertEqual((self.folder / a / name).read_bytes(),
                             (self.folder / b / name).read_bytes(), name)
        self.assertEqual(without_clock(self.folder / a / "metrics.jsonl"),
                         without_clock(self.folder / b / "metrics.jsonl"))

    def saved_step(self, out):
        try:
            return json.loads((self.folder / out / "last/state.json").read_text())["state"]["step"]
        except FileNotFoundError:  # not yet, or just being exchanged
            return 0

    def test_killed_at_random_moments_and_resumed(self):
        steps = ["--set", "training.steps=400", "--set", "training.checkpoint_every=3"]
        self.run_program("train", self.config, "--out", "whole", *steps)
        draw = random.Random(1)
        kills, reached = 0, 0
        process = self.start(self.config, "--out", "broken", *steps)
        while True:
            # Some way on, and then at any moment of a step or of saving.
            target = reached + draw.randint(0, 80)
            while process.poll() is None and self.saved_step("broken") < target:
                time.sleep(0.002)
            time.sleep(draw.uniform(0, 0.03))
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            reached = self.saved_step("broken")
            resume = ["--resume"] if (self.folder / "broken/config.toml").exists() else []
            process = self.start(self.config, "--out", "broken", *steps, *resume)
        process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertGreaterEqual(kills, 3)
        self.assert_same_run("whole", "broken")

    def test_signal_saves_and_says_how_to_go_on(self):
        steps = ["--set", "training.steps=400"]
        self.run_program("train", self.config, "--out", "whole", *steps)
        for number in [signal.SIGINT, signal.SIGTERM]:
            out = f"stopped{number}"
            process = self.start(self.config, "--out", out, *steps)
            while not (self.folder / out / "last").exists():
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 1, stderr)
            self.assertIn(f"train --resume --out {out}", stdout)
            self.run_program("train", "--resume", "--out", out)
            self.assert_same_run("whole", out)

    def test_second_signal_ends_at_once(self):
        # Steps of seconds: the first signal waits for the end of one.
        slow = ["--set", "task.train=3000", "--set", "training.batch=3000",
                "--set", "model.width=256", "--set", "model.state=256", "--set", "model.depth=12"]
        for first, second in [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT)]:
            process = self.start(self.config, "--out", f"slow{first}", *slow)
            while not (self.folder / f"slow{first}/config.toml").exists():
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            time.sleep(0.3)
            process.send_signal(first)
            time.sleep(0.3)
            self.assertIsNone(process.poll(), "the step was to be longer; the test shows nothing")
            process.send_signal(second)
            stderr = process.communicate(timeout=2)[1]
            self.assertEqual(process.returncode, -second)
            self.assertIn("once more ends it at once", stderr)

    def test_two_cannot_train_into_one_folder(self):
        process = self.start(self.config, "--out", "a", "--set", "training.steps=100000")
        while not (self.folder / "a/last").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        for arguments in [["--resume"], [self.config, "--overwrite"]]:
            self.fails("train", *arguments, "--out", "a", code=1,
                       says=["a: another rotrnn", f"(process {process.pid} on {socket.gethostname()})"])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.run_program("eval", "a")

    def test_resume_of_a_finished_run_changes_nothing(self):
        self.run_program("train", self.config, "--out", "a")
        before = without_clock(self.folder / "a/metrics.jsonl")
        self.run_program("train", "--resume", "--out", "a")
        self.assertEqual(without_clock(self.folder / "a/metrics.jsonl"), before)


class Compare(Cli):
    steps = 30

    def arguments(self, out, seeds=2):
        return ["compare", self.config, "--out", out, "--layers", "rotrnn,lru", "--seeds", seeds,
                "--steps", self.steps, "--quiet"]

    def compare(self, out, *more, seeds=2):
        return self.run_program(*self.arguments(out, seeds), *more)

    def table(self, out):
        """compare.json without what the clock and the memory say."""
        table = json.loads((self.folder / out / "compare.json").read_text())
        del table["command"]
        for variant in table["variants"]:
            for part in [variant, *variant["cells"]]:
                for key in ["tokens_per_second", "peak_memory_mb", "minutes_per_cell", "seconds"]:
                    part.pop(key, None)
        return table

    def test_table_is_that_of_the_runs(self):
        done = self.compare("c", "--json")
        table = json.loads(done.stdout)
        self.assertEqual(table, json.loads((self.folder / "c/compare.json").read_text()))
        self.assertTrue(table["finished"])
        self.assertEqual([v["name"] for v in table["variants"]], ["rotrnn", "lru"])
        for variant in table["variants"]:
            self.assertEqual([c["run"] for c in variant["cells"]],
                             [f"{variant['name']}/seed-{k}" for k in [0, 1]])
            accuracies = []
            for cell in variant["cells"]:
                run = f"c/{cell['run']}"
                scores = json.loads(self.run_program("eval", run, "--json").stdout)
                self.assertEqual(cell["test_accuracy"], scores["accuracy"])
                self.assertEqual(cell["majority_share"], scores["majority_share"])
                metrics = without_clock(self.folder / run / "metrics.jsonl")
                best = max(m["accuracy"] for m in metrics if m["split"] == "validation")
                self.assertEqual(cell["validation_accuracy"], best)
                self.assertEqual(cell["steps"], 30)
                self.assertEqual(max(m["step"] for m in metrics), 30)
                accuracies.append(scores["accuracy"])
                info = json.loads(self.run_program("info", run, "--no-measure", "--json").stdout)
                self.assertEqual(info["parameters"], variant["parameters"])
                self.assertEqual(info["layer"], variant["name"])
            self.assertAlmostEqual(variant["test_accuracy"]["mean"], statistics.mean(accuracies))
            self.assertAlmostEqual(variant["test_accuracy"]["deviation"],
                                   statistics.stdev(accuracies))
            self.assertGreater(variant["tokens_per_second"], 0)
            self.assertGreater(variant["minutes_per_cell"], 0)
        text = (self.folder / "c/compare.md").read_text()
        self.assertIn(table["command"], text)
        self.assertIn("--layers rotrnn,lru --seeds 2 --steps 30", table["command"])
        mean, deviation = (100 * table["variants"][1]["test_accuracy"][k]
                           for k in ["mean", "deviation"])
        self.assertIn(f"| lru | {mean:.2f} ± {deviation:.2f} % |", text)

        # The same again trains nothing; one seed more trains that one only.
        cell = self.folder / "c/lru/seed-0/metrics.jsonl"
        before = cell.stat().st_mtime_ns
        again = self.compare("c").stdout
        self.assertIn(f"{mean:.2f} ± {deviation:.2f} %", again)
        self.assertEqual(len({len(line) for line in again.splitlines()[2:5]}), 1, "aligned")
        self.compare("c", seeds=3)
        self.assertEqual(cell.stat().st_mtime_ns, before)
        self.assertTrue((self.folder / "c/lru/seed-2/best").is_dir())

        # A cell is an ordinary run: the same config and seed give the same weights.
        self.run_program("train", self.config, "--out", "alone", "--set", "training.steps=30",
                         "--set", "training.seed=1")
        self.assertEqual((self.folder / "alone/last/weights.safetensors").read_bytes(),
                         (self.folder / "c/rotrnn/seed-1/last/weights.safetensors").read_bytes())

    def test_killed_and_started_again_is_the_unbroken_table(self):
        self.steps = 200
        self.compare("whole")
        cells = [f"{v}/seed-{k}" for k in [0, 1] for v in ["rotrnn", "lru"]]
        for out, number, cell in [("killed", signal.SIGKILL, cells[1]),
                                  ("stopped", signal.SIGINT, cells[2])]:
            process = subprocess.Popen(
                [PROGRAM, *map(str, self.arguments(out))], cwd=self.folder,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not (self.folder / out / cell / "last").exists():
                self.assertIsNone(process.poll())
                time.sleep(0.005)
            process.send_signal(number)
            stderr = process.communicate(timeout=60)[1]
            if number == signal.SIGINT:
                self.assertEqual(process.returncode, 1, stderr)
                self.assertIn("stopped and saved", stderr)
                self.assertIn(f"compare {self.config}", stderr)
                self.assertIn(f"--out {out}", stderr)
            partial = json.loads((self.folder / out / "compare.json").read_text())
            self.assertFalse(partial["finished"])
            done = self.folder / out / cells[0] / "metrics.jsonl"
            before = done.stat().st_mtime_ns
            self.compare(out)
            self.assertEqual(self.table(out), self.table("whole"))
            self.assertEqual(done.stat().st_mtime_ns, before, "a finished cell is not run again")

    def test_budget_of_minutes(self):
        arguments = ["compare", self.config, "--layers", "rotrnn", "--seeds", 1, "--out", "c",
                     "--budget-minutes", 0.03, "--json", "--quiet"]
        cell = json.loads(self.run_program(*arguments).stdout)["variants"][0]["cells"][0]
        timing = cell["timing"]
        predicted = (timing["setup"] + timing["test"] + cell["steps"] * timing["step"] +
                     (cell["steps"] // 10 + 1) * timing["validation"])
        if cell["steps"] > 1:  # else the machine is too slow for such a budget
            self.assertLessEqual(predicted, 1.8)
            self.assertGreaterEqual(predicted, 0.9 * 1.8)
        config = (self.folder / "c/rotrnn/seed-0/config.toml").read_text()
        self.assertIn(f"steps = {cell['steps']}\n", config)
        # Unfinished again, as if killed: the steps are not timed anew.
        file = self.folder / "c/rotrnn/seed-0/cell.json"
        state = json.loads(file.read_text())
        state["state"] = "unfinished"
        file.write_text(json.dumps(state))
        again = json.loads(self.run_program(*arguments).stdout)["variants"][0]["cells"][0]
        self.assertEqual(again["steps"], cell["steps"])
        self.assertEqual(again["timing"], timing)
        self.assertEqual(again["test_accuracy"], cell["test_accuracy"])
        self.fails(*arguments[:-4], "--steps", 30, code=2, says=["rotrnn/seed-0", "0.03 minutes"])

    def test_presets(self):
        listed = {p["name"]: p["variants"] for p in
                  json.loads(self.run_program("compare", "--presets", "--json").stdout)}
        self.assertEqual(set(listed), {"normalisation", "heads", "rotation", "init", "ranges"})
        self.assertIn("model.learn_rotation=false",
                      self.run_program("compare", "--presets").stdout)
        done = self.run_program("compare", self.config, "--preset", "rotation", "--seeds", 1,
                                "--steps", 3, "--json")
        table = json.loads(done.stdout)
        self.assertEqual([v["name"] for v in table["variants"]], ["learned", "identity"])
        counts = [v["parameters"] for v in table["variants"]]
        self.assertEqual(counts[0] - counts[1], 2 * 4 * 3 * 3, "M of two layers, four heads of 3")
        self.assertTrue((self.folder / "runs/compare-tiny-rotation/compare.md").is_file())
        # Heads that do not divide the state of 12 are left out.
        done = self.run_program("compare", self.config, "--preset", "heads", "--seeds", 1,
                                "--steps", 1, "--json")
        self.assertEqual([v["name"] for v in json.loads(done.stdout)["variants"]],
                         ["heads-1", "heads-2"])

    def test_wrong_input(self):
        def fails(*arguments, code=2, says):
            self.fails("compare", self.config, "--out", "c", *arguments, code=code, says=says)
        fails("--layers", "rotrnn,lrs", says=["lrs", 'did you mean "lru"?'])
        fails("--layers", "", says="--layers")
        fails("--layers", "lru,lru", says="twice")
        fails("--layers", "lru", "--preset", "heads", says="--preset")
        fails("--preset", "haeds", says='did you mean "heads"?')
        fails("--preset", "heads", "--set", "model.layer=lru", says="model.layer")
        fails("--steps", 0, says="--steps")
        fails("--steps", 5, "--budget-minutes", 1, says="--steps")
        fails("--budget-minutes", "nan", says="--budget-minutes")
        fails("--seeds", 0, says="--seeds")
        fails("--set", "model.widht=3", says="width")
        fails("--layers", "s5", "--set", "model.s5.blocks=5", says="blocks")
        self.assertFalse((self.folder / "c").exists(), "nothing is left behind")
        self.fails("compare", "nowhere.toml", code=2, says="nowhere.toml")
        (self.folder / "file").write_text("x")
        self.fails("compare", self.config, "--out", "file", code=2, says="file of that name")
        # A cell that fails is named, and the others are there.
        done = self.fails("compare", self.config, "--layers", "rotrnn", "--seeds", 1, "--out", "d",
                          "--steps", 20, "--set", "training.global_lr=999", "--set",
                          "model.norm=layer", code=1, says="seed-0 failed")
        self.assertIn("seed 0 failed: training stopped", done.stdout)
        self.compare("e")
        self.fails(*self.arguments("e"), "--set", "model.width=16", code=2,
                   says=["model.width = 8, not 16", "rotrnn/seed-0"])


class Norms(Cli):
    def arguments(self, out, *more):
        return ["norms", self.config, "--depth", 2, "--seeds", 2, "--out", out, "--quiet",
                "--set", "training.norms_every=3", "--set", "training.steps=31", *more]

    def result(self, out):
        result = json.loads((self.folder / out / "norms.json").read_text())
        del result["command"]
        return result

    def test_figure_and_numbers(self):
        done = self.run_program(*self.arguments("n", "--json"))
        printed = json.loads(done.stdout)
        self.assertEqual(printed["runs"], self.result("n")["runs"])
        self.assertEqual([(r["layer"], r["deep"], r["seed"]) for r in printed["runs"]],
                         [("rotrnn", True, 0), ("lru", True, 0), ("rotrnn", False, 0),
                          ("lru", False, 0), ("rotrnn", False, 1), ("lru", False, 1)])
        for run in printed["runs"]:
            self.assertEqual(run["steps"], list(range(0, 31, 3)))
            self.assertEqual(len(run["whole"]), 2 if run["deep"] else 1)
            for whole, head in zip(run["whole"], run["head"]):
                self.assertEqual(len(whole), 11)
                for w, h in zip(whole, head):
                    # One head has all there is, or four share: mean ≤ root mean square.
                    self.assertTrue(0 < h <= w <= 4 * h, (w, h))
                    if run["layer"] == "lru":
                        self.assertAlmostEqual(w, h, places=5)
        svg = xml.etree.ElementTree.parse(self.folder / "n/norms.svg").getroot()
        lines = svg.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual(len(lines), 2 * (2 + 2 + 2))  # whole and per head: two blocks each, (b)
        page = (self.folder / "n/norms.html").read_text()
        self.assertIn("<svg ", page)
        self.assertIn("norms", page)
        # The runs are ordinary ones.
        self.run_program("eval", "n/rotrnn-deep", "--json")

    def test_killed_and_started_again_is_the_unbroken_result(self):
        self.run_program(*self.arguments("whole"))
        process = subprocess.Popen([PROGRAM, *map(str, self.arguments("killed"))], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (self.folder / "killed/rotrnn-one-seed-0/last").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.005)
        process.kill()
        process.wait()
        first = self.folder / "killed/rotrnn-deep/metrics.jsonl"
        before = first.stat().st_mtime_ns
        self.run_program(*self.arguments("killed"))
        self.assertEqual(self.result("killed"), self.result("whole"))
        self.assertEqual(first.stat().st_mtime_ns, before, "a finished run is not repeated")

    def test_wrong_input(self):
        self.fails("norms", "--layers", "rotrnn,lro", code=2, says=["lro", "lru"])
        self.fails("norms", "--layers", "rotrnn,,lru", code=2, says="empty part")
        self.fails("norms", self.config, code=2, says="training.norms_every")
        self.fails("norms", self.config, "--paper", code=2, says="--paper")
        self.fails("norms", "none.toml", code=2, says="none.toml")
        self.run_program(*self.arguments("n"))
        self.fails(*self.arguments("n", "--set", "model.width=16"), code=2,
                   says=["model.width", "--out"])


class WrongInput(Cli):
    def test_command_line(self):
        self.fails(code=2, says="subcommand")
        self.fails("trian", code=2, says="")
        self.fails("eval", code=2, says="run")
        self.fails("train", self.config, "--no-such-option", code=2, says="no-such-option")
        self.fails("eval", "x", "--split", "tset", code=2, says="tset")
        self.fails("train", "--resume", code=2, says="--out")

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            for command in (["data", "list"], ["info", "--keys"], ["--help"]):
                done = subprocess.run([PROGRAM, *command], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=60)
                self.assertEqual(done.returncode, 1, command)
                # Seen at the end, or in the middle of much text.
                self.assertRegex(done.stderr, "standard output could not be written|No space left on device")

    def test_a_log_that_cannot_be_written_does_not_end_training(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "train", self.config, "--out", "run"], cwd=self.folder, stderr=full,
                                  stdout=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(done.returncode, 0)
        self.assertIn("test accuracy", done.stdout)

    def test_names_that_are_not_utf8(self):
        folder = self.folder / "texts"
        for name in (b"good", b"b\xe4d"):
            os.makedirs(os.fsencode(folder) + b"/" + name)
            for i in range(30):
                with open(os.fsencode(folder) + b"/" + name + b"/%d.txt" % i, "w") as file:
                    file.write("some words")
        self.fails("data", "inspect", folder, "--task", "text_folder", code=1, says=["is not UTF-8", "rename it"])
        self.fails("train", self.config, "--set", "task.name=text_folder", "--set", f"task.path={folder}", code=1,
                   says="is not UTF-8")

    def test_config(self):
        self.fails("train", "nowhere.toml", code=2, says="nowhere.toml")
        self.config.write_text(TINY + "\n[model.init]\nthta_max = 3\n")
        self.fails("train", self.config, code=2, says=["tiny.toml:", 'did you mean "theta_max"?'])
        self.config.write_text(TINY)
        self.fails("train", self.config, "--set", "model.heads=5", code=2,
                   says="--set model.heads=5: RotRNN: heads = 5 does not divide state = 12")
        self.fails("train", self.config, "--set", "model.heads=12", code=2, says="at most 6 heads")
        self.fails("train", self.config, "--set", "training.batch=301", code=2,
                   says="training.batch is 301 but there are 300")
        self.fails("train", SOURCE / "configs/speech_commands.toml", code=1,
                   says="rotrnn data download speech_commands")
        self.assertFalse((self.folder / "runs").exists(), "nothing is left behind")

    def test_runs(self):
        self.fails("evla", "run", code=2, says='unknown command "evla"; did you mean "eval"?')
        self.fails("frobnicate", code=2, says="the commands are init, train")
        (self.folder / "some").mkdir()
        self.fails("train", "some", code=2, says="rotrnn init writes one")
        self.fails("eval", "some", code=1, says="is not a run folder")
        self.fails("eval", self.config, code=1, says="is a file, not a run folder")
        self.fails("eval", "nowhere", code=1, says="no such run folder")
        self.fails("predict", "nowhere", code=1, says="no such run folder")
        self.fails("info", "nowhere.toml", code=2, says="nowhere.toml")
        self.fails("train", "--resume", "--out", "nowhere", code=1, says="no run to resume")
        self.run_program("train", self.config, "--out", "run")
        self.fails("train", self.config, "--out", "run", code=2, says=["--resume", "--overwrite"])
        self.fails("train", self.config, "--resume", "--out", "run", "--set", "model.width=16",
                   code=2, says="model.width differs")
        self.fails("predict", "run", "nowhere.txt", code=1, says="nowhere.txt")
        (self.folder / "cut.gz").write_bytes(gzip.compress(b"[MAX 1 2 ]\n")[:-3])
        self.fails("predict", "run", "cut.gz", code=1, says=["cut.gz", "cut off"])
        for command in ("eval", "predict", "export"):
            self.fails(command, "run/best", "--checkpoint", "last", code=2,
                       says=["run/best: is a checkpoint itself", "name the run folder"])
        self.fails("predict", "run", stdin="[MAX 1 2 ]\n[MAX 1 x ]\n", code=1,
                   says=["standard input:2:", "x"])
        self.run_program("train", self.config, "--out", "run", "--overwrite")
        weights = self.folder / "run/best/weights.safetensors"
        weights.write_bytes(weights.read_bytes()[:-7])
        self.fails("eval", "run", code=1, says=["weights.safetensors", "damaged"])
        (self.folder / "file").write_text("x")
        self.fails("train", self.config, "--out", "file", code=2, says="file of that name")

    def test_data(self):
        (self.folder / "data").mkdir()
        header = "Source\tTarget\n"
        for name in ["train", "val", "test"]:
            (self.folder / f"data/basic_{name}.tsv").write_text(header + "( ( ( [SM 6 ) 5 ) ] )\t1\n")
        broken = self.folder / "data/basic_train.tsv"
        for text, says in [("", "basic_train.tsv"), ("x\n", ":1:"),
                           (header + "( ( ( [SM 6 ) 5 ) ] ) 1\n", ":2:"),
                           (header + "( ( ( [SM 6 ) 5 ) ] )\t12\n", ":2:"),
                           (header + "( ( ( [SUM 6 ) 5 ) ] )\t1\n", "[SUM")]:
            broken.write_text(text)
            self.fails("train", self.config, "--set", "task.path=data", code=1,
                       says=["basic_train.tsv", says])
        broken.unlink()
        self.fails("train", self.config, "--set", "task.path=data", code=1, says="basic_train.tsv")
        self.fails("train", self.config, "--set", "task.path=nowhere", code=1, says="nowhere")
        self.fails("data", "inspect", "nowhere", code=1, says="nowhere")
        self.fails("data", "make", "listops", code=2, says="--out")
        self.fails("data", "make", "listops", "--out", "data", "--train", 3, "--validation", 3,
                   "--test", 3, code=2, says="--overwrite")
        self.fails("data", "make", "listops", "--out", "new", "--min-length", 50, "--max-length", 50,
                   code=2, says="max_length")
        self.assertFalse((self.folder / "new").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""rotrnn board and rotrnn report from outside: options, errors, files."""

import base64
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.request
import xml.etree.ElementTree
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]


class Board(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        for seed in [1, 2]:
            run = self.folder / f"runs/a & b <{seed}>"
            run.mkdir(parents=True)
            (run / "config.toml").write_text(f"[training]\nseed = {seed}\n")
            lines = [{"step": s, "split": "train", "loss": seed / s, "global_lr": 1e-3, "recurrent_lr": 1e-4,
                      "gradient_norm": 2.0, "tokens_per_second": 1e5, "memory_mb": 90} for s in range(1, 50)]
            lines.append({"step": 49, "split": "validation", "loss": 1, "accuracy": 0.5,
                          "confusion": [[1, 2], [3, 4]], "classes": ["<a>", "&b"]})
            lines.append({"step": 49, "split": "norms", "whole": [5, 6], "head": [1, 2]})
            lines.append({"step": 49, "split": "lambda", "layers": [{"re": [0.5, 2], "im": [0.5, -3]}, None]})
            (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run_program(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def test_serves_until_interrupted(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            board = subprocess.Popen([PROGRAM, "board", "runs", "--port", "0"], cwd=self.folder,
                                     stdout=subprocess.PIPE, text=True)
            address = None
            for line in board.stdout:
                if "http" in line:
                    address = line.strip()
                    break
            self.assertTrue(address.startswith("http://127.0.0.1:"))
            runs = json.load(urllib.request.urlopen(address + "api/runs"))["runs"]
            self.assertEqual([run["name"] for run in runs], ["a & b <1>", "a & b <2>"])
            board.send_signal(number)
            self.assertEqual(board.wait(timeout=10), 0)
            board.stdout.close()

    def test_wrong_use(self):
        self.assertIn("is not a folder", self.run_program("board", "nowhere", code=1).stderr)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assertIn("in use", self.run_program("board", "runs", "--port", port, code=1).stderr)
        self.run_program("board", "runs", "--port", "99999", code=2)
        self.assertIn("cannot listen", self.run_program("board", "runs", "--host", "203.0.113.7",
                                                        code=1).stderr)
        self.assertIn("--host", self.run_program("board", "--help").stdout)

    def test_report(self):
        self.run_program("report", "runs", "--svg", "pictures")
        page = (self.folder / "runs/report.html").read_text()
        for reference in re.findall(r"(?:src|href)=['\"]([^'\"]*)", page.split("<script type")[0]):
            self.assertTrue(reference.startswith("data:"), reference)
        policy = re.search(r"script-src([^;]*);", page).group(1).split()
        scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
        self.assertEqual(policy, ["'sha256-" + base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()
                                  + "'" for s in scripts])
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))
        self.assertEqual(len(data["runs"]), 2)
        pictures = {path.stem: xml.etree.ElementTree.parse(path).getroot()
                    for path in (self.folder / "pictures").iterdir()}
        self.assertLessEqual({"loss", "accuracy", "learning_rates", "gradient_norm", "memory", "hidden_norm",
                              "hidden_norm_head", "tokens_per_second", "eigenvalues-1", "eigenvalues-2",
                              "confusion-1-validation"}, set(pictures))
        svg = "{http://www.w3.org/2000/svg}"
        loss = pictures["loss"]
        self.assertEqual(len(loss.findall(f"{svg}polygon")), 1)  # the band of two seeds
        self.assertIn("a & b < (2 seeds), train", [text.text for text in loss.iter(f"{svg}text")])
        _, _, width, height = map(float, loss.get("viewBox").split())
        points = [tuple(map(float, p.split(","))) for line in loss.findall(f"{svg}polyline")
                  for p in line.get("points").split()]
        self.assertGreater(len(points), 40)
        for x, y in points:
            self.assertTrue(0 <= x <= width and 0 <= y <= height)
        # The loss falls, so the line goes down the page.
        self.assertEqual([y for _, y in points], sorted(y for _, y in points))
        shown = [text.text for text in pictures["confusion-1-validation"].iter(f"{svg}text")]
        self.assertIn("<a>", shown)
        self.assertIn("3", shown)

    def test_report_replaces_nothing_unasked(self):
        (self.folder / "out.html").write_text("mine")
        self.assertIn("--force", self.run_program("report", "runs", "--out", "out.html", code=2).stderr)
        self.assertEqual((self.folder / "out.html").read_text(), "mine")
        self.run_program("report", "runs", "--out", "out.html", "--force")
        self.assertNotEqual((self.folder / "out.html").read_text(), "mine")
        (self.folder / "svg").mkdir()
        (self.folder / "svg/loss.svg").write_text("mine")
        self.run_program("report", "runs", "--out", "other.html", "--svg", "svg", code=2)
        self.assertFalse((self.folder / "other.html").exists())
        (self.folder / "empty").mkdir()
        self.assertIn("no runs", self.run_program("report", "empty", code=1).stderr)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir() if ".tmp" in p.name), [])


if __name__ == "__main__":
    unittest.main()

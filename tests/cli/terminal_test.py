"""What `train` shows: on a terminal of any width, on a dumb one, in a pipe."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import time
import unittest
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]

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
width = 16
state = 16
heads = 4
depth = 2

[training]
steps = 2000
batch = 20
evaluate_every = 200
global_lr = 1e-2
threads = 1
"""

BLOCKS = "▁▂▃▄▅▆▇█"
COLOUR = re.compile(r"\033\[[0-9;]*m")


class Terminal(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "tiny.toml").write_text(TINY)

    def train(self, columns, *arguments, resized=None, **environment):
        """What came to a terminal of that width; after its first moving lines it may be resized.
        Returns the text before and after that."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        self.resize(slave, columns)
        variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
        variables.update({"TERM": "xterm-256color", **environment})
        process = subprocess.Popen(
            [PROGRAM, "train", "tiny.toml", "--out", "run", "--overwrite", *arguments],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=slave, env=variables)
        seen = b""
        before = None
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if select.select([master], [], [], 0.02)[0]:
                seen += os.read(master, 65536)
                if resized and before is None and seen.count(b"\r\033[K") >= 2:
                    self.resize(slave, resized)
                    before, seen = seen, b""
            elif process.poll() is not None:
                break
        os.close(slave)
        self.assertEqual(process.wait(30), 0, seen)
        if resized is None:
            return seen.decode()
        self.assertIsNotNone(before, "it ended before it was resized")
        return before.decode(), seen.decode()

    @staticmethod
    def resize(terminal, columns):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    @staticmethod
    def moving(text):
        """The lines that were drawn over each other, without colours."""
        pieces = re.split(r"\r\033\[K|\n", COLOUR.sub("", text.replace("\r\n", "\n")))
        return [piece for piece in pieces if piece.startswith("st") and "validation" not in piece]

    def test_a_wide_terminal_has_everything(self):
        text = self.train(200)
        lines = self.moving(text)
        self.assertGreater(len(lines), 2)
        last = lines[-1]
        self.assertRegex(last, r"step 2000/2000 +100 % +loss \d+\.\d{4} +[" + BLOCKS +
                         r"]{16} +accuracy \d+\.\d % +[" + BLOCKS + r"]+ +[\d,]+ tokens/s +"
                         r"0 s left$")
        self.assertTrue(COLOUR.search(text))
        # What stays: the evaluations, and the curves of the whole run.
        stays = [line for line in COLOUR.sub("", text).split("\n")]
        self.assertEqual(sum("validation accuracy" in line and line.split("\r\033[K")[-1]
                             .startswith("step") for line in stays), 10)
        self.assertRegex(COLOUR.sub("", text), r"\nloss \d+\.\d{4}  [" + BLOCKS +
                         r"]+  \d+\.\d{4}  validation accuracy \d+\.\d %  [" + BLOCKS +
                         r"]{10}  \d+\.\d %\r\n$")
        self.assertFalse(re.sub(r"\033\[K|\033\[[0-9;]*m", "", text).count("\033"))

    def test_narrow_terminals_get_what_fits(self):
        for columns in [79, 40, 25, 12, 3]:
            lines = self.moving(self.train(columns))
            if columns > 5:
                self.assertGreater(len(lines), 1, columns)
            for line in lines:
                self.assertLess(len(line), columns, f"{columns} columns: {line!r}")
            if columns == 40:
                self.assertRegex(lines[-1], r"^step 2000/2000  loss \d\.\d{4}  0 s left$")

    def test_a_window_may_change_its_size(self):
        before, after = self.train(150, "--set", "training.steps=8000", resized=50)
        self.assertGreater(max(map(len, self.moving(before))), 60)
        # The first may have been drawn before.
        lines = self.moving(after)[1:]
        self.assertGreater(len(lines), 1)
        for line in lines:
            self.assertLess(len(line), 50)

    def test_no_color_has_no_colours(self):
        text = self.train(120, NO_COLOR="1")
        self.assertFalse(COLOUR.search(text))
        self.assertIn("\r\033[K", text)
        self.assertTrue(COLOUR.search(self.train(120, NO_COLOR="")))  # empty is as if not there

    def test_a_dumb_terminal_gets_plain_lines(self):
        text = self.train(120, TERM="dumb")
        self.assertNotIn("\033", text)
        self.assertNotIn("\r", text.replace("\r\n", ""))
        self.assertIn("step 2000/2000  loss", text)

    def test_quiet_is_quiet(self):
        self.assertEqual(self.train(120, "--quiet"), "")

    def test_a_pipe_gets_plain_lines(self):
        done = subprocess.run([PROGRAM, "train", "tiny.toml", "--out", "run"], cwd=self.folder,
                              capture_output=True, text=True, timeout=120,
                              env={**os.environ, "TERM": "xterm"})
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in [done.stdout, done.stderr]:
            self.assertIsNone(re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text))
        self.assertRegex(done.stderr, r"\nstep 2000/2000  loss \d+\.\d{4}  [\d,]+ tokens/s  0 s left\n")
        quiet = subprocess.run([PROGRAM, "train", "tiny.toml", "--out", "quiet", "--quiet"],
                               cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(quiet.stderr, "")
        self.assertIn("test accuracy", quiet.stdout)


if __name__ == "__main__":
    unittest.main()

"""Runs the commands of the manual; every one of them is run here or marked in its page as not run.

    ROTRNN_PROGRAM=build/release/bin/rotrnn tests/docs/commands_test.py [Commands.test_commands_of_data ...]

The code of a page's ```sh blocks runs in a sandbox with small data (sandbox.py), through a shim that makes long work
small (shim.py); each block has to end with 0. Blocks that cannot run here have a line above them, which says why:
`<!-- not run: REASON -->`, or `<!-- not run (WORD): REASON -->` for the lines with WORD alone. ```toml blocks are trained.
```python blocks of a page are one script, run with PYTHONPATH=ROTRNN_PYTHON_PACKAGE where that and PyTorch are there.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from pages import MANUAL, ROOT, Block, blocks  # noqa: E402
from sandbox import make_material, make_sandbox  # noqa: E402

PACKAGE = os.environ.get("ROTRNN_PYTHON_PACKAGE", "")
# What the snippets of Python take as given.
PRELUDE = """import numpy as np, torch, rotrnn
samples = np.zeros((400, 1), np.float32)
"""


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        make_material(cls.folder / "material")

    def run_in(self, root, environment, command, block):
        done = subprocess.run(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=120)
        self.assertEqual(done.returncode, 0, f"{block.where}\n{block.code}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")

    def check_commands(self, page):
        root = self.folder / page.stem
        environment = make_sandbox(root, self.folder / "material")
        for block in blocks(page):
            if block.language == "sh" and block.to_run().strip():
                self.run_in(root, environment, ["bash", "-euo", "pipefail", "-c", block.to_run()], block)
            elif block.language == "toml":
                (root / "snippet.toml").write_text(block.code)
                self.run_in(root, environment, ["rotrnn", "train", "snippet.toml", "--overwrite"], block)

    def test_commands_of_the_man_page(self):
        page = ROOT / "docs/rotrnn.1"
        code = re.search(r"^\.nf\n(.+?)^\.fi$", page.read_text(), flags=re.MULTILINE | re.DOTALL)[1].replace("\\-", "-")
        root = self.folder / "man"
        environment = make_sandbox(root, self.folder / "material")
        self.run_in(root, environment, ["bash", "-euo", "pipefail", "-c", code], Block(page, 1, "sh", code, None, None))

    def check_python(self, page):
        """In a sandbox with the models that snippets load."""
        scripts = [block for block in blocks(page) if block.language == "python"]
        root = self.folder / f"{page.stem}_python"
        environment = make_sandbox(root, self.folder / "material") | {"PYTHONPATH": PACKAGE}
        needs = subprocess.run([sys.executable, "-c", "import torch, rotrnn; rotrnn.RotRNN, rotrnn.Model"],
                               env=environment, capture_output=True)
        if not PACKAGE or needs.returncode != 0:
            self.skipTest("no PyTorch, or the package was not built")
        self.run_in(root, environment, ["bash", "-ec", """rotrnn init sounds --out model.toml
                    rotrnn train model.toml --out runs/model
                    for name in sounds words; do rotrnn export runs/model --out $name.safetensors; done"""], scripts[0])
        code = PRELUDE + "\n".join(block.code for block in scripts)
        self.run_in(root, environment, [sys.executable, "-c", code], scripts[0])


def test_of(check, page):
    return lambda self: check(self, page)


for each in MANUAL:
    languages = {block.language for block in blocks(each) if block.to_run().strip()}
    if languages & {"sh", "toml"}:
        setattr(Commands, f"test_commands_of_{each.stem}", test_of(Commands.check_commands, each))
    if "python" in languages:
        setattr(Commands, f"test_python_of_{each.stem}", test_of(Commands.check_python, each))

if __name__ == "__main__":
    unittest.main()

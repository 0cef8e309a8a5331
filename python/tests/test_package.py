"""The package from outside."""

import os
import re
import subprocess
import sys
from pathlib import Path

import rotrnn

ROOT = Path(__file__).resolve().parents[2]


def python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, **environment})


def test_version_is_the_projects():
    version = re.search(r"project\(rotrnn VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert rotrnn.__version__ == version


def test_import_without_torch(tmp_path):
    """The package works without torch; a layer then says what is missing."""
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = python("import sys, rotrnn\n"
                  "assert 'torch' not in sys.modules and rotrnn.get_num_threads() >= 1\n"
                  "try:\n    rotrnn.RotRNN\n"
                  "except ImportError as e:\n    print(e)\n", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert "rotrnn.RotRNN needs PyTorch 1.13 or newer" in done.stdout and "pip install torch" in done.stdout


def test_old_torch(tmp_path):
    (tmp_path / "torch.py").write_text("__version__ = '1.9.0+cpu'\n")
    done = python("import rotrnn\nrotrnn.LRU", PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    assert done.returncode != 0 and "this is 1.9.0" in done.stderr


def test_names():
    assert {"RotRNN", "LRU", "S5", "set_num_threads"} <= set(dir(rotrnn))
    for name in rotrnn.__all__:
        assert getattr(rotrnn, name) is not None
    done = python("import rotrnn\nrotrnn.nothing")
    assert "has no attribute 'nothing'" in done.stderr


def test_fork_and_exit():
    """A process that has used the threads can fork, as data loaders do, and end."""
    done = python("import os, torch, rotrnn\n"
                  "rotrnn.set_num_threads(3)\n"
                  "layer = rotrnn.LRU(8, 16)\n"
                  "u = torch.randn(4, 500, 8)\n"
                  "with torch.no_grad(): y = layer(u)\n"
                  "child = os.fork()\n"
                  "torch.set_num_threads(1)\n"
                  "with torch.no_grad(): same = torch.equal(y, layer(u))\n"
                  "if child == 0: os._exit(0 if same else 3)\n"
                  "assert os.waitpid(child, 0)[1] == 0 and same\n")
    assert done.returncode == 0, done.stderr

"""Installs the package by pip into a new virtual environment, uses it from another folder, removes it.

    pip_check.py SOURCE    without the network; the system's PyTorch and pybind11 serve"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

USE = """
import torch, rotrnn
y = rotrnn.RotRNN(8, 16, 4)(torch.randn(2, 30, 8))
y.sum().backward()
assert y.shape == (2, 30, 8)
print("rotrnn", rotrnn.__version__, rotrnn.__file__)
"""


def run(*command, cwd, fails=False):
    done = subprocess.run([str(c) for c in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def files(source):
    """All there are but what is built and what other tools make."""
    found = set()
    for folder, folders, names in os.walk(source):
        folders[:] = [f for f in folders if f not in (".git", "__pycache__")
                      and not (Path(folder) == source and f in ("build", "runs", "data"))]
        found.update(os.path.join(folder, name) for name in names + folders)
    return found


def main():
    source = Path(sys.argv[1]).resolve()
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        print(f"skipped: {error}; Debian: apt install python3-torch")
        sys.exit(77)
    os.environ.pop("PYTHONPATH", None)
    before = files(source)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "venv", "--system-site-packages", folder / "venv", cwd=folder)
        python = folder / "venv" / "bin" / "python"
        run(python, "-m", "pip", "install", "--no-build-isolation", "--no-index", source, cwd=folder)
        used = run(python, "-c", USE, cwd=folder)
        print(used, end="")
        if str(folder) not in used:
            sys.exit("that is not what was installed")
        listed = run(python, "-m", "pip", "show", "-f", "rotrnn", cwd=folder)
        for part in ("_core.", "py.typed", "_core.pyi"):
            if part not in listed:
                sys.exit(f"{part} was not installed:\n{listed}")
        run(python, "-m", "pip", "uninstall", "-y", "rotrnn", cwd=folder)
        run(python, "-c", "import rotrnn", cwd=folder, fails=True)
    left = files(source) - before
    if left:
        sys.exit(f"left in the tree: {sorted(left)}")


if __name__ == "__main__":
    main()

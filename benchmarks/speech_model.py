"""What the comparisons of exported models share: the network of Speech Commands, and how a contestant is run."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHAPE = ["width=96", "states=64", "depth=6", "inputs=1", "outputs=35", "rate=16000"]


def write_model(python, file, *choices):
    """6 layers, D 96, N 128, 35 classes, half_glu1, with random weights."""
    subprocess.run([python, "-B", ROOT / "tests/golden/folded.py", "--write", file, *SHAPE, *choices], check=True)


def run(*command):
    """The JSON of the last line that a command prints."""
    output = subprocess.run([str(c) for c in command], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])

"""What the tests of an installation share. They get BUILD, the folder of the build, and WORK, one of their own."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["ROTRNN_BUILD"]).resolve()
WORK = Path(os.environ["ROTRNN_WORK"]).resolve()
VERSION = os.environ["ROTRNN_VERSION"]


def run(*command, fails=False, **options):
    """Runs a command to its end; returns what it said on standard output."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@contextlib.contextmanager
def own_manifest():
    """Keeps the lists by which a true installation from this build is taken away again."""
    before = {path: path.read_bytes() for path in BUILD.glob("install_manifest*.txt")}
    try:
        yield
    finally:
        for path in BUILD.glob("install_manifest*.txt"):
            if path not in before:
                path.unlink()
        for path, text in before.items():
            path.write_bytes(text)


def files_of(root):
    return [path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()]


def assert_no_paths(root, *forbidden):
    """No file says where it was built or first put."""
    for path in files_of(root):
        data = path.read_bytes()
        for word in forbidden:
            if os.fsencode(word) in data:
                raise AssertionError(f"{path.relative_to(root)} names {word}")

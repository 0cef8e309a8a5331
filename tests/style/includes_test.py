"""Includes of rotrnn/ point down the list in docs/architecture.md.

    python3 tests/style/includes_test.py
"""

import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
SOURCES = {".h", ".cpp", ".c", ".in"}
# Also beside rotrnn/, for the folders that only some may include.
USERS = ["rotrnn", "benchmarks", "examples", "python", "tests", "web"]


class Order:
    """The block of the page: `folder  what it includes` and `folder  only from  its users`."""

    def __init__(self, page):
        blocks = [b for b in re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if b.startswith("base\n")]
        assert len(blocks) == 1, "the page has one block of dependencies, which begins with base"
        self.below, self.users = {}, {}
        for line in filter(None, blocks[0].splitlines()):
            folder, *words = line.split()
            if words[:2] == ["only", "from"]:
                self.users[folder] = words[2:]
                continue
            assert folder not in self.below, f"two lines of {folder}"
            # A part of a folder, such as training/config, brings nothing with it.
            self.below[folder] = {folder, *words}
            for word in words:
                assert word.split("/")[0] in self.below, f"{folder}: {word} is not above it"
                self.below[folder] |= self.below.get(word, set())

    def wrong(self, file, include):
        """Why `file` may not include `include`, both below the root, or nothing."""
        for folder, users in self.users.items():
            if inside(include, f"rotrnn/{folder}") and not any(inside(file, user) for user in [f"rotrnn/{folder}", *users]):
                return f"{folder} is for {', '.join(users)} only"
        if file.count("/") < 2 or include.count("/") < 2 or not file.startswith("rotrnn/"):
            return None  # the program's users, and rotrnn/version.h
        folder = file.split("/")[1]
        if folder not in self.below:
            return f"docs/architecture.md does not list {folder}"
        if not any(inside(include, f"rotrnn/{below}") for below in self.below[folder]):
            return f"{folder} may not include {include}; docs/architecture.md has the order"
        return None


def inside(path, folder):
    return path.startswith(folder + "/")


def violations(root):
    """(file, line, why) of every wrong include, and the number of includes seen."""
    order = Order((root / "docs/architecture.md").read_text())
    found, count = [], 0
    files = [path for user in USERS for path in sorted((root / user).glob("**/*"))
             if path.suffix in SOURCES and "node_modules" not in path.parts]
    for path in files:
        file = path.relative_to(root).as_posix()
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            why = None
            if match[2].startswith("rotrnn/"):
                count += 1
                why = order.wrong(file, match[2])
                if match[1] == "<" and inside(file, "rotrnn"):
                    why = "a header of rotrnn/ is included in quotes"
            elif match[1] == '"' and inside(file, "rotrnn"):
                why = "the path does not begin with rotrnn/"
            if why:
                found.append((file, text.count("\n", 0, match.start(2)) + 1, why))
    return found, count


class Includes(unittest.TestCase):
    def test_point_down(self):
        found, count = violations(ROOT)
        self.assertEqual([], [f"{file}:{line}: {why}" for file, line, why in found])
        self.assertGreater(count, 1000)

    def test_every_folder_is_listed_and_exists(self):
        order = Order((ROOT / "docs/architecture.md").read_text())
        folders = {path.name for path in (ROOT / "rotrnn").iterdir() if path.is_dir()}
        self.assertEqual(folders, set(order.below))
        for word in {word for words in order.below.values() for word in words} | set(order.users):
            self.assertTrue((ROOT / "rotrnn" / word).is_dir(), word)
        for user in {user for users in order.users.values() for user in users}:
            self.assertTrue((ROOT / user).is_dir(), user)


class Planted(unittest.TestCase):
    """The test itself, on a small tree with wrong includes."""

    PAGE = """# A page
```text
files ─► reader
```
```text
base
io             base
kernels        base
network        kernels
training       io network
board          io training/config
torch          training
kernels/oracle  only from  rotrnn/network/reference tests
torch           only from  tests/torch
```
"""

    def wrong(self, file, line):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "docs/architecture.md").write_text(self.PAGE)
            (root / file).parent.mkdir(parents=True)
            (root / file).write_text(f"#pragma once\n\n{line}\n")
            found, _ = violations(root)
            for name, at, _ in found:
                self.assertEqual((name, at), (file, 3))
            return [why for _, _, why in found]

    def test_wrong(self):
        for file, include in [("rotrnn/base/a.h", "io/a.h"), ("rotrnn/io/a.h", "kernels/a.h"),
                              ("rotrnn/network/a.cpp", "training/a.h"), ("rotrnn/kernels/a.cpp", "io/formats/a.h"),
                              ("rotrnn/board/a.cpp", "training/a.h"), ("rotrnn/board/a.cpp", "network/a.h"),
                              ("rotrnn/board/a.cpp", "training/config2/a.h"), ("rotrnn/new/a.cpp", "base/a.h"),
                              ("rotrnn/network/a.cpp", "kernels/oracle/a.h"), ("rotrnn/training/a.cpp", "torch/a.h"),
                              ("rotrnn/training/a.cpp", "kernels/oracle/a.h"), ("examples/a.cpp", "torch/a.h"),
                              ("rotrnn/training/config/a.h.in", "board/a.h"), ("python/src/a.cpp", "kernels/oracle/a.h")]:
            with self.subTest(file=file, include=include):
                self.assertEqual(len(self.wrong(file, f'#include "rotrnn/{include}"')), 1)
        self.assertTrue(self.wrong("rotrnn/io/a.cpp", '#  include "files.h"'))
        self.assertTrue(self.wrong("rotrnn/io/a.cpp", "#include <rotrnn/base/a.h>"))

    def test_right(self):
        for file, include in [("rotrnn/io/a.h", "base/a.h"), ("rotrnn/training/compare/a.h", "kernels/a.h"),
                              ("rotrnn/training/a.h", "base/a.h"), ("rotrnn/io/formats/a.h", "io/a.h"),
                              ("rotrnn/board/a.cpp", "training/config/a.h"), ("rotrnn/board/a.cpp", "base/a.h"),
                              ("rotrnn/network/reference/a.cpp", "kernels/oracle/a.h"), ("rotrnn/base/a.h", "version.h"),
                              ("rotrnn/kernels/oracle/a.cpp", "kernels/oracle/a.h"), ("tests/torch/a.cpp", "torch/a.h"),
                              ("tests/board/a.cpp", "kernels/oracle/a.h"), ("examples/a.cpp", "board/a.h")]:
            with self.subTest(file=file, include=include):
                self.assertEqual(self.wrong(file, f'#include "rotrnn/{include}"'), [])
        self.assertEqual(self.wrong("rotrnn/io/a.h", "#include <vector>"), [])

    def test_lists_point_up(self):
        for page in ("```text\nbase\nio  kernels\nkernels\n```", "```text\nbase\nio  base\nio\n```", "no list"):
            with self.assertRaises(AssertionError):
                Order(page + "\n")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()

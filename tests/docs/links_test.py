"""What the manual names exists: links, anchors, configs, options, keys, code of the examples.

    ROTRNN_PROGRAM=build/release/bin/rotrnn tests/docs/links_test.py
"""

import functools
import json
import os
import re
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from pages import MANUAL, ROOT, anchors, blocks, links, names  # noqa: E402

PROGRAM = os.environ["ROTRNN_PROGRAM"]
# Its links are those of the version that it describes.
HISTORY = {"CHANGELOG.md"}
LANGUAGES = {"sh", "toml", "python", "cpp", "c", "cmake", "json", "text"}
COMMAND = re.compile(r"^\s*(\$ )?(rotrnn |\./run|\./test|scripts/|benchmarks/\w+\.py|ctest |cmake |tests/\S+\.py)")


def all_pages():
    found = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True)
    paths = [ROOT / name for name in found.stdout.split()] or sorted(ROOT.glob("**/*.md"))
    return [page for page in paths if page.is_file() and page.name not in HISTORY]


def plain(line):
    return re.sub(r"\s+", " ", line.split("//")[0].strip())


@functools.lru_cache(maxsize=None)
def help_of(*command):
    return subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, check=True).stdout


@functools.lru_cache(maxsize=None)
def keys():
    return set(re.findall(r"^\| `([^`]+)`", subprocess.run([PROGRAM, "info", "--keys"], capture_output=True, text=True,
                                                           check=True).stdout, flags=re.MULTILINE))


def subcommand(words):
    """The names at the beginning of the arguments that are commands of the program."""
    result = []
    for word in words:
        if not re.search(rf"^  {re.escape(word)} ", help_of(*result).partition("Subcommands:")[2], flags=re.MULTILINE):
            break
        result.append(word)
    return result


class Links(unittest.TestCase):
    def test_links_and_anchors(self):
        count = 0
        for page in all_pages():
            for link in links(page):
                count += 1
                with self.subTest(page=page.relative_to(ROOT), link=link):
                    path, _, anchor = link.partition("#")
                    target = page.parent / path if path else page
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target))
        self.assertGreater(count, 100)

    def test_pages_are_reached_from_the_readme(self):
        reached, waiting = set(), [ROOT / "README.md"]
        while waiting:
            page = waiting.pop().resolve()
            if page in reached:
                continue
            reached.add(page)
            waiting += [page.parent / link.partition("#")[0] for link in links(page)
                        if link.partition("#")[0].endswith(".md") and Path(link).name not in HISTORY]
        for page in MANUAL:
            self.assertIn(page.resolve(), reached)

    def test_pictures_are_used(self):
        used = {(page.parent / link).resolve() for page in all_pages() for link in links(page)}
        pictures = [*ROOT.glob("docs/**/*.svg"), *ROOT.glob("docs/**/*.png"), *ROOT.glob("benchmarks/**/*.svg")]
        self.assertTrue(pictures)
        for picture in pictures:
            self.assertIn(picture.resolve(), used)

    def test_files(self):
        """Paths of the tree in backticks, and in commands that are not run."""
        count = 0
        for page in MANUAL:
            words = [word for name in names(page) for word in name.split()]
            words += [word for block in blocks(page) if block.language == "sh" for word in block.code.split()]
            for word in words:
                path = word.strip("\"'(),;")
                if re.match(r"(configs|benchmarks|examples|scripts|tests)/[\w./-]+$", path):
                    count += 1
                    self.assertTrue((ROOT / path).exists(), f"{page.name}: {path}")
        self.assertGreater(count, 60)

    def test_scripts_are_executable(self):
        """Those that a command begins with."""
        count = 0
        for block in (b for page in MANUAL for b in blocks(page) if b.language == "sh"):
            for path in re.findall(r"^(?:[A-Z_]+=\S+ )*((?:\./|benchmarks/|scripts/|tests/)\S+)", block.code, flags=re.MULTILINE):
                count += 1
                self.assertTrue(os.access(ROOT / path, os.X_OK), f"{block.where}: {path}")
        self.assertGreater(count, 10)


class Code(unittest.TestCase):
    def test_languages(self):
        """A fence says what is in it, and commands are in ```sh, where they are run or marked."""
        for page in MANUAL:
            for block in blocks(page):
                if block.language != "indented":
                    self.assertIn(block.language, LANGUAGES, block.where)
                if block.language != "sh":
                    for line in block.code.split("\n"):
                        self.assertIsNone(COMMAND.match(line), f"{block.where}: a command outside of ```sh: {line}")
                    self.assertIsNone(block.not_run, f"{block.where}: only ```sh is marked as not run")

    def test_marks(self):
        """A mark stands above the code that it is for, and a word in it takes some lines, not all."""
        for page in MANUAL:
            marked = [block for block in blocks(page) if block.not_run]
            self.assertEqual(page.read_text().count("<!--"), len(marked), page.name)
            for block in marked:
                self.assertNotEqual(block.to_run(), block.code, block.where)
                self.assertEqual(bool(block.to_run().strip()), bool(block.word), block.where)

    def test_examples(self):
        """Snippets of C++ and C are lines of examples/, those of CMake lines of the clients in tests/install."""
        sources = {"cpp": list(ROOT.glob("examples/*.cpp")), "c": list(ROOT.glob("examples/*.c")),
                   "cmake": list(ROOT.glob("tests/install/*/CMakeLists.txt"))}
        count = 0
        for language, files in sources.items():
            text = "\n".join(file.read_text() for file in files)
            if language == "cmake":  # which links whole archives, to find what is missing
                text = re.sub(r"\$<LINK_LIBRARY:WHOLE_ARCHIVE,([^>]+)>", r"\1", text).replace("${EXAMPLES}/", "")
                text = re.sub(r"\n {6,}", " ", text)
            lines = {plain(line) for line in text.split("\n")}
            for block in (b for page in MANUAL for b in blocks(page) if b.language == language):
                for line in filter(None, map(plain, block.code.split("\n"))):
                    count += 1
                    self.assertIn(line, lines, f"{block.where}: not in {[f.name for f in files]}")
        self.assertGreater(count, 10)

    def test_json(self):
        for block in (b for page in MANUAL for b in blocks(page) if b.language == "json"):
            for line in block.code.split("\n"):
                json.loads(line)


class Program(unittest.TestCase):
    """Also where commands are not run: options, keys and values that the program knows."""

    def commands(self):
        """(where, arguments of the program) of all pages, in code and in the text."""
        for page in MANUAL:
            texts = [(block.where, line) for block in blocks(page) if block.language == "sh"
                     for line in block.code.replace("\\\n", " ").split("\n")]
            texts += [(page.name, name) for name in names(page)]
            for where, text in texts:
                for part in re.split(r"\||&&|;", text):
                    match = re.match(r"\s*(?:[A-Z_]+=\S+ )*(?:\S*/)?(?:rotrnn|\./run|run) (.+)", part.split(" #")[0])
                    if match and re.match(r"[a-z-]", match[1]):
                        yield where, shlex.split(match[1].replace("…", ""), comments=True)

    def test_options(self):
        count = 0
        for where, words in self.commands():
            if words[0] == "launch" and "--" in words:
                words = words[words.index("--") + 1:]
            command = subcommand(words)
            if not words[0].startswith("-"):
                self.assertTrue(command, f"{where}: rotrnn has no command {words[0]}")
            known = help_of(*command)
            for word in words[len(command):]:
                if word.startswith("--"):
                    count += 1
                    self.assertIn(word.split("=")[0], re.findall(r"--[\w-]+", known), f"{where}: {' '.join(words)}")
        self.assertGreater(count, 60)

    def test_keys(self):
        """Names such as `training.clip`, alone or with a value, are keys of the config."""
        count = 0
        for page in MANUAL:
            found = [re.fullmatch(r"\[?((?:task|model|training)(?:\.\w+)+)\]?(?: = .*)?", name) for name in names(page)]
            found += [match for block in blocks(page) if block.language == "sh"
                      for match in re.finditer(r"--set ([\w.]+)=", block.code)]
            for key in (match[1] for match in found if match and not match[1].endswith((".onnx", ".safetensors"))):
                count += 1
                known = key in keys() or any(k.startswith(key + ".") for k in keys())
                self.assertTrue(known, f"{page.name}: {key}")
        self.assertGreater(count, 100)


if __name__ == "__main__":
    unittest.main()

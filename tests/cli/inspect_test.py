"""`rotrnn data inspect` and `data make pathfinder` from outside, on every kind of data."""

import json
import os
import struct
import subprocess
import tempfile
import unittest
import zlib
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]


def png(width, height, pixels):
    """A grey PNG file, from the definition of the format."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + bytes(pixels[y * width:(y + 1) * width]) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def grey_pixels(data):
    """The pixels of a grey PNG file of 8 bits, for any filter of its rows."""
    width, height = struct.unpack(">II", data[16:24])
    assert data[24:26] == b"\x08\x00", "8 bits, grey"
    packed, at = b"", 8
    while at < len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    raw, rows, above = zlib.decompress(packed), [], [0] * width
    for y in range(height):
        kind, row = raw[y * (width + 1)], list(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
        for x in range(width):
            left, corner = (row[x - 1], above[x - 1]) if x else (0, 0)
            estimate = left + above[x] - corner
            paeth = min([left, above[x], corner], key=lambda v: abs(estimate - v))
            row[x] = (row[x] + [0, left, above[x], (left + above[x]) // 2, paeth][kind]) % 256
        rows += row
        above = row
    return width, height, rows


class InspectCase(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def run_program(self, *arguments, code=0):
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, timeout=300,
                              capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def inspect(self, *arguments):
        done = self.run_program("data", "inspect", *arguments, "--json")
        return {line["set"]: line for line in json.loads(done.stdout)}

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


class Inspect(InspectCase):
    def test_listops(self):
        self.run_program("data", "make", "listops", "--out", "lists", "--train", 40, "--validation",
                         7, "--test", 5, "--min-length", 5, "--max-length", 20)
        seen = self.inspect("lists")
        self.assertEqual({name: s["examples"] for name, s in seen.items()},
                         {"train": 40, "validation": 7, "test": 5})
        lines = (self.folder / "lists/basic_train.tsv").read_text().splitlines()[1:]
        lengths = sorted(len(line.split("\t")[0].replace("(", "").replace(")", "").split())
                         for line in lines)
        train = seen["train"]
        self.assertEqual(train["shortest"], lengths[0])
        self.assertEqual(train["longest"], lengths[-1])
        self.assertEqual(train["median_length"], (lengths[19] + lengths[20]) / 2)
        self.assertAlmostEqual(train["mean_length"], sum(lengths) / 40)
        targets = [line.split("\t")[1] for line in lines]
        self.assertEqual(train["labels"], [targets.count(str(d)) for d in range(10)])
        self.assertRegex(train["samples"][0]["text"][0], r"^\[(MIN|MAX|MED|SM) .*\]$")
        one = self.inspect("lists/basic_val.tsv")
        self.assertEqual(one["all"]["examples"], 7)
        text = self.run_program("data", "inspect", "lists", "--samples", 2).stdout
        for part in ["listops, lengths in tokens", "median", "label", "###", "[M"]:
            self.assertIn(part, text)

    def test_text_table(self):
        rows = ["text,kind,writer"]
        rows += [f'"{"good " * (i + 1)}é film",pos,{i % 3}' for i in range(12)]
        rows += [f'"bad film\n{i}",neg,{i % 3}' for i in range(8)]
        self.write("reviews.csv", "\n".join(rows) + "\n")
        settings = ["--set", "task.text_column=text", "--set", "task.label_column=kind",
                    "--set", "task.group_column=writer"]
        seen = self.inspect("reviews.csv", *settings)["all"]
        self.assertEqual(seen["examples"], 20)
        self.assertEqual(dict(zip(seen["classes"], seen["labels"])), {"pos": 12, "neg": 8})
        self.assertEqual(seen["groups"], 3)
        self.assertEqual(seen["unit"], "characters")
        self.assertEqual(seen["longest"], 5 * 12 + len("é film"))
        self.assertEqual(seen["shortest"], len("bad film\n0"))
        text = self.run_program("data", "inspect", "reviews.csv", *settings).stdout
        self.assertIn("good é film", text)
        self.assertIn("bad film 0", text, "a line end would break the list")
        self.assertIn("60.0 %", text)
        done = self.run_program("data", "inspect", "reviews.csv", *settings, "--images", "p", code=2)
        self.assertIn("not pictures", done.stderr)

    def test_series(self):
        rows = ["a,b"] + [f"{i % 7},{(i * i) % 11 - 5}" for i in range(300)]
        self.write("s.csv", "\n".join(rows) + "\n")
        settings = ["--task", "series", "--set", "task.target=forecast"]
        seen = self.inspect("s.csv", *settings)
        only = next(iter(seen.values()))
        self.assertEqual((only["longest"], only["channels"]), (300, 2))
        text = self.run_program("data", "inspect", "s.csv", *settings).stdout
        braille = [line for line in text.splitlines()
                   if any("\u2800" <= c <= "\u28ff" for c in line)]
        self.assertEqual(len(braille), 8, "two channels of four rows")
        self.assertIn(" 6 ", braille[0])
        self.assertIn("-5 ", braille[7])

    def test_values_are_spread(self):
        self.write("t.csv", "x,y\n" + "".join(f"{i} {i + 1} {i + 2},{i / 2}\n" for i in range(11)))
        settings = ["--task", "csv", "--set", "task.series_column=x", "--set",
                    "task.target_columns=y", "--set", "task.target=value"]
        seen = self.inspect("t.csv", *settings)["all"]
        self.assertEqual(seen["values"], [{"least": 0.0, "mean": 2.5, "most": 5.0}])
        self.assertIn("2.5", self.run_program("data", "inspect", "t.csv", *settings).stdout)

    def test_folders_by_class(self):
        for i in range(6):
            kind = ["cat", "dog"][i % 2]
            self.write(f"pictures/{kind}/{i}.png", png(6, 4, [10 * i] * 24))
            self.write(f"texts/{kind}/{i}.txt", kind * (i + 1))
            samples = struct.pack("<80h", *[1000 * (i % 2) + k for k in range(80)])
            self.write(f"sounds/{kind}/{i}.wav",
                       b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt "
                       + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
                       + b"data" + struct.pack("<I", len(samples)) + samples)
        for name, task, longest in [("pictures", "image_folder", 24), ("texts", "text_folder", 18),
                                    ("sounds", "audio_folder", 80)]:
            seen = self.inspect(name)["all"]
            self.assertEqual((seen["task"], seen["examples"], seen["longest"]), (task, 6, longest))
            self.assertEqual((seen["classes"], seen["labels"]), (["cat", "dog"], [3, 3]))
        # Pictures that are not square are shown as a curve until their width is given.
        done = self.run_program("data", "inspect", "pictures", "--images", "out", code=2)
        self.assertIn("--width", done.stderr)
        self.run_program("data", "inspect", "pictures", "--images", "out", "--width", 6,
                         "--samples", 2)
        self.assertEqual(grey_pixels((self.folder / "out/all-001-dog.png").read_bytes()),
                         (6, 4, [10] * 24))

    def test_arrays_and_pairs(self):
        values = struct.pack("<60f", *range(60))
        labels = struct.pack("<5q", 0, 1, 2, 1, 1)
        for name, kind, shape, data in [("x.npy", "<f4", "(5, 4, 3)", values),
                                        ("y.npy", "<i8", "(5,)", labels)]:
            header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
            header = header.ljust(117) + "\n"
            self.write(f"arrays/{name}",
                       b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + data)
        seen = self.inspect("arrays")["all"]
        self.assertEqual((seen["task"], seen["channels"], seen["longest"]), ("npy", 3, 4))
        self.assertEqual(seen["labels"], [1, 3, 1])
        for part, count in [("train", 4), ("eval", 2), ("test", 3)]:
            self.write(f"aan/new_aan_pairs.{part}.tsv",
                       "".join(f"{i % 2}.0\ta{i}\tb{i}\tfirst {part} {i}\tsecond paper\n"
                               for i in range(count)))
        pairs = self.inspect("aan", "--samples", 1)
        self.assertEqual({name: s["examples"] for name, s in pairs.items()},
                         {"train": 4, "validation": 2, "test": 3})
        self.assertEqual(pairs["train"]["labels"], [2, 2])
        self.assertEqual(len(pairs["train"]["samples"][0]["text"]), 2)
        self.assertIn("second paper", pairs["train"]["samples"][0]["text"][1])

    def test_config_shows_what_training_sees(self):
        self.run_program("data", "make", "pathfinder", "--out", "data", "--count", 30)
        self.write("c.toml", '[task]\nname = "pathfinder"\npath = "data"\ntrain = 10\n')
        seen = self.inspect("--config", "c.toml")
        self.assertEqual({name: s["examples"] for name, s in seen.items()},
                         {"train": 10, "validation": 3, "test": 3})
        self.write("d.toml", '[task]\ntrain = 20\nvalidation = 4\ntest = 5\nmin_length = 5\n'
                             'max_length = 40\nmax_tokens = 9\n')
        made = self.inspect("--config", "d.toml")
        self.assertEqual([s["examples"] for s in made.values()], [20, 4, 5])
        self.assertEqual(made["train"]["longest"], 9, "cut as training cuts")

    def test_wrong_use(self):
        self.run_program("data", "inspect", code=2)
        done = self.run_program("data", "inspect", "nowhere", code=1)
        self.assertIn("nowhere", done.stderr)
        self.write("odd/what.xyz", "?")
        done = self.run_program("data", "inspect", "odd", code=2)
        self.assertIn("--task", done.stderr)
        done = self.run_program("data", "inspect", "odd", "--task", "pathfinde", code=2)
        self.assertIn('did you mean "pathfinder"', done.stderr)
        self.write("c.toml", "[task]\n")
        self.run_program("data", "inspect", "odd", "--task", "text", "--config", "c.toml", code=2)


class Pathfinder(InspectCase):
    def test_pathfinder(self):
        done = self.run_program("data", "make", "pathfinder", "--out", "data", "--count", 40,
                                "--seed", 3, "--threads", 2, "--json")
        made = json.loads(done.stdout)
        self.assertEqual((made["pictures"], made["distractors"]), (40, 5))
        for path in ["data", "data/pathfinder32"]:
            seen = self.inspect(path, "--samples", 4, "--images", "pictures")
            self.assertEqual({name: s["examples"] for name, s in seen.items()},
                             {"train": 32, "validation": 4, "test": 4})
            self.assertEqual([sum(s["labels"][c] for s in seen.values()) for c in [0, 1]], [20, 20])
            self.assertEqual(seen["train"]["longest"], 1024)
        names = sorted(p.name for p in (self.folder / "pictures").iterdir())
        self.assertEqual(len(names), 12)
        self.assertIn("train-000-0.png", names)
        # The written pictures are those of the set, and their labels those of its list.
        root = self.folder / "data/pathfinder32/curv_contour_length_14"
        known = {}
        for line in (root / "metadata/0.npy").read_text().splitlines():
            columns = line.split()
            self.assertEqual(len(columns), 11)
            pixels = grey_pixels((root / columns[0] / columns[1]).read_bytes())
            known[str(pixels)] = columns[3]
        self.assertEqual(sorted(known.values()), 20 * ["0"] + 20 * ["1"])
        for name in names:
            pixels = grey_pixels((self.folder / "pictures" / name).read_bytes())
            self.assertEqual(known[str(pixels)], name.split("-")[2][0])
        text = self.run_program("data", "inspect", "data").stdout
        self.assertIn("@", text)
        self.assertIn("label 1", text)
        self.run_program("data", "make", "pathfinder", "--out", "data", "--count", 4, code=2)
        self.run_program("data", "make", "pathfinder", "--out", "data", "--count", 4, "--overwrite")
        self.assertEqual(sum(s["examples"] for s in self.inspect("data").values()), 4)
        self.run_program("data", "make", "pathx", "--out", "data", "--count", 2, "--threads", 1)
        self.assertEqual(self.inspect("data", "--task", "pathx")["train"]["longest"], 128 * 128)

    def test_pathfinder_settings(self):
        self.run_program("data", "make", "pathfinder", "--out", "a", "--count", 2, "--contour-length",
                         6, "--distractors", 1)
        line = (self.folder / "a/pathfinder32/curv_contour_length_6/metadata/0.npy").read_text()
        self.assertEqual(line.split()[5:7], ["6", "2"])
        self.run_program("data", "make", "pathfinder", code=2)
        self.run_program("data", "make", "pathfinder", "--out", "b", "--size", 64, code=2)
        self.run_program("data", "make", "pathfinder", "--out", "b", "--contour-length", 0, code=2)
        done = self.run_program("data", "make", "pathfinder", "--out", "b", "--contour-length", 90,
                                "--count", 1, code=1)
        self.assertIn("no room", done.stderr)
        self.assertEqual([p for p in (self.folder / "b").rglob("*") if p.is_file()], [])
        self.run_program("data", "make", "pathfinder", "--sheet", "sheet.png")
        self.assertEqual(grey_pixels((self.folder / "sheet.png").read_bytes())[0], 532)

    def test_empty_pictures_are_counted(self):
        for i in range(10):
            pixels = [0] * 1024
            self.write(f"set/imgs/0/sample_{i}.png", png(32, 32, pixels) if i != 4 else b"")
        self.write("set/metadata/0.npy",
                   "".join(f"imgs/0 sample_{i}.png {i} {i % 2}\n" for i in range(10)))
        done = self.run_program("data", "inspect", "set", "--json")
        self.assertIn("1 example(s) were skipped", done.stderr)
        self.assertIn("sample_4.png", done.stderr)
        self.assertEqual(json.loads(done.stdout)[0]["skipped"], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)

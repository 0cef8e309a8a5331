"""A folder in which the commands of a page run: small data under the names that the manual uses."""

import gzip
import math
import os
import random
import shutil
import stat
import struct
import tarfile
import wave
import zipfile
from pathlib import Path

from pages import ROOT

WORDS = ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]
# A microphone: a tone of one second at the rate of -r.
ARECORD = """#!/usr/bin/env python3
import sys
sys.path.insert(0, {folder!r})
from sandbox import tone, write_wav
rate = int(sys.argv[sys.argv.index("-r") + 1])
write_wav("microphone.wav", tone(0.3, rate), rate)
sys.stdout.buffer.write(open("microphone.wav", "rb").read())
"""


def tone(turn, count):
    return [int(9000 * math.sin(turn * t)) for t in range(count)]


def write_wav(path, samples, rate):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        out.writeframes(struct.pack(f"<{len(samples)}h", *samples))


def pack(archive, folder):
    with tarfile.open(archive, "w:gz") as out:
        out.add(folder, arcname=folder.name)


def sounds(root):
    """Two classes of tones, also zipped, and a new recording."""
    for i in range(40):
        kind, turn = [("dog", 0.15), ("cat", 0.6)][i % 2]
        write_wav(root / f"sounds/{kind}/{i}.wav", tone(turn + 0.001 * i, 200 + 10 * (i % 7)), 8000)
    write_wav(root / "new.wav", tone(0.2, 400), 8000)
    write_wav(root / "word.wav", tone(0.2, 800), 16000)
    with zipfile.ZipFile(root / "recordings.zip", "w") as out:
        for path in sorted((root / "sounds").rglob("*.wav")):
            out.write(path, path.relative_to(root / "sounds"))


def tables(root):
    """Texts by mood, series by kind, and one long series to forecast."""
    rng = random.Random(1)
    texts = [f'{who},{mood},"It was {mood}, {rng.choice(["well", "so", "yes"])}."'
             for i in range(60) for who, mood in [(f"p{i % 12}", ["good", "bad"][i % 2])]]
    (root / "moods.csv").write_text("\n".join(["who,mood,text", *texts]) + "\n")
    steps = [f"w{s},{math.sin((0.3 + 0.5 * (s % 2)) * t):.3f},{rng.gauss(9.8, 0.1):.3f},{rng.gauss(0, 0.1):.3f},"
             f"{['walking', 'running'][s % 2]}" for s in range(40) for t in range(20)]
    (root / "walks.csv").write_text("\n".join(["id,ax,ay,az,kind", *steps]) + "\n")
    hours = [f"{math.sin(0.26 * t) + rng.gauss(0, 0.05):.3f},{math.cos(0.26 * t):.3f}" for t in range(6000)]
    (root / "power.csv").write_text("\n".join(["load,temperature", *hours]) + "\n")


def reviews(root):
    """IMDB's folders, and the archive."""
    for i in range(64):
        split, mood = ["train", "test"][i % 2], ["pos", "neg"][i // 2 % 2]
        path = root / f"data/text/aclImdb/{split}/{mood}/{i}_7.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"This film, number {i}, is {'a joy' if mood == 'pos' else 'a bore'}. " * 3)
    pack(root / "aclImdb_v1.tar.gz", root / "data/text/aclImdb")


def mnist(root):
    """MNIST's four files with a few images of noise."""
    rng = random.Random(2)
    (root / "mnist").mkdir()
    for name, count in (("train", 60), ("t10k", 20)):
        images = bytes(rng.randrange(256) for _ in range(count * 784))
        labels = bytes(i % 10 for i in range(count))
        with gzip.open(root / f"mnist/{name}-images-idx3-ubyte.gz", "wb") as out:
            out.write(struct.pack(">4I", 0x803, count, 28, 28) + images)
        with gzip.open(root / f"mnist/{name}-labels-idx1-ubyte.gz", "wb") as out:
            out.write(struct.pack(">2I", 0x801, count) + labels)


def digits(root):
    """Free Spoken Digits, as cloned and as an archive."""
    folder = root / "data/free-spoken-digit-dataset"
    for digit in range(10):
        for who in ("ann", "bob"):
            for number in range(8):
                write_wav(folder / f"recordings/{digit}_{who}_{number}.wav", tone(0.1 * (digit + 1), 300), 8000)
    pack(root / "free_spoken_digits.tar.gz", folder)


def words(root):
    """Ten words of Speech Commands with their lists, as a folder and as an archive."""
    folder, names = root / "data/speech_commands", []
    for i, word in enumerate(WORDS):
        for number in range(8):
            names.append(f"{word}/{number:08x}_nohash_0.wav")
            write_wav(folder / names[-1], tone(0.1 * (i + 1), 1000), 16000)
    (folder / "validation_list.txt").write_text("\n".join(names[6::8]) + "\n")
    (folder / "testing_list.txt").write_text("\n".join(names[7::8]) + "\n")
    with tarfile.open(root / "ten_words.tar.gz", "w:gz") as out:
        for path in sorted(folder.iterdir()):
            out.add(path, arcname=path.name)


def executable(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def make_material(root):
    root.mkdir(parents=True)
    for make in (sounds, tables, reviews, mnist, digits, words):
        make(root)


def make_sandbox(root, material):
    """The tree's folders that commands name, the data, and the program, also as ./run, behind the shim."""
    shutil.copytree(material, root)
    for name in ("benchmarks", "configs", "examples", "tests"):
        (root / name).symlink_to(ROOT / name)
    here = Path(__file__).resolve().parent
    (root / "bin").mkdir()
    executable(root / "bin/arecord", ARECORD.format(folder=str(here)))
    for name in (root / "bin/rotrnn", root / "run"):
        executable(name, f'#!/bin/sh\nexec python3 -B "{here}/shim.py" "$@"\n')
    return {**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(root / "cache"),
            "OMP_WAIT_POLICY": "passive", "PYTHONDONTWRITEBYTECODE": "1"}

"""A disk that fills up, and one that cannot be written: a clear error, the last checkpoint as it was,
nothing half written left, and the unbroken run once there is room. Needs the right to mount a tmpfs;
ends with 77 (skipped) without.

    ROTRNN_PROGRAM=build/release/bin/rotrnn tests/faults/disk_test.py
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import FILES, PROGRAM, differences, leftovers, run, write_config


def mount(*arguments):
    return subprocess.run(["mount", *map(str, arguments)], capture_output=True).returncode == 0


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def fill(disk, leave):
    """Fills a disk up to so many bytes."""
    filler = disk / "filler"
    with filler.open("wb") as out:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        out.write(bytes(max(0, free - leave)))
    return filler


def check_full(disk, config, whole, stopped, leave):
    out = disk / "run"
    subprocess.run(["cp", "-r", stopped, out], check=True)
    last = contents(out / "last")
    filler = fill(disk, leave)
    done = run("train", "--resume", "--out", out, "--quiet", code=None)
    assert done.returncode in (0, 1), done.stderr
    if done.returncode == 1:
        assert "No space left on device" in done.stderr, f"{leave} bytes: {done.stderr}"
        now = contents(out / "last")
        assert now == last or len(now) == len(last), f"{leave} bytes left: no last checkpoint"
        assert not leftovers(out), f"{leave} bytes left: {leftovers(out)}"
        run("eval", out, "--checkpoint", "last", "--json")  # whole, and readable on a full disk
        filler.unlink()
        run("train", "--resume", "--out", out, "--quiet")
    found = differences(whole, out)
    assert not found, f"{leave} bytes left: {found}"
    subprocess.run(["rm", "-rf", out, filler], check=True)
    return done.returncode


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        disk = folder / "disk"
        disk.mkdir()
        if not mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", disk):
            print("skipped: a tmpfs cannot be mounted here; run it as root")
            return 77
        try:
            config = write_config(folder, steps=400, every=5)
            whole, stopped = folder / "whole", folder / "stopped"
            run("train", config, "--out", whole, "--quiet")
            process = subprocess.Popen([PROGRAM, "train", str(config), "--out", str(stopped)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not (stopped / "previous").exists():
                time.sleep(0.005)
            process.terminate()
            assert process.wait(60) == 1, "it was to stop before its end"

            room = [0, 4096, 8192, 16384, 24576, 32768, 40960, 49152, 65536, 98304, 131072, 1 << 20]
            codes = [check_full(disk, config, whole, stopped, leave) for leave in room]
            assert codes[0] == 1 and codes[-1] == 0, codes
            print(f"disk full with {', '.join(map(str, room))} bytes left: {codes.count(1)} stopped "
                  "with the last checkpoint whole, all ended as the unbroken run")

            subprocess.run(["cp", "-r", stopped, disk / "run"], check=True)
            last = contents(disk / "run/last")
            assert mount("-o", "remount,ro", disk)
            for arguments in [["--resume"], [config, "--overwrite"]]:
                done = run("train", *arguments, "--out", disk / "run", "--quiet", code=1)
                assert "Read-only file system" in done.stderr, done.stderr
            run("eval", disk / "run", "--json")
            assert contents(disk / "run/last") == last
            done = run("train", config, "--out", disk / "new", "--quiet", code=1)
            assert "Read-only file system" in done.stderr, done.stderr
            print("read-only folder: refused, and still evaluated")
        finally:
            subprocess.run(["umount", disk], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The Debian packages: built, looked at, unpacked into an empty root, and the program run from there."""

import os
import re
import shutil
import stat
import subprocess
import sys
import unittest

from common import BUILD, SOURCE, VERSION, WORK, assert_no_paths, files_of, fresh, own_manifest, run

TORCH = os.environ["ROTRNN_TORCH"] == "1"  # whether the build found LibTorch
NAMES = ["librotrnn-dev", "librotrnn-runtime-dev", "librotrnn-runtime0", "rotrnn", *["rotrnn-c10d"] * TORCH]


def field(package, name):
    return run("dpkg-deb", "-f", package, name).strip()


def known(names):
    """Those of the packages that apt could install, also virtual ones, or that are installed."""
    def ask(*command):  # some names may be unknown, which is an error to both
        return subprocess.run([*command, *names], capture_output=True, text=True).stdout

    found = set(ask("dpkg-query", "-W", "-f", "${Package}\n").split())
    for block in ask("apt-cache", "showpkg").split("Package: ")[1:]:
        name, rest = block.split("\n", 1)
        versions, provided = rest.split("Reverse Depends:")[0], rest.split("Reverse Provides:")[-1]
        if versions.replace("Versions:", "").strip() or provided.strip():
            found.add(name)
    return found


class Deb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        fresh(WORK)
        with own_manifest():
            run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", WORK,
                "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")  # xz takes ten seconds
        cls.packages = {field(path, "Package"): path for path in WORK.glob("*.deb")}
        cls.root = WORK / "root"
        for path in cls.packages.values():
            run("dpkg-deb", "-x", path, cls.root)

    def test_packages(self):
        self.assertEqual(sorted(self.packages), NAMES)
        owner = {}
        for name, path in self.packages.items():
            self.assertEqual(field(path, "Version"), VERSION)
            listing = run("dpkg-deb", "-c", path).splitlines()
            files = {line.split()[5] for line in listing if not line.startswith("d")}
            for file in files:
                self.assertNotIn(file, owner, f"is in {name} too")
                owner[file] = name
            for document in ("copyright", "changelog.gz"):
                self.assertIn(f"./usr/share/doc/{name}/{document}", files)
            for line in listing:
                self.assertIn("root/root", line)
                self.assertRegex(line, r"^(d|-|l)rw.r.[x-]r.[x-]|^lrwx", "nothing that others may write")
        self.assertEqual(owner["./usr/bin/rotrnn"], "rotrnn")

    def test_dependencies(self):
        choices = {choice for path in self.packages.values() for choice in field(path, "Depends").split(", ")}
        alternatives = {c: [re.sub(r"[ :(].*", "", part) for part in c.split(" | ")] for c in choices}
        there = known({name for names in alternatives.values() for name in names})
        for choice, names in alternatives.items():
            if set(names) & set(NAMES):
                self.assertIn(f"(= {VERSION})", choice)
            else:
                self.assertTrue(there & set(names), f"a package depends on {choice}")
        for name, path in self.packages.items():
            self.assertEqual("libtorch" in field(path, "Depends"), name == "rotrnn-c10d")
        self.assertEqual(field(self.packages["librotrnn-dev"], "Suggests"), "libtorch-dev")

    def test_files(self):
        assert_no_paths(self.root, BUILD, SOURCE, WORK)
        for path in files_of(self.root):
            self.assertFalse(path.stat().st_mode & stat.S_IWOTH, path)
        self.assertNotRegex(run("readelf", "-d", self.root / "usr/bin/rotrnn"), "RPATH|RUNPATH")

    def test_program(self):
        program = self.root / "usr/bin/rotrnn"
        self.assertTrue(run(program, "--version").startswith(f"rotrnn {VERSION}\n"))
        config = self.root / "usr/share/rotrnn/configs/quickstart.toml"
        out = WORK / "run"
        run(program, "train", config, "--out", out, "--set", "training.steps=20")
        self.assertIn('"step":20', (out / "metrics.jsonl").read_text().replace(" ", ""))

    @unittest.skipUnless(TORCH, "no LibTorch")
    def test_processes(self):
        """The program finds its c10d where the package puts it."""
        program = self.root / "usr/bin/rotrnn"
        environment = {k: v for k, v in os.environ.items() if k != "ROTRNN_C10D"}
        self.assertIn(f"processes  {self.root}/usr/lib/", run(program, "--version", env=environment))
        self.assertIn("16,777,216", run(program, "launch", "-n", "2", "--", "bench", "messages", env=environment))


if __name__ == "__main__":
    if not all(map(shutil.which, ("dpkg-deb", "dpkg-shlibdeps", "file"))):
        print("no dpkg-deb, dpkg-shlibdeps and file: no packages")
        sys.exit(77)
    unittest.main()

"""The Debian packages: built, looked at, unpacked into an empty root, and the program run from there."""

import re
import shutil
import stat
import subprocess
import sys
import unittest

from common import BUILD, SOURCE, VERSION, WORK, assert_no_paths, files_of, fresh, own_manifest, run

NAMES = ["librotrnn-dev", "librotrnn-runtime-dev", "librotrnn-runtime0", "rotrnn"]


def field(package, name):
    return run("dpkg-deb", "-f", package, name).strip()


def known(package):
    """Whether apt or dpkg knows a package of this name, also a virtual one."""
    for command in (["apt-cache", "showpkg", package], ["dpkg-query", "-W", "-f", "${Version}", package]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0 and re.search(r"\d", done.stdout):
            return True
    return False


class Deb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        fresh(WORK)
        with own_manifest():
            run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", WORK)
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
        for name, path in self.packages.items():
            for choice in field(path, "Depends").split(", "):
                alternatives = [re.sub(r"[ :(].*", "", part) for part in choice.split(" | ")]
                ours = [part for part in alternatives if part in NAMES]
                if ours:
                    self.assertIn(f"(= {VERSION})", choice)
                else:
                    self.assertTrue(any(map(known, alternatives)), f"{name} depends on {choice}")
        self.assertIn("libtorch", field(self.packages["rotrnn"], "Depends"))
        for name in ("librotrnn-runtime0", "librotrnn-runtime-dev"):
            self.assertNotIn("torch", field(self.packages[name], "Depends"))

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


if __name__ == "__main__":
    if not all(map(shutil.which, ("dpkg-deb", "dpkg-shlibdeps", "file"))):
        print("no dpkg-deb, dpkg-shlibdeps and file: no packages")
        sys.exit(77)
    unittest.main()

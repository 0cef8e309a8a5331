"""What `rotrnn --version` prints, against what else knows it."""

import json
import os
import re
import subprocess
import unittest
from pathlib import Path

PROGRAM = os.environ["ROTRNN_PROGRAM"]
SOURCE = Path(os.environ["ROTRNN_SOURCE"])


def run(*arguments, code=0, **environment):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class Version(unittest.TestCase):
    def facts(self, **environment):
        said = run("--version", "--json", **environment)
        self.assertEqual(said.count("\n"), 1)
        return json.loads(said)

    def test_facts(self):
        facts = self.facts()
        version = re.search(r"project\(rotrnn VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        self.assertEqual(facts["version"], version)
        self.assertEqual(facts["threads"], len(os.sched_getaffinity(0)))
        self.assertEqual(facts["cpus"], os.cpu_count())
        self.assertIn(facts["simd"], facts["simd_available"])
        commit = subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
        if commit and (SOURCE / ".git").exists():
            self.assertEqual(commit[:12], facts["commit"].split()[0])
        else:
            self.assertEqual(facts["commit"], "unknown")
        text = run("--version")
        self.assertTrue(text.startswith(f"rotrnn {version}\n"))
        for key in ("version", "commit", "compiler", "cpu", "simd", "processes"):
            self.assertIn(str(facts[key]), text)

    def test_cpu(self):
        with open("/proc/cpuinfo") as file:
            lines = dict(line.rstrip("\n").replace("\t", "").split(":", 1) for line in file if ":" in line)
        if "flags" not in lines:
            self.skipTest("not an x86 CPU")
        facts, flags = self.facts(), lines["flags"].split()
        ours = ["avx2", "fma", "bmi2", "f16c", "avx512f", "avx512vl", "avx512dq", "avx512bw", "avx512cd"]
        self.assertEqual(facts["features"], [name for name in ours if name in flags])
        self.assertEqual(facts["cpu"], lines["model name"].strip())

    def test_processes(self):
        library = Path(PROGRAM).parent.parent / "lib/librotrnn_c10d.so"
        if library.exists():
            self.assertEqual(os.path.realpath(self.facts()["processes"]), os.path.realpath(library))
        self.assertIn("/nowhere: no such file", self.facts(ROTRNN_C10D="/nowhere")["processes"])

    def test_stands_alone(self):
        # Names alone: an address may happen to contain "c10".
        libraries = [line.split()[0] for line in subprocess.check_output(["ldd", PROGRAM], text=True).splitlines()]
        self.assertTrue(any("libsndfile" in library for library in libraries), libraries)
        for name in ("torch", "c10", "gloo", "blas", "lapack", "python"):
            self.assertFalse([library for library in libraries if name in library], libraries)

    def test_choice(self):
        self.assertEqual(self.facts(ROTRNN_SIMD="scalar")["simd"], "scalar")
        run("--version", code=2, ROTRNN_SIMD="mmx")
        run("--json", code=2)


if __name__ == "__main__":
    unittest.main()

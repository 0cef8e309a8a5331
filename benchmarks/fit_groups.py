"""A set in which group and label are confounded: what leave-one-group-out chooses, and whether its estimate holds.

    benchmarks/fit_groups.py [--seeds 5] [--program build/release/bin/rotrnn]

Each group (a patient, a machine) has a level and a colour of noise of its own, and one class; the class itself shows as
a weak rhythm. By leaving single series out, the level seems to tell the class; on new groups it does not. Prints, with
and without groups, what was estimated, what the test on new groups says, and the penalty and temperature that were
chosen.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np


def make(folder, groups, per_group, seed, named):
    rng = np.random.default_rng(seed)
    t, x, y, g = np.arange(150), [], [], []
    for group in range(groups):
        level, slope, label = 2 * rng.standard_normal(), rng.uniform(-0.9, 0.9), group % 2
        for _ in range(per_group):
            noise = rng.standard_normal(len(t))
            for i in range(1, len(t)):
                noise[i] += slope * noise[i - 1]
            rhythm = 0.4 * np.sin((0.5 + 0.4 * label) * t + rng.uniform(0, 6.28))
            x.append(level + noise + rhythm)
            y.append(label)
            g.append(group)
    for what, values in (("X", np.array(x, np.float32)), ("y", np.array(y)), ("groups", np.array(g))):
        if what != "groups" or named:
            np.save(folder / f"{what}.npy", values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--program", default="build/release/bin/rotrnn")
    arguments = parser.parse_args()
    for named in (False, True):
        rows = []
        for seed in range(arguments.seeds):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                for part, offset in (("train", 0), ("test", 1000)):
                    (folder / part).mkdir()
                    make(folder / part, 24, 10, seed + offset, named)
                done = subprocess.run([arguments.program, "fit", folder / "train", folder / "test", "--out", folder / "run",
                                       "--seed", str(seed), "--json", "--set", "task.cache=none"],
                                      capture_output=True, text=True, check=True)
                rows.append(json.loads(done.stdout.splitlines()[-1]))
        median = lambda key: statistics.median(row[key] for row in rows)  # noqa: E731
        print(f"{rows[0]['estimate']:22} estimate {median('estimate_accuracy'):.3f}  test {median('test_accuracy'):.3f}  "
              f"penalty {median('penalty'):.2g}  temperature {median('temperature'):.2f}", flush=True)


if __name__ == "__main__":
    main()

"""rotrnn fit beside MiniRocket (classes) and RocketRegressor (values), in one run.

    benchmarks/compare_fit.py FOLDER [--seeds 5] [--program build/release/bin/rotrnn]

FOLDER holds pairs NAME_TRAIN.ts and NAME_TEST.ts. Needs the Python packages aeon and scikit-learn; a first fit of each
peer, which compiles it, is not counted. Prints the median over seeds: test accuracy or RMSE, and the seconds of fit and
predict. Those of rotrnn are the whole of `fit` inside the process, with reading, testing and early answers.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")


def ours(program, train, test, seed):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, "fit", train, test, "--out", f"{folder}/run", "--seed", str(seed), "--json"],
                              capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    return result.get("test_accuracy", result.get("test_rmse")), result["seconds"]


def peer(train, test, seed):
    from aeon.classification.convolution_based import MiniRocketClassifier
    from aeon.datasets import load_from_ts_file
    from aeon.regression.convolution_based import RocketRegressor

    (x, y), (other, labels) = load_from_ts_file(str(train)), load_from_ts_file(str(test))
    if isinstance(x, list):  # MiniRocket needs one length
        longest = max(s.shape[1] for s in [*x, *other])
        pad = lambda series: np.stack([np.pad(s, ((0, 0), (0, longest - s.shape[1]))) for s in series])  # noqa: E731
        x, other = pad(x), pad(other)
    values = np.issubdtype(np.asarray(y).dtype, np.number)
    model = RocketRegressor(random_state=seed, n_jobs=-1) if values else MiniRocketClassifier(random_state=seed, n_jobs=-1)
    begin = time.perf_counter()
    predicted = model.fit(x, y).predict(other)
    seconds = time.perf_counter() - begin
    score = np.sqrt(np.mean((predicted - labels) ** 2)) if values else np.mean(predicted == labels)
    return float(score), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--program", default="build/release/bin/rotrnn")
    arguments = parser.parse_args()
    print(f"{'':24} {'rotrnn fit':>20} {'aeon':>20}")
    for train in sorted(arguments.folder.glob("*_TRAIN.ts")):
        test = train.with_name(train.name.replace("_TRAIN", "_TEST"))
        peer(train, test, 0)  # compiles
        rows = [[run(seed) for seed in range(arguments.seeds)]
                for run in (lambda s: ours(arguments.program, train, test, s), lambda s: peer(train, test, s))]
        cells = [f"{statistics.median(r[0] for r in row):10.4f} {statistics.median(r[1] for r in row):7.2f} s" for row in rows]
        print(f"{train.name.replace('_TRAIN.ts', ''):24} {cells[0]:>20} {cells[1]:>20}", flush=True)


if __name__ == "__main__":
    main()

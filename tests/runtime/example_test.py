"""example_test.py PROGRAM FOLDER: the streaming examples say what NumPy says of the same numbers.

FOLDER holds the cases of tests/golden/folded.py."""

import json
import os
import subprocess
import sys


def run(program, model, numbers):
    return subprocess.run([program, model], input="\n".join(map(repr, numbers)), capture_output=True, text=True,
                          timeout=60)


def main():
    program, folder = sys.argv[1:]
    with open(os.path.join(folder, "cases.json")) as f:
        cases = {c["name"]: c for c in json.load(f)["cases"]}
    for name in ("plain", "none", "wide"):  # one channel, three channels, eleven classes
        c = cases[name]
        result = run(program, os.path.join(folder, c["file"]), c["values"])
        if result.returncode != 0:
            sys.exit(f"{name}: {result.stderr}")
        lines = result.stdout.splitlines()
        step, label, probability = lines[-1].replace(":", "").split(maxsplit=2)[2], *lines[-1].rsplit(" ", 2)[1:]
        best = max(range(c["outputs"]), key=lambda k: c["answer"][k])
        if step.split()[0] != str(c["lengths"][0]) or label != str(best):
            sys.exit(f"{name}: {lines[-1]} is not class {best} after step {c['lengths'][0]}")
        if abs(float(probability) - c["answer"][best]) > 1e-5:
            sys.exit(f"{name}: {probability} is not {c['answer'][best]}")
        # What was said before is the class after each of those steps.
        for line in lines[:-1]:
            words = line.replace(":", "").split()
            row = c["logits"][(int(words[1]) - 1) * c["outputs"]:][:c["outputs"]]
            if row[int(words[3])] < max(row) - 1e-4:
                sys.exit(f"{name}: {line}: NumPy has {row}")
    if run(program, os.path.join(folder, "missing"), []).returncode != 1:
        sys.exit("a missing model must end in exit code 1")


if __name__ == "__main__":
    main()

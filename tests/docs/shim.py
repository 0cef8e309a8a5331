#!/usr/bin/env python3
"""The program as the commands of the manual start it: `rotrnn` and `./run` in the sandbox.

It calls ROTRNN_PROGRAM with the same arguments, and makes work that would take minutes small:
  train           unless --resume: a few steps on a few examples (SMALL below)
  compare, norms  one seed, three steps, the same few examples; no --budget-minutes
  init            times the machine for 0.1 s instead of 10
  info            does not time the machine
  bench step      one step of at most 64 tokens
  bench stream    100 samples, two streams
  data make       four examples instead of many
  board           on a free port, ended with Ctrl-C once it has answered a request
Everything else is passed on as it is.
"""

import os
import re
import signal
import subprocess
import sys
import urllib.request

PROGRAM = os.environ["ROTRNN_PROGRAM"]
SMALL = ["training.steps=3", "training.evaluate_every=3", "training.checkpoint_every=3", "training.batch=4",
         "training.batch_tokens=0", "training.accumulate=1", "training.log_every=1", "task.train=24",
         "task.validation=6", "task.test=6"]


def settings():
    return [word for setting in SMALL for word in ("--set", setting)]


def without(arguments, *options):
    """The arguments without these options and their values."""
    result, i = [], 0
    while i < len(arguments):
        if arguments[i] in options:
            i += 1
        else:
            result.append(arguments[i])
        i += 1
    return result


def small(arguments):
    command = " ".join(arguments[:2])
    if command.startswith("train") and "--resume" not in arguments:
        return arguments + settings()
    if command.startswith("compare") and "--presets" not in arguments:
        return without(arguments, "--seeds", "--steps", "--budget-minutes") + ["--seeds", "1"] + settings()
    if command.startswith("norms"):
        return arguments + settings()
    if command.startswith("init"):
        return arguments + ["--measure", "0.1"]
    if command.startswith("info") and not {"--keys", "--layers"} & set(arguments):
        return arguments + ["--no-measure"]
    if command == "bench step":
        return without(arguments, "--length", "--repeats") + ["--length", "64", "--repeats", "1"]
    if command == "bench stream":
        return arguments + ["--samples", "100", "--streams", "2"]
    if command == "data make" and "--count" in arguments:
        return without(arguments, "--count") + ["--count", "4"]
    return arguments


def board(arguments):
    """Asks it for its runs once, then presses Ctrl-C."""
    process = subprocess.Popen([PROGRAM, *arguments, "--port", "0"], stdout=subprocess.PIPE, text=True)
    address = None
    for line in process.stdout:
        print(line, end="")
        if match := re.search(r"http://\S+", line):
            address = match[0]
        if "Ctrl-C" in line:
            break
    with urllib.request.urlopen(address + "api/runs", timeout=30) as answer:
        assert answer.status == 200, answer.status
    process.send_signal(signal.SIGINT)
    return process.wait(timeout=30)


def main():
    arguments = sys.argv[1:] or ["train"]  # as ./run without arguments
    if arguments[0] == "board":
        sys.exit(board(arguments))
    os.execv(PROGRAM, [PROGRAM, *small(arguments)])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Times a training step of rotrnn and of eager PyTorch in turn, and prints the ratios.

    benchmarks/compare_step.py [--rows listops,text,speech] [--forms chunked,fft,doubling] [--rounds 5]
                               [--program build/release/bin/rotrnn] [--peer-libraries FOLDER]

Every round runs each contestant once, one after the other, with the same shapes, batch and threads, so
that whatever else the machine does meets all of them. Figures are medians over the rounds. Needs PyTorch
for /usr/bin/python3 (Debian: python3-torch). Its speed depends on its BLAS, so that is named in the
table; --peer-libraries takes another one, from a folder with a libblas.so.3.
"""

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORMS = ["chunked", "fft", "doubling"]
ROWS = {
    "listops": dict(config="configs/lra/listops.toml", batch=8, length=2048,
                    peer=["--tokens", "--inputs", 18, "--classes", 10, "--width", 128, "--state", 256]),
    "text": dict(config="configs/lra/text.toml", batch=4, length=4096,
                 peer=["--tokens", "--inputs", 135, "--classes", 2, "--width", 256, "--state", 192,
                       "--dropout", 0.1]),
    "speech": dict(config="configs/speech_commands.toml", batch=2, length=16000,
                   peer=["--inputs", 1, "--classes", 35, "--width", 96, "--state", 128,
                         "--dropout", 0.1]),
}


def run(command, libraries=""):
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries) if libraries else None
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT,
                          env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--rows", default=",".join(ROWS))
    p.add_argument("--forms", default=",".join(FORMS))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--peer-libraries", default="", metavar="FOLDER")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--program", default="build/release/bin/rotrnn")
    p.add_argument("--python", default="/usr/bin/python3")
    a = p.parse_args()
    print("| row | who | GFLOP/s | of peak | speedup | memory MB | memory vs. PyTorch |")
    print("|---|---|---|---|---|---|---|")
    for name in a.rows.split(","):
        row = ROWS[name]
        shape = ["--batch", row["batch"], "--length", row["length"], "--threads", a.threads]
        ours = [a.program, "bench", "step", "--config", row["config"], *shape, "--repeats", 5, "--json"]
        contestants = {"rotrnn": ours, "rotrnn, memory low": ours + ["--memory", "low"]}
        for form in a.forms.split(","):
            contestants["PyTorch " + form] = [a.python, "benchmarks/peers/torch_step.py", "--form", form,
                                              *row["peer"], *shape, "--repeats", 2]
        results = {who: [] for who in contestants}
        for _ in range(a.rounds):
            for who, command in contestants.items():
                peer = who.startswith("PyTorch")
                results[who].append(run(command, a.peer_libraries if peer else ""))

        def median(who, key):
            return statistics.median(r[key] for r in results[who])

        best, low = median("rotrnn", "useful_gflops"), "rotrnn, memory low"
        memory = median("rotrnn", "peak_memory_mb")
        peak = max(r["peak_gflops"] for r in results["rotrnn"])
        for who in contestants:
            rate, used = median(who, "useful_gflops"), median(who, "peak_memory_mb")
            peer = who.startswith("PyTorch")
            ratio = f"{best / rate:.2f} ×" if peer else ""
            share = f"{memory / used:.2f} ({median(low, 'peak_memory_mb') / used:.2f} low)" if peer else ""
            who += f" ({results[who][0]['blas']})" if peer else ""
            print(f"| {name} | {who} | {rate:.1f} | {rate / peak:.2f} | {ratio} | {used:.0f} | {share} |",
                  flush=True)


if __name__ == "__main__":
    main()

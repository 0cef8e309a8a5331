"""ONNX Runtime by session.mjs, from Python: ROTRNN_ONNXRUNTIME is the folder that has it."""

import json
import os
import subprocess

import numpy as np


def tensor(values, kind):
    array = np.asarray(values)
    return dict(type=kind, shape=list(array.shape), data=array.ravel().tolist())


def run_jobs(jobs):
    """[[{name: array} of every call] of every job], as session.mjs describes them."""
    script = os.path.join(os.environ["ROTRNN_ONNXRUNTIME"], "session.mjs")
    done = subprocess.run(["node", script], input=json.dumps({"jobs": jobs}), capture_output=True, text=True,
                          timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return [[{name: np.array(t["data"], float).reshape(t["shape"]) for name, t in call.items()} for call in job]
            for job in json.loads(done.stdout)]

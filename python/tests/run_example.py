"""Runs an example; 77, which ctest takes as skipped, where PyTorch is not installed."""

import runpy
import sys

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    print(f"skipped: {error}; Debian: apt install python3-torch")
    sys.exit(77)
runpy.run_path(sys.argv[1], run_name="__main__")

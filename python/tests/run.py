"""Runs pytest on this folder; 77, which ctest takes as skipped, where PyTorch or pytest are not installed."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
try:
    import pytest
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    print(f"skipped: {error}; Debian: apt install python3-torch python3-pytest")
    sys.exit(77)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", str(Path(__file__).parent), *sys.argv[1:]]))

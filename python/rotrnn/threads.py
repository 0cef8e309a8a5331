"""How many threads the fused kernels use."""

from typing import Optional

from . import _core

_threads: Optional[int] = None


def set_num_threads(threads: Optional[int]) -> None:
    """Sets the number of threads of the fused kernels; None: the CPUs that the process may run on.

    They are the kernels' own and have nothing to do with `torch.set_num_threads`."""
    global _threads
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise ValueError(f"rotrnn.set_num_threads: {threads!r}; give a whole number of at least 1, or None for "
                         "as many as there are CPUs")
    _threads = threads


def get_num_threads() -> int:
    """Number of threads of the fused kernels: what was set, else the CPUs of the process's affinity."""
    return _threads if _threads is not None else _core.available_threads()

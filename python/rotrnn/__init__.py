"""Linear recurrent layers for long sequences, on fused CPU kernels.

    import torch, rotrnn
    layer = rotrnn.RotRNN(width=128, state=256, heads=32)
    y = layer(torch.randn(8, 2048, 128))            # [batch, time, width]

`RotRNN`, `LRU` and `S5` are `torch.nn.Module`s and need PyTorch 1.13 or newer, which is looked for when
one of them is first used, not before. `Model` and `Stream` use what `rotrnn export` writes and need NumPy only:

    stream = rotrnn.Stream("model.safetensors")
    stream.push(samples)
    stream.answer()
"""

from typing import TYPE_CHECKING, Any, List

from ._core import __version__, release_memory
from .threads import get_num_threads, set_num_threads

if TYPE_CHECKING:
    from .fit import RotationClassifier as RotationClassifier, RotationRegressor as RotationRegressor
    from .fit import RotationTransform as RotationTransform
    from .layer import Layer as Layer, State as State
    from .lru import LRU as LRU
    from .rotrnn import RotRNN as RotRNN
    from .s5 import S5 as S5
    from .stream import Model as Model, ModelInfo as ModelInfo, Stream as Stream
    from .plain.diagonal import System as System

# Where what needs PyTorch is.
_LAZY = {"Layer": "layer", "State": "layer", "System": "plain.diagonal", "RotRNN": "rotrnn", "LRU": "lru", "S5": "s5"}

# Where what needs NumPy alone is.
_NUMPY = {"RotationClassifier": "fit", "RotationRegressor": "fit", "RotationTransform": "fit", "Model": "stream", "ModelInfo": "stream", "Stream": "stream"}

__all__ = ["RotRNN", "LRU", "S5", "Layer", "System", "Model", "ModelInfo", "Stream", "RotationClassifier", "RotationRegressor", "RotationTransform", "set_num_threads", "get_num_threads", "release_memory",
           "__version__"]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _NUMPY:
        return getattr(importlib.import_module("." + _NUMPY[name], __name__), name)
    if name not in _LAZY:
        raise AttributeError(f"module 'rotrnn' has no attribute {name!r}")
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"rotrnn.{name} needs PyTorch 1.13 or newer, which cannot be imported ({error}); "
                          "install it: pip install torch, or on Debian apt install python3-torch") from error
    version = str(torch.__version__)
    if tuple(int(part) for part in version.split(".")[:2]) < (1, 13):
        raise ImportError(f"rotrnn.{name} needs PyTorch 1.13 or newer; this is {version}, please update it")
    value = getattr(importlib.import_module("." + _LAZY[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(_LAZY) | set(_NUMPY))

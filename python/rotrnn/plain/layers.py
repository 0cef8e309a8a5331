"""The six layers by their names."""

from typing import Dict, Mapping, NamedTuple, Optional

from torch import Tensor

from . import diagonal, liquid_s4, lru, rotrnn, s4, s4d, s5
from .settings import Settings, complete

_DIAGONAL = {"rotrnn": rotrnn, "lru": lru, "s5": s5}
_CONVOLUTION = {"s4": s4, "liquid_s4": liquid_s4}
_ALL = {**_DIAGONAL, "s4d": s4d, **_CONVOLUTION}


class Output(NamedTuple):
    y: Tensor  # [n, D]
    # States after the last token, and in the reverse direction after the first one; None: the layer shows none.
    final: Optional[Tensor] = None
    final_reverse: Optional[Tensor] = None


def run(p: Mapping[str, Tensor], settings: Settings, u: Tensor, offsets: Tensor, initial: Optional[Tensor] = None,
        initial_reverse: Optional[Tensor] = None) -> Output:
    """A layer with parameters p on a packed batch u [n, D], from states [sequences, ..] (None: at the start). Maps
    are computed in double, and sequences in the precision of u."""
    settings = complete(settings)
    name = settings["layer"]
    if name in _DIAGONAL:
        system = _DIAGONAL[name].system(p, settings)
        return Output(*diagonal.run(system, u, offsets, initial, initial_reverse))
    if name == "s4d":
        return Output(*s4d.run(p, settings, u, offsets, initial, initial_reverse))
    if initial is not None or initial_reverse is not None:
        raise ValueError(f"{name} is a convolution, which takes no initial states")
    return Output(_CONVOLUTION[name].run(p, settings, u, offsets))


def prepare(p: Mapping[str, Tensor], settings: Settings, longest: int) -> Dict[str, Tensor]:
    """The parameters of the same layer for sequences of up to this length."""
    return s4.grow(p, longest) if settings["layer"] in _CONVOLUTION else dict(p)


def group(name: str, settings: Settings) -> str:
    """How the optimiser treats a parameter: "recurrent", "recurrent_decay", "no_decay" or "decay"."""
    settings = complete(settings)
    return _ALL[settings["layer"]].group(name, settings)

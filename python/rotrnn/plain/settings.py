"""The settings of [model] and [frontend] in a config that change what a network computes, with their defaults."""

from typing import Any, Dict, Mapping

Settings = Mapping[str, Any]

DEFAULTS: Dict[str, Any] = {
    "layer": "rotrnn",
    "bidirectional": False,
    # The network.
    "depth": 6,
    "activation": "half_glu1",
    "norm": "batch",
    "norm_momentum": 0.95,
    "prenorm": True,
    "pooling": "mean",
    "towers": 1,  # sequences of one example, which the data decide: 2 for pairs
    # The front end: resolved, as a run folder has it.
    "frontend.kind": "none",
    "frontend.hop": 16,
    "frontend.size": 16,
    "frontend.stride": 16,
    # RotRNN.
    "normalisation": "xi",
    "c": 1.0,
    "stationary_start": False,
    # The others.
    "lru.gamma": "learned",
    "s5.discretisation": "zoh",
    "s5.clip": False,
    "s5.step_rescale": 1.0,
    "s5.groups": "standard",
    "s5.dt_global": False,
    "s4d.discretisation": "zoh",
    "s4d.step_rescale": 1.0,
    "s4d.dt_global": False,
    "s4.dt_global": True,
    "liquid_s4.form": "pb",
    "liquid_s4.mode": "causal",
    "liquid_s4.coefficient": "power",
    "liquid_s4.degree": 2,
    "liquid_s4.train_liquid": True,
}

# Keys that only initial values and the shapes of tensors, which are seen in the tensors, depend on.
OF_THE_TENSORS = {"frontend.bands", "frontend.low", "frontend.high", "frontend.learn", "width", "state", "heads", "learn_rotation", "dropout", "s5.blocks", "s5.c_init", "s5.dt_min", "s5.dt_max",
                  "lru.r_min", "lru.r_max", "lru.max_phase", "s4d.init", "s4d.tied", "s4d.train_b", "s4d.dt_min",
                  "s4d.dt_max", "s4.tied", "s4.dt_min", "s4.dt_max", "s4.max_length"}


def complete(given: Settings) -> Settings:
    """The settings with the defaults of those that are not given."""
    for key in given:
        if key not in DEFAULTS and key not in OF_THE_TENSORS and not key.startswith("init."):
            raise KeyError(f"no setting {key!r} of a network")
    return {**DEFAULTS, **given}

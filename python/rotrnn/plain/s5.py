"""S5 (Smith, Warrington, Linderman 2023).

    x_t = Lambda_bar * x_{t-1} + B_bar u_t          y_t = 2 Re(C x_t) + D * u_t          dt = step_rescale exp(log_step)

of which one of each pair of conjugate states is kept.
Lambda_re, Lambda_im, log_step [S], B_re, B_im [S, D], C_re, C_im [D, S], D [D] (, C_reverse_re, C_reverse_im)."""

from typing import Mapping

import torch
from torch import Tensor

from .diagonal import System
from .discretise import discretise
from .settings import Settings


def system(p: Mapping[str, Tensor], settings: Settings) -> System:
    p = {name: tensor.double() for name, tensor in p.items()}
    re = p["Lambda_re"].clamp(max=-1e-4) if settings["s5.clip"] else p["Lambda_re"]
    dt = settings["s5.step_rescale"] * torch.exp(p["log_step"])
    lam, factor = discretise(settings["s5.discretisation"], torch.complex(re, p["Lambda_im"]), dt)
    W = factor[:, None] * torch.complex(p["B_re"], p["B_im"])
    V = 2 * torch.cat([p["C_re"], -p["C_im"]], dim=1)
    V_reverse = 2 * torch.cat([p["C_reverse_re"], -p["C_reverse_im"]], dim=1) if settings["bidirectional"] else None
    return System(lam.real, lam.imag, torch.cat([W.real, W.imag]), V, V_reverse, p["D"])


def group(name: str, settings: Settings) -> str:
    if name == "log_step":
        return "decay" if settings["s5.dt_global"] else "recurrent"
    if name.startswith("Lambda"):
        return "recurrent"
    of_b, of_c_and_d = {"standard": ("recurrent", "decay"), "BandCdecay": ("recurrent_decay", "decay"),
                        "BfastandCdecay": ("decay", "decay"), "noBCdecay": ("recurrent", "recurrent")}[settings["s5.groups"]]
    return of_b if name.startswith("B_") else of_c_and_d

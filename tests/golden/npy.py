#!/usr/bin/python3
"""Arrays as NumPy itself saves them, with the values that are in them.

    npy.py --write    write npy.json beside this file
    npy.py --check    the same, but compare with npy.json; exit 1 if they differ

npy.json: {name: {"bytes": the file in hexadecimal, "shape", "numbers": the values with the last dimension
fastest}}; numbers that are not finite are "nan", "inf", "-inf"; integers beyond 2^53 keep all digits.
"""

import io

import common
from common import np


def number(value):
    value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return int(value) if isinstance(value, bool) else value


def case(array, version=(1, 0)):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version, allow_pickle=False)
    return {"bytes": file.getvalue().hex(), "shape": list(array.shape),
            "numbers": [number(v) for v in array.ravel(order="C")]}


def compute():
    cases = {}
    limits = {"i1": [-128, 127], "i2": [-2**15, 2**15 - 1], "i4": [-2**31, 2**31 - 1], "i8": [-2**63, 2**63 - 1],
              "u1": [0, 255], "u2": [0, 2**16 - 1], "u4": [0, 2**32 - 1], "u8": [0, 2**63 - 1]}
    for order in "<>":
        for name, ends in limits.items():
            cases[order + name] = case(np.array(ends + [1, 2], dtype=order + name))
        for name in ["f2", "f4", "f8"]:
            values = [0, -0.0, 1, -2.5, 1 / 3, 65504, 6e-8, 6.2e-5, np.inf, -np.inf, np.nan]
            cases[order + name] = case(np.array(values, dtype=order + name))
    cases["bool"] = case(np.array([[True, False, True]]))
    cases["scalar"] = case(np.array(2.5))
    cases["empty"] = case(np.zeros((3, 0, 2), dtype="<f4"))
    cube = np.arange(24, dtype="<f4").reshape(2, 3, 4)
    four = np.arange(120, dtype=">i2").reshape(2, 3, 4, 5)
    for name, array in [("cube", cube), ("four", four), ("matrix", cube[0].copy())]:
        cases[name] = case(array)
        cases[name + " fortran"] = case(np.asfortranarray(array))
    cases["version 2"] = case(cube, (2, 0))
    cases["version 3"] = case(cube, (3, 0))
    cases["int64"] = case(np.arange(-2, 4).reshape(3, 2))
    return cases


common.main(compute, __doc__.splitlines()[0])

"""Streams a series through an exported model: python_stream.py MODEL < NUMBERS.

One step per line, one number per channel. Prints when the prediction changes, saves the state half-way
and continues from it in another stream, as another process would.
"""

import sys

import numpy as np

import rotrnn


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python_stream.py MODEL < NUMBERS")
    model = rotrnn.Model(sys.argv[1])
    if model.info.tokens or not model.info.classifies:
        sys.exit("this example is for models that classify a series")
    steps = np.loadtxt(sys.stdin, dtype=np.float32, ndmin=2)

    stream = rotrnn.Stream(model)
    printed = None
    for t, step in enumerate(steps):
        stream.push(step)
        if t == len(steps) // 2:
            state = stream.save()
            stream = rotrnn.Stream(model)
            stream.restore(state)
        if stream.label() != printed:
            printed = stream.label()
            print(f"step {t + 1}: {printed} ({stream.answer().max():.3f})")

    # At its end, a stream predicts what the whole sequence does.
    whole = model.score([steps])[0]
    print(f"largest difference from the whole sequence: {np.abs(whole - stream.logits()).max():.1e}")


if __name__ == "__main__":
    main()

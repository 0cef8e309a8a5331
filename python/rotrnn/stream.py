"""Exported models: one sample at a time, or whole sequences. Needs NumPy only.

    model = rotrnn.Model("model.safetensors")       # made by: rotrnn export RUN --out model.safetensors
    stream = rotrnn.Stream(model)
    stream.push(samples)                            # one step or any number of them
    stream.answer()                                 # probabilities at this moment
    model.score([a, b, c])                          # whole sequences on all cores
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Sequence, Union

import numpy as np

from . import _core

#: What goes into a model: numbers, or text for models that were trained on it.
Steps = Union[np.ndarray, Sequence[float], str, bytes]


@dataclass(frozen=True)
class ModelInfo:
    """What a model takes and gives; docs/deploy.md has the words."""

    layer: str
    activation: str
    task: str
    version: str
    width: int
    states: int
    depth: int
    parameters: int
    bidirectional: bool
    pooling: str  #: "mean", "last", or "none": an output for every step
    tokens: bool  #: takes token numbers, not values
    inputs: int  #: channels, or size of the vocabulary
    text: bool  #: takes text as well
    rate: int  #: samples per second; 0: not known
    channels: list[str]
    max_length: int
    frontend: str  #: what makes tokens of samples; empty: each is one
    window: int  #: samples of the first token, and
    hop: int  #: samples from one to the next
    classifies: bool  #: outputs are classes
    outputs: int
    classes: list[str]
    values: list[str]
    horizon: int
    per_step: bool
    pairs: bool  #: an example is two sequences


def _values(info: ModelInfo, steps: Steps) -> np.ndarray:
    """Steps as float32 [steps, channels]."""
    if isinstance(steps, (str, bytes)):
        raise ValueError(f"text for a model that takes values of {info.inputs} channels")
    array = np.asarray(steps)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"values must be numbers, these are {array.dtype}")
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim == 1 and (info.inputs == 1 or array.shape[0] == info.inputs):
        array = array.reshape(-1, info.inputs)
    if array.ndim != 2 or array.shape[1] != info.inputs:
        raise ValueError(
            f"steps of shape {list(array.shape)} for a model of {info.inputs} channels; "
            f"give [steps, {info.inputs}]"
        )
    return np.ascontiguousarray(array, dtype=np.float32)


def _tokens(info: ModelInfo, steps: Steps) -> np.ndarray:
    """Token numbers as int32 [steps]."""
    array = np.asarray(steps)
    if array.size == 0:
        return np.empty(0, np.int32)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise ValueError(
            f"tokens must be whole numbers [steps], these are {array.dtype} {list(array.shape)}"
        )
    array = np.atleast_1d(array)
    if array.min() < 0 or array.max() >= info.inputs:
        raise ValueError(
            f"tokens go from {array.min()} to {array.max()}; the vocabulary has the numbers "
            f"0 to {info.inputs - 1}"
        )
    return np.ascontiguousarray(array, dtype=np.int32)


class Model:
    """A model as ``rotrnn export`` writes it. Immutable; threads may share it."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self._core = _core.Model(os.fspath(file))
        self.file = os.fspath(file)
        self.info = ModelInfo(**self._core.info())

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of the outputs."""
        return self.info.classes

    def tokens(self, text: str | bytes) -> np.ndarray:
        """The token numbers of a whole text, as training saw it."""
        return self._core.tokens(text if isinstance(text, bytes) else text.encode())

    def score(self, sequences: Sequence[Steps], threads: int = 0) -> np.ndarray:
        """Logits of whole sequences, on all cores: float32 [examples, outputs].

        A sequence is ``[steps, channels]`` in natural units (audio -1 to 1), token numbers, or
        text. For pairs, two sequences that follow each other are one example. A model without
        pooling gives the outputs of all steps, one sequence after the other. Also for models
        that cannot stream (bidirectional). ``threads``: 0 for as many as the process may use.
        """
        info = self.info
        if info.tokens:
            parts = [self.tokens(s) if isinstance(s, (str, bytes)) else _tokens(info, s) for s in sequences]
        else:
            parts = [_values(info, s) for s in sequences]
        offsets = np.cumsum([0] + [len(p) for p in parts], dtype=np.int64)
        empty = np.empty((0,) if info.tokens else (0, info.inputs), np.int32 if info.tokens else np.float32)
        joined = np.ascontiguousarray(np.concatenate([empty, *parts]))
        scorer = _core.Scorer(self._core, threads)
        logits = (scorer.score_tokens if info.tokens else scorer.score)(joined, offsets)
        return logits.reshape(-1, info.outputs)

    def answer(self, logits: np.ndarray) -> np.ndarray:
        """Logits to probabilities, or to values in the units of the data."""
        rows = np.array(logits, dtype=np.float32, order="C")
        if rows.ndim == 0 or rows.shape[-1] != self.info.outputs:
            raise ValueError(f"logits of shape {list(rows.shape)} for a model of {self.info.outputs} outputs")
        self._core.answer(rows)
        return rows

    def __repr__(self) -> str:
        i = self.info
        return f"Model({self.file!r}: {i.layer}, {i.depth} blocks, width {i.width}, {i.outputs} outputs)"


class Stream:
    """One sequence that arrives piece by piece: constant memory, the same work for every step.

    At every moment its answer equals that of :meth:`Model.score` for the steps so far. One thread at a
    time may use a stream; any number of streams may share a model. Wrong input is a ValueError
    and leaves the stream as it was. ``rows``: steps of a chunk that are worked on together.
    """

    def __init__(self, model: Model | str | os.PathLike[str], rows: int = 12) -> None:
        self.model = model if isinstance(model, Model) else Model(model)
        self._core = _core.Stream(self.model._core, rows)

    def push(self, steps: Steps, each: bool = False) -> int | np.ndarray:
        """Takes steps: ``[steps, channels]``, one channel also as ``[steps]``, tokens, or text.

        Returns the number of steps that the network made, or with ``each`` the logits after
        every one of them, ``[steps, outputs]``. Text may be cut anywhere between calls (as bytes).
        """
        info = self.model.info
        if info.tokens and isinstance(steps, (str, bytes)):
            return self._core.push_text(steps if isinstance(steps, bytes) else steps.encode(), each)
        if info.tokens:
            return self._core.push_tokens(_tokens(info, steps), each)
        return self._core.push(_values(info, steps), each)

    def end(self) -> None:
        """The sequence is complete: adds the end mark that texts were trained with, if any."""
        self._core.end()

    def reset(self) -> None:
        """Back to the beginning of a sequence."""
        self._core.reset()

    def logits(self) -> np.ndarray:
        """Logits at this moment, ``[outputs]``; zeros before the first step."""
        return self._core.logits()

    def answer(self) -> np.ndarray:
        """Probabilities, or values in the units of the data, at this moment."""
        return self._core.answer()

    def label(self) -> str:
        """The name of the class that is most probable at this moment."""
        if not self.model.info.classifies:
            raise ValueError("this model predicts values, not classes; use answer()")
        return self.model.classes[int(np.argmax(self.logits()))]

    @property
    def steps(self) -> int:
        """Steps since the beginning."""
        return self._core.steps

    @property
    def memory(self) -> int:
        """Bytes that this stream holds."""
        return self._core.memory

    def save(self) -> bytes:
        """The whole state; another stream of the same model goes on from it, to the bit."""
        return self._core.save()

    def restore(self, state: bytes) -> None:
        """Goes on from a saved state of a stream of the same model."""
        self._core.restore(bytes(state))

    @staticmethod
    def push_each(streams: Sequence["Stream"], values: np.ndarray) -> None:
        """One step for each of many streams of one model at once, values ``[streams, channels]``."""
        if not streams:
            return
        info = streams[0].model.info
        _core.Stream.push_each([s._core for s in streams], _values(info, np.asarray(values)))

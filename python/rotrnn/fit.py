"""Models of series in seconds, with scikit-learn's conventions. Needs NumPy only.

    model = rotrnn.RotationClassifier().fit(X, y)       # X: [n, time], [n, time, channels], or a list of arrays
    model.predict(X), model.predict_proba(X), model.score(X, y)

A bank of fixed random rotations, features that count, and a ridge regression in closed form (docs/fit.md). scikit-learn
is used for its base classes and checks where it is installed, and is not needed.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
    from sklearn.exceptions import NotFittedError
except ImportError:  # the same conventions without it

    class BaseEstimator:  # type: ignore[no-redef]
        @classmethod
        def _names(cls) -> list:
            code = cls.__init__.__code__
            return list(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])

        def get_params(self, deep: bool = True) -> dict:
            return {name: getattr(self, name) for name in self._names()}

        def set_params(self, **params: Any) -> "BaseEstimator":
            for name, value in params.items():
                if name not in self._names():
                    raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {self._names()}")
                setattr(self, name, value)
            return self

    class ClassifierMixin:  # type: ignore[no-redef]
        _estimator_type = "classifier"

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    class RegressorMixin:  # type: ignore[no-redef]
        _estimator_type = "regressor"

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            y = np.asarray(y, dtype=float)
            error = np.average((self.predict(X) - y) ** 2, axis=0, weights=sample_weight)
            spread = np.average((y - np.average(y, axis=0, weights=sample_weight)) ** 2, axis=0, weights=sample_weight)
            return float(np.mean(1 - error / spread))

    class TransformerMixin:  # type: ignore[no-redef]
        def fit_transform(self, X: Any, y: Any = None, **more: Any) -> np.ndarray:
            return self.fit(X, y, **more).transform(X)

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """The estimator was used before fit()."""


Series = Union[np.ndarray, Sequence[np.ndarray]]


def _as_array(X: Any) -> np.ndarray:
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    if array.dtype.kind not in "fiub":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must be numbers, these are {array.dtype}") from error
    return array


def _is_ragged(X: Any) -> bool:
    if isinstance(X, np.ndarray) or not isinstance(X, (list, tuple)):
        return False
    shapes = {np.shape(x) for x in X}
    return len(shapes) > 1 or any(len(shape) == 2 for shape in shapes)


def _pack(X: Series, layout: str) -> Tuple[np.ndarray, np.ndarray, int]:
    """Packed values [rows, channels] as float32, offsets [n + 1], and steps of a series (0: uneven)."""
    if layout not in ("channels_last", "channels_first"):
        raise ValueError(f'layout={layout!r}; choose "channels_last" or "channels_first"')
    if hasattr(X, "toarray"):
        raise TypeError("Sparse data was passed, but dense data is required. Use X.toarray() to convert it to a dense array.")
    if _is_ragged(X):
        parts = [_as_array(x) for x in X]
        parts = [p.reshape(-1, 1) if p.ndim == 1 else p.T if layout == "channels_first" else p for p in parts]
        if any(p.ndim != 2 or p.shape[1] != parts[0].shape[1] for p in parts):
            raise ValueError("a list of series must hold arrays [time] or [time, channels] of the same channels")
        steps = 0
    else:
        array = _as_array(X)
        if array.ndim not in (2, 3):
            raise ValueError(f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: X is [n, time], "
                             "[n, time, channels], or a list of arrays")
        if array.ndim == 3 and layout == "channels_first":
            array = array.transpose(0, 2, 1)
        if array.shape[0] == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        if array.shape[1] == 0:
            raise ValueError(f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
        parts = [row.reshape(array.shape[1], -1) for row in array]
        steps = array.shape[1]
    if not parts or any(len(p) == 0 for p in parts):
        raise ValueError("each series needs a step at least")
    values = np.concatenate(parts).astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError("Input X contains NaN or infinity; fill them in")
    offsets = np.cumsum([0] + [len(p) for p in parts], dtype=np.int64)
    return values, offsets, steps


class _Rotations(BaseEstimator):
    """What the three estimators share: packing and the scale of the channels."""

    def _prepare(self, X: Series) -> Tuple[np.ndarray, np.ndarray]:
        values, offsets, steps = _pack(X, self.layout)
        self._mean = values.mean(axis=0)
        spread = values.std(axis=0)
        self._deviation = np.where(spread > 0, spread, 1.0)
        self.n_channels_ = values.shape[1]
        if steps > 0:
            self.n_features_in_ = steps
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_
        return self._scaled(values), offsets

    def _scaled(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray((values - self._mean) / self._deviation, dtype=np.float32)

    def _read(self, X: Series) -> Tuple[np.ndarray, np.ndarray]:
        if not hasattr(self, "_mean"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")
        values, offsets, steps = _pack(X, self.layout)
        if values.shape[1] != self.n_channels_:
            raise ValueError(f"X has {values.shape[1]} channels, but {type(self).__name__} was fitted to {self.n_channels_}")
        fixed = getattr(self, "n_features_in_", 0)
        if self.n_channels_ == 1 and fixed and steps and steps != fixed and not self.any_length:
            raise ValueError(f"X has {steps} features, but {type(self).__name__} is expecting {fixed} features as input")
        return self._scaled(values), offsets

    def _seed(self) -> int:
        state = self.random_state
        if state is None:
            return 0
        if isinstance(state, (int, np.integer)):
            return int(state)
        return int(state.randint(np.iinfo(np.int32).max))

    def _threads(self) -> int:
        return 0 if self.n_jobs in (None, -1) else max(1, int(self.n_jobs))


def _check_length(name: str, values: Any, count: int) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim == 0 or len(array) != count:
        raise ValueError(f"{name} has {array.size if array.ndim else 'no'} values for {count} series: "
                         "Found input variables with inconsistent numbers of samples")
    return array


def _groups(groups: Any, count: int) -> Optional[np.ndarray]:
    if groups is None:
        return None
    return np.unique(_check_length("groups", groups, count), return_inverse=True)[1].astype(np.int64).ravel()


def _weights(weights: Any, count: int) -> Optional[np.ndarray]:
    if weights is None:
        return None
    array = np.asarray(weights, dtype=np.float64)
    if array.ndim == 0:
        return np.full(count, float(array))
    if array.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    return np.ascontiguousarray(_check_length("sample_weight", array, count))


class RotationClassifier(ClassifierMixin, _Rotations):
    """Classes of series. ``groups`` of fit(): examples of a group (a patient, a machine) are left out together
    wherever something is chosen. ``report_`` has the left-out accuracy and its standard error.
    ``any_length``: series of another length than those of fit() are welcome in a plain array too."""

    def __init__(self, states: int = 1024, balanced: bool = True, layout: str = "channels_last",
                 any_length: bool = False, random_state: Any = None, n_jobs: Optional[int] = None) -> None:
        self.states = states
        self.balanced = balanced
        self.layout = layout
        self.any_length = any_length
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Series, y: Any, sample_weight: Any = None, groups: Any = None) -> "RotationClassifier":
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        values, offsets = self._prepare(X)
        count = len(offsets) - 1
        y = _check_length("y", y, count)
        if y.ndim == 2 and y.shape[1] == 1:
            import warnings

            category = UserWarning
            try:
                from sklearn.exceptions import DataConversionWarning as category
            except ImportError:
                pass
            warnings.warn("A column-vector y was passed when a 1d array was expected.", category, stacklevel=2)
            y = y.ravel()
        if y.ndim != 1:
            raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
        if y.dtype.kind == "f":
            if not np.isfinite(y).all():
                raise ValueError("Input y contains NaN or infinity")
            if (y != np.round(y)).any():
                raise ValueError("Unknown label type: continuous. Maybe you are trying to fit a classifier, which expects "
                                 "discrete classes on a regression target with continuous values.")
        self.classes_, classes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"all examples are of 1 class, {self.classes_[0]!r}; give two classes at least")
        self._fitted = _core.fit(values, offsets, self.n_channels_, len(self.classes_), classes.astype(np.int64), None,
                                 _groups(groups, count), _weights(sample_weight, count), int(self.states), self._seed(),
                                 bool(self.balanced), self._threads())
        self.report_ = self._fitted.report()
        return self

    def decision_function(self, X: Series) -> np.ndarray:
        values, offsets = self._read(X)
        scores = self._fitted.predict(values, offsets, self._threads()).astype(np.float64)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Series) -> np.ndarray:
        values, offsets = self._read(X)
        scores = self._fitted.predict(values, offsets, self._threads()).astype(np.float64)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    def predict(self, X: Series) -> np.ndarray:
        values, offsets = self._read(X)
        return self.classes_[self._fitted.predict(values, offsets, self._threads()).argmax(axis=1)]


class RotationRegressor(RegressorMixin, _Rotations):
    """Values of series, one or several per series; otherwise like RotationClassifier."""

    def __init__(self, states: int = 1024, layout: str = "channels_last", any_length: bool = False,
                 random_state: Any = None, n_jobs: Optional[int] = None) -> None:
        self.states = states
        self.layout = layout
        self.any_length = any_length
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Series, y: Any, sample_weight: Any = None, groups: Any = None) -> "RotationRegressor":
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        values, offsets = self._prepare(X)
        count = len(offsets) - 1
        y = np.asarray(_check_length("y", y, count), dtype=np.float64)
        if not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity")
        self._columns = y.shape[1:]
        y = y.reshape(count, -1)
        self._target_mean = y.mean(axis=0)
        spread = y.std(axis=0)
        self._target_deviation = np.where(spread > 0, spread, 1.0)
        scaled = np.ascontiguousarray((y - self._target_mean) / self._target_deviation)
        self._fitted = _core.fit(values, offsets, self.n_channels_, y.shape[1], None, scaled, _groups(groups, count),
                                 _weights(sample_weight, count), int(self.states), self._seed(), True, self._threads())
        self.report_ = self._fitted.report()
        return self

    def predict(self, X: Series) -> np.ndarray:
        values, offsets = self._read(X)
        scores = self._fitted.predict(values, offsets, self._threads()).astype(np.float64)
        return (scores * self._target_deviation + self._target_mean).reshape((len(scores),) + self._columns)


class RotationTransform(TransformerMixin, _Rotations):
    """The features alone: for each rotation, the share of time above five levels, and the maximum."""

    def __init__(self, states: int = 1024, layout: str = "channels_last", any_length: bool = False,
                 random_state: Any = None, n_jobs: Optional[int] = None) -> None:
        self.states = states
        self.layout = layout
        self.any_length = any_length
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Series, y: Any = None) -> "RotationTransform":
        values, offsets = self._prepare(X)
        self._bank = _core.draw_bank(values, offsets, self.n_channels_, int(self.states), self._seed(), self._threads())
        return self

    def transform(self, X: Series) -> np.ndarray:
        values, offsets = self._read(X)
        return self._bank.transform(values, offsets, self._threads())

"""Inputs over time: constant, recorded, sampled at a rate of their own."""

import inspect
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kinetree.errors import ShapeError, UnknownNameError

__all__ = ["Constant", "Recorded", "Sampled", "at_instants", "call_with_model"]

_CLOSE = 1e-9  # of a sampling period: what counts as the same instant


def call_with_model(function, model):
    """A function ``(t, q, qd)`` from one that may take the model first."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return function
    for before in ((), (model,)):
        try:
            signature.bind(*before, 0.0, None, None)
        except TypeError:
            continue
        return partial(function, *before) if before else function
    name = getattr(function, "__name__", type(function).__name__)
    raise TypeError(
        f"a controller is called with (t, q, qd), or (model, t, q, qd); {name!r} takes {signature}"
    )


@dataclass(frozen=True)
class Constant:
    """Numbers that never change, whatever the time and state."""

    values: Any

    def __call__(self, t, q, qd):
        """The numbers."""
        return self.values


class Sampled:
    """A controller that is asked at a rate of its own and holds what it said in between.

    Simulation steps end at its instants, so that the rate need not fit the step.

    Args:
        controller: function ``(t, q, qd)``.
        rate: how often it is asked [Hz].
        start: when for the first time [s].
    """

    def __init__(self, controller, rate, *, start=0.0):
        if not callable(controller):
            raise TypeError(
                f"Sampled takes a controller, a function (t, q, qd); got "
                f"{type(controller).__name__}"
            )
        if not 0 < rate < np.inf:
            raise ShapeError(f"the rate of a Sampled controller must be positive [Hz], got {rate}")
        self.controller, self.rate, self.start = controller, float(rate), float(start)
        self._count, self._held = None, None

    def __call__(self, t, q, qd):
        """What the controller said last."""
        count = np.floor((t - self.start) * self.rate + _CLOSE)
        if self._held is None or count != self._count or np.shape(self._held)[:-1] != q.shape[:-1]:
            self._count = count
            tau = np.asarray(self.controller(t, q, qd), dtype=float)
            self._held = np.broadcast_to(tau, (*q.shape[:-1], *tau.shape[-1:])).copy()
        return self._held

    def reset(self):
        """Forget what was said, before a new simulation."""
        self._held = None

    def next_instant(self, t):
        """When it will be asked next [s]."""
        count = np.floor((t - self.start) * self.rate + _CLOSE)
        return self.start + (count + 1) / self.rate


class Recorded:
    """Inputs that were recorded, or planned: rows of numbers at times.

    Args:
        t: increasing times [s], (T,).
        values: at these times, (T, ..., n): joint forces, or controls.
        kind: in between: ``"hold"`` the last one, or ``"linear"``.

    Before the first time and after the last one the value is that of the first and the last.
    """

    def __init__(self, t, values, *, kind="hold"):
        self.t, self.values = np.array(t, dtype=float), np.array(values, dtype=float)
        if self.t.ndim != 1 or len(self.t) == 0 or len(self.values) != len(self.t):
            raise ShapeError(
                f"a Recorded input needs times (T,) and values (T, ..., n), got {self.t.shape} "
                f"and {self.values.shape}"
            )
        if np.any(np.diff(self.t) <= 0):
            k = int(np.argmax(np.diff(self.t) <= 0))
            raise ShapeError(
                f"times of a Recorded input must increase, got {self.t[k]:g} and then "
                f"{self.t[k + 1]:g}"
            )
        if not (np.all(np.isfinite(self.t)) and np.all(np.isfinite(self.values))):
            raise ShapeError("times and values of a Recorded input must be finite")
        if kind not in ("hold", "linear"):
            raise UnknownNameError(f"kind must be 'hold' or 'linear', got {kind!r}")
        self.kind = kind

    def __call__(self, t, q, qd):
        """The value at time ``t``."""
        k = int(np.searchsorted(self.t, t + _CLOSE * self._spacing, side="right")) - 1
        if k < 0 or k >= len(self.t) - 1 or self.kind == "hold":
            return self.values[max(k, 0)]
        part = np.clip((t - self.t[k]) / (self.t[k + 1] - self.t[k]), 0, 1)
        return (1 - part) * self.values[k] + part * self.values[k + 1]

    def next_instant(self, t):
        """When a held value changes next [s]."""
        if self.kind != "hold":
            return np.inf
        k = int(np.searchsorted(self.t, t + _CLOSE * self._spacing, side="right"))
        return self.t[k] if k < len(self.t) else np.inf

    @property
    def _spacing(self):
        return (self.t[-1] - self.t[0]) / max(len(self.t) - 1, 1)


def at_instants(source) -> tuple:
    """Hooks that end steps where an input changes: none, if it does not know when it does."""
    ask = getattr(source, "next_instant", None)
    if ask is None:
        return ()

    def hook(step):
        instant, h = ask(step.t0), step.t1 - step.t0
        return step.cut(instant) if instant < step.t1 - _CLOSE * h else step

    return (hook,)

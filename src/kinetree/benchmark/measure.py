"""Times of two sides taken in turn, ratios with their spread, and whether the answers agree."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["PEER_SAMPLES", "Case", "Result", "difference", "is_too_large", "measure"]

PEER_SAMPLES = 256  # of a function that the peer has no batch form of


@dataclass(frozen=True)
class Result:
    """One function at one batch size.

    Attributes:
        function: one of ``FUNCTIONS``.
        batch: samples per call; 1 is a single call from Python.
        ours, peer: median seconds per sample.
        ratio: median of ``peer / ours``.
        spread: range of the ratios over their median.
        error: largest difference of the answers over the largest number, on a few samples.
        library: the peer.
    """

    function: str
    batch: int
    ours: float
    peer: float
    ratio: float
    spread: float
    error: float
    library: str = "Pinocchio"


@dataclass(frozen=True)
class Case:
    """What to run on either side, the samples that the peer runs, and the difference."""

    ours: Callable
    peer: Callable
    peer_samples: int
    answers: Callable


def is_too_large(model, function, n):
    """Whether the results would fill more than half a gigabyte."""
    columns = {"RNEA": 1, "ABA": 1, "regressor": 10 * model.body_count}.get(function, model.nv)
    return 8 * n * model.nv * columns > 5e8


def measure(function, n, case, repeats):
    """The ``Result`` of one case."""
    error = case.answers()
    calls = [_calls(case.ours), _calls(case.peer)]
    times = np.array(
        [
            [_seconds(case.ours, calls[0]) / n, _seconds(case.peer, calls[1]) / case.peer_samples]
            for _ in range(repeats)
        ]
    )
    ratios = times[:, 1] / times[:, 0]
    ours, peer = np.median(times, axis=0)
    middle = float(np.median(ratios))
    return Result(
        function, n, float(ours), float(peer), middle, float(np.ptp(ratios) / middle), error
    )


def _calls(function, least=0.02):
    """How often to call for a measurement of at least so many seconds."""
    function()
    return max(1, int(least / max(_seconds(function, 1), 1e-9)))


def _seconds(function, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def difference(ours, one, answer, n, samples=3):
    """Largest difference relative to the largest number."""
    ours = ours if isinstance(ours, tuple) else (ours,)
    worst = 0.0
    for k in range(min(n, samples)):
        peer = answer(k, one(k))
        peer = peer if isinstance(peer, list) else [peer]
        for a, b in zip(ours, peer, strict=True):
            a = a if n == 1 else a[k]
            size = max(float(np.max(np.abs(b))), np.finfo(float).tiny)
            worst = max(worst, float(np.max(np.abs(a - b))) / size)
    return worst

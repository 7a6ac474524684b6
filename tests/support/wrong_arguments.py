"""Every public function and constructor with wrong arguments, one at a time.

The public surface is what the reference documents. Of each function one call is right, as far as
the names of its parameters tell; then each argument in turn is replaced by each of ``WRONG``.
"""

import contextlib
import inspect
import io
import os
import signal
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.errors import KinetreeError

sys.path.append(str(Path(__file__).parents[2] / "docs"))
LONGEST = 20
"""Seconds that a call may take; longer ones count as hanging."""
WRONG = {
    "None": None, "text": "x", "nan": float("nan"), "nans": np.full(2, np.nan),
    "shape": np.zeros((3, 5)), "empty": (), "object": object(), "number": -7, "dict": {"x": 1},
    "huge": 1e300,
}  # fmt: skip
SKIPPED = {
    "kinetree.view", "kinetree.viewer.view", "kinetree.set_threads", "kinetree.viewer.Viewer",
}  # fmt: skip
"""Those that open a server or change the process; tests of their own look at them."""


class Hangs(BaseException):
    """A call that takes too long."""


@cache
def public():
    """Public functions and classes by name."""
    from builder.reference import find, names_by_page

    names = sorted({name for page in names_by_page().values() for name in page})
    return {name: find(name) for name in names if f"kinetree.{name}" not in SKIPPED}


@cache
def right():
    """Right arguments, by the names that parameters usually have."""
    model = kt.samples.double_pendulum()
    two = np.array([0.1, 0.2])
    return {
        "model": model, "what": model, "q": two, "qd": two, "qdd": two, "tau": two, "q0": two,
        "q1": two, "qd0": two, "dv": two, "v": two, "name": "lower", "frame": "world",
        "path": "x.json",
        "steps": 3, "duration": 0.01, "dt": 0.001, "axis": "z", "mass": 1.0, "radius": 0.1,
        "t": 0.0, "point": np.zeros(3), "force": np.zeros(3), "body": "lower",
        "joint": kt.Revolute("z"),
        "function": kt.mass_matrix, "f": kt.mass_matrix, "fn": kt.mass_matrix, "rng": None,
        "placement": kt.spatial.Plucker.identity(), "inertia": kt.shapes.sphere(0.1, mass=1.0),
        "functions": ["mass_matrix"], "wrt": ("q",), "size": (0.1, 0.1, 0.1), "count": 2,
        "targets": [], "rows": ("x",), "reference": two, "kp": 10.0, "loop": 0, "loops": (),
        "R": np.eye(3), "X": kt.spatial.Plucker.identity(), "pose": np.eye(4), "T": np.eye(4),
        "f_ext": np.zeros((2, 6)), "length": 0.5, "x": 0.5, "y": 0.5, "z": 0.5,
    }  # fmt: skip


def calls(name, function):
    """Labels and arguments of all wrong calls of a function or class."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    own = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY,
                                               p.POSITIONAL_ONLY)]  # fmt: skip
    base = {p.name: right().get(p.name, 1.0) for p in own if p.default is p.empty}
    for p in own:
        for label, wrong in WRONG.items():
            yield f"{name}({p.name}={label})", own, {**base, p.name: wrong}


def outcome(function, own, arguments):
    """``"fine"``, or the exception that a call raises; ``Hangs`` for those that take too long."""
    given = [arguments[p.name] for p in own if p.kind is p.POSITIONAL_ONLY and p.name in arguments]
    named = {p.name: arguments[p.name] for p in own
             if p.kind is not p.POSITIONAL_ONLY and p.name in arguments}  # fmt: skip

    def alarm(*_):
        raise Hangs

    before = signal.signal(signal.SIGALRM, alarm)
    signal.alarm(LONGEST)
    try:
        with (
            warnings.catch_warnings(), np.errstate(all="ignore"),
            contextlib.redirect_stdout(io.StringIO()),
        ):  # fmt: skip
            warnings.simplefilter("ignore")
            function(*given, **named)
    except (Exception, Hangs, SystemExit) as error:
        return error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return "fine"


def walk(names=None, sample=None, rng=None):
    """Labels and outcomes of wrong calls, each in a process that may be chosen by ``names``."""
    found = [
        (label, function, own, arguments)
        for name, function in public().items()
        if names is None or name in names
        for label, own, arguments in calls(name, function)
    ]
    if sample is not None:
        found = [found[i] for i in sorted(rng.sample(range(len(found)), min(sample, len(found))))]
    for label, function, own, arguments in found:
        yield label, outcome(function, own, arguments)


def is_foreign(result) -> bool:
    """Whether an outcome is an exception of somebody else, or none within time."""
    return result != "fine" and not isinstance(result, KinetreeError)


def main():
    """Print counts of all calls, and every foreign exception."""
    os.chdir(__import__("tempfile").mkdtemp())
    total, bad = 0, []
    for label, result in walk(names=set(sys.argv[1:]) or None):
        total += 1
        if is_foreign(result):
            bad.append(label)
            print(f"{label}: {type(result).__name__}: {str(result)[:110]!r}", flush=True)
    print(f"{len(bad)} of {total} wrong arguments end in foreign exceptions")


if __name__ == "__main__":
    main()

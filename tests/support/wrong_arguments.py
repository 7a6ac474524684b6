"""Every public function, constructor and method with wrong arguments, one at a time.

The public surface is what the reference documents. Of each function one call is right, as far as
the names of its parameters tell; then each argument in turn is replaced by each of ``WRONG``.
Methods are called on the objects of ``public_objects``.
"""

import contextlib
import inspect
import io
import os
import signal
import sys
import warnings
from functools import cache, partial
from itertools import chain
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.arguments import public_methods
from kinetree.errors import KinetreeError
from support.public_objects import ABSTRACT, example

sys.path.append(str(Path(__file__).parents[2] / "docs"))
LONGEST = 20
"""Seconds that a call may take; longer ones count as hanging."""
WRONG = {
    "None": None, "text": "x", "nan": float("nan"), "nans": np.full(2, np.nan),
    "shape": np.zeros((3, 5)), "empty": (), "object": object(), "number": -7, "dict": {"x": 1},
    "huge": 1e300,
}  # fmt: skip
HARMFUL = {"Trajectory.view", "worlds.Worlds.view", "World.view", "World.film"}
"""Methods that open a browser or take minutes."""
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


@cache
def methods():
    """Functions that return a public method of a new object, by the method's name."""
    found = {}
    for name, kind in public().items():
        if not inspect.isclass(kind) or issubclass(kind, BaseException) or name in ABSTRACT:
            continue
        for method in public_methods(kind):
            if method != "__init__" and f"{name}.{method}" not in HARMFUL:
                found[f"{name}.{method}"] = partial(_bound, name, kind, method)
    return found


def _bound(name, kind, method):
    """A method of an example, or of what right arguments make."""
    made = example(name, kind)
    if made is None:
        own = _parameters(kind)
        made = kind(**{p.name: right().get(p.name, 1.0) for p in own if p.default is p.empty})
    return getattr(made, method)


def _parameters(function):
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in parameters if p.kind in (*by_name, p.POSITIONAL_ONLY)]


def calls(name, function):
    """Labels and arguments of all wrong calls of a function or class."""
    own = _parameters(function)
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


def walk_methods(names=None, sample=None, rng=None):
    """Labels and outcomes of wrong calls of methods, each method on an object of its own."""
    chosen = [name for name in methods() if names is None or name in names]
    for name in chosen if sample is None else rng.sample(chosen, sample):
        bound = methods()[name]()
        for label, own, arguments in calls(name, bound):
            yield label, outcome(bound, own, arguments)


def is_foreign(result) -> bool:
    """Whether an outcome is an exception of somebody else, or none within time."""
    return result != "fine" and not isinstance(result, KinetreeError)


def main():
    """Print counts of all calls, and every foreign exception."""
    os.chdir(__import__("tempfile").mkdtemp())
    total, bad = 0, []
    names = set(sys.argv[1:]) or None
    for label, result in chain(walk(names), walk_methods(names)):
        total += 1
        if is_foreign(result):
            bad.append(label)
            print(f"{label}: {type(result).__name__}: {str(result)[:110]!r}", flush=True)
    print(f"{len(bad)} of {total} wrong arguments end in foreign exceptions")


if __name__ == "__main__":
    main()

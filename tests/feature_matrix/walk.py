"""The walk: what is public, what is required of it, and what came of it."""

import inspect
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
from feature_matrix.features import Case

import kinetree as kt
from kinetree import errors
from kinetree.quantities import FUNCTIONS

NAMESPACES = (
    "", "contact", "control", "edit", "equivalence", "floating", "gears", "identification", "ik",
    "loops", "model", "symbolic",
)  # fmt: skip
"""Where functions of models are: those of ``kinetree`` itself, and of these modules."""

CHECKS = {}
"""From the name of a function, ``"loops.solve"``, to what is required of it."""

NOT_OF_A_MODEL = {}
"""From the name of a function, or of a class, to why no feature of a model concerns it."""


def public_functions():
    """All public functions by name, each once."""
    found, seen = {}, set()
    for space in NAMESPACES:
        module = getattr(kt, space) if space else kt
        for name in module.__all__:
            f = getattr(module, name)
            full = f"{space}.{name}" if space else name
            if (inspect.isfunction(f) or full in CHECKS) and id(f) not in seen:
                seen.add(id(f))
                found[full] = f
    return found


@cache
def function_of(name):
    """A public function by its name."""
    return public_functions()[name]


def check(*names):
    """Register what is required of a function: ``require(f, case)``, which calls ``f``."""

    def register(require):
        for name in names:
            CHECKS[name] = require
        return require

    return register


def not_of_a_model(why, *names):
    """Say why functions are no part of the matrix."""
    NOT_OF_A_MODEL.update(dict.fromkeys(names, why))


class Checked:
    """A public function, which is checked for a case.

    Quantities that are compiled take complex numbers too, and then run as they are written: what
    the texts give is what is compared here, for compiling every cell would take minutes. ``same``
    compares a result with the expected one.
    """

    def __init__(self, name, function, case: Case, compiled=False):
        self.name, self.function, self.case = name, function, case
        public = FUNCTIONS.get(name) is function
        self.is_text = public and not compiled and not hasattr(function, "is_on_host")
        self.compared = 0
        self.makers = ()  # what makes its argument of a model, and may refuse

    def __call__(self, *args, **options):
        return self.by(self.function, *args, **options)

    def by(self, function, *args, **options):
        """Call what came of the function."""
        if self.is_text:
            args = [self._as_text(a) for a in args]
            options = {n: self._as_text(a) for n, a in options.items()}
        return numbers(function(*args, **options), self.case)

    def _as_text(self, x):
        if not isinstance(x, np.ndarray) or x.dtype.kind not in "fi":
            return x
        return x.astype(object if self.case.symbols else complex)

    def same(self, actual, expected, *, tolerance=None, scale=None):
        """Require numbers to be alike: largest error by the largest number."""
        self.compared += 1
        actual, expected = np.asarray(actual), np.asarray(expected)
        assert actual.shape == expected.shape, f"shape {actual.shape}, not {expected.shape}"
        if not expected.size:
            return
        assert np.all(np.isfinite(actual)), f"{self.name} of {self.case.feature}: {actual}"
        size = np.max(np.abs(expected)) if scale is None else scale
        error = np.max(np.abs(actual - expected))
        bound = (self.case.tolerance if tolerance is None else tolerance) * size
        assert error <= bound, (
            f"{self.name} of {self.case.feature}: off by {error:.3g}, allowed {bound:.3g}\n"
            f"{actual}\n{expected}"
        )

    def holds(self, condition, message=""):
        """Require something that is not a number."""
        self.compared += 1
        assert condition, f"{self.name} of {self.case.feature}: {message}"


def numbers(x, case):
    """A result with its arrays of complex numbers or symbols as floats."""
    if isinstance(x, np.ndarray) and x.dtype.kind == "c":
        assert np.all(x.imag == 0), "a real argument gave a complex result"
        return x.real
    if isinstance(x, np.ndarray) and x.dtype == object:
        return np.array([case.value(e) for e in x.ravel()], float).reshape(x.shape)
    if isinstance(x, complex):
        return numbers(np.asarray(x), case)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(numbers(e, case) for e in x))
    if isinstance(x, (tuple, list)):
        return type(x)(numbers(e, case) for e in x)
    if hasattr(x, "free_symbols"):
        return case.value(x)
    return x


@dataclass(frozen=True)
class Outcome:
    """What came of a cell: ``error`` is empty where the answer is right."""

    error: str = ""
    message: str = ""

    @property
    def mark(self):
        return self.error or "right"


def outcome(name, function, case, compiled=False) -> Outcome:
    """Call a function for a case; AssertionError unless it is right or refuses by name."""
    checked = Checked(name, function, case, compiled)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            CHECKS[name](checked, case)
        except errors.KinetreeError as error:
            require_named(name, case, error, checked.makers)
            return Outcome(type(error).__name__, str(error))
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(
                f"{name} of {case.feature}: {type(error).__name__} of another library: {error}"
            ) from error
    assert checked.compared, f"{name} of {case.feature}: nothing was compared"
    return Outcome()


LACKING = (
    "has no loops", "has no rotors", "has no floating base", "only a mechanism on a Free joint",
    "an unbranched chain", "one freedom per joint", "the only body on the base",
)  # fmt: skip
"""What a function may miss in any model."""


def require_named(name, case, error, makers=()):
    """An error names the function that was called, and the feature that it cannot support."""
    text, short = str(error), name.rpartition(".")[2]
    called = any(n in text for n in (short, *makers))
    assert called, f"{name} of {case.feature}: the error does not name it: {text}"
    assert any(w in text for w in (*case.words, *LACKING)), (
        f"{name} of {case.feature}: the error names none of {case.words}: {text}"
    )

"""Errors and warnings of kinetree.

Every error is also the built-in exception a Python user would expect, so both
``except kinetree.ShapeError`` and ``except ValueError`` work. Messages name the
thing, say what was expected and what came, and what to do about it.
"""

import importlib
import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache, wraps
from pickle import PicklingError
from typing import Any, TypeVar

from kinetree.spelling import did_you_mean, explain_call

__all__ = [
    "ArgumentError", "ArrayKindError", "AssemblyError", "BackendError", "CacheWarning",
    "ContactError",
    "DeviceError", "DeviceMemoryError", "EquilibriumError", "ExcitationError", "ExcitationWarning",
    "IdentifiabilityError", "ImpactError", "IndeterminateWarning", "InfeasibleContactError",
    "InfeasibleControlError", "InteropError", "JointError", "KinetreeError", "LoadError",
    "LoopError", "MisalignmentWarning", "MissingPackageError", "ModelError", "ModelWarning",
    "PainleveError", "PickleError",
    "ShapeError", "SimulationError", "SimulationWarning", "SingularError", "SingularityWarning",
    "SpatialTypeError", "SweepError", "SweepWarning", "TraceError", "UnknownNameError",
    "UnreachableError", "ViewError", "WriteError", "calling", "joined_class", "names_itself",
    "refuse_formulas", "warn",
]  # fmt: skip


class KinetreeError(Exception):
    """Base class of every error raised by kinetree."""

    def put_name(self, function: str) -> None:
        """Put the called function's name at the start of the error message, once.

        Algorithms cannot tell which public function was called.
        """
        text = str(self.args[0]) if self.args else ""
        if function not in text:
            self.args = (f"{function}: {text}", *self.args[1:])


@contextmanager
def calling(function):
    """Context in which errors name the called public function."""
    try:
        yield
    except KinetreeError as error:
        error.put_name(function)
        raise


def refuse_formulas(function, args, cause=None):
    """Raise TraceError if a model among the arguments has formulas instead of numbers."""
    for x in args:
        if hasattr(x, "scalar_type") and x.scalar_type().kind == "O":
            raise TraceError(
                f"{function} compares numbers in Python; model {x.name!r} has symbols or traced "
                f"parameters in place of some: put numbers in first, as by model.replace(...), "
                f"or call it outside the kernel"
            ) from cause


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line of the user's program."""
    frame, count = sys._getframe(1), 2
    while frame.f_back is not None and _is_ours(frame):
        frame, count = frame.f_back, count + 1
    warnings.warn(message, category, stacklevel=count)


def _is_ours(frame):
    """Whether a stack frame belongs to kinetree or its function wrappers."""
    module = str(frame.f_globals.get("__name__"))
    return (
        module.partition(".")[0] in ("kinetree", "functools", "contextlib")
        or frame.f_code.co_filename.startswith("<kinetree")  # written out for a signature
    )


F = TypeVar("F", bound=Callable[..., Any])


def names_itself(function: F) -> F:
    """Decorator: errors that leave a public function name it."""

    @wraps(function)
    def wrapped(*args, **options):
        try:
            return function(*args, **options)
        except KinetreeError as error:
            error.put_name(function.__name__)
            raise
        except (TypeError, AttributeError) as error:
            refuse_formulas(function.__name__, args, error)
            if isinstance(error, TypeError):
                explain_call(function, error)
            raise

    return wrapped  # pyright: ignore[reportReturnType]


class ModelError(KinetreeError, ValueError):
    """A mechanism that cannot exist: cyclic, disconnected, impossible inertia, ..."""


class LoopError(ModelError):
    """A function that does not support kinematic loops, or a loop that is open."""


class AssemblyError(KinetreeError, ValueError):
    """Loops or couplings that could not be closed.

    Attributes:
        part: the one that is farthest from closed: ``"loop 'pin'"``, ``"coupling 'gear'"``.
        gap: how far it stays open [m or rad].
        reason: ``"held joints"``, ``"limits"``, ``"local minimum"`` or ``"out of reach"``.
        q: the configuration that comes closest.
    """

    def __init__(self, message, part="", gap=0.0, reason="", q=None):
        super().__init__(message)
        self.part, self.gap, self.reason, self.q = part, gap, reason, q


class LoadError(KinetreeError, ValueError):
    """A file that cannot be read as a mechanism; the message begins with file and line.

    Attributes:
        reason: what is wrong, without the place, where the error is about an element of a file.
    """

    reason = ""


class JointError(KinetreeError, ValueError):
    """A joint with impossible parameters, or one that breaks the joint contract."""


class ShapeError(KinetreeError, ValueError):
    """An array whose shape or content does not fit the model."""


class ArgumentError(KinetreeError):
    """An argument that a function cannot work with.

    It is also the exception that Python users expect, such as ``TypeError`` or ``ValueError``.
    """


class ArrayKindError(KinetreeError, TypeError):
    """Arrays of different libraries in one call, or one that a function cannot take."""


class DeviceError(KinetreeError, ValueError):
    """Arrays on different devices, or on one where kinetree does not run."""


class DeviceMemoryError(KinetreeError, MemoryError):
    """A device without room for the results."""


class SingularError(KinetreeError, ArithmeticError):
    """A problem without a unique solution: massless joints, dependent constraints, ..."""


class SingularityWarning(UserWarning):
    """A motion close to, or through, a configuration in which constraints become dependent."""


class MisalignmentWarning(UserWarning):
    """Constraints of loops that are redundant up to a misalignment, and are dropped."""


class IndeterminateWarning(UserWarning):
    """Forces that the equations of motion leave open, as redundant constraints do."""


class UnreachableError(KinetreeError, ValueError):
    """A target that inverse kinematics did not reach."""


class EquilibriumError(SingularError):
    """A mechanism that the driven joints cannot hold at rest, or not where it was said."""


class SpatialTypeError(KinetreeError, TypeError):
    """Motion and force vectors mixed up, such as adding one to the other."""


class UnknownNameError(KinetreeError, KeyError):
    """A body, joint or frame that the model does not have."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def require_known(name, known, problem: str, otherwise: str | None = None) -> None:
    """Raise UnknownNameError for a name that is not ``known``, with a suggestion.

    The hint is a name that is spelled alike, or ``otherwise``, or else what is known.
    """
    if name not in known:
        raise UnknownNameError(f"{problem}; {did_you_mean(name, known, otherwise)}")


class MissingPackageError(KinetreeError, ImportError):
    """A package that is needed for this call, and not installed."""


class PickleError(KinetreeError, PicklingError):
    """Something that cannot be sent to another process."""


class InteropError(KinetreeError, ValueError):
    """Something another library can express and kinetree cannot, or the reverse."""


class ContactError(KinetreeError, ArithmeticError):
    """A contact problem without a solution, or a state without contact forces."""


class ImpactError(ContactError):
    """An impact that its law has no answer to, or one that would create energy."""


class InfeasibleContactError(ContactError):
    """No contact forces keep all contacts from closing.

    Attributes:
        contacts: names of those that work against each other.
        certificate: the proof, a ``Certificate``, or None.
        residuals: of the best forces that were found.
    """

    def __init__(self, message, contacts=(), certificate=None, residuals=None):
        super().__init__(message)
        self.contacts, self.certificate, self.residuals = contacts, certificate, residuals


class InfeasibleControlError(KinetreeError, ArithmeticError):
    """No accelerations and contact forces meet all constraints of a controller.

    Attributes:
        constraints: what the closest ones violate, in words, with the largest violation first.
    """

    def __init__(self, message, constraints=()):
        super().__init__(message)
        self.constraints = tuple(constraints)


class PainleveError(ContactError):
    """Sliding friction for which rigid bodies have no motion, or several: Painlevé's paradox.

    Attributes:
        contact: name of the contact.
        kind: ``"inconsistent"``, no motion, or ``"indeterminate"``, several.
        resistance: separation acceleration per normal force, with its friction [1/kg].
        acceleration: separation acceleration without contact force [m/s²].
        friction: coefficient of the contact.
        critical_friction: coefficient at which the resistance vanishes.
        solutions: normal forces of the solutions that were found, (k, n).
    """

    def __init__(
        self,
        message,
        contact="",
        kind="",
        resistance=0.0,
        acceleration=0.0,
        friction=0.0,
        critical_friction=0.0,
        solutions=None,
    ):
        super().__init__(message)
        self.contact, self.kind, self.resistance = contact, kind, resistance
        self.acceleration, self.friction = acceleration, friction
        self.critical_friction, self.solutions = critical_friction, solutions


class SimulationError(KinetreeError, ArithmeticError):
    """A simulation that cannot continue: it diverged, or its steps became too small.

    Whatever ends a simulation, errors of controllers and interruptions included, has the motion up
    to then as its attribute ``trajectory``, if a step was stored.
    """


class SimulationWarning(UserWarning):
    """A check indicates that the result of a simulation should not be trusted."""


class SweepError(KinetreeError, ValueError):
    """A sweep that cannot be planned, resumed or finished; runs that fail are recorded instead."""


class SweepWarning(UserWarning):
    """Runs of a sweep that failed, or files of it that had to be made again."""


class IdentifiabilityError(KinetreeError, LookupError):
    """A parameter that no measurement of joint forces can tell by itself."""


class ExcitationError(SingularError):
    """A motion that does not show all parameters that could be identified."""


class ExcitationWarning(UserWarning):
    """A motion that shows some parameters so faintly that noise decides about them."""


class ModelWarning(UserWarning):
    """Something in a model or file that kinetree ignores, or that has no effect."""


class CacheWarning(UserWarning):
    """Compiled code could not be kept on disk; every new process will compile again."""


class TraceError(KinetreeError, TypeError):
    """Something in a function that cannot be traced, such as an ``if`` on a traced value."""


class BackendError(KinetreeError, AssertionError):
    """A back end whose code does not compute what the program says; see ``check_backend``."""


class ViewError(KinetreeError, RuntimeError):
    """A viewer cannot start."""


class WriteError(KinetreeError, OSError):
    """A file that cannot be written; what was there before is unchanged.

    It is also the exception that the system raised, such as ``PermissionError``.
    """

    def __init__(self, message, number=None):
        super().__init__(message)
        self.errno = number


# --- Errors that are also the exception that caused them -----------------------------------------


@cache
def joined_class(ours: type[KinetreeError], theirs: type[Exception]) -> type[KinetreeError]:
    """Exception class that inherits both ``ours`` and ``theirs``."""
    if issubclass(ours, theirs):
        return ours
    parts = {"__module__": ours.__module__, "__doc__": ours.__doc__, "__reduce__": _by_parts}
    return type(ours.__name__, (ours, theirs), parts)


def _by_parts(error):
    """Reduce function by which pickle restores an error of a joined class."""
    ours, theirs = type(error).__bases__
    number = {"errno": error.errno} if isinstance(error, OSError) else {}
    return _restore, (ours, theirs, error.args, error.__dict__ | number)


def _restore(ours, theirs, args, attributes):
    """Error of a joined class, restored from a pickle."""
    error = joined_class(ours, theirs)(*args)
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


# --- Packages that only some results need, imported on demand ------------------------------------


def need(module, purpose, extra):
    """Module by name; an error says what to install for ``purpose``."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"{purpose} needs the package {package}, which cannot be imported ({error}): "
            f'pip install "kinetree[{extra}]"'
        ) from error

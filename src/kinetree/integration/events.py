"""Events: instants at which a function of time and state crosses zero."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kinetree.errors import ShapeError, SimulationError
from kinetree.functional.kernel import UserKernel
from kinetree.model.arrays import as_configuration, as_joint_vector


@dataclass(frozen=True)
class Event:
    """An event that a simulation locates.

        kt.Event(lambda t, q, qd: q[2], direction=-1, name="touches the ground")

    Args:
        function: ``(t, q, qd)``, for one sample, to a number that crosses zero at the event. A
            function under ``@kinetree.kernel`` may take the model first.
        direction: 1 for crossings upward, -1 downward, 0 both.
        terminal: whether the simulation ends there; of a batch, that sample stays where it is.
        action: function ``(t, q, qd)`` called at the event. It returns None, or the state
            ``(q, qd)`` to continue from.
        name: in records and messages.
        tolerance: of the instant [s].
    """

    function: Callable
    direction: int = 0
    terminal: bool = False
    action: Callable | None = None
    name: str = ""
    tolerance: float = 1e-12

    def __post_init__(self):
        for what in ("function", "action"):
            given = getattr(self, what)
            if not callable(given) and not (what == "action" and given is None):
                raise TypeError(
                    f"{what} of an Event must be a function (t, q, qd), got {type(given).__name__}"
                )
        if self.direction not in (-1, 0, 1):
            raise ShapeError(
                f"direction of event {self.name!r} must be 1 for crossings upward, -1 downward, "
                f"or 0 for both; got {self.direction!r}"
            )
        if not self.tolerance > 0:
            raise ShapeError(
                f"tolerance of event {self.name!r} must be positive, got {self.tolerance!r}"
            )
        if not self.name:
            name = getattr(self.function, "__name__", type(self.function).__name__)
            object.__setattr__(self, "name", "event" if name == "<lambda>" else name)


@dataclass(frozen=True)
class EventRecord:
    """An event that happened.

    Attributes:
        t: when [s].
        name: of the event.
        q: positions just before.
        qd: velocities just before.
        q_after: positions just after.
        qd_after: velocities just after.
        energy: change of kinetic and potential energy at that instant [J].
        sample: index in the batch; empty for a single simulation.
    """

    t: float
    name: str
    q: np.ndarray = field(repr=False)
    qd: np.ndarray = field(repr=False)
    q_after: np.ndarray = field(repr=False)
    qd_after: np.ndarray = field(repr=False)
    energy: float = 0.0
    sample: tuple = ()


class UserEvents:
    """Events of the user, in the form that a ``Watcher`` takes."""

    def __init__(self, events, model):
        self.watches = [UserWatch(event, model) for event in events]

    def values(self, t, q, qd, tau, stepper):
        """Values (n, ..., m) of all event functions at times (n,) and states (n, ...)."""
        return np.stack([w.values(t, q, qd, tau, stepper) for w in self.watches], axis=-1)


class UserWatch:
    """One ``Event``."""

    remedy = (
        "let its action bring what moves slowly to rest, or make it terminal; joints that come to "
        "rest at their stops are what limits='rigid' is for"
    )

    def __init__(self, event, model):
        if not isinstance(event, Event):
            raise TypeError(f"events must be kinetree.Event, got {type(event).__name__}")
        self.event, self.model = event, model
        self.name, self.direction = event.name, event.direction
        self.terminal, self.tolerance = event.terminal, event.tolerance
        self._wants_model = _takes_model(event.function)

    def values(self, t, q, qd, tau, stepper):
        """Values (n, ...) of the event function at times (n,) and states (n, ...)."""
        values = np.empty(qd.shape[:-1])
        for j, time in enumerate(t):
            if isinstance(self.event.function, UserKernel):
                values[j] = self._check_shape(time, q[j], qd[j], qd.shape[1:-1])
                continue
            for index in np.ndindex(qd.shape[1:-1]):
                at = (j, *index)
                values[at] = self._check_shape(time, q[at], qd[at], ())
        return values

    def act(self, t, q, qd):
        """State after the user's event action."""
        if self.event.action is None:
            return q, qd
        after = self.event.action(t, np.array(q), np.array(qd))
        if after is None:
            return q, qd
        if not isinstance(after, tuple) or len(after) != 2:
            raise ShapeError(
                f"the action of event {self.name!r} must return None or (q, qd), got "
                f"{type(after).__name__}"
            )
        what = f"that the action of event {self.name!r} returned"
        return (
            as_configuration(self.model, after[0], f"q {what}").astype(float),
            as_joint_vector(self.model, after[1], f"qd {what}").astype(float),
        )

    def _check_shape(self, t, q, qd, shape):
        """Event function's value; SimulationError unless it is one finite number per sample."""
        arguments = (self.model, t, q, qd) if self._wants_model else (t, q, qd)
        value = np.asarray(self.event.function(*arguments), dtype=float)
        if value.shape != shape or not np.all(np.isfinite(value)):
            raise SimulationError(
                f"event {self.name!r} must return one finite number for a sample, got {value} at "
                f"t = {t:.6g} s"
            )
        return value


def _takes_model(function) -> bool:
    """Whether an event function takes four arguments, the model first."""
    try:
        return len(inspect.signature(function).parameters) == 4
    except (TypeError, ValueError):
        return False

"""Controllers: functions of time and state to joint forces, recorded inputs, sampled ones."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Literal, NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import LoopError, ModelError, ShapeError, SimulationError, UnknownNameError
from kinetree.functional.kernel import UserKernel, kernel
from kinetree.integration.breakdown import all_finite
from kinetree.loops.kinematics.loop_joints import actuation_matrix
from kinetree.model.arrays import as_numbers
from kinetree.model.limits import effort_bounds
from kinetree.model.memo import remember
from kinetree.model.parts import Posture
from kinetree.simulation.forces.actuators import servos_of
from kinetree.spelling import explains_itself

_CLOSE = 1e-9  # of a sampling period: what counts as the same instant


def call_with_model(function, model):
    """Function ``(t, q, qd)`` from one that may also take the model as first argument."""
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


def read_by_part(given, read, model) -> Any:
    """Inputs of a world given by part (dict or function of dicts) as inputs of the whole.

    Args:
        given: numbers, a dict of them by the name of a part, or a function that returns either.
        read: returns the numbers of the whole world for a dict.
        model: the whole world.
    """
    if isinstance(given, Mapping):
        return read(given)
    if not callable(given) or hasattr(given, "next_instant") or isinstance(given, Posture):
        return given
    if isinstance(given, UserKernel) or hasattr(given, "compiled_control"):
        return given  # whose results are arrays
    function = call_with_model(given, model)

    @wraps(given, updated=())
    def call(t, q, qd):
        found = function(t, q, qd)
        return read(found) if isinstance(found, Mapping) else found

    for name in ("reset", "last"):
        if hasattr(given, name):
            setattr(call, name, getattr(given, name))
    return call


@dataclass(frozen=True)
class Constant:
    """Numbers that never change, whatever the time and state."""

    values: Any

    def __call__(self, t, q, qd):
        """The numbers."""
        return self.values


@explains_itself
class Sampled:
    """A controller that is called at its own rate, its forces held in between.

    Simulation steps end at its instants, so that the rate need not fit the step.

    Args:
        controller: function ``(t, q, qd)``.
        rate: of the calls [Hz].
        start: time of the first call [s].
    """

    def __init__(self, controller: Callable, rate: float, *, start: float = 0.0):
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
        """Joint forces of the last call."""
        count = np.floor((t - self.start) * self.rate + _CLOSE)
        if self._held is None or count != self._count or np.shape(self._held)[:-1] != q.shape[:-1]:
            self._count = count
            tau = np.asarray(self.controller(t, q, qd), dtype=float)
            self._held = np.broadcast_to(tau, (*q.shape[:-1], *tau.shape[-1:])).copy()
        return self._held

    def reset(self) -> None:
        """Forget the held value, before a new simulation."""
        self._held = None

    def next_instant(self, t: float) -> float:
        """Time of the next controller call after ``t`` [s]."""
        count = np.floor((t - self.start) * self.rate + _CLOSE)
        return self.start + (count + 1) / self.rate


@explains_itself
class Recorded:
    """Recorded or planned inputs: values at given times.

    Args:
        t: increasing times [s], (T,).
        values: at these times, (T, ..., n): joint forces, or controls.
        kind: in between: ``"hold"`` the last one, or ``"linear"``.

    Before the first time and after the last one the value is that of the first and the last.
    """

    def __init__(
        self, t: ArrayLike, values: ArrayLike, *, kind: Literal["hold", "linear"] = "hold"
    ):
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

    def next_instant(self, t: float) -> float:
        """Time after ``t`` when the held value changes [s]; infinite if interpolated."""
        if self.kind != "hold":
            return np.inf
        k = int(np.searchsorted(self.t, t + _CLOSE * self._spacing, side="right"))
        return self.t[k] if k < len(self.t) else np.inf

    @property
    def _spacing(self):
        """Mean time between recorded values [s]."""
        return (self.t[-1] - self.t[0]) / max(len(self.t) - 1, 1)


class _ActuatorTables(NamedTuple):
    """Numbers of the actuators of a model, one for each."""

    control: np.ndarray
    effort: np.ndarray
    gain: np.ndarray
    actuation: np.ndarray | None
    """``model.actuation``, or None where moment arms depend on the configuration."""
    bounds: np.ndarray
    """Smallest and largest joint forces, (2, nv), infinite where they are unknown."""

    @classmethod
    def of(cls, model) -> "_ActuatorTables":
        """Tables of control limits, efforts and constant moment arms of a model's actuators."""
        control, effort = (
            np.array([getattr(a, name) for a in model.actuators]).T
            for name in ("control", "effort")
        )
        try:
            arms = model.actuation
        except LoopError:
            arms = None
        gain = np.array([a.gain[0] for a in model.actuators])
        return cls(control, effort, gain, arms, effort_bounds(model).T)


class Controls:
    """A controller of the motors of a model rather than of its joints.

    Controls are cut to the range of each motor, ``control``, and times its gain to what it can
    exert before its gear, ``effort``; joint forces are ``model.actuation`` times what is left, or
    where motors drive loop joints ``kinetree.loops.actuation_matrix(model, q)``, within the limits
    of effort of the joints.

    Args:
        model: with actuators.
        controls: function ``(t, q, qd)`` that returns one number per actuator, (..., n); or n
            numbers that never change.

    Attributes:
        last: controls of the last call.
    """

    last: Any = None

    def __init__(self, model, controls):
        servos_of(model)  # or it has no actuators
        self.model = model
        self.function: Any = (
            call_with_model(controls, model) if callable(controls) else Constant(controls)
        )
        self._tables = remember(model, ("Controls",), lambda: _ActuatorTables.of(model))
        if hasattr(self.function, "next_instant"):  # when the controls change next
            self.next_instant = self.function.next_instant
        self.reset()

    def __call__(self, t, q, qd):
        """Joint forces, (..., nv)."""
        x = self._tables
        f = np.clip(x.gain * np.clip(self.read(t, q, qd), *x.control), *x.effort)
        if x.actuation is None:
            tau = (actuation_matrix(self.model, q) * f[..., None, :]).sum(-1)
        else:
            tau = f @ x.actuation.T
        return tau if self.model.couplings else np.clip(tau, *x.bounds)

    def read(self, t, q, qd):
        """Checked controls (..., n) from the controller at a time and state."""
        u, n = self.function(t, q, qd), len(self.model.actuators)
        plain = type(u) is np.ndarray and u.dtype == float and u.shape == (n,) and q.ndim == 1
        if plain and all_finite(u):
            self.last = u.copy()
            return self.last
        u = as_numbers(u, "controls").astype(float)
        if u.ndim == 0 or u.shape[-1] != n:
            names = [a.name for a in self.model.actuators]
            raise ShapeError(
                f"controls must have shape (..., {n}), one for each actuator of model "
                f"{self.model.name!r} ({', '.join(names)}), got {u.shape}"
            )
        if np.any(np.isnan(u)):
            raise ShapeError(f"controls are not numbers at t = {t:.6g} s: {u}")
        lead = np.shape(q)[:-1]
        same = u.shape[:-1] == lead
        self.last = u if same else np.broadcast_to(u, (*np.broadcast_shapes(lead, u.shape[:-1]), n))
        return u

    def reset(self):
        """Reset the controller before a new simulation."""
        if hasattr(self.function, "reset"):
            self.function.reset()


class ServoControls(Controls):
    """Controls of actuators with servos among them: what a step holds, see ``forces.actuators``.

    As long as the controls stay the same, so does that: activations of the time since then follow
    from it. Integrals are found anew where each step begins.

    Args:
        model: with actuators.
        controls: as for ``Controls``.
        servos: ``Servos`` of the model.
        activation: at the start, (m,); zero by default.
    """

    def __init__(self, model, controls, servos, activation=()):
        super().__init__(model, controls)
        self.servos, self.held = servos, None
        self.start = activation if len(activation) else np.zeros(servos.states)
        self.is_constant = isinstance(self.function, Constant) and not servos.integrals

    def restore(self, memory):
        """Restore held controls and activations from a saved state, if sizes agree."""
        held = memory.get("held")
        if held is not None and np.shape(held)[-1:] == self.servos.inputs(self.model).shape:
            self.held, self.last = np.array(held), np.array(held[..., : self.servos.count])

    def __call__(self, t, q, qd):
        """Controls, activations and their time, (..., size)."""
        before, u = self.last, self.read(t, q, qd)
        if not all_finite(u):
            raise ShapeError(f"controls of servos must be finite; at t = {t:.6g} s they are {u}")
        if self.last.shape[:-1] != q.shape[:-1]:
            raise ShapeError(f"controls {u.shape} do not fit a batch of shape {q.shape[:-1]}")
        same = self.held is not None and np.array_equal(before, self.last)
        if not same or self.servos.integrals:
            activation = self._activation(t, q, qd)
            self.held = self.servos.held_inputs(self.model, self.last, activation, t, q, qd)
        return self.held

    def _activation(self, t, q, qd):
        """Activations of the actuators at a time, from held inputs or the start."""
        if self.held is not None:
            return self.servos.state(self.model, t, q, qd, self.held)[1]
        shape = (*self.last.shape[:-1], self.servos.states)
        return self.start if self.start.shape == shape else np.broadcast_to(self.start, shape)


def at_instants(source) -> tuple:
    """Hooks that end steps where a controller changes its input; () without such times."""
    next_instant = getattr(source, "next_instant", None)
    if next_instant is None:
        return ()

    def hook(step):
        instant, h = next_instant(step.t0), step.t1 - step.t0
        return step.cut(instant) if instant < step.t1 - _CLOSE * h else step

    return (hook,)


# --- what ``simulate(controller=...)`` takes -----------------------------------------------------


class _NoController:
    """Zeros, the same array every time."""

    is_constant = True

    def __init__(self, shape):
        self.zero = np.zeros(shape)
        self.zero.flags.writeable = False

    def __call__(self, t, q, qd):
        return self.zero


@kernel
def _held_forces(model, t, q, qd, *, controller, with_model):
    """Kernel of a controller's joint forces, (nv,); a scalar stands for all joints."""
    return 0 * qd + (controller(model, t, q, qd) if with_model else controller(t, q, qd))


class _Checked:
    """A function ``(t, q, qd)`` whose joint forces have the shape of the velocities."""

    def __init__(self, function, model):
        self.function, self.model = call_with_model(function, model), model
        if hasattr(function, "reset"):
            function.reset()
        if hasattr(function, "next_instant"):
            self.next_instant = function.next_instant

    def as_kernel(self):
        """Compilable form ``(t, q, qd)`` of the controller; None for Python functions.

        Or what the ``compiled_control(model)`` of the controller returns: an object with ``tie``,
        see ``codegen.tied``, and ``call(t, q, qd)``, for states with any batch axes.
        """
        own = self.function
        made = getattr(own, "compiled_control", None)
        if made is not None:
            return made(self.model)
        with_model = isinstance(own, partial) and own.args == (self.model,) and not own.keywords
        own = own.func if isinstance(own, partial) and with_model else own
        if not isinstance(own, UserKernel):
            return None
        start = 0.0, self.model.neutral(), np.zeros(self.model.nv)
        return _held_forces.compiled(self.model, *start, controller=own, with_model=with_model)

    @property
    def last(self):
        """Controls of the last call; None if the controller has none."""
        return getattr(self.function, "last", None)

    def __call__(self, t, q, qd):
        given = self.function(t, q, qd)
        if given is None:
            raise SimulationError(
                f"the controller returned None at t = {t:.6g} s: it must return joint forces"
            )
        if isinstance(given, Mapping):
            raise TypeError(
                f"the controller returned a dict; joint forces of model {self.model.name!r} are an "
                f"array of {self.model.nv} numbers, and by part only in a plain function that "
                f"drives a World"
            )
        tau = np.asarray(given, dtype=float)
        if tau.shape != qd.shape:
            try:
                fits = tau.ndim == 0 or tau.shape[-1] == self.model.nv
                tau = np.broadcast_to(tau, qd.shape if fits else ())
            except ValueError:
                raise ShapeError(
                    f"the controller must return joint forces of shape {qd.shape} for model "
                    f"{self.model.name!r} with nv = {self.model.nv}, got {tau.shape}"
                ) from None
        if not all_finite(tau):
            raise SimulationError(
                f"the controller returned {tau[~np.isfinite(tau)][0]} at t = {t:.6g} s"
            )
        return tau


def as_controller(controller, model, shape, controls=None, servos=None, start=()):
    """Checked function ``(t, q, qd)`` of held inputs: joint forces, or controls.

    Joint forces of the given shape, or with ``servos`` controls and activations, which are
    ``start`` at first, unless those of a posture.
    """
    if controls is not None:
        if controller is not None:
            raise ModelError(
                "give joint forces (controller=) or the controls of actuators (controls=), not both"
            )
        controls, activation = of_posture(model, controls)
        if servos is not None:
            return ServoControls(model, controls, servos, activation if len(activation) else start)
        controller = Controls(model, controls)
    if controller is None:
        return _NoController(shape)
    if not callable(controller):
        raise TypeError(
            f"controller must be a function (t, q, qd) that returns joint forces, got "
            f"{type(controller).__name__}"
        )
    return _Checked(controller, model)


def of_posture(model, controls):
    """Controls and activations of a posture or its name; other inputs unchanged, with ()."""
    posture = model.posture(controls) if isinstance(controls, str) else controls
    if not isinstance(posture, Posture):
        return controls, ()
    if not posture.controls.size:
        raise ModelError(
            f"posture {posture.name!r} of model {model.name!r} has no controls of actuators to "
            f"hold; give numbers, one for each of its {len(model.actuators)} actuators"
        )
    return posture.controls, posture.activation

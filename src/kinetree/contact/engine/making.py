"""Engines of all doors: what tables have acts in them, other forces are compiled into the step."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.contact.engine.engine import Engine
from kinetree.functional.kernel import kernel
from kinetree.functional.parameters import parameter, with_parameters


def engine_of(model, settings, joints, plain, *, prescription=None, **options) -> Engine:
    """``Engine`` of a model with the settings of a ``TimeStepping``.

    Args:
        model: the mechanism.
        settings: ``TimeStepping``.
        joints: ends of travel and dry friction.
        plain: a field that is plain, see ``is_plain``, whose laws act as tables; None where they
            are among forces that are compiled or applied.
        prescription: motions of prescribed joints, or None.
        **options: further ones of ``Engine``, or others than those of the settings.
    """
    names = ("rest_velocity", "correction_speed", "stiffness", "damping")
    given = {name: getattr(settings, name) for name in names}
    given["tolerance"] = engine_tolerance(settings.tolerance)
    given["conserving"] = settings.conserving and prescription is None
    if plain is None:
        given["springs"] = False
    else:
        given["smooth"] = smooth_laws(plain)
    return Engine(
        model, settings.scene, joints=joints, prescription=prescription, **(given | options)
    )


def engine_tolerance(tolerance) -> float:
    """Relative impulse tolerance of the solver for a requested velocity tolerance."""
    return float(np.clip(1e3 * tolerance, 1e-12, 1e-3))


def is_plain(field) -> bool:
    """Whether a field has only joint springs, dampers, friction and limits besides held forces.

    Springs and dampers of the joints, their smooth friction and stiff limits.
    """
    passive = field.passive
    parts = () if passive is None else (passive.loops, passive.tendons)
    others = (field.drive, field.actuators, *parts)
    return not field.forces and all(part is None for part in others)


def smooth_laws(field) -> tuple:
    """Smooth friction and stiff limits of a plain field; None for each that is absent."""
    return (None, None) if field.passive is None else (field.passive.friction, field.passive.limits)


# --- forces that are compiled --------------------------------------------------------------------


def native_forces(model, field, *, own=False) -> dict:
    """Compiled ``forces`` and ``resistance`` kernels of a field, for an ``Engine``.

    Args:
        model: the mechanism.
        field: a ``Field`` whose forces can all be compiled; the engine has springs of tendons and
            loop joints, and gravity compensation.
        own: whether inertias of the bodies, (bodies, 10), are inputs as well: laws of friction and
            limits follow from them.
    """
    inputs = field.inputs(model)
    if own:
        inputs = np.concatenate([inputs, parameter(model, "inertia").value(model).ravel()])
    return compiled_forces(OfField(model, field.for_steps, own), inputs, resists=field.resists)


def compiled_forces(source, inputs, *, resists) -> dict:
    """Compiled ``forces`` and ``resistance`` kernels of a ``ForceSource``."""
    full = source.model.uncoupled
    start = 0.0, full.neutral(), np.zeros(full.nv), inputs
    found = {"forces": _forces.compiled(full, *start, source=source)}
    if resists:
        found["resistance"] = _resistance.compiled(full, *start, source=source)
    return found


@dataclass(frozen=True)
class ForceSource(ABC):
    """Forces in the variables that follow no others, as functions of those of all joints."""

    model: Any
    """The mechanism."""

    def __call__(self, t, q, qd, inputs):
        """Field, and model, time, state and what is held, from the variables of all joints."""
        of_q, of_v = self._variables
        return self.at(t, q[of_q], qd[of_v], inputs)

    @abstractmethod
    def at(self, t, q, qd, inputs) -> tuple[Any, tuple]:
        """Field of forces and its arguments at a state of the independent variables."""

    @property
    def _variables(self):
        """Indices of the independent position and velocity variables among all."""
        couplings = self.model.couplings
        return self.model.independent_variables if couplings else (slice(None), slice(None))

    def spread(self, values):
        """Values of the independent velocity variables spread over all, others zero."""
        found = np.zeros(self.model.uncoupled.nv, dtype=np.asarray(values).dtype)
        found[self._variables[1]] = values
        return found


@dataclass(frozen=True)
class OfField(ForceSource):
    """Forces of a field."""

    field: Any
    """Gives them."""
    own: bool
    """Whether inertias are the last inputs."""

    def at(self, t, q, qd, inputs):
        """Field of forces and its arguments at a state, with inertias from ``inputs`` if own."""
        model, field = self.model, self.field
        if self.own:
            size = 10 * model.body_count
            inertia = inputs[len(inputs) - size :].reshape(-1, 10)
            inputs = inputs[: len(inputs) - size]
            model = with_parameters(model, {"inertia": inertia})
            field = field.of(model)
        return field, (model, t, q, qd, inputs)


@kernel
def _forces(full, t, q, qd, inputs, *, source):
    """Kernel of a source's joint forces in the variables of all joints."""
    field, given = source(t, q, qd, inputs)
    return source.spread(field.joint_force(*given))


@kernel
def _resistance(full, t, q, qd, inputs, *, source):
    """Kernel of the stiffness and damping of a source's servos and stiff limits."""
    field, given = source(t, q, qd, inputs)
    return tuple(source.spread(x) for x in field.resistance(*given))


def has_actuators_in_tables(field) -> bool:
    """Whether the engine's tables can replace the actuators of a field."""
    return field.actuators is not None and field.prescription is None


def without_actuators(field) -> Any:
    """Copy of a field whose actuators exert no force, as the engine has them in tables."""
    return replace(field, actuators=Idle(field.actuators), drive=None)


def beside_actuators(field) -> Any:
    """Copy of a field without actuators and their torque–speed curves."""
    return field if field.actuators is None else replace(field, actuators=None, drive=None)


@dataclass(frozen=True)
class Idle:
    """Actuators that exert nothing here, for the engine has them as tables."""

    servos: Any

    def inputs(self, model):
        """Inputs that the replaced servos expect for a model: zeros of the same shape."""
        return self.servos.inputs(model)

    def __call__(self, model, t, q, qd, inputs):
        """Joint forces, (..., nv)."""
        return 0 * qd

    def resistance(self, model, t, q, qd, inputs):
        """Stiffness and damping of servos that the engine computes itself: zero, (nv,) each."""
        return np.zeros(model.nv), np.zeros(model.nv)

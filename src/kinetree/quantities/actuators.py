"""Actuators and sensors of a model: forces and readings, compiled as functions of the state."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kinetree.algorithms import actuators
from kinetree.algorithms import sensors as texts
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ModelError, ShapeError
from kinetree.model import Model
from kinetree.model.array_arguments import ArrayArgument as Argument
from kinetree.model.define import quantity
from kinetree.model.sensors import KINDS
from kinetree.quantities.dynamics import FORCES, Forces, forward_dynamics, passive_force

__all__ = ["actuator_forces", "driving_force", "sensor_readings"]


def _count(model, options=None):
    """Number of actuators."""
    return len(model.actuators)


def _states(model, options=None):
    """Number of actuators with an activation state."""
    return len(actuators.stateful(model))


ACTUATED = {"controls": Argument((_count,)), "activation": Argument((_states,))}


@quantity((_count,), actuators.actuator_forces, arrays=ACTUATED)
def actuator_forces(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    controls: ArrayLike,
    activation: ArrayLike | None = None,
) -> Array:
    """Forces of the actuators before their gears [N or N·m], (..., n).

    ``clip(gain u + bias, effort)`` of every actuator, with ``u`` the control within its range, or
    the activation: what MuJoCo calls ``actuator_force``. See ``Actuator`` for the law.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        controls: one for each actuator, (..., n).
        activation: of the actuators that have one, in their order; zero by default.
    """


@quantity(("nv",), actuators.driving_force, arrays=ACTUATED)
def driving_force(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    controls: ArrayLike,
    activation: ArrayLike | None = None,
) -> Array:
    """Joint forces that the actuators exert, (..., nv): moment arms times ``actuator_forces``.

    The sum at each joint is clipped to its effort limit. Together with ``passive_force``, this is
    ``tau`` of ``forward_dynamics``.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        controls: one for each actuator, (..., n).
        activation: of the actuators that have one, in their order; zero by default.
    """


@quantity(
    (_states,),
    actuators.activation_after,
    public=False,
    arrays={**ACTUATED, "time": Argument(())},
)
def activation_after(model: Model, controls: ArrayLike, activation: ArrayLike, time: Any) -> Array:
    """Activations after some time [s] with held controls, (..., m); integrals stay."""


def _lengths(model, options=None):
    """Number of values for integral action: two per such actuator."""
    return 2 * len(actuators.integrating(model))


@quantity((_lengths,), actuators.integral_motion, public=False)
def integral_motion(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Lengths of the actuators with integral action, and then their velocities, (..., 2 m)."""


ALONG = {name: Argument((_lengths,)) for name in ("start", "end")}


@quantity(
    (_states,),
    actuators.states_after,
    public=False,
    arrays={**ACTUATED, "time": Argument(()), **ALONG},
)
def states_after(
    model: Model,
    controls: ArrayLike,
    activation: ArrayLike,
    time: Any,
    start: ArrayLike,
    end: ArrayLike,
) -> Array:
    """Activations and integrals after some time [s] with held controls, (..., m)."""


# --- Readings of the sensors ---------------------------------------------------------------------


def needs_of(sensors: Sequence) -> dict:
    """Arguments that sensors need besides ``q``, each with a sensor that needs it."""
    found: dict = {}
    for s in sensors:
        need = KINDS[s.kind].needs
        for name in ("qd", need) if need in ("qdd", "controls") else (need,):
            found.setdefault(name, s)
    return {name: s for name, s in found.items() if name}


_NEEDED = {
    "qd": "the velocities qd",
    "qdd": "the accelerations qdd, or the joint forces tau or controls that cause them",
    "controls": "the controls of the actuators",
    "t": "the time t",
}


def _check(model, given):
    """Raise an error if a sensor needs an argument that is not given."""
    for name, s in needs_of(model.sensors).items():
        what = f"sensor {s.name!r} of model {model.name!r} ({s.kind})"
        if name == "contact":
            raise ModelError(
                f"{what} is computed in Python, from contacts or shapes: kinetree.sensors(model) "
                f"reads it"
            )
        causes = given["tau"] is not None or given["controls"] is not None
        idle = name == "controls" and not model.actuators
        if given.get(name) is None and not (name == "qdd" and causes) and not idle:
            raise ShapeError(
                f"{what} needs {_NEEDED[name]}; kinetree.sensors(model, names) reads some sensors "
                f"without the others"
            )
    forces = [s for s in model.sensors if s.kind in ("force", "torque")]
    for s in forces:
        what = f"sensor {s.name!r} of model {model.name!r} ({s.kind})"
        if s.inertia is not None and given["f_ext"] is not None:
            raise ModelError(
                f"{what} is between bodies that were merged, and which of them f_ext acts on is "
                f"not known: load the file with lump=False, so that each is a separate body"
            )
        if model.constraints:
            raise ModelError(
                f"{what} depends on the bodies on which user-defined constraint "
                f"{model.constraints[0].name!r} acts, which only its author knows"
            )
        if model.loops and given["tau"] is None:
            raise ShapeError(
                f"{what} depends on the forces of loop {model.loops[0].name!r}: it needs the "
                f"joint forces tau"
            )


def _readings(
    model, q, qd=None, qdd=None, tau=None, f_ext=None, controls=None, activation=None, t=None
):
    """Readings of all sensors, with accelerations computed if needed."""
    if controls is None and not model.actuators:
        controls = np.zeros(0)
    if qdd is None and "qdd" in needs_of(model.sensors):
        if tau is None:
            tau = passive_force(model, q, qd) + driving_force(model, q, qd, controls, activation)
        forces = None if f_ext is None else np.array([f.to_array() for f in f_ext[1:]])
        qdd = forward_dynamics(model, q, qd, tau, forces)
    return texts.readings(model, q, qd, qdd, tau, f_ext, controls, activation, t)


@quantity(
    (lambda model, _: texts.total_size(model),),
    _readings,
    arrays={**ACTUATED, "t": Argument(())},
    read=FORCES,
    check=_check,
)
def sensor_readings(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    qdd: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
    f_ext: Forces = None,
    controls: ArrayLike | None = None,
    activation: ArrayLike | None = None,
    t: ArrayLike | None = None,
) -> Array:
    """Readings of all sensors of a model, in the order of ``model.sensors``, (..., n).

    ``kinetree.sensors(model)`` returns them by name, with those of contact sensors.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv), where a sensor depends on them.
        qdd: joint accelerations [m/s², rad/s²], (..., nv), where a sensor depends on them.
        tau: joint forces [N, N·m], (..., nv), as in ``forward_dynamics``, in place of ``qdd``; and
            besides it for sensors of forces in mechanisms with loops.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        controls: of the actuators, (..., n); without ``qdd`` and ``tau`` they drive the mechanism,
            against its passive forces.
        activation: of the actuators that have one, in their order; zero by default.
        t: time [s], (...), for clocks.
    """

"""Energy, momentum, constraint error and joint reactions along a motion."""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.energy import elastic_energy
from kinetree.contact.soft.history import SoftHistory
from kinetree.errors import ContactError, calling
from kinetree.functional.kernel import kernel
from kinetree.integration.field import Field
from kinetree.loops.kinematics.constraint import constraint
from kinetree.model.limits import has_passive_forces
from kinetree.quantities import cartesian, centroidal, dynamics
from kinetree.quantities.external_forces import external_forces
from kinetree.quantities.reactions import joint_reactions
from kinetree.simulation.forces.applied import ExternalForce
from kinetree.simulation.forces.limits import limits_effort
from kinetree.simulation.later import Later, resolve


class Observables(NamedTuple):
    """Scalars and vectors of every state."""

    kinetic: Any
    """Kinetic energy [J], (...)."""
    gravity: Any
    """Potential energy in the gravity field [J], (...)."""
    elastic: Any
    """Energy of springs in joints and tendons, and of gravity compensation [J], (...), or None."""
    momentum: Any
    """Spatial momentum about the origin of the base, (..., 6)."""
    center: Any
    """Centre of mass [m], (..., 3); the origin where there is no mass."""

    @property
    def energy(self) -> Any:
        """Kinetic plus potential energy [J], (...), possibly as a ``Later``."""
        if self.elastic is None:
            return Later(lambda: self.kinetic + self.gravity)
        return self.kinetic + self.gravity + self.elastic


def observe(model, q, qd, recorded=None) -> Observables:
    """``Observables`` (energies, momentum) of states (..., nq) and (..., nv).

    Args:
        model: the mechanism.
        q: positions.
        qd: velocities.
        recorded: kinetic and potential energies where steps have stored them, or None: then no
            momentum is found.
    """
    if recorded is not None:
        elastic = None
        if has_passive_forces(model, "stiffness") or model.gravity_compensation:
            with calling("simulate"):
                (elastic,) = of_states(lambda q: (_elastic(model, q),), q)
        return Observables(recorded["kinetic"], recorded["gravity"], elastic, None, None)
    with calling("simulate"):
        return Observables(*of_states(lambda q, qd: _observe(model, q, qd), q, qd))


@kernel
def _elastic(model, q):
    """Kernel of the elastic energy of springs [J]."""
    return elastic_energy(model, q)


def _observe(model, q, qd):
    """Energies, momentum and centre of mass of states, a tuple of arrays."""
    lead = q.shape[:-1]
    springs = has_passive_forces(model, "stiffness") or model.gravity_compensation
    return (
        np.asarray(dynamics.kinetic_energy(model, q, qd)),
        np.asarray(dynamics.potential_energy(model, q)),
        np.asarray(_elastic(model, q)) if springs else np.zeros(lead),
        centroidal.momentum(model, q, qd),
        centroidal.center_of_mass(model, q) if model.total_mass else np.zeros((*lead, 3)),
    )


def loop_errors(model, t, q, qd):
    """Largest position and velocity error of any loop or constraint, (T, ...) each.

    In metres or radians, and in these per second; ``t`` are the times of the states, (T,).
    """
    if not model.is_constrained:
        return np.zeros((2, *q.shape[:-1]))
    if model.is_rheonomic:
        now = _errors_at.compiled(model, 0.0, model.neutral(), np.zeros(model.nv))
        found = now.call(t.reshape(-1, *[1] * (qd.ndim - 2)), q, qd)
    else:
        found = of_states(lambda q, qd: constraint(model, q, qd)[2:], q, qd)
    return tuple(np.max(np.abs(np.asarray(x)), axis=-1, initial=0.0) for x in found)


_STATES, _NUMBERS = 16_384, 4096
"""States up to which code for single samples takes less time than code for batches takes to
compile; and numbers that it takes at once."""


def of_states(function, *states, results=16):
    """Results of a compiled function of states, evaluated in parts of limited size.

    Args:
        function: takes states with one leading axis.
        states: arrays.
        results: about how many numbers it returns for a state.
    """
    n = len(states[0])
    if states[0].ndim != 2 or not 0 < n <= _STATES:
        return function(*states)
    size = max(1, _NUMBERS // (results + sum(x.shape[1] for x in states)))
    found = [function(*(x[k : k + size] for x in states)) for k in range(0, n, size)]
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


@kernel
def _errors_at(model, t, q, qd):
    """Kernel of loop errors at a time, for loops with prescribed motion."""
    return tuple(loop_constraints(model.at(t), q, qd)[2:])


# --- forces of actuators and of the drives of prescribed joints, along a motion ------------------


def driven_motion(stepper, servos, arrays) -> dict:
    """Joint forces, activations and other arrays that follow from stored inputs, by name.

    Forces of servos are a function that finds them, unless a report has to look at them.

    Args:
        stepper: what took the steps.
        servos: actuators with servos among them, or None.
        arrays: what was stored, by name; ``tau`` is what steps held.
    """
    new, prescribed = {}, stepper.field.prescription is not None
    if prescribed:
        arrays["tau"] = resolve(arrays["tau"])
        new["tau"] = drive_forces(stepper, arrays)
    if servos is not None:
        t, q, qd, held = (arrays[name] for name in ("t", "q", "qd", "tau"))
        t = t.reshape(-1, *[1] * (qd.ndim - 2))
        if servos.states:
            held = resolve(held)
            new["activation"] = servos.state(stepper.model, t, q, qd, held)[1]
        if not prescribed:
            tau = Later(lambda: servos(stepper.model, t, q, qd, resolve(held)))
            new["tau"] = resolve(tau) if limits_effort(stepper.model) else tau
    return new


@kernel
def _drive_force(model, t, q, qd, inputs, *, field):
    """Kernel of the joint forces of prescribed drives."""
    return field.drive_force(model, t, q, qd, inputs)


def drive_forces(stepper, arrays) -> np.ndarray:
    """Joint forces of controller and prescribed drives at all stored times, (T, ..., nv).

    Args:
        stepper: what took the steps.
        arrays: what was stored, by name.
    """
    if hasattr(stepper, "drive_forces"):
        return stepper.drive_forces(arrays)
    model, field = stepper.model, stepper.field
    field_at = getattr(stepper, "field_at", lambda t: field)
    t, q, qd, tau = (arrays[name] for name in ("t", "q", "qd", "tau"))
    if stepper.compiled and not hasattr(stepper, "field_at"):
        times = t.reshape(-1, *[1] * (qd.ndim - 2))
        zeros = model.neutral(), np.zeros(model.nv), field.inputs(model)
        compiled = _drive_force.compiled(model, 0.0, *zeros, field=field)
        return compiled.call(times, q, qd, tau)
    each = zip(t, q, qd, tau, strict=True)
    return np.array([field_at(now[0]).drive_force(model, *now) for now in each])


# --- reactions of the joints, along a motion -----------------------------------------------------


def accelerations(trajectory) -> np.ndarray:
    """Joint accelerations at all times of a trajectory, (T, ..., nv).

    With rigid contact, whose impacts have none, the mean ones since the stored time before.
    """
    model, stepper, t, qd = (getattr(trajectory, n) for n in ("model", "acted", "t", "qd"))
    impacts = not isinstance(trajectory.contact, (SoftHistory, type(None)))
    if impacts and len(t) > 1:
        mean = np.diff(qd, axis=0) / np.diff(t).reshape(-1, *[1] * (qd.ndim - 1))
        return np.concatenate([mean[:1], mean])
    field = Field() if stepper is None else stepper.field
    field_at, held = getattr(stepper, "field_at", None), _inputs(trajectory, field)
    if field_at is None and getattr(stepper, "compiled", True):
        zeros = model.neutral(), np.zeros(model.nv), field.inputs(model)
        compiled = _acceleration.compiled(model, 0.0, *zeros, field=field)
        return compiled.call(t.reshape(-1, *[1] * (qd.ndim - 2)), trajectory.q, qd, held)
    states = zip(t, trajectory.q, qd, held, strict=True)
    each = [(field_at(now[0]) if field_at else field)(model, *now)[0] for now in states]
    return np.array(each).reshape(qd.shape)


@kernel
def _acceleration(model, t, q, qd, inputs, *, field):
    """Kernel of the accelerations of a field."""
    return field(model, t, q, qd, inputs)[0]


def _inputs(trajectory, field):
    """Inputs held during each step: joint forces, or controls and activations."""
    servos = field.actuators
    if servos is None:
        return trajectory.tau
    times = trajectory.t.reshape(-1, *[1] * (trajectory.qd.ndim - 1))
    state = trajectory.q, trajectory.qd
    return servos.held_inputs(
        trajectory.model, trajectory.controls, trajectory.activation, times, *state
    )


def reactions(trajectory, f_ext, **options) -> np.ndarray:
    """Joint reactions at all times of a trajectory, (T, ..., joints, 6).

    Args:
        trajectory: the motion, and what moved it in ``acted``.
        f_ext: further forces on bodies, as in ``inverse_dynamics``; those of contacts.
        **options: of ``joint_reactions``.
    """
    model, stepper = trajectory.model, trajectory.acted
    field = Field() if stepper is None else stepper.field
    touching = [force for force in field.forces if hasattr(force, "scene")]
    pushing = [force for force in field.forces if isinstance(force, ExternalForce)]
    if (touching or trajectory.contact is not None) and f_ext is None:
        raise ContactError(
            f"reactions of model {model.name!r} depend on where contact forces act, which the "
            f"trajectory does not hold: give them as f_ext, (T, ..., body_count, 6)"
        )
    by_forces = f_ext is not None or model.loops  # else the accelerations say all
    t, q, qd, tau = (getattr(trajectory, name) for name in ("t", "q", "qd", "tau"))
    held = _inputs(trajectory, field)
    field_at = getattr(stepper, "field_at", lambda t: field)
    given, pushes = np.zeros(qd.shape), np.zeros((*qd.shape[:-1], model.body_count, 6))
    for k, now in enumerate(zip(t, q, qd, held, strict=True)):
        here: Any = field_at(now[0])
        if by_forces:
            given[k] = here.joint_force(model, *now)
            if hasattr(here, "constraint_force"):  # of stops and dry friction that hold
                given[k] += here.constraint_force(model, *now)
            if here.prescription is not None:
                given[k] += tau[k] * (1 - here.prescription.others(model))
            given[k] -= sum(force(model, *now[:3]) for force in (*touching, *pushing))
        else:
            given[k] = here(model, *now)[0]
        for force in pushing:
            pushes[k, ..., model.frame(force.frame).body - 1, :] += _push(model, force, *now[:2])
    if f_ext is not None:
        pushes = pushes + np.asarray(external_forces(model, f_ext), dtype=float)
    what = {"f_ext": pushes} if pushing or f_ext is not None else {}
    return joint_reactions(
        model, q, qd, **{"tau" if by_forces else "qdd": given}, **what, **options
    )


def _push(model, force, t, q):
    """Wrench of an ``ExternalForce`` in base coordinates, (..., 6)."""
    n, f = np.split(force.at(t), 2, axis=-1)
    frame = "aligned" if force.coordinates == "base" else "body"
    return cartesian.applied_force(model, q, force.frame, force=f, torque=n, frame=frame)

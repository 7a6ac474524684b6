"""Gears and rotors: what couplings transmit, and what a lump of armature leaves out — RBDA §9.6.

    arm = kt.gears.add_rotor(arm, "elbow", ratio=100, inertia=rotor, on="upper_arm")
    print(kt.gears.armature_error(arm, q, qd))

A rotor behind a gear is a body like others: it weighs on what carries it and it resists being
tilted while it spins. The usual shortcut keeps only the largest effect, ``ratio² I`` on the
diagonal of the inertia matrix (``JointDynamics.armature``).
"""

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ModelError, names_itself
from kinetree.joints import Fixed, Revolute
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.coupling import Coupling
from kinetree.model.define import quantity
from kinetree.model.gearing import Gearing
from kinetree.model.parts import Body, JointDynamics, Posture, as_placement
from kinetree.quantities.dynamics import bias_force, mass_matrix
from kinetree.quantities.loops import coordinate_names
from kinetree.spatial import Inertia

__all__ = ["ArmatureError", "add_rotor", "armature_error", "by_armature", "ratios", "rotors"]


@quantity(("uncoupled.nv", "nv"), public=False)
def ratios(model: Model, q: ArrayLike) -> Array:
    """Matrix ``G`` of gear ratios: velocities of all joints per velocity variable.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).

    Returns:
        (..., n, nv), a row for each velocity variable of ``model.uncoupled``.
    """
    return Gearing(model, q).G if model.couplings else np.eye(model.nv, dtype=int)


@names_itself
def rotors(model: Model) -> tuple[str, ...]:
    """Names of the bodies that are rotors: round, carrying nothing, geared to one joint."""
    return tuple(
        model.body_names[i] for i in range(1, model.body_count + 1) if _gear(model, i) is not None
    )


def _gear(model, i):
    """Coupling of constant ratio between a rotor and the joint it drives; else None."""
    body = model.bodies[i - 1]
    if model.children[i] or not isinstance(body.joint, Revolute) or not _is_round(body):
        return None
    follows = [c for c in model.couplings if c.joint == i]
    leads = [c for c in model.couplings if i in c.leaders]
    gears = [c for c in (*follows, *leads) if c.is_mimic and c.coefficients[1] != 0]
    return gears[0] if len(gears) == len(follows) + len(leads) == 1 else None


def _is_round(body):
    """Whether a body's inertia is unchanged by rotation about its joint."""
    axis = np.array(body.joint.axis, dtype=float)
    I = np.asarray(body.inertia.rotational, dtype=float)
    h = np.asarray(body.inertia.first_moment, dtype=float)
    moment = axis @ I @ axis
    across = (np.trace(I) - moment) / 2
    round_one = across * (np.eye(3) - np.outer(axis, axis)) + moment * np.outer(axis, axis)
    size = 1e-9 * max(np.max(np.abs(I)), 1e-300)
    off = np.linalg.norm(np.cross(axis, h))
    return bool(np.all(np.abs(I - round_one) <= size) and off <= 1e-9 * np.linalg.norm(h) + 1e-300)


@names_itself
def by_armature(model: Model) -> Model:
    """Model with armature instead of rotors, which are fixed to their carriers.

    The mass of a rotor stays; its spin is represented only by ``ratio² I`` at the joint that it
    drives. If the rotor's joint was the independent one, the joint that it drives takes its place.
    """
    bodies, couplings = list(model.bodies), list(model.couplings)
    moved = {i: gear for i in range(1, model.body_count + 1) if (gear := _gear(model, i))}
    for t in model.tendons:
        if moved.keys() & set(t.moves_with(model)):
            raise ModelError(
                f"tendon {t.name!r} runs over a rotor, which by_armature takes from the model: run "
                f"it over the joint that the rotor drives"
            )
    for i, gear in moved.items():
        rotor = bodies[i - 1]
        joint, ratio = _driven_joint(gear, i)
        turned: Any = rotor.joint  # a Revolute joint, says _gear
        axis = np.array(turned.axis, dtype=float)
        inertia = ratio**2 * axis @ np.asarray(rotor.inertia.rotational, dtype=float) @ axis
        own = bodies[joint - 1].dynamics or JointDynamics()
        armature = (own.armature[0] if own.armature else 0.0) + float(inertia)
        bodies[joint - 1] = replace(bodies[joint - 1], dynamics=replace(own, armature=armature))
        bodies[i - 1] = replace(rotor, joint=Fixed(), limits=None, dynamics=None)
        couplings.remove(gear)
    actuators = [
        _moved_to_joint(a, moved[a.joint]) if a.joint in moved else a for a in model.actuators
    ]
    return model.replace(bodies=bodies, couplings=couplings, actuators=actuators, postures=())


def _driven_joint(gear, i):
    """Joint that rotor ``i`` drives, and the gear ratio."""
    ratio = gear.coefficients[1]
    return (gear.source, ratio) if gear.joint == i else (gear.joint, 1 / ratio)


def _moved_to_joint(actuator, gear):
    """Actuator moved from a rotor to its joint, with torque times the ratio."""
    joint, ratio = _driven_joint(gear, actuator.joint)
    c0, c1 = gear.coefficients  # the rotor is at ``ratio q + offset``
    offset = actuator.gear[0] * (c0 if gear.joint == actuator.joint else -c0 / c1)
    laws = {"gain": actuator.gain, "bias": actuator.bias}
    laws = {k: (c[0] + c[1] * offset, *c[1:]) for k, c in laws.items()}
    return replace(actuator, joint=joint, gear=(actuator.gear[0] * ratio,), **laws)


class ArmatureError(NamedTuple):
    """Errors of ``armature = ratio² I`` compared with rotors as bodies."""

    rotors: tuple[str, ...]
    """Names of the rotors."""
    inertia: float
    """Largest ``|ΔH_ij| / sqrt(H_ii H_jj)``."""
    bias: float
    """Largest difference of a joint force at zero acceleration, relative to the largest force."""

    def __str__(self):
        return (
            f"armature in place of {', '.join(self.rotors) or 'no rotors'}: inertia matrix off by "
            f"{self.inertia:.2g}, bias force by {self.bias:.2g}, relatively"
        )


@on_host
def armature_error(model: Model, q: ArrayLike, qd: ArrayLike | None = None) -> ArmatureError:
    """Relative errors of ``H`` and ``C`` by the approximation ``by_armature`` in a state.

    With loops these are those of the independent coordinates, see ``mass_matrix``.

    Args:
        model: with rotors as bodies, see ``add_rotor``.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv); at rest by default.

    Raises:
        ModelError: if nothing is a rotor.
    """
    names = rotors(as_model(model))
    if not names:
        raise ModelError(
            f"model {model.name!r} has no rotors: leaf bodies, round about their axes, that follow "
            f"or lead one joint by a constant ratio; kinetree.quantities.gears.add_rotor adds one"
        )
    q = as_configuration(model, q)
    qd = np.zeros(model.nv) if qd is None else as_joint_vector(model, qd, "qd")
    exact = _joints_lead(model)
    of_q, of_v = exact.independent_variables
    q, qd = model.expand(q)[..., of_q], model.expand_velocity(q, qd)[..., of_v]
    short = by_armature(model)
    y: dict = {"independent": coordinate_names(exact)} if model.is_constrained else {}
    H, C = mass_matrix(exact, q, **y), bias_force(exact, q, qd, **y)
    dH, dC = mass_matrix(short, q, **y) - H, bias_force(short, q, qd, **y) - C
    d = np.sqrt(np.diagonal(H, axis1=-2, axis2=-1))
    return ArmatureError(
        names,
        float(np.max(np.abs(dH) / (d[..., :, None] * d[..., None, :]))),
        float(np.max(np.abs(dC)) / max(np.max(np.abs(C)), np.finfo(float).tiny)),
    )


def _joints_lead(model):
    """Model in the variables of the driven joints instead of their rotors'."""
    gears = [g for i in range(1, model.body_count + 1) if (g := _gear(model, i)) and g.joint != i]
    turned = [
        Coupling(
            g.name,
            g.source,
            g.joint,
            (-g.coefficients[0] / g.coefficients[1], 1 / g.coefficients[1]),
        )
        for g in gears
    ]
    return model.replace(couplings=[*(c for c in model.couplings if c not in gears), *turned])


# --- rotors: bodies that spin on a carrier, geared to a joint ------------------------------------


@names_itself
def add_rotor(
    model: Model,
    joint: str,
    *,
    ratio: float,
    inertia: Inertia,
    on: str | None = None,
    at: Any = None,
    axis: Any = None,
    name: str | None = None,
    leads: Literal["joint", "rotor"] = "joint",
    dynamics: JointDynamics | None = None,
) -> Model:
    """Model with a motor's rotor: a body that turns ``ratio`` times as fast as a joint.

    It is carried by the body with the stator, so the rotation of that body has effects: gyroscopic
    forces and the small inertial couplings that ``armature = ratio² I`` leaves out, see
    ``kinetree.quantities.gears.armature_error``.

    Args:
        model: the mechanism.
        joint: name of the joint that the motor drives, with one variable.
        ratio: rotor angle per joint variable; negative for gears that turn against each other.
        inertia: ``Inertia`` of the rotor in its own frame, which turns about ``axis``.
        on: name of the body with the stator; by default the parent of the joint.
        at: where the rotor is on it: position (3,), pose (4, 4), ``Plucker``; default: the joint.
        axis: of the rotor; by default that of a revolute joint.
        name: of the rotor; by default that of the joint followed by ``_rotor``.
        leads: ``"joint"``, whose variable stays; or ``"rotor"``, whose angle takes its place.
        dynamics: damping, friction and so on in the bearings of the rotor.
    """
    i = model.joint_index(joint)
    moved, full = model.bodies[i - 1], model.uncoupled
    name = f"{joint}_rotor" if name is None else name
    if leads not in ("joint", "rotor"):
        raise ModelError(f"leads must be 'joint' or 'rotor', got {leads!r}")
    if ratio == 0:
        raise ModelError(f"ratio of rotor {name!r} must not be zero")
    if axis is None:
        axis = getattr(moved.joint, "axis", None) if isinstance(moved.joint, Revolute) else None
        if axis is None:
            raise ModelError(
                f"rotor {name!r} needs an axis: joint {joint!r} is a {type(moved.joint).__name__}"
            )
    parent = moved.parent if on is None else model.body_index(on)
    if at is None:
        at = moved.placement if on is None else None
    number = model.body_count + 1
    rotor = Body(
        name, parent, Revolute(axis), as_placement(at), inertia, f"{name}_joint", dynamics=dynamics
    )
    if leads == "joint":
        gear = Coupling(f"{name}_gear", number, i, (0.0, float(ratio)))
    else:
        gear = Coupling(f"{name}_gear", i, number, (0.0, 1 / ratio))
    q, v = full.q_slice[i].start, full.v_slice[i].start
    postures = [
        Posture(p.name, (*p.q, ratio * p.q[q]), (*p.qd, ratio * p.qd[v]) if p.moves else ())
        for p in full.postures
    ]
    return model.replace(
        bodies=(*model.bodies, rotor), couplings=(*model.couplings, gear), postures=postures
    )


guard_module(__name__)

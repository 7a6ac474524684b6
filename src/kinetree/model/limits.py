"""Limits of joints, as followers narrow them, and passive dynamics, as arrays over variables."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kinetree.errors import LoopError, ModelError
from kinetree.model.gearing import Gearing
from kinetree.model.parts import Limits

_SAMPLES, _HALVINGS, _FAR = 256, 60, 10.0


def travel(model) -> tuple:
    """Limits of every joint, narrowed to those of joints coupled to it; entry 0 is None.

    A joint that follows one other alone, in the end, may stop the other before its own limit. A
    follower of several joints bounds no single one of them. Limits of a follower that leave no
    travel at all, as some files have them, do not count (``kinetree.check`` tells).
    """
    own = [None, *(b.limits for b in model.bodies)]
    following = {c.joint for c in model.couplings}
    for c in model.couplings:
        leader, bounds = ultimate_leader(model, c.joint), own[c.joint]
        if leader is not None and bounds is not None:
            own[leader] = _narrow(model, c.joint, leader, own[leader], bounds)
    return tuple(None if i in following else limits for i, limits in enumerate(own))


def ultimate_leader(model, joint):
    """Number of the joint that a coupled joint follows in the end; None for several or none."""
    leaders = {c.joint: c.leaders for c in model.couplings}
    while joint in leaders:
        if len(leaders[joint]) != 1:
            return None
        joint = leaders[joint][0]
    return joint


def ratio_to_leader(model, joint):
    """Number of the leader and constant ratio ``dq/dq_leader`` of a coupled joint; else None."""
    leader = ultimate_leader(model, joint)
    ratio = constant_ratio(model, joint)
    return None if leader is None or ratio is None else (leader, ratio[model.v_slice[leader].start])


def constant_ratio(model, joint):
    """Row of ``G`` of a joint, (nv,), if it is constant; else None."""
    if not model.couplings:
        return np.eye(model.nv)[model.v_slice[joint].start]
    at, row = Gearing(model, model.neutral()), model.uncoupled.v_slice[joint].start
    return None if row in at.second else np.array(at.G[row], dtype=float)


def _narrow(model, joint, leader, own, bounds):
    """Limits of a leading joint such that a coupled joint stays within its own."""
    own = Limits() if own is None else own
    low, high = (x[0] if x else s * np.inf for x, s in ((own.lower, -1), (own.upper, 1)))
    lower, upper = (x[0] if x else s * np.inf for x, s in ((bounds.lower, -1), (bounds.upper, 1)))
    ratio = ratio_to_leader(model, joint)
    if ratio is None:
        low, high = _search(model, joint, leader, (low, high), (lower, upper))
        return replace(own, lower=low, upper=high)
    gain = ratio[1]
    if gain == 0:
        return own
    zero = _position(model, joint, leader, 0.0)
    ends = sorted(((lower - zero) / gain, (upper - zero) / gain))
    speed = (own.velocity[0] if own.velocity else np.inf,)
    if bounds.velocity:
        speed = (min(speed[0], bounds.velocity[0] / abs(gain)),)
    fields = {"velocity": speed} if np.isfinite(speed[0]) else {}
    low, high = max(low, ends[0]) + 0.0, min(high, ends[1]) + 0.0  # no zeros with a minus
    return own if low > high else replace(own, lower=low, upper=high, **fields)


def _position(model, joint, leader, x):
    """Position of a coupled joint when its leader is at ``x``."""
    q = model.neutral()
    q[model.q_slice[leader]] = x
    return model.expand(q)[model.uncoupled.q_slice[joint].start]


def _search(model, joint, leader, own, bounds):
    """Interval of the leader's travel, around its middle, in which the coupled joint fits."""
    middle = np.mean(own) if np.all(np.isfinite(own)) else np.clip(0.0, *own)

    def fits(x):
        return bounds[0] <= _position(model, joint, leader, x) <= bounds[1]

    ends = []
    for end in (max(own[0], middle - _FAR), min(own[1], middle + _FAR)):
        steps = np.linspace(middle, end, _SAMPLES)
        wrong = next((k for k, x in enumerate(steps) if not fits(x)), None)
        if wrong is None:
            ends.append(own[len(ends)])
            continue
        inside, outside = steps[max(wrong - 1, 0)], steps[wrong]
        for _ in range(_HALVINGS):
            x = (inside + outside) / 2
            inside, outside = (x, outside) if fits(x) else (inside, x)
        ends.append(inside)
    return ends


# --- limits of all joints as arrays over the variables, infinite where there is none -------------


class Bounds(NamedTuple):
    """Smallest and largest positions [m or rad], each (nq,)."""

    lower: np.ndarray
    upper: np.ndarray


def position_limits(model) -> Bounds:
    """Lower and upper bounds of the position variables, narrowed by coupled joints."""
    return Bounds(
        _collect(model, "lower", model.q_slice, model.nq, -np.inf),
        _collect(model, "upper", model.q_slice, model.nq, np.inf),
    )


def position_index(model) -> np.ndarray:
    """Index of the position variable of every velocity variable; -1 where there is none."""
    index = np.full(model.nv, -1)
    for joint, q, v in zip(model.joint[1:], model.q_slice[1:], model.v_slice[1:], strict=True):
        if joint.rates_are_velocities:
            index[v] = np.arange(q.start, q.stop)
    return index


def position_bounds(model):
    """Lower and upper position bounds by velocity variable, (nv,) each; infinite for none.

    Bounds are on position variables; they count where these are the integrals of velocities.
    """
    bounded = np.isfinite(model.position_limits).any()
    for i, body in enumerate(model.bodies if bounded else (), start=1):
        if body.joint.rates_are_velocities:
            continue
        for given, values in model.position_limits._asdict().items():
            if np.any(np.isfinite(values[model.q_slice[i]])):
                raise ModelError(
                    f"joint {body.joint_name!r} ({type(body.joint).__name__}) has a finite {given} "
                    f"limit, but its velocities are not the rates of its position variables, so "
                    f"that no stop can be put there: leave the limit out, or pass limits=None"
                )
    at, (lower, upper) = position_index(model), model.position_limits
    return np.where(at < 0, -np.inf, lower[at]), np.where(at < 0, np.inf, upper[at])


def velocity_limits(model):
    """Largest joint speeds, (nv,), narrowed by coupled joints."""
    return _collect(model, "velocity", model.v_slice, model.nv, np.inf)


def effort_limits(model):
    """Largest joint forces, (nv,)."""
    return _collect(model, "effort", model.v_slice, model.nv, np.inf)


def effort_bounds(model) -> np.ndarray:
    """Smallest and largest joint forces of actuators, (nv, 2); infinite for unknown efforts."""
    most = effort_limits(model)
    most = np.where(most > 0, most, np.inf)
    given = (
        _collect(model, f"effort_{end}", model.v_slice, model.nv, np.nan)
        for end in ("lower", "upper")
    )
    ends = [np.where(np.isnan(x), usual, x) for x, usual in zip(given, (-most, most), strict=True)]
    return np.stack(ends, axis=1)


def counted_compensation(model) -> np.ndarray:
    """For each variable 1 where gravity compensation counts as an actuator force, else 0, (nv,)."""
    counted = _collect(model, "effort_compensation", model.v_slice, model.nv, 0.0)
    return counted if model.gravity_compensation else 0 * counted


def _collect(model, name, slices, size, none):
    """Limits of one kind for all variables, read-only, with a default where there are none."""
    values = np.full(size, none)
    for at, limits in zip(slices, model.travel, strict=True):
        given = () if limits is None else getattr(limits, name)
        if given:
            values[at] = given
    values.flags.writeable = False
    return values


# --- Passive joint dynamics and actuators of a model, as arrays over all variables ---------------


def joint_values(model, name):
    """Armature, damping, friction or stiffness of every velocity variable of all joints."""
    parts = [np.zeros(0)]
    for b in model.bodies:
        given = () if b.dynamics is None else getattr(b.dynamics, name)
        parts.append(given or (0.0,) * b.joint.nv)
    values = np.concatenate(parts)
    values.flags.writeable = False
    return values


def has_dynamics(part, name) -> bool:
    """Whether the joint of a body, or a loop joint, has armature, damping and so on.

    A formula is taken for some.
    """
    values = () if part.dynamics is None else getattr(part.dynamics, name)
    return any(not isinstance(x, (int, float)) or x != 0 for x in values)


def joints_with(model, *names) -> tuple[str, ...]:
    """Names of tree and loop joints that have some of these dynamics, e.g. stiffness."""
    parts = [*((b.joint_name, b) for b in model.bodies), *((x.name, x) for x in model.loops)]
    return tuple(name for name, part in parts if any(has_dynamics(part, n) for n in names))


def has_passive_forces(model, *names) -> bool:
    """Whether the model has springs, dampers, friction, fluids or compensation, as named.

    Carried weight counts with ``"stiffness"``: both are forces of the position. Fluids count with
    ``"damping"``.
    """
    names = names or ("stiffness", "damping", "friction")
    known = model.memo.get(("has_passive_forces", names))
    if known is None:  # asked in every stage of a step
        carried = "stiffness" in names and model.gravity_compensation
        tendons = any(t.has(*names) for t in model.tendons)
        fluid = "damping" in names and model.fluid_forces
        known = bool(joints_with(model, *names) or carried or tendons or fluid)
        model.memo["has_passive_forces", names] = known
    return known


def actuation(model):
    """Matrix (nv, n_actuators) of joint forces per unit actuator force before its gear.

    What drives a joint that follows others acts on those that lead, by its ratio; a tendon acts on
    all of its joints.
    """
    B = np.zeros((model.nv, len(model.actuators)))
    tendons = {t.name: t for t in model.tendons}
    for k, a in enumerate(model.actuators):
        if a.loop:
            raise _varies(a, f"{model.driven_joint(a)!r}, which closes a loop")
        if a.frame:
            raise _varies(a, f"frame {a.frame!r}")
        if a.joint and model.joint[a.joint].nv:
            B[model.v_slice[a.joint], k] = a.gear
            continue
        pulled = tendons[a.tendon] if a.tendon else None
        if pulled is not None and pulled.path:
            raise _varies(a, f"tendon {a.tendon!r}, which runs through space")
        arms = (
            [(a.joint, 1.0)]
            if pulled is None
            else zip(pulled.joints, pulled.coefficients, strict=True)
        )
        for joint, arm in arms:
            if model.couplings or pulled is not None:
                ratio = constant_ratio(model, joint)
                if ratio is None:
                    name = model.joint_names[joint - 1]
                    raise _varies(a, f"{name!r}, which follows others by a ratio that varies")
                B[:, k] += ratio * arm * a.gear[0]
    B.flags.writeable = False
    return B


def _varies(actuator, what):
    """Error for an actuator whose effect in joint space depends on the configuration."""
    return LoopError(
        f"actuator {actuator.name!r} drives {what}: what it comes to in joint space depends on the "
        f"configuration, see kinetree.loops.actuation_matrix(model, q)"
    )

"""Dry friction and ends of travel of joints that close loops, and of tendons, in joint space.

The laws are those of joints in the tree, smooth friction and stiff limits. The variables that they
speak of are measured on the bodies, see ``kinetree.algorithms.closed.forces``, or are lengths.
"""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import tendons as texts
from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.errors import SingularError
from kinetree.integration.refusals import STOPS_OF_LOOPS
from kinetree.loops.kinematics.loop_joints import loop_motion_of, loop_slices
from kinetree.model.limits import has_dynamics
from kinetree.quantities import tendons as quantities
from kinetree.simulation.forces.applied import at_least, neutral_mobility, on_variables
from kinetree.simulation.forces.friction import REFERENCE_STEP, Friction
from kinetree.simulation.forces.limits import RigidLimits, StiffLimits
from kinetree.spatial.ops import sqrt


@dataclass(frozen=True)
class LoopJointForces:
    """Forces of loop joints of a model by friction and limits."""

    friction: Friction
    """The smooth law."""
    levels: tuple
    """Velocity variable of the loop joints, friction and width, of each that has some."""
    limits: StiffLimits
    """The law of stiff limits, with stops for variables of the loop joints."""
    traceable = True

    def __call__(self, model, t, q, qd):
        """Joint forces, (..., nv)."""
        x, v, B = self.motion(model, q, qd)
        forces: list = [0 * v[..., i] for i in range(v.shape[-1])]
        for i, c, width in self.levels:
            forces[i] = forces[i] + self.friction.smooth(c, v[..., i], width)
        for i_q, i, *stop in self.limits.stops:
            forces[i] = forces[i] + self.limits.push(x[..., i_q], v[..., i], *stop)
        columns = [B[..., i] * np.asarray(f)[..., None] for i, f in enumerate(forces)]
        return sum(columns[1:], columns[0])

    def motion(self, model, q, qd):
        """Loop joint positions and velocities, and the map ``B`` of forces to joint forces."""
        traced = np.asarray(qd).dtype == object
        return loop_joint_motion(model, q, qd) if traced else loop_motion_of(model, q, qd)


def loop_joint_forces_of(model, friction, limits) -> LoopJointForces | None:
    """``LoopJointForces`` (friction and limits) of a model; None without any.

    Args:
        model: the mechanism.
        friction: ``"smooth"``, ``"exact"``, None or a ``Friction``.
        limits: ``"stiff"``, ``"rigid"``, None, ``StiffLimits`` or ``RigidLimits``.
    """
    rough = [x for x in model.loops if has_dynamics(x, "friction")] if friction is not None else []
    bounded = [x for x in model.loops if is_bounded(x)] if limits is not None else []
    if not rough and not bounded:
        return None
    law, stiff = _laws(friction, limits)
    mobility, at = _mobility(model), loop_slices(model)
    levels = []
    for loop in rough:
        for i, c in enumerate(loop.dynamics.friction, start=at[loop.name].start):
            levels.append((i, c, _width(law, c * mobility[i])))
    stops = tuple(stop for loop in bounded for stop in _stops(model, loop, stiff, mobility))
    return LoopJointForces(law, tuple(levels), replace(stiff, stops=stops))


def _laws(friction, limits):
    """Smooth friction and stiff limits, given or default, for loop joints and tendons."""
    law = friction if isinstance(friction, Friction) else Friction()
    return law, limits if isinstance(limits, StiffLimits) else StiffLimits()


def first_exact(model, friction) -> str:
    """Description of the first loop joint or tendon with exact friction; "" without any."""
    return _first(model, _is_exact(friction), lambda x: has_dynamics(x, "friction"), _is_rough)


def first_rigid(model, limits) -> str:
    """Description of the first loop joint or tendon with rigid limits; "" without any."""
    return _first(model, _is_rigid(limits), is_bounded, lambda t: t.is_limited)


def _first(model, wanted, of_loop, of_tendon):
    """Description of the first loop joint or tendon with a property; "" if ``wanted`` is False."""
    loops = (f"joint {x.name!r}, which closes a loop" for x in model.loops if of_loop(x))
    tendons = (f"tendon {t.name!r}" for t in model.tendons if of_tendon(t))
    return next(chain(loops, tendons), "") if wanted else ""


def _is_rough(tendon):
    """Whether a tendon has dry friction."""
    return tendon.has("friction")


def is_bounded(loop) -> bool:
    """Whether a loop joint has finite limits; an error if its type cannot have any."""
    limits = loop.limits
    if limits is None or not np.any(np.isfinite([*limits.lower, *limits.upper])):
        return False
    if not loop.joint.rates_are_velocities:
        raise STOPS_OF_LOOPS.of(
            f"finite limits of joint {loop.name!r}",
            f"a {type(loop.joint).__name__}, whose velocities are not the rates of its positions",
        )
    return True


def _mobility(model):
    """Acceleration per unit force of each loop joint variable at neutral, loops open."""
    q: Any = model.neutral()
    B = loop_motion_of(model, q).B
    return np.diagonal(B.T @ neutral_mobility(model.spanning_tree) @ B)


def _width(law, acceleration):
    """Velocity width over which smooth friction of a loop joint or tendon is spread."""
    if law.width is not None and len(law.width) == 1:
        return law.width[0]
    return at_least(1e-4, acceleration * REFERENCE_STEP)


def _stops(model, loop, stiff, mobility):
    """Stiff stops of a loop joint: position and velocity index, sign, bound, spring, damper."""
    at_v, at_q = loop_slices(model)[loop.name].start, loop_slices(model, "nq")[loop.name].start
    for sign, bounds in ((1.0, loop.limits.lower), (-1.0, loop.limits.upper)):
        for k, bound in enumerate(bounds):
            if np.isfinite(bound):
                yield at_q + k, at_v + k, sign, bound, *_spring(stiff, 1 / mobility[at_v + k])


def _spring(stiff, inertia):
    """Stiffness and damping of a stop for a given effective inertia."""
    stiffness: Any = stiff.stiffness
    if stiffness is None or np.ndim(stiffness):
        stiffness = stiff.frequency**2 * inertia
    d = 2 * stiff.damping_ratio * sqrt(stiffness * inertia)
    return stiffness, d


# --- tendons: rates of lengths ``A qd`` and forces ``Aᵀ f`` --------------------------------------


@dataclass(frozen=True)
class TendonForces(LoopJointForces):
    """Forces of tendons of a model by friction and limits; its variables are their lengths."""

    def __call__(self, model, t, q, qd):
        """Joint forces, (..., nv)."""
        of_all = super().__call__
        return on_variables(model, q, qd, lambda full, q, qd: of_all(full, t, q, qd))

    def motion(self, model, q, qd):
        """Tendon lengths, their rates, and the map of tendon forces to joint forces."""
        of = texts if np.asarray(qd).dtype == object else quantities
        L, A = of.tendon_lengths(model, q), of.tendon_jacobian(model, q)
        return L, (A @ qd[..., None])[..., 0], np.swapaxes(A, -1, -2)


def _tendon_mobility(model):
    """Acceleration of each tendon length per unit tension, at sample configurations.

    Arms of tendons through space may vanish there: the largest of a few configurations counts.
    """
    full, places = model.uncoupled, [model.uncoupled.neutral()]
    if any(t.path for t in model.tendons):
        rng = np.random.default_rng(0)
        parts = ([joint.random(rng) for joint in full.joint[1:]] for _ in range(3))
        places += [np.concatenate([np.zeros(0), *part]) for part in parts]
    try:
        inverse = neutral_mobility(full.spanning_tree)
    except SingularError:  # massless joints, as in nominal_mobility
        inverse = np.eye(full.nv)
    arms = [texts.tendon_jacobian(full, q) for q in places]
    found, *others = [(A @ inverse * A).sum(axis=1) for A in arms]
    for mobility in others:
        found = at_least(found, mobility)
    return found


class TendonRows(NamedTuple):
    """Rigid limits and exact friction of tendons and loop joints, as rows of steps with contact.

    Velocity variables of loop joints have the numbers after those of the tendons.
    """

    stops: tuple
    """Number, sign of the bound (1 for a lower one), and bound."""
    friction: tuple
    """Number, and level [N or N·m]."""
    restitution: float
    """Of the stops."""


def tendon_rows_of(model, friction, limits) -> TendonRows | None:
    """``TendonRows`` of rigid limits and exact friction of tendons and loop joints, or None."""
    stops, rough, first = [], [], len(model.tendons)
    able = [(k, t) for k, t in enumerate(model.tendons) if t.moves_with(model)]
    if _is_rigid(limits):
        for k, t in able:
            stops += _finite(k, t.lower, t.upper)
        for loop in filter(is_bounded, model.loops):
            at = first + loop_slices(model)[loop.name].start
            for k, bounds in enumerate(zip(loop.limits.lower, loop.limits.upper, strict=True), at):
                stops += _finite(k, *bounds)
    if _is_exact(friction):
        rough += [(k, float(t.friction)) for k, t in able if t.has("friction")]
        for loop in model.loops:
            if has_dynamics(loop, "friction"):
                at = first + loop_slices(model)[loop.name].start
                rough += [(k, float(c)) for k, c in enumerate(loop.dynamics.friction, at) if c]
    bounce = limits.restitution if isinstance(limits, RigidLimits) else 0.0
    return TendonRows(tuple(stops), tuple(rough), bounce) if stops or rough else None


def has_rows_of_engine(model) -> bool:
    """Whether tendons or loop joints have limits or friction, which need engine rows."""
    tendons = any(t.is_limited or t.has("friction") for t in model.tendons)
    return tendons or any(is_bounded(x) or has_dynamics(x, "friction") for x in model.loops)


def _finite(number, lower, upper):
    """Finite stops of a variable as (number, sign, bound)."""
    both = (number, 1.0, float(lower)), (number, -1.0, float(upper))
    return [stop for stop in both if np.isfinite(stop[2])]


def _is_exact(friction):
    """Whether a friction option means exact sticking."""
    return friction == "exact" or getattr(friction, "exact", False)


def _is_rigid(limits):
    """Whether a limits option means rigid stops."""
    return limits == "rigid" or isinstance(limits, RigidLimits)


def tendon_forces_of(model, friction, limits) -> TendonForces | None:
    """``TendonForces`` (friction and limits) of a model's tendons; None without any."""
    able = [t for t in model.tendons if t.moves_with(model)]
    rough = [t for t in able if _is_rough(t)] if friction is not None else []
    bounded = [t for t in able if t.is_limited] if limits is not None else []
    if not rough and not bounded:
        return None
    law, stiff = _laws(friction, limits)
    mobility = at_least(np.finfo(float).tiny, _tendon_mobility(model))
    number = {t.name: k for k, t in enumerate(model.tendons)}
    levels = tuple(
        (number[t.name], t.friction, _width(law, t.friction * mobility[number[t.name]]))
        for t in rough
    )
    stops = []
    for t in bounded:
        k = number[t.name]
        for sign, bound in ((1.0, t.lower), (-1.0, t.upper)):
            if np.isfinite(bound):
                stops.append((k, k, sign, bound, *_spring(stiff, 1 / mobility[k])))
    return TendonForces(law, levels, replace(stiff, stops=tuple(stops)))

"""Assembling a mechanism: a configuration that closes its loops, from any guess — RBDA §8.1, §8.12.

The guess is improved by damped steps. Where they end in a gap, more starts around the guess are
tried, and the nearest assembly is taken; what still does not close is an error that says why.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from kinetree.algorithms.closed.independent import velocity_columns
from kinetree.algorithms.closed.rank import scaling
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.codegen.progress import working
from kinetree.errors import AssemblyError, LoopError, ShapeError
from kinetree.loops.kinematics.constraint import closing, loop_gaps, rank, velocity_matrix
from kinetree.loops.kinematics.descent import descend, limits_of, smallest_error
from kinetree.loops.kinematics.loop_joints import limit_distances
from kinetree.loops.kinematics.projection import POSITION_TOLERANCE
from kinetree.loops.kinematics.space import metric, space_of
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model, whole_number
from kinetree.quantities.kinematics import poses

_SPREADS = (0.1, 0.4, 1.0, 2.0, 3.0)  # of starts around a guess [rad or lengths of the mechanism]
_EACH = 6
_SLACK = 1e-9  # beyond the limit of a loop joint [m or rad]


@on_host
def assemble(
    model: Model,
    q: ArrayLike | None = None,
    *,
    hold: Sequence[str] | dict = (),
    weights: str | ArrayLike | None = None,
    limits: bool = False,
    tolerance: float = POSITION_TOLERANCE,
    iterations: int = 200,
    seed: int = 0,
) -> Array:
    """A configuration near the guess ``q`` that closes all loops and obeys all couplings.

    Args:
        model: the mechanism.
        q: guess [m, rad], (..., nq), however far from closed; by default the neutral position if
            that is closed, else the posture of the model that is nearest to closed.
        hold: names of joints that keep their position in the guess, or positions by joint name.
        weights: metric of "near": None, angles and lengths measured in lengths of the mechanism;
            else as in ``project_configuration``.
        limits: keep joints within their limits, loop joints too.
        tolerance: closure error to reach [rad, or fraction of the size of a loop].
        iterations: most steps from one start.
        seed: of the random starts around guesses that lead into a dead end.

    Returns:
        The configuration, (..., nq). Angles are not wrapped.

    Raises:
        AssemblyError: the loops do not close; the message says which, by how much, and why.
    """
    q = as_configuration(as_model(model), _guess(model) if q is None else q).astype(float)
    q, free = hold_joints(model, q, hold)
    flat, bounds = q.reshape(prod(q.shape[:-1]), model.nq), limits_of(model) if limits else None
    if bounds is not None:
        flat = _within(model, flat, bounds, free)
    options = {"tolerance": tolerance, "iterations": iterations}
    B = None if weights is None else metric(model, flat, weights)
    found = descend(model, flat, B=B, free=free, limits=bounds, **options)
    result, good = found.q, is_assembled(model, found, tolerance, limits)
    rng = np.random.default_rng(seed)
    for k in np.flatnonzero(~good):
        tried = _around(model, flat[k], free, bounds, rng, options)
        closed = tried.q[is_assembled(model, tried, tolerance, limits)]
        if not len(closed):
            sample = np.unravel_index(k, q.shape[:-1])
            raise _failure(model, tried, tuple(map(int, sample)), free, limits, options)
        away = [space_of(model).difference(flat[k], q) / scaling(model).columns for q in closed]
        result[k] = closed[int(np.argmin(np.linalg.norm(away, axis=1)))]
    return result.reshape(q.shape)


def _guess(model):
    """Configuration to start from: the posture whose loops are closest to closed."""
    guesses = np.array([model.neutral(), *(posture.q for posture in model.postures)])
    gaps = np.linalg.norm(closing(model, guesses)[0], axis=1)
    return guesses[int(np.argmin(np.maximum(gaps, 1e-9)))]  # the first of the closed ones


def scatter(model, q, spread, free, bounds, rng, count):
    """Random configurations around one, (count, nq); each angle within ``± spread`` rad."""
    step = rng.uniform(-spread, spread, (count, model.nv)) * scaling(model).columns * free
    q = space_of(model).move(np.tile(q, (count, 1)), step)
    return q if bounds is None else _within(model, q, bounds, free)


def _within(model, q, bounds, free):
    """Joints that are not held moved to the limits that they exceed."""
    movable = np.zeros(model.nq, dtype=bool)
    movable[bounds.q_of_v[free & (bounds.q_of_v >= 0)]] = True
    return np.where(movable, np.clip(q, bounds.lower, bounds.upper), q)


def _around(model, q, free, bounds, rng, options):
    """Configurations scattered around one, nearer and farther."""
    starts = [scatter(model, q, s, free, bounds, rng, _EACH) for s in _SPREADS]
    return descend(model, np.concatenate(starts), free=free, limits=bounds, **options)


def is_assembled(model, found, tolerance, limits):
    """Mask of the results of a descent that are closed, and within limits if required, (n,)."""
    good = found.error <= max(tolerance, smallest_error(model))
    if limits and any(loop.limits is not None for loop in model.loops):
        for lower, upper in limit_distances(model, found.q).values():
            good &= np.all((lower >= -_SLACK) & (upper >= -_SLACK), axis=-1)
    return good


def _failure(model, tried, sample, free, limits, options):
    """The error for a guess from which no start closes the loops."""
    best = tried.q[int(np.argmin(tried.error))]
    gaps = loop_gaps(model, best)
    part = max(gaps, key=lambda name: gaps[name])
    reason, advice = _reason(model, best, free, limits, options)
    return AssemblyError(
        f"model {model.name!r} cannot be assembled{f' in sample {sample}' if sample else ''}: "
        f"{part} stays open by {gaps[part]:.3g} m or rad after {1 + len(tried.q)} starts; {advice}",
        part=part,
        gap=float(gaps[part]),
        reason=reason,
        q=best,
    )


def _reason(model, q, free, limits, options):
    """Whether the held joints, the limits or the bodies are to blame."""
    rng = np.random.default_rng(1)

    def closes(free, bounds):
        found = _around(model, q, free, bounds, rng, options)
        return np.any(is_assembled(model, found, options["tolerance"], False))

    if limits and closes(free, None):
        return "limits", "it closes beyond the limits of its joints: pass limits=False"
    if not np.all(free) and closes(np.ones_like(free), None):
        joints = [
            repr(name)
            for name, at in zip(model.joint_names, model.v_slice[1:], strict=True)
            if at.stop > at.start and not free[at.start]  # joints are held whole
        ]
        return "held joints", f"it closes when {', '.join(joints)} may move: hold less"
    return (
        "out of reach",
        "no position was found that closes it: bodies too short or too long, or axes that do not "
        "fit; check the placements of the joint on both bodies",
    )


# --- held joints ---------------------------------------------------------------------------------


def hold_joints(model, q, hold):
    """Configurations with the held joints set, and which velocity variables stay free, (nv,).

    Args:
        model: the mechanism.
        q: configurations, (..., nq).
        hold: names of joints that stay where they are in ``q``, or positions by joint name.
    """
    names = [hold] if isinstance(hold, str) else list(hold)
    free = np.ones(model.nv, dtype=bool)
    free[velocity_columns(model, names, "hold")] = False
    q = np.array(q, dtype=float)
    for name, given in hold.items() if isinstance(hold, dict) else ():
        at = model.q_slice[model.joint_index(name)]
        value = np.atleast_1d(np.asarray(given, dtype=float))
        if value.shape != (at.stop - at.start,):
            raise ShapeError(
                f"joint {name!r} must be held at {at.stop - at.start} numbers, got {given!r}"
            )
        q[..., at] = value
    return q, free


# --- all assemblies for the same inputs: RBDA §8.10 ----------------------------------------------
# A four-bar has two assemblies for one position of its crank, a Stewart platform up to 40 (some
# of them complex) for one set of leg lengths. They are found by closing the loops from many starts;
# that finds all assemblies of simple linkages in practice, but proves of none that there are no
# more.

_ROUND = 64  # starts at a time
_SAME = 1e-5  # difference of poses, lengths in lengths of the mechanism
_SINGULAR = 1e-6  # singular value below which an assembly may be a double one


@on_host
@working("looking for assemblies")
def assemblies(
    model: Model,
    hold: Sequence[str] | dict = (),
    *,
    q: ArrayLike | None = None,
    by: Sequence[str] | None = None,
    limits: bool = False,
    starts: int = 512,
    tolerance: float = POSITION_TOLERANCE,
    seed: int = 0,
) -> np.ndarray:
    """All assemblies that were found, (count, nq); the one nearest to ``q`` first.

    Args:
        model: the mechanism.
        hold: names of joints that stay where ``q`` has them, or positions by joint name: as many
            as the mechanism has degrees of freedom, or the assemblies would not be isolated.
        q: where to look first, (nq,); neutral by default. Angles are given within ±π of it.
        by: names of bodies by which assemblies are distinguished; all by default.
        limits: take only assemblies within the limits of the joints, of loop joints too.
        starts: most random starts; fewer are used if three rounds of 64 in a row bring nothing new.
        tolerance: closure error [m or rad] of what counts as closed.
        seed: of the random starts.

    Raises:
        LoopError: the mechanism can still move if these joints are held.
    """
    q = np.array(as_configuration(as_model(model), model.neutral() if q is None else q), float)
    if q.ndim > 1:
        raise ShapeError(f"assemblies start from one configuration ({model.nq},), got {q.shape}")
    q, free = hold_joints(model, q, hold)
    starts = whole_number(starts, "starts")
    bounds, rng = limits_of(model) if limits else None, np.random.default_rng(seed)
    bodies = np.array([model.body_index(name) - 1 for name in by or model.body_names[1:]], int)
    found, idle, tried = np.zeros((0, model.nq)), 0, 0
    while tried < starts and idle < 3:
        count = min(_ROUND, starts - tried)
        some = scatter(model, q, np.pi, free, bounds, rng, count)
        some[0] = q if tried == 0 else some[0]
        ended = descend(model, some, free=free, limits=bounds, tolerance=tolerance, iterations=100)
        closed = ended.q[is_assembled(model, ended, tolerance, limits)]
        before, tried = len(found), tried + count
        found = _distinct(model, np.concatenate([found, closed]), bodies)
        idle = idle + 1 if len(found) == before else 0
    _require_isolated(model, found, free)
    found = np.array([_wrap_angles(model, q, other) for other in found]).reshape(
        len(found), model.nq
    )
    away = [space_of(model).difference(q, other) / scaling(model).columns for other in found]
    return found[np.argsort(np.linalg.norm(np.reshape(away, (len(found), model.nv)), axis=1))]


def _distinct(model, q, bodies):
    """Configurations whose bodies are in different places."""
    if not len(q):
        return q
    places = np.array(poses(model, q))[:, bodies, :3, :]
    places[..., 3] /= scaling(model).length
    kept: list[int] = []
    for k, place in enumerate(places):
        if (
            not kept
            or np.min(np.max(np.abs(places[kept] - place), axis=(1, 2, 3), initial=0.0)) > _SAME
        ):
            kept.append(k)
    return q[kept]


def _require_isolated(model, q, free):
    """Raise LoopError where assemblies can still move with the held joints as they are."""
    if not len(q):
        return
    left = int(np.sum(free) - np.max(ranks(model, q, np.flatnonzero(free), tolerance=_SINGULAR)))
    if left:
        raise LoopError(
            f"the joints that are held leave model {model.name!r} {left} "
            f"{'degree' if left == 1 else 'degrees'} of freedom, so that its assemblies are not "
            f"isolated; hold more joints"
        )


def _wrap_angles(model, reference, q):
    """``q`` with angles within ±π of a reference and quaternions on its side."""
    q = q.copy()
    for i in range(1, model.body_count + 1):
        joint, at = model.joint[i], model.q_slice[i]
        here, near = q[at], reference[at]
        for part in joint.unit_parts:
            here[part] *= 1.0 if here[part] @ near[part] >= 0 else -1.0
        for k in joint.angles:
            here[k] -= 2 * np.pi * np.round((here[k] - near[k]) / (2 * np.pi))
    return q


# --- nearby assemblies and their ranks -----------------------------------------------------------

_COUNT, _SPREAD = 24, 0.1  # rad or lengths of the mechanism
_TOLERANCE = 1e-6  # a singular value this small, relative to the largest, is that of a singularity


def assemblies_nearby(model, q, seed=0):
    """Assemblies about a tenth of a radian from ``q``, in random directions, (count, nq)."""
    if not model.is_constrained:
        return q[None]
    free, rng = np.ones(model.nv, dtype=bool), np.random.default_rng(seed)
    starts = scatter(model, q, _SPREAD, free, None, rng, _COUNT)
    found = descend(model, starts, tolerance=POSITION_TOLERANCE, iterations=100)
    return found.q[found.error <= max(POSITION_TOLERANCE, smallest_error(model))]


def ranks(
    model, q, columns: Any = slice(None), *, tolerance: float | None = _TOLERANCE
) -> np.ndarray:
    """Rank of some columns of ``K`` in every configuration (count, nq), (count,)."""
    if not len(q):
        return np.zeros(0, dtype=int)
    units, K = scaling(model).part(columns=columns), velocity_matrix(model, q)[..., columns]
    found = np.asarray(rank(units.apply(K), tolerance=tolerance))
    return np.minimum(found, rank(K, units))  # without what is nearly redundant

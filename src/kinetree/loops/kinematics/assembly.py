"""Assembling a mechanism: a configuration that closes its loops, from any guess — RBDA §8.1, §8.12.

The guess is improved by damped steps. Where they end in a gap, more starts around the guess are
tried, and the nearest assembly is taken; what still does not close is an error that says why.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from kinetree.algorithms.closed.independent import velocity_columns
from kinetree.algorithms.closed.rank import scaling
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import AssemblyError, ShapeError
from kinetree.loops.kinematics.constraint import closing, loop_gaps
from kinetree.loops.kinematics.descent import descend, limits_of, smallest_error
from kinetree.loops.kinematics.loop_joints import limit_distances
from kinetree.loops.kinematics.projection import POSITION_TOLERANCE
from kinetree.loops.kinematics.space import metric, space_of
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model

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
    """Configuration near the guess ``q`` that closes all loops and obeys all couplings.

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
    """Initial configuration for assembly: neutral, or the posture with the smallest loop errors."""
    guesses = np.array([model.neutral(), *(posture.q for posture in model.postures)])
    gaps = np.linalg.norm(closing(model, guesses)[0], axis=1)
    return guesses[int(np.argmin(np.maximum(gaps, 1e-9)))]  # the first of the closed ones


def scatter(model, q, spread, free, bounds, rng, count):
    """Random configurations (count, nq) around ``q``, angles within ±``spread`` [rad]."""
    step = rng.uniform(-spread, spread, (count, model.nv)) * scaling(model).columns * free
    q = space_of(model).move(np.tile(q, (count, 1)), step)
    return q if bounds is None else _within(model, q, bounds, free)


def _within(model, q, bounds, free):
    """Configurations with free joints clipped to their limits."""
    movable = np.zeros(model.nq, dtype=bool)
    movable[bounds.q_of_v[free & (bounds.q_of_v >= 0)]] = True
    return np.where(movable, np.clip(q, bounds.lower, bounds.upper), q)


def _around(model, q, free, bounds, rng, options):
    """Results of descents from configurations scattered around ``q``, near and far."""
    starts = [scatter(model, q, s, free, bounds, rng, _EACH) for s in _SPREADS]
    return descend(model, np.concatenate(starts), free=free, limits=bounds, **options)


def is_assembled(model, found, tolerance, limits):
    """Mask (n,) of descent results that are closed, and within limits if required."""
    good = found.error <= max(tolerance, smallest_error(model))
    if limits and any(loop.limits is not None for loop in model.loops):
        for lower, upper in limit_distances(model, found.q).values():
            good &= np.all((lower >= -_SLACK) & (upper >= -_SLACK), axis=-1)
    return good


def _failure(model, tried, sample, free, limits, options):
    """AssemblyError for a guess from which no start closes the loops."""
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
    """Reason and advice for a failed assembly: held joints, limits or body dimensions."""
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
    """Configurations with held joints set, and the mask (nv,) of free velocity variables.

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

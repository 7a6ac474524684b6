"""All assemblies of a mechanism for the same inputs, and those near a configuration — RBDA §8.10.

A four-bar has two assemblies for one position of its crank, a Stewart platform up to 40 (some of
them complex) for one set of leg lengths. They are found by closing the loops from many starts; that
finds all assemblies of simple linkages in practice, but proves of none that there are no more.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kinetree.algorithms.closed.rank import scaling
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.progress import working
from kinetree.errors import LoopError, ShapeError
from kinetree.loops.kinematics.assembly import hold_joints, is_assembled, scatter
from kinetree.loops.kinematics.constraint import rank, velocity_matrix
from kinetree.loops.kinematics.descent import descend, limits_of, smallest_error
from kinetree.loops.kinematics.projection import POSITION_TOLERANCE
from kinetree.loops.kinematics.space import space_of
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model, whole_number
from kinetree.quantities.kinematics import poses

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
    """All assemblies (count, nq) found for held joints, the one nearest to ``q`` first.

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
    """Configurations without those that place all bodies like an earlier one."""
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
    """Raise LoopError if an assembly can move although the held joints are fixed."""
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
    """Configurations with angles within ±π of a reference, quaternions on its side."""
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
    """Random assemblies about a tenth of a radian from ``q``, (count, nq)."""
    if not model.is_constrained:
        return q[None]
    free, rng = np.ones(model.nv, dtype=bool), np.random.default_rng(seed)
    starts = scatter(model, q, _SPREAD, free, None, rng, _COUNT)
    found = descend(model, starts, tolerance=POSITION_TOLERANCE, iterations=100)
    return found.q[found.error <= max(POSITION_TOLERANCE, smallest_error(model))]


def ranks(
    model, q, columns: Any = slice(None), *, tolerance: float | None = _TOLERANCE
) -> np.ndarray:
    """Rank of some columns of the constraint matrix at every configuration, (count,)."""
    if not len(q):
        return np.zeros(0, dtype=int)
    units, K = scaling(model).part(columns=columns), velocity_matrix(model, q)[..., columns]
    found = np.asarray(rank(units.apply(K), tolerance=tolerance))
    return np.minimum(found, rank(K, units))  # without what is nearly redundant

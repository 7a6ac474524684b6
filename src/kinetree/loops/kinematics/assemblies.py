"""The several ways in which a linkage can be put together for the same inputs — RBDA §8.10.

A four-bar has two assemblies for one position of its crank, a Stewart platform up to 40 (some
of them complex) for one set of leg lengths. They are found by closing the loops from many starts;
that finds all assemblies of simple linkages in practice, but proves of none that there are no more.
"""

import numpy as np

from kinetree.arrays.functions import on_host
from kinetree.errors import LoopError, ShapeError
from kinetree.loops.kinematics.assembly import is_assembled, scattered
from kinetree.loops.kinematics.descent import descend, limits_of
from kinetree.loops.kinematics.holding import held
from kinetree.loops.kinematics.neighbourhood import ranks
from kinetree.loops.kinematics.projection import POSITION_TOLERANCE
from kinetree.loops.kinematics.rank import scaling
from kinetree.loops.state_space.space import space_of
from kinetree.model.arrays import as_configuration, as_model
from kinetree.quantities.kinematics import poses

__all__ = ["assemblies"]

_ROUND = 64  # starts at a time
_SAME = 1e-5  # difference of poses, lengths in lengths of the mechanism
_SINGULAR = 1e-6  # singular value below which an assembly may be a double one


@on_host
def assemblies(
    model, hold=(), *, q=None, by=None, limits=False, starts=512, tolerance=POSITION_TOLERANCE,
    seed=0,
) -> np.ndarray:  # fmt: skip
    """All assemblies that were found, (count, nq); the one nearest to ``q`` first.

    Args:
        model: the mechanism.
        hold: names of joints that stay where ``q`` has them, or positions by joint name: as many
            as the mechanism has freedoms, or the assemblies would not be isolated.
        q: where to look first, (nq,); neutral by default. Angles are given within ±π of it.
        by: names of bodies that tell assemblies apart; all by default.
        limits: take only assemblies within the limits of the joints, of loop joints too.
        starts: most random starts; fewer are used if three rounds of 64 in a row bring nothing new.
        tolerance: closure error [m or rad] of what counts as closed.
        seed: of the random starts.

    Raises:
        LoopError: the joints that are held leave the mechanism some freedom.
    """
    q = as_configuration(as_model(model), model.neutral() if q is None else q).astype(float)
    if q.ndim > 1:
        raise ShapeError(f"assemblies start from one configuration ({model.nq},), got {q.shape}")
    q, free = held(model, q, hold)
    bounds, rng = limits_of(model) if limits else None, np.random.default_rng(seed)
    bodies = np.array([model.body_index(name) - 1 for name in by or model.body_names[1:]], int)
    found, idle, tried = np.zeros((0, model.nq)), 0, 0
    while tried < starts and idle < 3:
        count = min(_ROUND, starts - tried)
        some = scattered(model, q, np.pi, free, bounds, rng, count)
        some[0] = q if tried == 0 else some[0]
        ended = descend(model, some, free=free, limits=bounds, tolerance=tolerance, iterations=100)
        closed = ended.q[is_assembled(model, ended, tolerance, limits)]
        before, tried = len(found), tried + count
        found = _distinct(model, np.concatenate([found, closed]), bodies)
        idle = idle + 1 if len(found) == before else 0
    _require_isolated(model, found, free)
    found = np.array([_wrapped(model, q, other) for other in found]).reshape(len(found), model.nq)
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
    if not len(q):
        return
    left = int(np.sum(free) - np.max(ranks(model, q, np.flatnonzero(free), tolerance=_SINGULAR)))
    if left:
        raise LoopError(
            f"the joints that are held leave model {model.name!r} {left} "
            f"{'freedom' if left == 1 else 'freedoms'}, so that its assemblies are not isolated; "
            f"hold more joints"
        )


def _wrapped(model, reference, q):
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

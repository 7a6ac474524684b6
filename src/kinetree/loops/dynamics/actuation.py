"""Which freedoms of a mechanism its actuators move — RBDA §8.12.

With ``p`` actuated freedoms of velocities ``G_u yd``, a mechanism of mobility ``n - r`` is

    underactuated    rank(G_u) < n - r     some motions cannot be driven
    redundant        rank(G_u) < p         some actuator forces move nothing
    proper           neither

It may be both, and it depends on the configuration. Host-only: ranks are decisions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.algorithms.closed.rank import RANK_TOLERANCE, scaling
from kinetree.arrays.functions import on_host
from kinetree.errors import LoopError, ModelError, ShapeError, UnknownNameError
from kinetree.functional.layout import velocity_unit
from kinetree.loops.kinematics.constraint import constraint, rank
from kinetree.loops.kinematics.loop_joints import follower_ratios, loop_motion_of, loop_slices
from kinetree.model.arrays import as_configuration, as_model
from kinetree.spelling import did_you_mean

__all__ = [
    "Actuated",
    "Actuation",
    "actuated_freedoms",
    "actuation",
    "bounds_of",
    "velocity_space",
    "weights_of",
]


@dataclass(frozen=True, eq=False)
class Actuation:
    """How a mechanism is actuated; numbers, or arrays (...) for a batch of configurations.

    Attributes:
        joints: names of the actuated joints.
        freedoms: number of actuated freedoms, p.
        mobility: freedoms of the mechanism, n - r.
        rank: independent motions that the actuators drive, rank(G_u).
    """

    joints: tuple[str, ...]
    freedoms: int
    mobility: Any
    rank: Any

    @property
    def underactuated(self):
        """Whether some motions cannot be driven."""
        return self.rank < self.mobility

    @property
    def redundant(self):
        """Whether some actuator forces move nothing."""
        return self.rank < self.freedoms

    @property
    def proper(self):
        """Whether every motion is driven, by exactly one set of forces."""
        return (self.rank == self.mobility) & (self.rank == self.freedoms)

    @property
    def kind(self):
        """``"proper"``, ``"underactuated"``, ``"redundant"`` or ``"underactuated and redundant"``.

        An array of words for a batch.
        """
        words = np.array(
            [["proper", "redundant"], ["underactuated", "underactuated and redundant"]]
        )
        found = words[np.asarray(self.underactuated, int), np.asarray(self.redundant, int)]
        return found if np.ndim(found) else str(found)

    def __str__(self):
        if np.ndim(self.rank):
            found, counts = np.unique(self.kind, return_counts=True)
            return ", ".join(f"{kind} in {n}" for kind, n in zip(found, counts, strict=True))
        return (
            f"{self.kind}: {self.freedoms} actuated freedoms in {', '.join(self.joints)} drive "
            f"{self.rank} of {self.mobility} freedoms"
        )


class Actuated:
    """Actuated freedoms of a model, in joint space.

    Attributes:
        names: joints, of the tree or closing loops.
        slices: where the freedoms of each are among all actuated ones, by name.
        lengths: unit of each freedom's velocity: 1 for angles, the mechanism's length for shifts.
    """

    def __init__(self, model, names):
        self.model, self.names = model, tuple(names)
        self.slices, lengths, start = {}, [], 0
        for name in self.names:
            joint = _joint(model, name)
            self.slices[name] = slice(start, start + joint.nv)
            start += joint.nv
            units = (velocity_unit(joint, k) for k in range(joint.nv))
            lengths += [1.0 if unit == "rad" else scaling(model).length for unit in units]
        self.lengths = np.array(lengths)

    @property
    def count(self):
        """Number of actuated freedoms."""
        return len(self.lengths)

    def matrix(self, q):
        """``B`` with ``tau = B u``, and velocities ``Bᵀ qd`` of the freedoms, (..., nv, p)."""
        model, loops = self.model, loop_slices(self.model)
        B = np.zeros((*q.shape[:-1], model.nv, self.count))
        of_loops = loop_motion_of(model, q).B if set(self.names) & set(loops) else None
        for name, at in self.slices.items():
            if name in loops and of_loops is not None:
                B[..., at] = of_loops[..., loops[name]]
                continue
            i = model.joint_index(name)
            if model.joint[i].nv:
                B[..., model.v_slice[i], at] = np.eye(at.stop - at.start)
            else:
                B[..., at] = follower_ratios(model, q, i)[..., None]
        return B


def _joint(model, name):
    if name in model.loop_names:
        return model.loops[model.loop_names.index(name)].joint
    return model.bodies[model.joint_index(name) - 1].joint


def actuated_freedoms(model, joints=None) -> Actuated:
    """The freedoms of some joints; by default of those with actuators, or else of the whole tree.

    Args:
        model: the mechanism.
        joints: names of joints, of the tree or closing loops; or None.
    """
    if joints is None:
        driven = dict.fromkeys(map(model.driven_joint, model.actuators))
        joints = zip(model.joint_names, model.joint[1:], strict=True)
        moving = (name for name, joint in joints if joint.nv)
        return Actuated(model, driven or moving)
    if isinstance(joints, str):
        raise UnknownNameError(f"actuated must be names of joints in a list, got {joints!r}")
    known = (*model.joint_names, *model.loop_names)
    for name in joints:
        if name not in known:
            raise UnknownNameError(
                f"actuated: model {model.name!r} has no joint {name!r}; {did_you_mean(name, known)}"
            )
        if joints.count(name) > 1:
            raise ModelError(f"actuated names joint {name!r} {joints.count(name)} times")
        if _joint(model, name).nv == 0:
            raise LoopError(f"actuated: joint {name!r} has no freedom that could be driven")
    return Actuated(model, joints)


def velocity_space(model, K, *, tolerance: float | None = None):
    """``G`` of one configuration: columns that span the velocities which ``K`` allows, (nv, n - r).

    They are orthonormal in units of the mechanism.
    """
    units = scaling(model)
    if len(K) == 0:
        return np.diag(units.columns)
    V = np.linalg.svd(units.apply(K))[2]
    return units.columns[:, None] * V[rank(K, units, tolerance=tolerance) :].T


def driven_rank(G_u, freedoms: Actuated, *, tolerance=RANK_TOLERANCE) -> int:
    """Rank of ``G_u = Bᵀ G``, (p, n - r), in units of the mechanism."""
    if 0 in G_u.shape:
        return 0
    s = np.linalg.svd(G_u / freedoms.lengths[:, None], compute_uv=False)
    return int(np.sum(s > tolerance * max(s[0], 1.0)))


@on_host
def actuation(model, q, actuated=None, *, tolerance: float | None = None) -> Actuation:
    """How the mechanism is actuated at ``q``.

    Args:
        model: the mechanism, with or without loops and couplings.
        q: joint positions [m, rad], (..., nq).
        actuated: names of the actuated joints, of the tree or closing loops; by default those with
            actuators, or all joints of the tree if there are none.
        tolerance: singular values below this times the largest count as zero; None for the
            policy of ``rank``.
    """
    q = as_configuration(as_model(model), q)
    freedoms = actuated_freedoms(model, actuated)
    B, K = freedoms.matrix(q), constraint(model, q, np.zeros(model.nv)).K
    mobility, reached = (np.zeros(q.shape[:-1], dtype=int) for _ in range(2))
    for index in np.ndindex(q.shape[:-1]):
        G = velocity_space(model, K[index], tolerance=tolerance)
        mobility[index] = G.shape[1]
        smallest = RANK_TOLERANCE if tolerance is None else tolerance
        reached[index] = driven_rank(B[index].T @ G, freedoms, tolerance=smallest)
    return Actuation(freedoms.names, freedoms.count, mobility[()], reached[()])


# --- bounds and weights of actuator forces -------------------------------------------------------


def bounds_of(freedoms, given):
    """Smallest and largest force of every actuated freedom, (p,) each; None for no bounds.

    Args:
        freedoms: the ``Actuated`` freedoms.
        given: by joint name a number, for both directions, or a pair (smallest, largest), each a
            number or one per freedom; ``"model"`` for the bounds of the model; or None.
    """
    if given is None:
        return None, None
    if isinstance(given, str):
        if given != "model":
            raise UnknownNameError(
                f"bounds must be given by joint name, or be 'model' for those of the model, got "
                f"{given!r}"
            )
        given = {name: _of_model(freedoms.model, name) for name in freedoms.names}
    low, high = np.full(freedoms.count, -np.inf), np.full(freedoms.count, np.inf)
    for name, bounds in given.items():
        at = _slice(freedoms, name, "bounds")
        pair = (-np.asarray(bounds), bounds) if np.ndim(bounds) == 0 else bounds
        if len(pair) != 2:
            raise ShapeError(
                f"bounds of joint {name!r} must be one number or a pair (smallest, largest), got "
                f"{bounds!r}"
            )
        for bound, x in zip((low, high), pair, strict=True):
            bound[at] = _sized(x, at, f"bounds of joint {name!r}")
        if not np.all(low[at] <= high[at]):
            raise ModelError(
                f"bounds of joint {name!r} must be the smallest and the largest force, got "
                f"{low[at].tolist()} and {high[at].tolist()}"
            )
    return low, high


def weights_of(freedoms, given):
    """Weight of every actuated freedom's squared force, (p,); 1 where nothing is given."""
    weights = np.ones(freedoms.count)
    for name, x in (given or {}).items():
        at = _slice(freedoms, name, "weights")
        weights[at] = _sized(x, at, f"weight of joint {name!r}")
        if not (np.all(np.isfinite(weights[at])) and np.all(weights[at] > 0)):
            raise ModelError(f"weight of joint {name!r} must be positive and finite, got {x!r}")
    return weights


def _of_model(model, name):
    """What limits and actuators of a joint allow."""
    if name in model.loop_names:
        part = model.loops[model.loop_names.index(name)]
    else:
        part = model.bodies[model.joint_index(name) - 1]
    effort = part.limits.effort if part.limits is not None else ()
    high = np.array(effort) if effort else np.full(part.joint.nv, np.inf)
    low = -high
    actuators = [a for a in model.actuators if model.driven_joint(a) == name]
    if actuators:
        reach = np.zeros((2, part.joint.nv))
        for a in actuators:
            span = max(a.control[0], a.effort[0]), min(a.control[1], a.effort[1])
            for k, gear in enumerate(a.gear):
                if gear != 0:
                    reach[:, k] += sorted(gear * x for x in span)
        low, high = np.maximum(low, reach[0]), np.minimum(high, reach[1])
    return low, high


def _slice(freedoms, name, what):
    if name not in freedoms.slices:
        raise UnknownNameError(
            f"{what}: joint {name!r} is not actuated; {did_you_mean(name, freedoms.slices)}"
        )
    return freedoms.slices[name]


def _sized(x, at, what):
    x, n = np.asarray(x, dtype=float), at.stop - at.start
    if x.shape not in ((), (n,)) or np.any(np.isnan(x)):
        raise ShapeError(f"{what} must be one number or {n}, got {x}")
    return x

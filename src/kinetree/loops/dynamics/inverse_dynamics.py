"""Inverse dynamics of mechanisms with loops: forces of the actuators — RBDA §8.12.

Where many forces produce the motion, the smallest are returned, in a norm and within bounds of the
caller's choice. ``algorithms.closed.inverse_dynamics`` has the equations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.algorithms.closed.inverse_dynamics import (
    actuated_freedoms,
    driven_rank,
    velocity_space,
)
from kinetree.algorithms.closed.joint_space import CLOSURE_TOLERANCE
from kinetree.algorithms.closed.rank import RANK_TOLERANCE
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError, ShapeError, UnknownNameError, require_known
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.loop_joints import loop_motion_of
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model
from kinetree.quantities.closed_chains import actuator_forces
from kinetree.quantities.dynamics import external_forces


@dataclass(frozen=True, eq=False)
class Actuation:
    """How a mechanism is actuated; numbers, or arrays (...) for a batch of configurations.

    Attributes:
        joints: names of the actuated joints.
        freedoms: number of actuated degrees of freedom, p.
        mobility: degrees of freedom of the mechanism, n - r.
        rank: independent motions that the actuators drive, rank(G_u).
    """

    joints: tuple[str, ...]
    freedoms: int
    mobility: Any
    rank: Any

    @property
    def underactuated(self) -> bool | np.ndarray:
        """Whether some motions that the loops allow cannot be driven."""
        return self.rank < self.mobility

    @property
    def redundant(self) -> bool | np.ndarray:
        """Whether some combinations of actuator forces produce no motion."""
        return self.rank < self.freedoms

    @property
    def proper(self) -> bool | np.ndarray:
        """Whether every motion is driven by exactly one set of actuator forces."""
        return (self.rank == self.mobility) & (self.rank == self.freedoms)

    @property
    def kind(self) -> str | np.ndarray:
        """Kind of actuation: "proper", "underactuated", "redundant", or both of the latter.

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
            f"{self.kind}: {self.freedoms} actuated degrees of freedom in {', '.join(self.joints)} "
            f"drive {self.rank} of {self.mobility} degrees of freedom"
        )


@dataclass(frozen=True, eq=False)
class ActuatorForces:
    """Forces of the actuators of a mechanism with loops, and the joint forces that result.

    Attributes:
        u: forces of the actuated joints by name [N or N·m], each (..., nv of the joint).
        tau: all joint forces, (..., nv): those of the actuators and of springs, dampers and
            friction. ``forward_dynamics`` takes these and returns the acceleration again.
        lam: constraint forces of the loop joints along ``T``, then of the couplings, (..., nc); the
            smallest, where they are not unique.
        unique: which of them are unique, (..., nc).
        actuation: how the mechanism is actuated in these configurations.
    """

    u: dict[str, np.ndarray]
    tau: np.ndarray
    lam: np.ndarray
    unique: np.ndarray
    actuation: Actuation


@on_host
def inverse_dynamics(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    actuated: Sequence[str] | None = None,
    weights: dict | None = None,
    bounds: dict | str | None = None,
    f_ext: ArrayLike | dict | None = None,
    closure_tolerance: float = CLOSURE_TOLERANCE,
) -> ActuatorForces:
    """Forces of the actuated joints that produce the acceleration ``qdd``, with loops closed.

    Args:
        model: the mechanism, with loops, couplings, or neither.
        q: positions of the tree joints [m, rad], (..., nq), at which the loops are closed.
        qd: velocities of the tree joints [m/s, rad/s], (..., nv), which the loops allow.
        qdd: accelerations of the tree joints [m/s², rad/s²], (..., nv), likewise.
        actuated: names of the actuated joints, of the tree or closing loops; by default those with
            actuators, or all joints of the tree if there are none.
        weights: by joint name; of many solutions, that with the smallest ``Σ w u²`` is returned. 1
            by default, newtons and newton-metres alike.
        bounds: largest forces by joint name: a number for both directions, or a pair; or
            ``"model"`` for the efforts of its limits and actuators.
        f_ext: forces acting on bodies, as in ``kinetree.inverse_dynamics``.
        closure_tolerance: loop error [rad, or fraction of the size of the loop] above which the
            motion is rejected.

    Raises:
        ShapeError: for positions, velocities or accelerations that the loops do not allow.
        SingularError: where the actuated joints cannot produce the acceleration, or not within
            the bounds.
    """
    freedoms = actuated_freedoms(as_model(model), actuated)
    w, limits = weights_of(freedoms, weights), bounds_of(freedoms, bounds)
    forces = None if f_ext is None else external_forces(model, f_ext)
    found = actuator_forces(
        model,
        freedoms,
        q,
        qd,
        qdd,
        forces,
        weights=w,
        bounds=limits,
        tolerance=closure_tolerance,
    )
    return ActuatorForces(
        u={name: found.u[..., at] for name, at in freedoms.slices.items()},
        tau=found.tau,
        lam=found.lam,
        unique=found.unique,
        actuation=Actuation(freedoms.names, freedoms.count, found.mobility[()], found.rank[()]),
    )


# --- Which degrees of freedom of a mechanism its actuators move — RBDA §8.12 ---------------------
# With ``p`` actuated degrees of freedom, of velocities ``G_u yd``, a mechanism of mobility
# ``n - r`` is
#
#     underactuated    rank(G_u) < n - r     some motions cannot be driven
#     redundant        rank(G_u) < p         some actuator forces move nothing
#     proper           neither
#
# It may be both, and it depends on the configuration. CPU only: ranks are decisions.


@on_host
def actuation(
    model: Model,
    q: ArrayLike,
    actuated: Sequence[str] | None = None,
    *,
    tolerance: float | None = None,
) -> Actuation:
    """``Actuation`` of the mechanism at ``q``: rank of the drives and mobility.

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
    B_loops = loop_motion_of(model, q).B if freedoms.in_loop_joints else None
    B, K = freedoms.matrix(q, B_loops), constraint(model, q, np.zeros(model.nv)).K
    mobility, reached = (np.zeros(q.shape[:-1], dtype=int) for _ in range(2))
    for index in np.ndindex(q.shape[:-1]):
        G = velocity_space(model, K[index], tolerance=tolerance)
        mobility[index] = G.shape[1]
        smallest = RANK_TOLERANCE if tolerance is None else tolerance
        reached[index] = driven_rank(B[index].T @ G, freedoms, tolerance=smallest)
    return Actuation(freedoms.names, freedoms.count, mobility[()], reached[()])


# --- bounds and weights of actuator forces -------------------------------------------------------


def bounds_of(freedoms, given):
    """Lower and upper force bounds of all actuated freedoms, (p,) each; None for none.

    Args:
        freedoms: the ``Actuated`` degrees of freedom.
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
            bound[at] = _require_size(x, at, f"bounds of joint {name!r}")
        if not np.all(low[at] <= high[at]):
            raise ModelError(
                f"bounds of joint {name!r} must be the smallest and the largest force, got "
                f"{low[at].tolist()} and {high[at].tolist()}"
            )
    return low, high


def weights_of(freedoms, given):
    """Weights of the squared forces of all actuated freedoms, (p,), 1 by default."""
    weights = np.ones(freedoms.count)
    for name, x in (given or {}).items():
        at = _slice(freedoms, name, "weights")
        weights[at] = _require_size(x, at, f"weight of joint {name!r}")
        if not (np.all(np.isfinite(weights[at])) and np.all(weights[at] > 0)):
            raise ModelError(f"weight of joint {name!r} must be positive and finite, got {x!r}")
    return weights


def _of_model(model, name):
    """Lower and upper force bounds of a joint from its effort limits and actuators."""
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
            for k, gear in enumerate(a.gear):
                if gear != 0:
                    reach[:, k] += sorted(gear * x for x in a.force_range)
        low, high = np.maximum(low, reach[0]), np.minimum(high, reach[1])
    return low, high


def _slice(freedoms, name, what):
    """Slice of an actuated joint's freedoms; UnknownNameError if it is not actuated."""
    require_known(name, freedoms.slices, f"{what}: joint {name!r} is not actuated")
    return freedoms.slices[name]


def _require_size(x, at, what):
    """``x`` as an array: one number, or one per joint variable; else ShapeError."""
    x, n = np.asarray(x, dtype=float), at.stop - at.start
    if x.shape not in ((), (n,)) or np.any(np.isnan(x)):
        raise ShapeError(f"{what} must be one number or {n}, got {x}")
    return x

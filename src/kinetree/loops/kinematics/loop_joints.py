"""Joints that close loops, by name: where they are, how they move, what forces along them do.

The variables of a loop joint are not part of ``q``; they follow from the two bodies. Angles are
known up to whole turns: they are measured within half a turn of the middle of the joint's limits,
or else of the rest position of its spring, or else of zero.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.actuators import transmission
from kinetree.algorithms.closed.forces import LoopJointMotion, loop_joint_motion
from kinetree.algorithms.closed.inverse_dynamics import loop_slices
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.functional.kernel import kernel
from kinetree.joints import Fixed
from kinetree.loops.kinematics.constraint import call_compiled
from kinetree.model import Body, Loop, Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model, as_numbers
from kinetree.spatial import Inertia
from kinetree.spelling import did_you_mean


class LimitDistance(NamedTuple):
    """Distances of a joint from its limits [m or rad]; negative beyond, infinite without limits."""

    lower: np.ndarray
    upper: np.ndarray


@on_host
def loop_positions(model: Model, q: ArrayLike) -> dict:
    """Positions of all loop joints by name [m or rad], each (..., nq_k)."""
    found = loop_motion_of(model, q)
    return {name: found.q[..., part] for name, part in loop_slices(model, "nq").items()}


@on_host
def loop_velocities(model: Model, q: ArrayLike, qd: ArrayLike) -> dict:
    """Velocities of all loop joints by name [m/s or rad/s], each (..., nv_k)."""
    found = loop_motion_of(model, q, qd)
    return {name: found.qd[..., part] for name, part in loop_slices(model).items()}


@on_host
def loop_joint_forces(model: Model, q: ArrayLike, forces: dict) -> np.ndarray:
    """Joint forces (..., nv) equivalent to forces along loop joints: ``Σ J_Lᵀ T_a f``.

    They count as part of ``tau``; those of springs, dampers and friction are in ``passive_force``
    already.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        forces: by name of the loop joint [N or N·m], each (..., nv_k), or a number for a joint of
            one freedom.
    """
    B, slices = loop_motion_of(model, q).B, loop_slices(model)
    tau = np.zeros(B.shape[:-1])
    for name, given in forces.items():
        part = slices[_require_known(name, slices, model)]
        f, n = as_numbers(given, f"force of loop joint {name!r}"), part.stop - part.start
        f = f[None] if f.ndim == 0 else f
        if f.shape[-1:] != (n,):
            raise ShapeError(
                f"force of loop joint {name!r} must have shape (..., {n}), got {f.shape}"
            )
        tau = tau + (B[..., part] * f[..., None, :]).sum(-1)
    return tau


@on_host
def actuation_matrix(model: Model, q: ArrayLike) -> np.ndarray:
    """Joint forces per unit actuator force before its gear, (..., nv, n_actuators).

    ``model.actuation`` for mechanisms that also have actuators in loop joints, on frames, or in
    joints that follow others by a ratio that varies: their moment arms depend on the configuration.
    """
    q = as_configuration(model, q)
    if not (model.nv and model.actuators):
        return np.zeros((*q.shape[:-1], model.nv, len(model.actuators)))
    return np.asarray(call_compiled(_arms, model, q))


@kernel
def _arms(model, q):
    """Kernel of the moment arms of all actuators, (nv, n_actuators)."""
    return transmission(model, q, model.zero_velocity).arms


@on_host
def limit_distances(model: Model, q: ArrayLike) -> dict:
    """``LimitDistance`` of every loop joint with limits, by name.

    A simulation stops, or pushes back, where one of the numbers becomes negative.
    """
    distances = {}
    for loop, (name, at) in zip(model.loops, loop_positions(model, q).items(), strict=True):
        if loop.limits is not None:
            lower = np.array(loop.limits.lower or [-np.inf] * loop.joint.nq)
            upper = np.array(loop.limits.upper or [np.inf] * loop.joint.nq)
            distances[name] = LimitDistance(at - lower, upper - at)
    return distances


def loop_motion_of(model, q, qd=None) -> LoopJointMotion:
    """``LoopJointMotion``: positions, velocities and ``B`` of all loop joints, batched."""
    q = as_configuration(as_model(model), q)
    qd = np.zeros(model.nv) if qd is None else as_joint_vector(model, qd, "qd")
    counts = [sum(getattr(loop.joint, n) for loop in model.loops) for n in ("nq", "nv")]
    if 0 in (*counts, model.nv):
        batch = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1])
        return LoopJointMotion(
            np.zeros((*batch, counts[0])),
            np.zeros((*batch, counts[1])),
            np.zeros((*batch, model.nv, counts[1])),
        )
    return LoopJointMotion(*call_compiled(_motion, model, q, qd))


@kernel
def _motion(model, q, qd):
    """Kernel of positions and velocities of loop joints, and ``B``."""
    return tuple(loop_joint_motion(model, q, qd))


def _require_known(name, slices, model):
    """``name`` itself; UnknownNameError if it is not a loop joint."""
    if name in slices:
        return name
    raise UnknownNameError(
        f"model {model.name!r} has no loop joint {name!r}; {did_you_mean(name, slices)}"
    )


# --- loops closed by welds: RBDA §8.3 ------------------------------------------------------------
# A zero-DoF joint can close any loop, if the joint that did so before moves into the tree together
# with a massless body. That makes joint variables of the loop joints and needs one kind of loop
# joint only. The price is six constraints for every loop, and an inertia matrix that is singular:
# methods that factorise it fail, the null-space and KKT methods do not.


def weld_loops(model: Model) -> Model:
    """Copy of the model with loop joints as tree joints, and loops closed by welds.

    Each loop joint is now the joint of a separate massless body, after all others, and keeps its
    name, limits and dynamics; the weld is called after it. Actuators of loop joints are left out.
    """
    nothing = Inertia(0.0, np.zeros(3), np.zeros((3, 3)))
    bodies, loops = list(model.bodies), []
    for loop in model.loops:
        bodies.append(
            Body(
                name=f"{loop.name} frame",
                parent=loop.predecessor,
                joint=loop.joint,
                placement=loop.predecessor_placement,
                inertia=nothing,
                joint_name=loop.name,
                limits=loop.limits,
                dynamics=loop.dynamics,
            )
        )
        loops.append(
            Loop(
                name=f"{loop.name} weld",
                predecessor=len(bodies),
                successor=loop.successor,
                joint=Fixed(),
                successor_placement=loop.successor_placement,
            )
        )
    actuators = tuple(a for a in model.actuators if not a.loop)
    return model.replace(bodies=tuple(bodies), loops=tuple(loops), actuators=actuators, postures=())


@on_host
def welded_state(model: Model, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
    """State of ``weld_loops(model)`` for a state of ``model`` with closed loops."""
    where, moving = loop_positions(model, q), loop_velocities(model, q, qd)
    return (
        np.concatenate([q, *where.values()], axis=-1),
        np.concatenate([qd, *moving.values()], axis=-1),
    )

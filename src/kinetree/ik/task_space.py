"""Task-space dynamics as functions of the pose of the task, not of ``q`` — Lynch & Park §9.6.

``Lambda(X)`` and ``eta(X, V)`` stand for ``Lambda(q)`` and ``eta(q, qd)`` with ``q`` found by
inverse kinematics and ``qd = J⁻¹ V``. The text recommends to keep ``q``, and so do we: a pose may
belong to several configurations, of which the search takes one near ``q0``, or to none.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.jacobians import singular_jacobian
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, SingularError
from kinetree.ik.solve import inverse_kinematics
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.quantities.kinematics import Coordinates, Rows, joint_velocity
from kinetree.quantities.task_space import operational_space_dynamics


class PoseDynamics(NamedTuple):
    """``F = inertia @ dV/dt + coriolis + gravity`` at a pose and a velocity of the task."""

    inertia: Any
    """``Lambda(X)``, (..., k, k)."""
    coriolis: Any
    """Velocity terms, (..., k)."""
    gravity: Any
    """What holds the task against gravity, (..., k)."""
    q: Any
    """The configuration that was found for the pose, (..., nq)."""
    qd: Any
    """Joint velocities of the task's velocity, (..., nv)."""


@on_host
def dynamics_at_pose(
    model: Model, name: str, pose: ArrayLike, velocity: ArrayLike, q0: ArrayLike | None = None, *,
    frame: Coordinates = "world", rows: Rows = None, **options: Any,
) -> PoseDynamics:  # fmt: skip
    """Equation of motion of a frame at a pose ``X`` and a velocity ``V``, on the CPU.

    Args:
        model: the mechanism, for which ``V`` determines ``qd``: six joints, say; with more, the
            shortest ``qd`` is taken.
        name: name of the frame or body.
        pose: its pose ``X`` in the base, (..., 4, 4).
        velocity: its velocity ``V``, or the coordinates of it in ``rows``, (..., k).
        q0: where the search for the configuration begins, (..., nq).
        frame: meaning of ``V``, as in ``jacobian``.
        rows: which coordinates belong to the task, as in ``operational_space_inertia``; all six by
            default.
        **options: of ``inverse_kinematics``: ``limits``, ``tolerance``, ``restarts`` and so on.

    Raises:
        UnreachableError: no configuration was found for the pose.
        SingularError: some velocities of the frame are impossible there.
    """
    if np.shape(pose)[-2:] != (4, 4):
        raise ShapeError(f"pose must be homogeneous matrices (..., 4, 4), got {np.shape(pose)}")
    if not as_model(model).nv:
        raise SingularError(singular_jacobian(model, model.frame(name)))
    q = inverse_kinematics(model, name, pose, q0, **options).require()
    qd = joint_velocity(model, q, velocity, name, frame=frame, rows=rows)
    equation = operational_space_dynamics(model, q, qd, name, frame=frame, rows=rows)
    return PoseDynamics(*equation, q, qd)

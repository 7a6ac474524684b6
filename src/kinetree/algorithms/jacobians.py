"""Motion of frames: poses, Jacobians, their rates, velocities, accelerations — RBDA (4.6), §2.11.

Six coordinates of a frame's velocity, angular first, can mean three things; ``reference`` says
which, and no function mixes them (6-D guide 2, "Jacobians"):

- ``"world"``: spatial velocity in base coordinates. Its linear part is the velocity of the point
  of the body that passes through the origin of the *base*.
- ``"body"``: spatial velocity in the frame's own coordinates.
- ``"aligned"``: angular velocity, and velocity of the frame's origin, along the axes of the base:
  the textbook geometric Jacobian.

A ``point`` (3,) [m], given in frame coordinates, takes the place of the frame's origin in the
latter two. In each, velocities are ``J qd`` and their rates ``J qdd + Jd qd``, apart from what
prescribed joints add.
"""

import numpy as np

from kinetree.algorithms.kinematics import (
    base_transforms,
    body_accelerations,
    body_velocities,
    joint_transforms,
    subspace_rate,
)
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.spatial import Motion, Plucker, crm, cross, xlt
from kinetree.spatial.vector3 import ZERO3, as_vector3

__all__ = [
    "body_jacobian",
    "frame_acceleration",
    "frame_jacobian",
    "frame_jacobian_rate",
    "frame_pose",
    "frame_velocity",
]


def frame_pose(model, q, frame):
    """The 4×4 pose of a frame in the base: maps frame to base coordinates of points."""
    kappa = model.support[frame.body]
    X, _ = joint_transforms(model, q, kappa)
    return (frame.placement @ base_transforms(model, X, kappa)[frame.body]).to_pose()


def body_jacobian(model, q, i):
    """``J_i``, motion columns in base coordinates with ``J_i qd = v_i`` — RBDA (4.6)."""
    kappa = model.support[i]
    X, S = joint_transforms(model, q, kappa)
    X_0 = base_transforms(model, X, kappa)
    return _columns(model, model.scalar_type(q), {j: X_0[j].inv_apply(S[j]) for j in kappa})


def frame_jacobian(model, q, frame, reference="world", point=None):
    """Jacobian of a frame, (6, nv).

    Args:
        model: the mechanism.
        q: configuration, (nq,).
        frame: a ``Frame``, see ``model.frame``.
        reference: ``"world"``, ``"body"`` or ``"aligned"``.
        point: a point of the frame to use in place of its origin [m], (3,).
    """
    kappa = model.support[frame.body]
    X, S = joint_transforms(model, q, kappa)
    carry = _carriers(model, X, frame, reference, point)
    return _columns(model, model.scalar_type(q), {i: carry[i](S[i]) for i in kappa}).to_array()


def frame_jacobian_rate(model, q, qd, frame, reference="world", point=None):
    """Time derivative of the entries of ``frame_jacobian``, (6, nv)."""
    kappa = model.support[frame.body]
    X, v = body_velocities(model, q, qd, kappa)
    _, S = joint_transforms(model, q, kappa)
    carry = _carriers(model, X, frame, reference, point)
    u = _coordinate_velocity(carry[frame.body](v[frame.body]), reference)
    rates = {}
    for i in kappa:
        Sd = subspace_rate(model, i, q, qd, v[i])
        rates[i] = carry[i](Sd) - crm(u, carry[i](S[i]))  # RBDA (2.44)
    return _columns(model, model.scalar_type(q, qd), rates).to_array()


def frame_velocity(model, q, qd, frame, reference="world", point=None):
    """Velocity of a frame, (6,), in the coordinates that ``reference`` names."""
    X, v = body_velocities(model, q, qd, model.support[frame.body])
    return _carriers(model, X, frame, reference, point)[frame.body](v[frame.body]).to_array()


def frame_acceleration(model, q, qd, qdd, frame, reference="world", kind="spatial", point=None):
    """True acceleration of a frame, gravity not subtracted, (6,).

    Args:
        model: the mechanism.
        q: configuration, (nq,).
        qd: velocity, (nv,).
        qdd: acceleration, (nv,); zero gives the velocity-product acceleration ``Jd qd``.
        frame: a ``Frame``, see ``model.frame``.
        reference: ``"world"``, ``"body"`` or ``"aligned"``.
        kind: ``"spatial"``, the derivative of the spatial velocity, which adds and transforms like
            a velocity; or ``"classical"``, whose linear part is the acceleration of a point of the
            body, what an accelerometer would feel — RBDA (2.50).
        point: a point of the frame to use in place of its origin [m], (3,).
    """
    if kind not in ("spatial", "classical"):
        raise UnknownNameError(f"kind must be 'spatial' or 'classical', got {kind!r}")
    X, v, a = body_accelerations(model, q, qd, qdd, bodies=model.support[frame.body])
    carry = _carriers(model, X, frame, reference, point)[frame.body]
    v, a = carry(v[frame.body]), carry(a[frame.body])
    if kind == "classical":
        a = Motion(a.angular, a.linear + cross(v.angular, v.linear))
    return a.to_array()


def _carriers(model, X, frame, reference, point) -> dict:
    """For each body that carries the frame, the map of its motions to the reference coordinates."""
    kappa = model.support[frame.body]
    F_X_b = frame.placement
    if point is not None:
        if reference == "world":
            raise ShapeError(
                "velocities in world coordinates do not depend on the point; leave it out, or use "
                "reference 'aligned' for the velocity of the point"
            )
        F_X_b = xlt(as_vector3(point, "the point")) @ F_X_b
    if reference == "body":
        carry, F_X_i = {}, F_X_b
        for i in reversed(kappa):
            carry[i] = F_X_i.apply
            F_X_i = F_X_i @ X[i]
        return {0: F_X_i.apply, **carry}
    if reference not in ("world", "aligned"):
        raise UnknownNameError(f"reference must be 'world', 'body' or 'aligned', got {reference!r}")
    X_0 = base_transforms(model, X, kappa)
    origin = (F_X_b @ X_0[frame.body]).r if reference == "aligned" else ZERO3
    return {i: Plucker(X_0[i].E, X_0[i].r - origin).inv_apply for i in (0, *kappa)}


def _coordinate_velocity(v, reference):
    """Velocity of the reference coordinates when the frame has velocity ``v`` in them."""
    if reference == "world":
        return Motion.zero()
    return v if reference == "body" else Motion(ZERO3, v.linear)


def _columns(model, dtype, parts):
    """Motion columns for all velocity variables, zero for joints that do not support the body."""
    J = Motion(*(np.zeros((3, model.nv), dtype=dtype) for _ in range(2)))
    for i, part in parts.items():
        J.angular[:, model.v_slice[i]] = part.angular
        J.linear[:, model.v_slice[i]] = part.linear
    return J

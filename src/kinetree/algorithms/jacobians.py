"""Motion of frames: poses, Jacobians, their derivatives, velocities, accelerations — RBDA (4.6).

Six coordinates of a frame's velocity, angular first, can mean three things; ``reference`` says
which, and no function mixes them (RBDA §2.8, §4.2, 6-D guide 2, "Jacobians"):

- ``"world"``: spatial velocity in base coordinates. Its linear part is the velocity of the point
  of the body that passes through the origin of the *base*.
- ``"body"``: spatial velocity in the frame's own coordinates.
- ``"aligned"``: angular velocity, and velocity of the frame's origin, along the axes of the base:
  the textbook geometric Jacobian.

A ``point`` (3,) [m], given in frame coordinates, takes the place of the frame's origin in the
latter two. An ``observer``, another frame, takes the place of the base in all three: motions are
relative to it, and only the joints between the two frames matter. In each reference, velocities
are ``J qd`` and their rates ``J qdd + Jd qd``, apart from what prescribed joints add.
"""

import numpy as np

from kinetree.algorithms.coupled import columns, curved, for_all_joints, rates_of
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import (
    base_transforms,
    body_accelerations,
    body_velocities,
    joint_transforms,
    subspace_rate,
)
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.spatial import Motion, Plucker, crm, cross, xlt
from kinetree.spatial.ops import check_pivot
from kinetree.spatial.vector3 import ZERO3, as_vector3

__all__ = [
    "RelativeFrame", "all_jacobians", "all_poses", "body_jacobian", "frame_acceleration",
    "frame_bias_acceleration", "frame_hessian", "frame_jacobian", "frame_jacobian_rate",
    "frame_pose", "frame_velocity", "joint_acceleration", "joint_velocity",
]  # fmt: skip


class RelativeFrame:
    """A frame, the observer that its motion is relative to, and the coordinates of the motion.

    Attributes:
        root: the nearest body that carries both frames; it counts as at rest.
        near: bodies from there to the frame, parents first.
        far: bodies from there to the observer, parents first.
    """

    def __init__(self, model, frame, reference="world", point=None, observer=None):
        if reference not in ("world", "body", "aligned"):
            raise UnknownNameError(
                f"reference must be 'world', 'body' or 'aligned', got {reference!r}"
            )
        if point is not None and reference == "world":
            raise ShapeError(
                "velocities in world coordinates do not depend on the point; leave it out, or use "
                "reference 'aligned' for the velocity of the point"
            )
        self.model, self.frame, self.reference, self.observer = model, frame, reference, observer
        self.placement = frame.placement
        if point is not None:
            self.placement = xlt(as_vector3(point, "the point")) @ frame.placement
        ours, theirs = model.support[frame.body], model.support[observer.body] if observer else ()
        shared = [i for i in ours if i in theirs]
        self.root = shared[-1] if shared else 0
        self.near = tuple(i for i in ours if i not in shared)
        self.far = tuple(i for i in theirs if i not in shared)

    @property
    def bodies(self):
        """All bodies that move one frame against the other, parents first."""
        return (*self.near, *self.far)

    def signs(self):
        """Of every such body, whether its joint moves the frame (+1) or the observer (-1)."""
        return dict.fromkeys(self.near, 1) | dict.fromkeys(self.far, -1)

    def carriers(self, X):
        """For every body, the map of motions from its coordinates to the reference coordinates.

        Args:
            X: transforms from parent to body, for ``bodies``.
        """
        if self.reference == "body":
            up, down = self._transforms(X, self.placement, self.near, self.far)
        else:
            up, down = self._from_observer(X)
        if self.reference == "aligned":
            origin = self._from_to(up, down).r
            up = {i: xlt(origin) @ X_i for i, X_i in up.items()}
            down = {i: Plucker(X_i.E, X_i.r - origin) for i, X_i in down.items()}
        carry = {i: X_i.inv_apply for i, X_i in down.items()}
        return carry | {i: X_i.apply for i, X_i in up.items()}

    def transform(self, X):
        """From observer to frame coordinates."""
        return self._from_to(*self._from_observer(X))

    def coordinate_velocity(self, carry, v):
        """Velocity of the reference coordinates when the bodies have velocities ``v``."""
        if self.reference == "body":
            return carry[self.frame.body](v[self.frame.body])
        turning = (
            Motion.zero()
            if self.observer is None
            else carry[self.observer.body](v[self.observer.body])
        )
        if self.reference == "world":
            return turning
        return Motion(turning.angular, carry[self.frame.body](v[self.frame.body]).linear)

    def _from_observer(self, X):
        placement = Plucker.identity() if self.observer is None else self.observer.placement
        return self._transforms(X, placement, self.far, self.near)

    def _from_to(self, up, down):
        b = self.frame.body
        return self.placement @ (down[b] if b in down else up[b].inverse())

    def _transforms(self, X, placement, here, there):
        """From bodies on the way up to the coordinates of one end; from these to the others."""
        up, C_X_i = {}, placement
        for i in reversed(here):
            up[i] = C_X_i
            C_X_i = C_X_i @ X[i]
        down = {self.root: C_X_i.inverse()}
        for i in there:
            down[i] = X[i] @ down[self.model.parent[i]]
        return up, down


def frame_pose(model, q, frame, observer=None):
    """The 4×4 pose of a frame in the base or observer: maps frame coordinates of points to it."""
    seen = RelativeFrame(model, frame, observer=observer)
    X, _ = joint_transforms(model, q, seen.bodies)
    return seen.transform(X).to_pose()


def all_poses(model, q):
    """The poses of all moving bodies, (body_count, 4, 4)."""
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    poses = [X_0[i].to_pose() for i in range(1, model.body_count + 1)]
    return np.array(poses).reshape(-1, 4, 4)


@for_all_joints(columns)
def body_jacobian(model, q, i):
    """``J_i``, motion columns in base coordinates with ``J_i qd = v_i`` — RBDA (4.6)."""
    kappa = model.support[i]
    X, S = joint_transforms(model, q, kappa)
    X_0 = base_transforms(model, X, kappa)
    return _columns(model, model.scalar_type(q), {j: X_0[j].inv_apply(S[j]) for j in kappa})


@for_all_joints(columns)
def all_jacobians(model, q, reference="world"):
    """Jacobians of all moving bodies, (body_count, 6, nv), tutorial (60)."""
    X, S = joint_transforms(model, q)
    X_0 = base_transforms(model, X)
    J_0 = [None] + [X_0[j].inv_apply(S[j]) for j in range(1, model.body_count + 1)]
    J = np.zeros((model.body_count, 6, model.nv), dtype=model.scalar_type(q))
    columns: list = [{}]
    for i in range(1, model.body_count + 1):
        if reference == "body":
            columns.append({j: X[i] @ s for j, s in columns[model.parent[i]].items()} | {i: S[i]})
        else:
            origin = Plucker(np.eye(3, dtype=int), X_0[i].r if reference == "aligned" else ZERO3)
            columns.append({j: origin @ J_0[j] for j in model.support[i]})
        J[i - 1] = _columns(model, J.dtype, columns[i]).to_array()
    return J


@for_all_joints(columns)
def frame_jacobian(model, q, frame, reference="world", point=None, observer=None):
    """Jacobian of a frame, (6, nv).

    Args:
        model: the mechanism.
        q: configuration, (nq,).
        frame: a ``Frame``, see ``model.frame``.
        reference: ``"world"``, ``"body"`` or ``"aligned"``.
        point: a point of the frame to use in place of its origin [m], (3,).
        observer: a ``Frame`` to use in place of the base.
    """
    seen = RelativeFrame(model, frame, reference, point, observer)
    X, S = joint_transforms(model, q, seen.bodies)
    carry = seen.carriers(X)
    parts = {i: _signed(sign, carry[i](S[i])) for i, sign in seen.signs().items()}
    return _columns(model, model.scalar_type(q), parts).to_array()


@for_all_joints(rates_of(frame_jacobian))
def frame_jacobian_rate(model, q, qd, frame, reference="world", point=None, observer=None):
    """Time derivative of the entries of ``frame_jacobian``, (6, nv)."""
    seen = RelativeFrame(model, frame, reference, point, observer)
    X, v = body_velocities(model, q, qd, seen.bodies)
    _, S = joint_transforms(model, q, seen.bodies)
    carry = seen.carriers(X)
    u = seen.coordinate_velocity(carry, v)
    rates = {}
    for i, sign in seen.signs().items():
        Sd = subspace_rate(model, i, q, qd, v[i])
        rates[i] = _signed(sign, carry[i](Sd) - crm(u, carry[i](S[i])))  # RBDA (2.44)
    return _columns(model, model.scalar_type(q, qd), rates).to_array()


@for_all_joints(curved(frame_jacobian))
def frame_hessian(model, q, frame, reference="world", point=None, observer=None):
    """Derivatives of ``frame_jacobian``: entry [:, j, k] along the k-th velocity variable.

    A joint carries the axes of those beyond it along, ``∂J_j/∂q_k = J_k × J_j``; and it moves the
    reference coordinates. The result has the shape (6, nv, nv).
    """
    seen = RelativeFrame(model, frame, reference, point, observer)
    X, S = joint_transforms(model, q, seen.bodies)
    carry, at = seen.carriers(X), model.v_slice
    J = {i: carry[i](S[i]) for i in seen.bodies}
    second = np.zeros((6, model.nv, model.nv), dtype=model.scalar_type(q))
    for k, joint_k in _variables(model, seen.bodies):
        e_k = np.zeros(model.nv, dtype=int)
        e_k[k] = 1
        J_k = J[joint_k] @ e_k[at[joint_k]]
        u = _coordinate_motion(seen, joint_k, J_k)
        for i, sign in seen.signs().items():
            part = crm(J_k - u if joint_k in model.support[i] else -u, J[i])
            if joint_k == i:  # and its own axes, if they move in the body
                part = part + carry[i](subspace_rate(model, i, q, e_k, model.zero_motion))
            second[:, at[i], k] = _signed(sign, part).to_array()
    return second


def _variables(model, bodies):
    """Velocity variables of the joints of some bodies, each with the body."""
    return [(k, i) for i in bodies for k in range(model.nv)[model.v_slice[i]]]


def _coordinate_motion(seen, i, J_k):
    """Velocity of the reference coordinates when a variable of joint ``i`` alone moves."""
    near, still = i in seen.near, Motion.zero()
    if seen.reference == "body":
        return J_k if near else still
    if seen.reference == "world":
        return still if near else J_k
    return Motion(ZERO3, J_k.linear) if near else Motion(J_k.angular, ZERO3)


def frame_velocity(model, q, qd, frame, reference="world", point=None, observer=None):
    """Velocity of a frame, (6,), in the coordinates that ``reference`` names."""
    seen = RelativeFrame(model, frame, reference, point, observer)
    X, v = body_velocities(model, q, qd, seen.bodies)
    v, v_observer = _both(seen, seen.carriers(X), v)
    return (v - v_observer).to_array()


def frame_acceleration(
    model, q, qd, qdd, frame, reference="world", kind="spatial", point=None, observer=None
):
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
        observer: a ``Frame`` to use in place of the base; who rides on it, sees no acceleration
            of what moves along.
    """
    if kind not in ("spatial", "classical"):
        raise UnknownNameError(f"kind must be 'spatial' or 'classical', got {kind!r}")
    seen = RelativeFrame(model, frame, reference, point, observer)
    X, v, a = body_accelerations(model, q, qd, qdd, bodies=seen.bodies)
    carry = seen.carriers(X)
    (v, v_observer), (a, a_observer) = _both(seen, carry, v), _both(seen, carry, a)
    v, a = v - v_observer, a - a_observer - crm(v_observer, v)
    if kind == "classical":
        a = Motion(a.angular, a.linear + cross(v.angular, v.linear))
    return a.to_array()


def frame_bias_acceleration(model, q, qd, *frame, **options):
    """``frame_acceleration`` at ``qdd = 0``, (6,); what follows ``qd`` is as there.

    It is ``Jd qd``: of kind spatial in the references world and body, classical in aligned, where
    ``J qd`` holds the velocity of a point.
    """
    return frame_acceleration(model, q, qd, model.zero_velocity, *frame, **options)


# --- inverse maps — Lynch & Park (9.93), (9.94) --------------------------------------------------


@refuses("loops", use="kinetree.joint_velocity, which honours loops")
def joint_velocity(model, q, velocity, frame, reference="world", *, rows=range(6), **options):
    """``qd = J⁻¹ V``, (nv,); the smallest there is where the joints are more than the rows.

    Args:
        model: the mechanism.
        q: configuration, (nq,).
        velocity: ``V``, some coordinates of the velocity of the frame, (k,).
        frame: a ``Frame``, see ``model.frame``.
        reference: ``"world"``, ``"body"`` or ``"aligned"``.
        rows: numbers of those coordinates.
        **options: ``point`` and ``observer``, as in ``frame_jacobian``.

    Raises:
        SingularError: the rows of ``J`` depend on each other in this configuration.
    """
    J, rows = frame_jacobian(model, q, frame, reference, **options), list(rows)
    still = frame_velocity(model, q, model.zero_velocity, frame, reference, **options)
    return _solved(J[rows], velocity - still[rows], lambda _: singular_jacobian(model, frame))


@refuses("loops", use="kinetree.joint_acceleration, which honours loops")
def joint_acceleration(
    model, q, qd, acceleration, frame, reference="world", *, rows=range(6), **options
):
    """``qdd = J⁻¹ (dV/dt - Jd qd)``, (nv,), with ``dV/dt`` classical for the reference aligned."""
    J, rows = frame_jacobian(model, q, frame, reference, **options), list(rows)
    kind = "classical" if reference == "aligned" else "spatial"
    bias = frame_bias_acceleration(model, q, qd, frame, reference, kind, **options)
    return _solved(J[rows], acceleration - bias[rows], lambda _: singular_jacobian(model, frame))


def _solved(J, b, message):
    """The smallest ``x`` with ``J x = b``, by orthogonalising the rows: ``J = U Y``, last first.

    ``U`` is unit upper triangular and the rows of ``Y`` are orthogonal, so that ``Y x = U⁻¹ b`` is
    solved row by row. What is left of a dependent row is far below the threshold of pivots, as
    the *square* of it is tested.
    """
    y, w = list(J), list(b)
    squares: list = [None] * len(y)
    for k in reversed(range(len(y))):
        squares[k] = check_pivot(y[k] @ y[k], J[k] @ J[k], lambda k=k: message(k))
        for i in range(k):
            u = (y[i] @ y[k]) / squares[k]
            y[i], w[i] = y[i] - u * y[k], w[i] - u * w[k]
    x = 0 * J[0] if len(y) else np.zeros(J.shape[1], dtype=int)
    for row, value, square in zip(y, w, squares, strict=True):
        x = x + row * (value / square)
    return x


def singular_jacobian(model, frame):
    """What to say where the Jacobian of a frame has no inverse."""
    return (
        f"the Jacobian of {frame.name!r} is singular in this configuration of model "
        f"{model.name!r}: no joint velocities give the frame every velocity. Ask for fewer "
        f"coordinates (rows=...), move away from the singularity, or take "
        f"dynamically_consistent_inverse with damping=...; task_freedom tells which directions "
        f"are blocked"
    )


def _both(seen, carry, motions):
    """Motions of frame and observer in reference coordinates."""
    here, there = seen.frame.body, seen.observer
    still = Motion.zero() if there is None else carry[there.body](motions[there.body])
    return carry[here](motions[here]), still


def _signed(sign, x):
    return x if sign > 0 else -x


def _columns(model, dtype, parts):
    """Motion columns for all velocity variables, zero for joints that do not support the body."""
    J = Motion(*(np.zeros((3, model.nv), dtype=dtype) for _ in range(2)))
    for i, part in parts.items():
        J.angular[:, model.v_slice[i]] = part.angular
        J.linear[:, model.v_slice[i]] = part.linear
    return J

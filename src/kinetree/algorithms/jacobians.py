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

from kinetree.algorithms.coupled import columns, for_all_joints, rates_of, second_derivative_rule
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import (
    base_transforms,
    body_accelerations,
    body_velocities,
    joint_subspace_rate,
    joint_transforms,
    subspace_rate,
)
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.spatial import Motion, Plucker, crm, cross, xlt
from kinetree.spatial.ops import check_pivot
from kinetree.spatial.vector3 import ZERO3, as_vector3


class RelativeFrame:
    """A frame, the observer that its motion is relative to, and the coordinates of the motion.

    Attributes:
        root: the nearest body that carries both frames; it counts as at rest.
        near: bodies from there to the frame, parents first.
        far: bodies from there to the observer, parents first.
        up, down: of every body, from its coordinates to the reference coordinates, or back.
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
        self.root, self.near, self.far = 0, model.chain(frame.body), ()
        if observer is not None:
            theirs = model.chain(observer.body)
            shared = [i for i in self.near if i in theirs]
            self.root = shared[-1] if shared else 0
            self.near = tuple(i for i in self.near if i not in shared)
            self.far = tuple(i for i in theirs if i not in shared)
        self.up, self.down, self.center = model.table(), model.table(), None

    @property
    def bodies(self):
        """Numbers of all bodies that move the frame relative to the observer, parents first."""
        return (*self.near, *self.far) if self.far else self.near

    def before(self, i):
        """Numbers in ``bodies`` that come before body ``i``."""
        if self.observer is None:
            return self.model.above(i)
        return self.bodies[: self.bodies.index(i)]

    def carries(self, j, i):
        """Whether joint ``j`` moves body ``i``, which comes after it in ``bodies``."""
        return self.observer is None or j in self.model.support[i]

    def is_near(self, i):
        """Whether joint ``i`` moves the frame; otherwise it moves the observer."""
        return self.observer is None or i in self.near

    def place(self, X):
        """Compute the transforms between the bodies and the reference coordinates.

        Args:
            X: transforms from parent to body, for ``bodies``.
        """
        if self.reference == "body":
            self._place(X, self.frame.body, self.placement, self.near, self.far)
        else:
            p = self.transform(X).r
            self.center = p if self.reference == "aligned" else None

    def carry(self, i, x):
        """Motion given in coordinates of body ``i``, in reference coordinates."""
        goes_up = i != self.root and self.is_near(i) == (self.reference == "body")
        X_i = self.up[i] if goes_up else self.down[i]
        if self.center is not None:
            X_i = xlt(self.center) @ X_i if goes_up else Plucker(X_i.E, X_i.r - self.center)
        return X_i.apply(x) if goes_up else X_i.inv_apply(x)

    def column(self, i, s):
        """Jacobian columns of joint ``i`` with axes ``s``, negative if it moves the observer."""
        return self.with_sign(i, self.carry(i, s))

    def with_sign(self, i, x):
        """Quantity ``x`` with the sign of joint ``i``: negative if it moves the observer."""
        return x if self.is_near(i) else -x

    def transform(self, X):
        """Transform from observer to frame coordinates."""
        if self.observer is None:
            self._place(X, 0, Plucker.identity(), self.far, self.near)
        else:
            self._place(X, self.observer.body, self.observer.placement, self.far, self.near)
        return self.placement @ self.down[self.frame.body]

    def coordinate_velocity(self, v):
        """Velocity of the reference coordinates, given the bodies' velocities ``v``."""
        of_frame, of_observer = self.motions(v)
        if self.reference == "body":
            return of_frame
        if self.reference == "world":
            return of_observer
        return Motion(of_observer.angular, of_frame.linear)

    def motions(self, v):
        """Velocities of frame and observer in reference coordinates, given those of the bodies."""
        here, there = self.frame.body, self.observer
        still = Motion.zero() if there is None else self.carry(there.body, v[there.body])
        return self.carry(here, v[here]), still

    def _place(self, X, end, placement, here, there):
        """Set the transforms of bodies on both branches relative to the frame or observer."""
        lam, up, down, root = self.model.parent, self.up, self.down, self.root
        reaches_root = end == root or self.observer is not None
        up[end] = placement
        for i in reversed(here):
            if reaches_root or lam[i] != root:
                up[lam[i]] = up[i] @ X[i]
        if reaches_root:
            down[root] = up[root].inverse()
        for i in there:
            down[i] = X[i] @ down[lam[i]]


def frame_pose(model, q, frame, observer=None):
    """Homogeneous pose (4, 4) of a frame in the base or observer."""
    seen = RelativeFrame(model, frame, observer=observer)
    X, _ = joint_transforms(model, q, seen.bodies)
    return seen.transform(X).to_pose()


def all_poses(model, q):
    """Homogeneous poses of all moving bodies in the base, (body_count, 4, 4)."""
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    T = model.table()
    for i in model.outward():
        T[i] = X_0[i].to_pose()
    return model.stack_rows(T, 4, 4)


@for_all_joints(columns)
def body_jacobian(model, q, i):
    """Body Jacobian ``J_i`` in base coordinates, ``J_i qd = v_i`` — RBDA (4.6)."""
    kappa, J = model.chain(i), model.zeros((6, "nv"), q)
    X, S = joint_transforms(model, q, kappa)
    X_0 = base_transforms(model, X, kappa)
    for j in kappa:
        J[:, model.v_slice[j]] = X_0[j].inv_apply(S[j]).to_array()
    return Motion.from_array(J)


@for_all_joints(columns)
def all_jacobians(model, q, reference="world"):
    """Jacobians of all moving bodies, (body_count, 6, nv), in ``reference`` coordinates."""
    lam, at = model.parent, model.v_slice
    X, S = joint_transforms(model, q)
    J = model.zeros(("body_count", 6, "nv"), q)
    if reference == "body":
        for i in model.outward():
            J[i - 1, :, at[i]] = S[i].to_array()
            for j in model.above(i):
                J[i - 1, :, at[j]] = (X[i] @ Motion.from_array(J[lam[i] - 1, :, at[j]])).to_array()
        return J
    X_0, J_0, p = base_transforms(model, X), model.table(), model.table()
    for i in model.outward():
        J_0[i] = X_0[i].inv_apply(S[i])
        p[i] = X_0[i].r if reference == "aligned" else ZERO3
    for i in model.outward():
        J[i - 1, :, at[i]] = _seen_from(p[i], J_0[i])
        for j in model.above(i):
            J[i - 1, :, at[j]] = _seen_from(p[i], J_0[j])
    return J


def _seen_from(p, J):
    """Motion columns as an array, with the linear velocities of the point ``p``."""
    return (Plucker(np.eye(3, dtype=int), p) @ J).to_array()


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
    seen, J = RelativeFrame(model, frame, reference, point, observer), model.zeros((6, "nv"), q)
    X, S = joint_transforms(model, q, seen.bodies)
    seen.place(X)
    for i in seen.bodies:
        J[:, model.v_slice[i]] = seen.column(i, S[i]).to_array()
    return J


@for_all_joints(rates_of(frame_jacobian))
def frame_jacobian_rate(model, q, qd, frame, reference="world", point=None, observer=None):
    """Time derivative of ``frame_jacobian``, (6, nv), entry by entry."""
    seen = RelativeFrame(model, frame, reference, point, observer)
    rate = model.zeros((6, "nv"), q, qd)
    X, v = body_velocities(model, q, qd, seen.bodies)
    _, S = joint_transforms(model, q, seen.bodies)
    seen.place(X)
    u = seen.coordinate_velocity(v)
    for i in seen.bodies:
        Sd = subspace_rate(model, i, q, qd, v[i])
        part = seen.column(i, Sd) - crm(u, seen.column(i, S[i]))  # RBDA (2.44)
        rate[:, model.v_slice[i]] = part.to_array()
    return rate


@for_all_joints(second_derivative_rule(frame_jacobian))
def frame_hessian(model, q, frame, reference="world", point=None, observer=None):
    """Derivatives of ``frame_jacobian``, (6, nv, nv): ``[:, j, k]`` along the k-th variable.

    A joint carries the axes of those beyond it along, ``∂J_j/∂q_k = J_k × J_j``; and it moves the
    reference coordinates. The result has the shape (6, nv, nv).
    """
    seen, at = RelativeFrame(model, frame, reference, point, observer), model.v_slice
    X, S = joint_transforms(model, q, seen.bodies)
    J, second = model.table(), model.zeros((6, "nv", "nv"), q)
    seen.place(X)
    for i in seen.bodies:
        J[i] = seen.carry(i, S[i])
    for i in seen.bodies:
        second[:, at[i], at[i]] = seen.with_sign(i, _own_rates(model, q, seen, i, J[i]))
        for j in seen.before(i):
            u = _coordinate_motion(seen, j, J[j])
            moving = J[j] - u if seen.carries(j, i) else -u
            second[:, at[i], at[j]] = seen.with_sign(i, _cross_columns(moving, J[i]))
            u = _coordinate_motion(seen, i, J[i])
            second[:, at[j], at[i]] = seen.with_sign(j, _cross_columns(-u, J[j]))
    return second


def _cross_columns(u, J):
    """Cross products ``u_k × J_j`` of all pairs of motion columns, (6, j, k)."""
    return _by_variable(u.angular.shape[1], J, lambda e_k: crm(u @ e_k, J))


def _by_variable(n, J, motion):
    """Stack of motions for each of ``n`` unit vectors, (6, j, k)."""
    parts = [motion(e_k).to_array() for e_k in np.eye(n, dtype=int)]
    return np.stack(parts, axis=-1) if parts else 0 * J.to_array()[..., None][..., :0]


def _own_rates(model, q, seen, i, J):
    """Rates of a joint's Jacobian columns along its own variables, as axes may move in the body."""
    crossed = _cross_columns(J - _coordinate_motion(seen, i, J), J)
    joint, q_i, still = model.joint[i], q[model.q_slice[i]], model.zero_motion
    return crossed + _by_variable(
        joint.nv, J, lambda e_k: seen.carry(i, joint_subspace_rate(joint, q_i, e_k, still))
    )


def _coordinate_motion(seen, i, J_k):
    """Velocities of the reference coordinates per variable of joint ``i``."""
    near, none = seen.is_near(i), 0 * J_k.angular
    if seen.reference == "aligned":
        return Motion(none, J_k.linear) if near else Motion(J_k.angular, none)
    return J_k if near == (seen.reference == "body") else Motion(none, none)


def frame_velocity(model, q, qd, frame, reference="world", point=None, observer=None):
    """Spatial velocity of a frame, (6,), in the coordinates that ``reference`` names."""
    seen = RelativeFrame(model, frame, reference, point, observer)
    X, v = body_velocities(model, q, qd, seen.bodies)
    seen.place(X)
    v, v_observer = seen.motions(v)
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
    seen.place(X)
    (v, v_observer), (a, a_observer) = seen.motions(v), seen.motions(a)
    v, a = v - v_observer, a - a_observer - crm(v_observer, v)
    if kind == "classical":
        a = Motion(a.angular, a.linear + cross(v.angular, v.linear))
    return a.to_array()


def frame_bias_acceleration(model, q, qd, *frame, **options):
    """Frame acceleration at ``qdd = 0``, (6,); options as for ``frame_acceleration``.

    It is ``Jd qd``: of kind spatial in the references world and body, classical in aligned, where
    ``J qd`` holds the velocity of a point.
    """
    return frame_acceleration(model, q, qd, model.zero_velocity, *frame, **options)


# --- inverse maps — Lynch & Park (9.93), (9.94) --------------------------------------------------


@refuses("loops", use="kinetree.joint_velocity, which supports loops")
def joint_velocity(model, q, velocity, frame, reference="world", *, rows=range(6), **options):
    """Joint velocity ``J⁻¹ V``, (nv,), for a frame velocity; least norm for redundant joints.

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
    return _smallest_solution(
        J[rows], velocity - still[rows], lambda _: singular_jacobian(model, frame)
    )


@refuses("loops", use="kinetree.joint_acceleration, which supports loops")
def joint_acceleration(
    model, q, qd, acceleration, frame, reference="world", *, rows=range(6), **options
):
    """Joint acceleration ``J⁻¹ (dV/dt - Jd qd)``, (nv,), for a frame's acceleration."""
    J, rows = frame_jacobian(model, q, frame, reference, **options), list(rows)
    kind = "classical" if reference == "aligned" else "spatial"
    bias = frame_bias_acceleration(model, q, qd, frame, reference, kind, **options)
    return _smallest_solution(
        J[rows], acceleration - bias[rows], lambda _: singular_jacobian(model, frame)
    )


def _smallest_solution(J, b, message):
    """Least-norm solution of ``J x = b`` by orthogonalising the rows.

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
    """Error message for a frame whose Jacobian is singular."""
    return (
        f"the Jacobian of {frame.name!r} is singular in this configuration of model "
        f"{model.name!r}: no joint velocities give the frame every velocity. Ask for fewer "
        f"coordinates (rows=...), move away from the singularity, or take "
        f"dynamically_consistent_inverse with damping=...; task_freedom tells which directions "
        f"are blocked"
    )

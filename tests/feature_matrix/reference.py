"""Rigid-body dynamics from its definitions: slow, dense, and with nothing of the algorithms.

Of the library this takes what defines a mechanism: placements, inertias, and the place to which a
joint brings its body, ``X_J(q)``. All else is differences of the poses of bodies: columns of
Jacobians by complex steps, their rates by central differences of the sixth order. Joints that
follow others are functions of those that lead; loops are rows in a dense system, solved by singular
values. Velocities of bodies here are those of the point of the body at the origin of its frame,
along the axes of the base, angular first.
"""

from functools import cached_property

import numpy as np

from kinetree.joints import Free, PrescribedInstant, Spherical

STEP = 1e-30
_MEMORY = 64  # configurations of which poses a step away are kept: loops ask for the same ones
STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
"""Central differences of the sixth order."""
WIDTH = 2e-2
"""Their width, for joints at about one radian per second; rotors turn faster."""


def cross_matrix(a):
    """``[a×]``."""
    x, y, z = a
    return np.array([[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]])


def cross(a, b):
    """``a × b``, of single vectors: NumPy's takes ten times as long to find that out."""
    return np.array([
        a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
    ])  # fmt: skip


def vector_of(A):
    """``a`` of the skew-symmetric part of ``A``."""
    return np.array(turned_by(A)) / 2


def turned_by(A):
    """``2 a`` of the skew-symmetric part of matrices, as three components."""
    return (
        A[..., 2, 1] - A[..., 1, 2], A[..., 0, 2] - A[..., 2, 0], A[..., 1, 0] - A[..., 0, 1]
    )  # fmt: skip


def pose_of(X):
    """A transform as (R, p): rotation to the parent, position in the parent."""
    return np.asarray(X.E).T, np.asarray(X.r)


def compose(a, b):
    """The pose of ``b``, which is relative to ``a``."""
    return a[0] @ b[0], a[0] @ b[1] + a[1]


def seen_from(a, b):
    """The pose ``b`` in the coordinates of ``a``."""
    return a[0].T @ b[0], a[0].T @ (b[1] - a[1])


def difference(function, width=WIDTH):
    """Derivative at 0 of a function of one number."""
    parts = [w * (function(k * width) - function(-k * width)) for k, w in STENCIL]
    return sum(parts) / width


def quaternion_rate(p, w):
    """``dp/dt`` of a quaternion whose frame turns at ``w``, in its own coordinates."""
    s, v = p[0], p[1:]
    return np.concatenate([[-v @ w], s * w + cross(v, w)]) / 2


def rotation_of(p):
    """To the parent, of a unit quaternion (w, x, y, z)."""
    V = cross_matrix(p[1:])
    return np.eye(3) + 2 * p[0] * V + 2 * V @ V


def configuration_rate(joint, q, qd):
    """``dq/dt``: quaternions and free joints by hand, others as they say."""
    if isinstance(joint, Spherical):
        return quaternion_rate(q, qd)
    if isinstance(joint, Free):
        return np.concatenate([rotation_of(q[3:]) @ qd[3:], quaternion_rate(q[3:], qd[:3])])
    return np.asarray(joint.configuration_rate(q, qd))


class Reference:
    """A model in a state: ``q``, ``qd`` are the variables of the joints that lead."""

    def __init__(self, model, q, qd):
        self.model, self.whole = model, model.uncoupled
        self.q, self.qd = np.asarray(q, float), np.asarray(qd, float)
        self.nv, self.count = model.nv, model.body_count
        self.gravity = np.asarray(model.gravity, float)
        self.placements = [pose_of(b.placement) for b in model.bodies]
        self._transforms = {}  # of joints, by their positions: most stay while one moves
        self._beside = {}  # poses a step away, by configuration and time
        self.parent = list(model.parent)
        followers = {c.joint for c in model.couplings}
        self.leaders = [i for i in range(1, self.count + 1) if i not in followers]
        self.frames = {f.name: (f.body, pose_of(f.placement)) for f in model.frames}
        self.frames |= {name: (i, (np.eye(3), np.zeros(3)))
                        for i, name in enumerate(model.body_names)}  # fmt: skip
        self.inertias = [
            (float(I.mass), *self._about_center(I)) for I in (b.inertia for b in model.bodies)
        ]
        fast = max(np.max(np.abs(x), initial=0.0) for x in (self.G / 2, self.qd))
        self.width = WIDTH / max(1.0, fast)
        self.armature = np.concatenate([[], *(self._armature(b) for b in self.whole.bodies)])

    def at_velocity(self, qd):
        """The same configuration at another velocity: what depends on ``q`` alone is kept."""
        other = Reference(self.model, self.q, qd)
        for name in ("T", "J", "G", "H", "drift", "_transforms", "_beside"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        if not self.is_driven:  # by the chain rule, in place of differences for every velocity
            other.__dict__["Jd"] = self.dJ @ other.qd
        return other

    @property
    def is_driven(self):
        """Whether prescribed joints move bodies."""
        return any(isinstance(b.joint, PrescribedInstant) for b in self.model.bodies)

    @staticmethod
    def _about_center(I):
        """Mass centre, and the inertia about it."""
        m, h = float(I.mass), np.asarray(I.first_moment, float)
        c = h / m if m else np.zeros(3)
        return c, np.asarray(I.rotational, float) + m * cross_matrix(c) @ cross_matrix(c)

    @staticmethod
    def _armature(body):
        values = body.dynamics.armature if body.dynamics else ()
        return np.asarray(values or np.zeros(body.joint.nv), float)

    # --- positions -------------------------------------------------------------------------------

    def full(self, q):
        """Positions of all joints, followers among them, by joint number."""
        found = {i: q[self.model.q_slice[i]] for i in self.leaders}
        todo = list(self.model.couplings)
        while todo:
            c = next(c for c in todo if all(i in found for i in c.leaders))
            todo.remove(c)
            x = [found[i][0] for i in c.leaders]
            if c.function is not None:
                value = c.function(*x)
            else:
                weights = c.weights or (1.0,) * len(x)
                s = sum((w * a for w, a in zip(weights, x, strict=True)), 0.0)
                value = sum(k * s**n for n, k in enumerate(c.coefficients))
            found[c.joint] = np.array([value])
        return found

    def poses(self, q, t=0.0):
        """Poses of all bodies, the base first; ``t`` after the instant of prescribed joints."""
        found, full = [(np.eye(3), np.zeros(3))], self.full(q)
        for i, b in enumerate(self.model.bodies, start=1):
            found.append(compose(found[b.parent], self._local(i, full[i], t)))
        return found

    def _local(self, i, at, t):
        """The pose of a body relative to its parent, for the positions of its joint."""
        joint = self.model.bodies[i - 1].joint
        if isinstance(joint, PrescribedInstant):
            x, v, a = (np.asarray(n) for n in (joint.q, joint.qd, joint.qdd))
            joint, at = joint.joint, x + t * v + t * t / 2 * a
        key = i, at.dtype.char, at.tobytes()
        local = self._transforms.get(key)
        if local is None:
            X_J = joint.jcalc(at, np.zeros(joint.nv))[0]
            local = self._transforms[key] = compose(self.placements[i - 1], pose_of(X_J))
        return local

    def _poses_beside(self, q, t):
        """Rotations and positions of all bodies a complex step away along each velocity variable,
        (count + 1, nv, 3, 3) and (count + 1, nv, 3).
        """
        key = q.tobytes(), t
        found = self._beside.get(key)
        if found is not None:
            return found
        ways = [self.full(q + 1j * STEP * self.rate(q, e)) for e in np.eye(self.nv)]
        R = np.zeros((self.count + 1, self.nv, 3, 3), complex)
        p = np.zeros((self.count + 1, self.nv, 3), complex)
        R[0] = np.eye(3)
        for i, b in enumerate(self.model.bodies if self.nv else (), start=1):
            turns, moves = zip(*(self._local(i, full[i], t) for full in ways), strict=True)
            R[i] = R[b.parent] @ np.array(turns)
            p[i] = (R[b.parent] @ np.array(moves)[:, :, None])[:, :, 0] + p[b.parent]
        while len(self._beside) >= _MEMORY:
            del self._beside[next(iter(self._beside))]
        self._beside[key] = R, p
        return R, p

    def rate(self, q, qd):
        """``dq/dt``."""
        dtype = np.result_type(q, qd)
        rate = np.zeros(self.model.nq, dtype)
        for i in self.leaders:
            at, v = self.model.q_slice[i], self.model.v_slice[i]
            if not qd[v].any():
                continue
            rate[at] = configuration_rate(self.model.bodies[i - 1].joint, q[at], qd[v])
        return rate

    def moved(self, q, qd, s):
        """``q`` after a short way ``s`` in the direction of ``qd``: right to the first order."""
        q = q + s * self.rate(q, qd)
        for i in self.leaders:
            for part in self.model.bodies[i - 1].joint.unit_parts:
                at = np.arange(self.model.nq)[self.model.q_slice[i]][part]
                q[at] = q[at] / np.sqrt(np.sum(q[at] ** 2))
        return q

    # --- velocities ------------------------------------------------------------------------------

    def twists(self, q, direction, of_time=0.0, t=0.0):
        """Velocities of all bodies, (count + 1, 6), in one direction of ``q`` and time."""
        moved = self.poses(
            q + 1j * STEP * self.rate(q, np.asarray(direction)), t + 1j * STEP * of_time
        )
        return self._rates(self.poses(q, t), *map(np.array, zip(*moved, strict=True)))

    def jacobians_at(self, q, t=0.0):
        """(count + 1, 6, nv)."""
        R, p = (x.swapaxes(0, 1) for x in self._poses_beside(q, t))
        return self._rates(self.poses(q, t), R, p).transpose(1, 2, 0)

    @staticmethod
    def _rates(still, R, p):
        """Velocities from the poses and from those a complex step away, (..., count + 1, 6)."""
        A = np.imag(R) @ np.array([np.real(R) for R, _ in still]).transpose(0, 2, 1)  # [ω×]
        turning = np.stack([x / 2 for x in turned_by(A)], -1)
        return np.concatenate([turning, np.imag(p)], -1) / STEP

    def drift_at(self, q, t=0.0):
        """Velocities of the bodies at ``qd = 0``: prescribed joints."""
        return self.twists(q, np.zeros(self.nv), 1.0, t)

    @cached_property
    def T(self):
        return self.poses(self.q)

    @cached_property
    def J(self):
        return self.jacobians_at(self.q)

    @cached_property
    def drift(self):
        return self.drift_at(self.q)

    def difference(self, function):
        """Derivative at 0 of a function of the time that the mechanism has moved."""
        return difference(function, self.width)

    @cached_property
    def Jd(self):
        """Rates of the Jacobians while the mechanism moves."""
        return self.difference(lambda s: self.jacobians_at(self.moved(self.q, self.qd, s), s))

    @cached_property
    def v(self):
        return self.J @ self.qd + self.drift

    @cached_property
    def a_bias(self):
        """Accelerations of the bodies (of their origins, not spatial) at ``qdd = 0``."""
        if not self.is_driven:
            return self.Jd @ self.qd
        rate = self.difference(lambda s: self.drift_at(self.moved(self.q, self.qd, s), s))
        return self.Jd @ self.qd + rate

    @cached_property
    def dJ(self):
        """Derivatives of the Jacobians along each velocity variable, (count + 1, 6, nv, nv)."""
        derivatives = [
            self.difference(lambda s, e=e: self.jacobians_at(self.moved(self.q, e, s)))
            for e in np.eye(self.nv)
        ]
        return np.stack(derivatives, -1) if derivatives else np.zeros((self.count + 1, 6, 0, 0))

    def gearing_at(self, q):
        """``G``: rates of all joints for those of the leaders, (whole.nv, nv)."""
        G = np.zeros((self.whole.nv, self.nv))
        for i in self.leaders:
            G[self.whole.v_slice[i], self.model.v_slice[i]] = np.eye(self.model.joint[i].nv)
        for k, e in enumerate(np.eye(self.nv) if self.model.couplings else ()):
            full = self.full(q + 1j * STEP * self.rate(q, e))
            for c in self.model.couplings:
                G[self.whole.v_slice[c.joint], k] = np.imag(full[c.joint]) / STEP
        return G

    @cached_property
    def G(self):
        return self.gearing_at(self.q)

    @cached_property
    def g(self):
        """``dG/dt qd``."""
        if not self.model.couplings:
            return np.zeros(self.whole.nv)
        return self.difference(lambda s: self.gearing_at(self.moved(self.q, self.qd, s))) @ self.qd

    # --- bodies ----------------------------------------------------------------------------------

    def centers(self, T=None):
        """Mass, position of its centre and inertia about it in base axes, of each body."""
        for i, (m, c, I) in enumerate(self.inertias, start=1):
            R, p = (self.T if T is None else T)[i]
            yield i, m, p, R @ c, R @ I @ R.T

    def shift(self, c):
        """From the velocity of the origin of a body to that of a point of it."""
        return np.block([[np.eye(3), np.zeros((3, 3))], [-cross_matrix(c), np.eye(3)]])

    def mass_matrix_at(self, q, t=0.0):
        J, G = self.jacobians_at(q, t), self.gearing_at(q)
        H = G.T @ (self.armature[:, None] * G)
        for i, m, _, c, I in self.centers(self.poses(q, t)):
            Jc = self.shift(c) @ J[i]
            H = H + m * Jc[3:].T @ Jc[3:] + Jc[:3].T @ I @ Jc[:3]
        return H

    @cached_property
    def H(self):
        return self.mass_matrix_at(self.q)

    @cached_property
    def Hd(self):
        return self.difference(lambda s: self.mass_matrix_at(self.moved(self.q, self.qd, s), s))

    def required(self, qdd, gravity=None, *, moving=True):
        """Joint forces for ``qdd``: Newton's and Euler's equations, by virtual power."""
        gravity = self.gravity if gravity is None else gravity
        a = self.J @ qdd + (self.a_bias if moving else 0)
        tau = self.G.T @ (self.armature * (self.G @ qdd + (self.g if moving else 0)))
        for i, m, _, c, I in self.centers():
            w, dw = (self.v[i, :3] if moving else np.zeros(3)), a[i, :3]
            ac = a[i, 3:] + cross(dw, c) + cross(w, cross(w, c))
            Jc = self.shift(c) @ self.J[i]
            tau = tau + Jc[3:].T @ (m * (ac - gravity))
            tau = tau + Jc[:3].T @ (I @ dw + cross(w, I @ w))
        return tau

    def body_forces(self, qdd):
        """Forces that the bodies need besides their weight, about the origin of the base."""
        a, found = self.J @ qdd + self.a_bias, []
        for i, m, p, c, I in self.centers():
            w, dw = self.v[i, :3], a[i, :3]
            force = m * (a[i, 3:] + cross(dw, c) + cross(w, cross(w, c)) - self.gravity)
            found.append([*(I @ dw + cross(w, I @ w) + cross(p + c, force)), *force])
        return np.reshape(found, (-1, 6))

    @cached_property
    def C(self):
        return self.required(np.zeros(self.nv))

    @cached_property
    def weight(self):
        return self.required(np.zeros(self.nv), moving=False)

    def forces(self, f_ext):
        """Joint forces of forces on bodies, whose moments are about the origin of the base."""
        tau = np.zeros(self.nv)
        for i, f in enumerate(f_ext, start=1):
            n = f[:3] - cross(self.T[i][1], f[3:])
            tau = tau + self.J[i].T @ np.concatenate([n, f[3:]])
        return tau

    # --- loops -----------------------------------------------------------------------------------

    def _ends(self, loop, T):
        p = compose(T[loop.predecessor], pose_of(loop.predecessor_placement))
        s = compose(T[loop.successor], pose_of(loop.successor_placement))
        return p, s

    def _relative(self, loop, q, t=0.0):
        """Where the successor is as its predecessor sees it, and Jacobian of that in its axes."""
        from kinetree.spatial import Plucker

        R, d = seen_from(*self._ends(loop, self.poses(q, t)))
        J = self._relative_columns(loop, q, t)
        at = np.asarray(loop.joint.coordinates(Plucker(R.T, d)), float)
        return at, J

    def _relative_columns(self, loop, q, t):
        R, _ = seen_from(*self._ends(loop, self.poses(q, t)))
        (R_p, p_p), (R_s, p_s) = self._ends(loop, [*zip(*self._poses_beside(q, t), strict=True)])
        back = R_p.swapaxes(-1, -2)
        turning = R.T @ np.imag(back @ R_s)
        moving = np.imag(back @ (p_s - p_p)[..., None])[..., 0] @ R
        return np.concatenate([np.stack(turned_by(turning)) / 2, moving.T]) / STEP

    def _subspace(self, joint, at):
        """``S``: velocities across the joint for rates of its variables, in successor axes."""
        R, _ = pose_of(joint.jcalc(at, np.zeros(joint.nv))[0])
        columns = []
        for e in np.eye(joint.nv):
            rate = configuration_rate(joint, at, e)
            R1, d1 = pose_of(joint.jcalc(at + 1j * STEP * rate, np.zeros(joint.nv))[0])
            w = vector_of(R.T @ (np.imag(R1) / STEP))
            columns.append(np.concatenate([w, R.T @ (np.imag(d1) / STEP)]))
        return np.array(columns).reshape(joint.nv, 6).T

    def coordinates_at(self, q, columns, t=0.0):
        """``G`` with ``qd = G yd`` for the velocity variables ``columns``, (nv, p)."""
        K = [np.zeros((0, self.nv))]
        for loop in self.model.loops:
            at, J = self._relative(loop, q)
            S = self._subspace(loop.joint, at)
            left = np.linalg.svd(S)[0][:, np.linalg.matrix_rank(S) :] if S.size else np.eye(6)
            K.append(left.T @ J)
        K += [self.own_matrix(own, q, t) for own in self.model.constraints]
        N = np.linalg.svd(np.concatenate(K))[2][self.rank :].T
        return N @ np.linalg.inv(N[list(columns)])

    @cached_property
    def rows(self):
        """``K``, ``k`` with ``K qdd = k`` for all loops: what their joints forbid."""
        K, k = [np.zeros((0, self.nv))], [np.zeros(0)]
        for loop in self.model.loops:
            at, J = self._relative(loop, self.q)
            S = self._subspace(loop.joint, at)
            left = np.linalg.svd(S)[0][:, np.linalg.matrix_rank(S) :] if S.size else np.eye(6)
            z = np.linalg.pinv(S) @ (J @ self.qd)
            K.append(left.T @ J)

            def rate(s, loop=loop, z=z):
                at, J = self._relative(loop, self.moved(self.q, self.qd, s), s)
                return J @ self.qd - self._subspace(loop.joint, at) @ z

            k.append(-left.T @ self.difference(rate))
        for own in self.model.constraints:
            K.append(self.own_matrix(own, self.q))
            k.append(-self.difference(
                lambda s, own=own: self.own_rate(own, self.moved(self.q, self.qd, s), self.qd, s)
            ))  # fmt: skip
        return np.concatenate(K), np.concatenate(k)

    def own_matrix(self, own, q, t=0.0):
        """``K`` of a constraint that is no joint."""
        still = self.own_rate(own, q, np.zeros(self.nv), t)
        return np.array([self.own_rate(own, q, e, t) - still for e in np.eye(self.nv)]).T

    @cached_property
    def moving(self):
        """The smallest velocity that constraints which time moves require, (nv,)."""
        rates = [self.own_rate(own, self.q, np.zeros(self.nv)) for own in self.model.constraints]
        if not rates:
            return np.zeros(self.nv)
        loops = np.zeros(len(self.rows[0]) - sum(map(len, rates)))
        return -np.linalg.pinv(self.rows[0]) @ np.concatenate([loops, *rates])

    def own_rate(self, own, q, qd, t=0.0):
        """Rate of change of a constraint that is no joint."""
        if own.rate is not None:
            return own.value("rate", model=self.model, q=q, qd=qd, t=own.t + t)
        moved = q + 1j * STEP * self.rate(q, qd)
        return (
            np.imag(own.value("position", model=self.model, q=moved, t=own.t + t + 1j * STEP))
            / STEP
        )

    def loop_positions(self):
        """Variables of the loop joints, by name."""
        return {p.name: self._relative(p, self.q)[0] for p in self.model.loops}

    def loop_rates(self):
        """Their rates."""
        found = {}
        for loop in self.model.loops:
            at, J = self._relative(loop, self.q)
            found[loop.name] = np.linalg.pinv(self._subspace(loop.joint, at)) @ J @ self.qd
        return found

    def loop_forces(self, forces):
        """Joint forces of those that act along the variables of loop joints."""
        tau = np.zeros(self.nv)
        for loop in self.model.loops:
            at, J = self._relative(loop, self.q)
            tau = tau + J.T @ np.linalg.pinv(self._subspace(loop.joint, at)).T @ forces[loop.name]
        return tau

    @cached_property
    def null(self):
        """Orthonormal velocities that keep loops closed."""
        K = self.rows[0]
        _, s, Vt = np.linalg.svd(K)
        rank = int(np.sum(s > 1e-7 * max(s, default=0)))
        return Vt[rank:].T

    @property
    def rank(self):
        return self.nv - self.null.shape[1]

    def accelerations(self, tau, f_ext=None, given=None):
        """``qdd``: in the motions that loops allow, with some entries given (a mask, values)."""
        right = tau - self.C + (0 if f_ext is None else self.forces(f_ext))
        K, k = self.rows
        if given is not None:
            mask, values = given
            K, k = np.concatenate([K, np.eye(self.nv)[mask]]), np.concatenate([k, values[mask]])
        U, s, Vt = np.linalg.svd(K)
        rank = int(np.sum(s > 1e-7 * max(s, default=0)))
        first = Vt[:rank].T @ ((U[:, :rank].T @ k) / s[:rank])
        N = Vt[rank:].T
        if not N.shape[1]:
            return first
        d = 1 / np.sqrt(np.diagonal(N.T @ self.H @ N))
        H = (N * d).T @ self.H @ (N * d)
        return first + (N * d) @ np.linalg.solve(H, (N * d).T @ (right - self.H @ first))

    # --- the whole -------------------------------------------------------------------------------

    @cached_property
    def mass(self):
        return sum((m for m, *_ in self.inertias), 0.0)

    @cached_property
    def center(self):
        return sum((m * (p + c) for _, m, p, c, _ in self.centers()), np.zeros(3)) / self.mass

    def momentum_at(self, q, qd, t=0.0, about=None):
        """Moment and momentum about the origin, or the centre."""
        T, L, p = self.poses(q, t), np.zeros(3), np.zeros(3)
        V = self.twists(q, qd, 1.0, t)
        point = np.zeros(3) if about is None else self.center_at(T)
        for i, m, at, c, I in self.centers(T):
            v = m * (V[i, 3:] + cross(V[i, :3], c))
            p = p + v
            L = L + cross(at + c - point, v) + I @ V[i, :3]
        return np.concatenate([L, p])

    def center_at(self, T):
        return sum((m * (p + c) for _, m, p, c, _ in self.centers(T)), np.zeros(3)) / self.mass

    def momentum_matrix_at(self, q, t=0.0):
        """Columns of the centroidal momentum, without what prescribed joints move."""
        T, J = self.poses(q, t), self.jacobians_at(q, t)
        A, center = np.zeros((6, self.nv)), self.center_at(T)
        for i, m, at, c, I in self.centers(T):
            Jc = self.shift(c) @ J[i]
            A[3:] += m * Jc[3:]
            A[:3] += cross_matrix(at + c - center) @ (m * Jc[3:]) + I @ Jc[:3]
        return A

    def along(self, function):
        """Time derivative of a function of ``(q, t)`` while the mechanism moves."""
        return self.difference(lambda s: function(self.moved(self.q, self.qd, s), s))

    @cached_property
    def p(self):
        """``∂T/∂qd``."""
        p = self.G.T @ (self.armature * (self.G @ self.qd))
        for i, m, _, c, I in self.centers():
            J, V = self.shift(c) @ self.J[i], self.shift(c) @ self.v[i]
            p = p + m * J[3:].T @ V[3:] + J[:3].T @ I @ V[:3]
        return p

    def kinetic(self):
        """Energy of bodies and armature."""
        T = np.sum(self.armature * (self.G @ self.qd) ** 2) / 2
        for i, m, _, c, I in self.centers():
            v = self.v[i, 3:] + cross(self.v[i, :3], c)
            T = T + m * (v @ v) / 2 + self.v[i, :3] @ I @ self.v[i, :3] / 2
        return T

    def potential_at(self, q, t=0.0):
        T = self.poses(q, t)
        return -sum((m * (p + c) @ self.gravity for _, m, p, c, _ in self.centers(T)), 0.0)

    # --- frames ----------------------------------------------------------------------------------

    def frame(self, name):
        """Body, pose, and the lever from the body's origin."""
        body, local = self.frames[name]
        pose = compose(self.T[body], local)
        return body, pose, pose[1] - self.T[body][1]

    def in_frame(self, name, x, frame):
        """Columns of velocities of the body of a frame, in the coordinates requested."""
        _, (R, p), lever = self.frame(name)
        x = self.shift(lever) @ x
        if frame == "aligned":
            return x
        if frame == "body":
            return np.concatenate([R.T @ x[:3], R.T @ x[3:]])
        return self.shift(-p) @ x  # of the point of the body at the origin of the base

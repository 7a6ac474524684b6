"""Dynamics of a task by articulated bodies, without an inertia matrix — RBDA §7.2, §7.3.

A force on the task travels to the base as the bias force of an articulated body does, and leaves
``y_i = S_iᵀ p_i`` at the joints on its way, which alone answer it:

    p_λ = Xᵀ (p - U D⁻¹ y)        Phi = J H⁻¹ Jᵀ = Σ y_iᵀ D_i⁻¹ y_i

All in linear time, by walks over tables: texts of ``task_space`` for every robot. Symbols are those
of that module.
"""

import numpy as np

from kinetree.algorithms import ltl
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.jacobians import RelativeFrame
from kinetree.algorithms.kinematics import base_transforms
from kinetree.algorithms.propagation import apparent_inertia, joint_response
from kinetree.algorithms.task_space import task_rows
from kinetree.spatial import Force, Motion, crf, crm, cross
from kinetree.spatial.ops import check_pivot


class Task:
    """The motion of a frame, or some coordinates of it, and what resists it.

    Attributes:
        J: columns of the Jacobian, (k, n_i), of the joints that move the frame.
        y: ``S_iᵀ p_i`` of a unit force on each coordinate of the task, (n_i, k), of these joints.
        z: ``D_i⁻¹ y_i``.
        Phi: ``J H⁻¹ Jᵀ``, (k, k).
        b: how the task accelerates on its own, (k,).
    """

    def __init__(self, model, q, frame, reference, rows=None, point=None, qd=None):
        self.model, self.rows = model, list(task_rows(rows))
        self.seen = RelativeFrame(model, frame, reference, point)
        self.k = len(self.rows)
        self._propagate(q, model.zero_velocity if qd is None else qd)
        self.seen.place(self.X)
        self._push()

    def _propagate(self, q, qd):
        """Compute velocities and articulated inertias by the first two passes of RBDA Table 7.1."""
        model = self.model
        lam, X_T, I = model.parent, model.tree_transform, model.inertia
        X, S, v, c, pA, U, D_inv = (model.table() for _ in range(7))
        v[0] = model.zero_motion
        for i in model.outward():
            X_J, S[i], v_J, c_J = model.jcalc(i, q, qd)
            X[i] = X_J @ X_T[i]
            v[i] = X[i] @ v[lam[i]] + v_J
            c[i] = c_J + crm(v[i], v_J)
            pA[i] = crf(v[i], I[i] @ v[i])
        IA = model.copy_table(I)
        for i in model.inward():
            U[i], D_inv[i] = joint_response(model, i, IA[i], S[i])
            if lam[i] != 0:
                Ia = apparent_inertia(model, i, IA[i], S[i], U[i], D_inv[i])
                pa = pA[i] + Ia @ c[i] - U[i] @ (D_inv[i] @ (S[i].T @ pA[i]))
                IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia @ X[i]
                pA[lam[i]] = pA[lam[i]] + X[i].T @ pa
        self.X, self.S, self.v, self.c, self.pA, self.U, self.D_inv = X, S, v, c, pA, U, D_inv

    def _push(self):
        """Propagate unit forces on the task from the frame to the base."""
        model, seen, lam = self.model, self.seen, self.model.parent
        p, self.J, self.y, self.z = (model.table() for _ in range(4))
        body, Phi = seen.frame.body, model.total(np.zeros((self.k, self.k), dtype=int))
        C = seen.carry(body, Motion.from_array(np.eye(6, dtype=int))).to_array()[self.rows]
        p[body] = Force.from_array(C.T)
        for i in reversed(seen.near):
            self.J[i] = seen.carry(i, self.S[i]).to_array()[self.rows]
            self.y[i] = self.S[i].T @ p[i]
            self.z[i] = self.D_inv[i] @ self.y[i]
            Phi.add(self.y[i].T @ self.z[i])
            if lam[i] != 0:
                p[lam[i]] = self.X[i].T @ (p[i] - self.U[i] @ self.z[i])
        self.Phi = Phi.value

    @property
    def b(self):
        """Task acceleration at zero force, ``Jd qd - J H⁻¹ C``, (k,), by articulated bodies."""
        model, lam, X = self.model, self.model.parent, self.X
        a = model.table(-model.a_g)
        for i in self.seen.near:
            a_ = X[i] @ a[lam[i]] + self.c[i]
            qdd = -(self.D_inv[i] @ (self.S[i].T @ self.pA[i] + self.U[i].T @ a_))
            a[i] = a_ + self.S[i] @ qdd
        X_0 = base_transforms(model, X, self.seen.near)
        body = self.seen.frame.body
        true = self.seen.carry(body, a[body] + X_0[body] @ model.a_g)
        if self.seen.reference == "aligned":  # of a point: RBDA (2.50)
            v = self.seen.carry(body, self.v[body])
            true = Motion(true.angular, true.linear + cross(v.angular, v.linear))
        return true.to_array()[self.rows]

    def inertia_times(self, x, damping=None):
        """Product ``Lambda x`` with the task inertia, for a vector (k,) or columns (k, n)."""
        lam = ltl.dense(self.k)
        if damping is None:
            return ltl.solve_ltdl(self._gram_factors(), lam, x)
        Phi = np.array(self.Phi)
        for k in range(self.k):
            Phi[k, k] = Phi[k, k] + damping
        return ltl.solve_ltdl(ltl.ltdl(Phi, lam, lambda _: "not free"), lam, x)

    def _gram_factors(self):
        """Factors of ``Phi`` by orthogonalising the columns of ``y``."""
        model, near, y, z = self.model, self.seen.near, self.y, self.z
        L = np.zeros((self.k, self.k), dtype=object)
        for k in reversed(range(self.k)):
            products = model.total(np.zeros(k + 1, dtype=int))
            for i in near:
                products.add(y[i].T @ z[i][:, k])
            found = products.value
            L[k, k] = check_pivot(found[k], self.Phi[k, k], lambda: "not free")
            L[k, :k] = found[:k] / L[k, k]
            y_, z_ = model.table(), model.table()
            for i in near if k else ():
                y_[i] = y[i][:, :k] - np.outer(y[i][:, k], L[k, :k])
                z_[i] = z[i][:, :k] - np.outer(z[i][:, k], L[k, :k])
            y, z = y_, z_
        return L

    def response(self):
        """Joint responses ``H⁻¹ Jᵀ``, (n_i, k) of every joint, to unit forces on the task."""
        model, lam = self.model, self.model.parent
        y, qdd = model.table(), model.table()
        a = model.table(Motion.from_array(np.zeros((6, self.k), dtype=int)))
        for i in model.outward():
            y[i] = np.zeros((model.joint[i].nv, self.k), dtype=int)
        for i in self.seen.near:
            y[i] = self.y[i]
        for i in model.outward():
            a_ = self.X[i] @ a[lam[i]]
            qdd[i] = self.D_inv[i] @ (y[i] - self.U[i].T @ a_)
            a[i] = a_ + self.S[i] @ qdd[i]
        return qdd


_of_free_trees = refuses(
    "loops", "couplings", "prescribed", use="the same text of task_space, which supports them"
)


@_of_free_trees
def inverse_inertia(model, q, frame, reference, **task):
    """Inverse task-space inertia ``Phi = J H⁻¹ Jᵀ``, (k, k)."""
    return Task(model, q, frame, reference, **task).Phi


@_of_free_trees
def inertia(model, q, frame, reference, damping=None, **task):
    """Task-space inertia ``Lambda = (J H⁻¹ Jᵀ)⁻¹``, (k, k)."""
    task = Task(model, q, frame, reference, **task)
    return task.inertia_times(np.eye(task.k, dtype=int), damping)


@_of_free_trees
def bias(model, q, qd, frame, reference, damping=None, **task):
    """Task-space bias force ``eta = -Lambda b``, gravity included, (k,)."""
    task = Task(model, q, frame, reference, qd=qd, **task)
    return task.inertia_times(-task.b, damping)


@_of_free_trees
def gravity(model, q, frame, reference, damping=None, **task):
    """Task-space gravity force: ``eta`` at rest, (k,)."""
    return bias(model, q, model.zero_velocity, frame, reference, damping, **task)


@_of_free_trees
def consistent_inverse(model, q, frame, reference, damping=None, **task):
    """Dynamically consistent inverse ``H⁻¹ Jᵀ Lambda``, (nv, k)."""
    task = Task(model, q, frame, reference, **task)
    rows = _consistent_rows(task, damping)
    found = model.zeros(("nv", task.k), q)
    for i in model.outward():
        found[model.v_slice[i], :] = rows[i]
    return found


def _consistent_rows(task, damping):
    """Rows of the dynamically consistent inverse for each joint."""
    model, response, rows = task.model, task.response(), task.model.table()
    Lambda = task.inertia_times(np.eye(task.k, dtype=int), damping)
    for i in model.outward():
        rows[i] = response[i] @ Lambda
    return rows


@_of_free_trees
def null_space_projector(model, q, frame, reference, damping=None, **task):
    """Dynamically consistent null-space projector ``N = 1 - J̄ J``, (nv, nv)."""
    task = Task(model, q, frame, reference, **task)
    rows, at = _consistent_rows(task, damping), model.v_slice
    N = model.zeros(("nv", "nv"), q)
    for i in model.outward():
        N[at[i], at[i]] = np.eye(model.joint[i].nv, dtype=int)
    for i in model.outward():
        for j in task.seen.near:
            N[at[i], at[j]] = N[at[i], at[j]] - rows[i] @ task.J[j]
    return N


@_of_free_trees
def task_inverse_dynamics(model, q, qd, acceleration, frame, reference, damping=None, **task):
    """Joint forces ``tau = Jᵀ (Lambda dV/dt + eta)`` for a task acceleration, (nv,)."""
    task = Task(model, q, frame, reference, qd=qd, **task)
    F = task.inertia_times(acceleration - task.b, damping)
    tau = model.zeros(("nv",), q)
    for i in task.seen.near:
        tau[model.v_slice[i]] = task.J[i].T @ F
    return tau


@_of_free_trees
def task_forward_dynamics(model, q, qd, force, frame, reference, **task):
    """Task acceleration ``dV/dt = Phi F + b`` under a task force ``F``, (k,)."""
    task = Task(model, q, frame, reference, qd=qd, **task)
    return task.Phi @ force + task.b

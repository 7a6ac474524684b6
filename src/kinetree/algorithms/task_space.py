"""Dynamics in the coordinates of a task: operational space — Lynch & Park §9.6, RBDA §7.2.1.

A task is the motion of a frame in one of the references of ``jacobians``, or some rows of it:
``V = J qd``. Its acceleration is ``dV/dt = J qdd + Jd qd``: that of a point for the reference
aligned, a spatial one in the others. With ``Phi = J H⁻¹ Jᵀ``, forces ``F`` on the task give

    dV/dt = Phi F + b,    F = Lambda dV/dt + eta,    Lambda = Phi⁻¹,    eta = -Lambda b

The first always holds; the second where ``J`` has full row rank. For a robot with as many joints as
task coordinates ``Lambda = J⁻ᵀ H J⁻¹``, and ``eta = J⁻ᵀ C - Lambda Jd qd`` — Lynch & Park (9.98),
(9.99); (9.95) misprints the bias force. Redundant robots need no inverse of ``J``. Near a
singularity ``Lambda`` grows without bound; ``damping``, added to the diagonal of ``Phi``, bounds
it.
"""

from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import crba, ltl, rnea
from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.jacobians import frame_bias_acceleration, frame_jacobian
from kinetree.errors import UnknownNameError
from kinetree.spatial.ops import check_pivot

ROWS = ("rx", "ry", "rz", "x", "y", "z")
"""Names of the six coordinates of a frame's motion."""


def task_rows(rows) -> tuple:
    """Indices of the task coordinates that ``rows`` names; None for all."""
    known = {None: range(6), "angular": range(3), "linear": range(3, 6)}
    names = tuple(rows) if isinstance(rows, (tuple, list)) else None
    if (rows is None or isinstance(rows, str)) and rows in known:
        return tuple(known[rows])
    if not names or any(name not in ROWS for name in names) or len(set(names)) < len(names):
        raise UnknownNameError(
            f"rows must be 'linear', 'angular', or a tuple of different names from {list(ROWS)}, "
            f"got {rows!r}"
        )
    return tuple(ROWS.index(name) for name in names)


class Ways(NamedTuple):
    """Algorithms for the inertia matrix and the bias force."""

    factors: Any
    bias_force: Any
    gravity_force: Any


BOOK = Ways(crba.inertia_factors, rnea.bias_force, rnea.gravity_force)
FEWEST = Ways(fewest.inertia_factors, fewest.bias_force, fewest.gravity_force)


class Task:
    """The motion of a frame, or some coordinates of it, and what resists it.

    With loops, ``G H_y⁻¹ Gᵀ`` takes the place of ``H⁻¹`` in all formulas, with the inertia ``H_y``
    of the motions ``qd = G yd`` that the loops allow.

    Attributes:
        J: Jacobian of the task, (k, nv).
        L: sparse factors of ``H``, or those of ``H_y``.
        Y: ``L⁻ᵀ Jᵀ``, so that ``Phi = Yᵀ D⁻¹ Y``, (nv, k); with loops ``L⁻ᵀ (J G)ᵀ``, (p, k).
    """

    def __init__(self, model, q, frame, reference, rows=None, point=None, ways=BOOK, allowed=None):
        self.model, self.q, self.frame, self.ways = model, q, frame, ways
        self.reference, self.point, self.rows = reference, point, list(task_rows(rows))
        self.allowed = allowed
        self.J = frame_jacobian(model, q, frame, reference, point)[self.rows]
        J, self.lam = self.J, model.expanded_parent
        if allowed is None:
            self.L = ways.factors(model, q)
        else:
            J, self.lam = self.J @ allowed.G, ltl.dense(allowed.G.shape[1])
            self.L = allowed.factors()
        self.Y = ltl.solve_lt(self.L, self.lam, J.T, unit=True).reshape(J.T.shape)

    def inverse_inertia(self):
        """Inverse task-space inertia ``Phi = J H⁻¹ Jᵀ``, (k, k)."""
        return self.Y.T @ (self.Y / self.L.diagonal()[:, None])

    def inertia_times(self, x, damping=None):
        """Product ``Lambda x`` with the task inertia, for a vector (k,) or columns (k, n)."""
        return ltl.solve_ltdl(self._factor(damping), ltl.dense(len(self.J)), x)

    def _factor(self, damping):
        """Factors of ``Phi``, with damping added to its diagonal if not zero."""
        if damping is None:
            return self._gram_factors()
        Phi = self.inverse_inertia()
        for k in range(len(Phi)):
            Phi[k, k] = Phi[k, k] + damping
        return ltl.ltdl(Phi, ltl.dense(len(Phi)), lambda _: self._not_free())

    def _gram_factors(self):
        """Factors of ``Phi`` without forming it, by orthogonalising columns of ``Y``.

        A pivot is the square of what the later columns leave of a column. When they leave nothing,
        rounding makes it the *square* of the machine precision, far below the threshold of
        ``check_pivot``; a pivot of the matrix itself would hide in the noise.
        """
        D, n = self.L.diagonal(), self.Y.shape[1]
        y = [self.Y[:, k] for k in range(n)]
        L = np.zeros((n, n), dtype=self.Y.dtype)
        for k in reversed(range(n)):
            w, whole = y[k] / D, self.Y[:, k]
            L[k, k] = check_pivot(y[k] @ w, whole @ (whole / D), self._not_free)
            for i in range(k):
                L[k, i] = (y[i] @ w) / L[k, k]
                y[i] = y[i] - L[k, i] * y[k]
        return L

    def free_response(self, force):
        """Joint accelerations ``H⁻¹ force``, for a vector or columns."""
        if self.allowed is None:
            return ltl.solve_ltdl(self.L, self.lam, force).reshape(np.shape(force))
        return self.allowed.G @ ltl.solve_ltdl(self.L, self.lam, self.allowed.G.T @ force)

    def velocity_product(self, qd):
        """Velocity-product acceleration of the task, ``Jd qd``, (k,)."""
        kind = "classical" if self.reference == "aligned" else "spatial"
        at = (self.frame, self.reference, kind, self.point)
        return frame_bias_acceleration(self.model, self.q, qd, *at)[self.rows]

    def bias_acceleration(self, qd):
        """Task acceleration at zero force, ``b = Jd qd - J H⁻¹ C``, (k,) — RBDA (7.10)."""
        if self.allowed is None:
            C = self.ways.bias_force(self.model, self.q, qd)
            return self.velocity_product(qd) - self.J @ self.free_response(C)
        g = self.allowed.g  # that of the loops themselves
        qdd = g - self.free_response(self.allowed.tree_force(g))
        return self.velocity_product(qd) + self.J @ qdd

    def _not_free(self):
        """Error message: the frame cannot move in all directions of the task, with the rank."""
        where, J = "this", self.J
        if any(hasattr(x, "check_pivot") for x in J.flat):  # traced: no row of numbers would do
            q = self.model.random_configuration(np.random.default_rng(0))
            where, J = "any", frame_jacobian(self.model, q, self.frame, self.reference)[self.rows]
        elif self.allowed is not None:
            J = J @ self.allowed.G
        rank = np.linalg.matrix_rank(np.array(J, dtype=complex))
        return (
            f"the operational-space inertia of {self.frame.name!r} does not exist in {where} "
            f"configuration of model {self.model.name!r}: its Jacobian has {len(J)} rows but rank "
            f"{rank}, so some accelerations are impossible. Keep fewer coordinates (rows=...), "
            f"bound the inertia (damping=...), or move away from the singularity; "
            f"inverse_operational_space_inertia always exists, and task_freedom tells which "
            f"directions are blocked" + self._other_point()
        )

    def _other_point(self):
        """Hint that linear coordinates belong to another point, or an empty string."""
        if self.reference != "world" or max(self.rows, default=0) < 3:
            return ""
        return (
            ". With frame='world' linear coordinates are those of the point at the origin of the "
            "base; frame='aligned' takes the origin of the frame"
        )


def _honours_loops(text):
    """Decorator: reject loops unless their allowed motions are given as ``allowed``."""
    refusing = refuses("loops", use="the functions of kinetree.quantities.task_space")(text)

    @wraps(text)
    def of_model(model, *arrays, allowed=None, **options):
        if allowed is None:
            return refusing(model, *arrays, **options)
        return text(model, *arrays, allowed=allowed, **options)

    return of_model


@_honours_loops
def inverse_inertia(model, q, frame, reference, **task):
    """Inverse task-space inertia ``Phi = J H⁻¹ Jᵀ``, (k, k)."""
    return Task(model, q, frame, reference, **task).inverse_inertia()


@_honours_loops
def inertia(model, q, frame, reference, damping=None, **task):
    """Task-space inertia ``Lambda = (J H⁻¹ Jᵀ)⁻¹``, (k, k) — Lynch & Park (9.98), RBDA (7.12)."""
    task = Task(model, q, frame, reference, **task)
    return task.inertia_times(np.eye(len(task.J), dtype=int), damping)


@_honours_loops
def bias(model, q, qd, frame, reference, damping=None, **task):
    """Task-space bias force ``eta``, gravity included, (k,) — Lynch & Park (9.99)."""
    task = Task(model, q, frame, reference, **task)
    return task.inertia_times(-task.bias_acceleration(qd), damping)


@_honours_loops
def gravity(model, q, frame, reference, damping=None, **task):
    """Task-space gravity force: ``eta`` at rest, ``Lambda J H⁻¹ g``, (k,)."""
    task = Task(model, q, frame, reference, **task)
    g = task.ways.gravity_force(model, q)
    return task.inertia_times(task.J @ task.free_response(g), damping)


@_honours_loops
def consistent_inverse(model, q, frame, reference, damping=None, **task):
    """Dynamically consistent inverse ``H⁻¹ Jᵀ Lambda``, (nv, k), of least kinetic energy."""
    task = Task(model, q, frame, reference, **task)
    return task.inertia_times(task.free_response(task.J.T).T, damping).T


@_honours_loops
def null_space_projector(model, q, frame, reference, damping=None, **task):
    """Dynamically consistent null-space projector ``N = 1 - J̄ J``, (nv, nv)."""
    J_bar = consistent_inverse(model, q, frame, reference, damping, **task)
    J = frame_jacobian(model, q, frame, reference, task.get("point"))
    return np.eye(model.nv, dtype=int) - J_bar @ J[list(task_rows(task.get("rows")))]


@_honours_loops
def task_inverse_dynamics(model, q, qd, acceleration, frame, reference, damping=None, **task):
    """Joint forces ``tau = Jᵀ (Lambda dV/dt + eta)`` for a task acceleration, (nv,)."""
    task = Task(model, q, frame, reference, **task)
    return task.J.T @ task.inertia_times(acceleration - task.bias_acceleration(qd), damping)


@_honours_loops
def task_forward_dynamics(model, q, qd, force, frame, reference, **task):
    """Task acceleration ``dV/dt = Phi F + b`` under a force on the task alone, (k,)."""
    task = Task(model, q, frame, reference, **task)
    b = task.bias_acceleration(qd)
    return task.J @ task.free_response(task.J.T @ force) + b

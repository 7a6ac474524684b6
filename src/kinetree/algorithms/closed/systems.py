"""Motion constraints at one instant: implicit, explicit, and from one to the other — RBDA §3.2.

    implicit:   φ = 0       K qd = rate        K qdd = k
    explicit:   q = γ(y)    qd = G yd + rate   qdd = G ydd + g                  RBDA (3.11)

``rate`` is zero unless the constraint depends on time or is driven; ``k = -Kd qd`` and
``g = Gd yd`` gather everything that velocities cause. CPU only: ranks are decided with NumPy's
singular values.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed.subspace import RANK_TOLERANCE, Subspace
from kinetree.errors import ShapeError, SingularError


@dataclass(frozen=True, eq=False)
class Implicit:
    """Equations that the motion satisfies."""

    K: np.ndarray
    """Constraint matrix ``∂φ/∂q``, (n_c, n)."""
    k: np.ndarray = None  # type: ignore[assignment]  # None becomes zeros
    """Right-hand side of ``K qdd = k``, (n_c,); zero by default."""
    rate: np.ndarray = None  # type: ignore[assignment]
    """Right-hand side of ``K qd = rate``, which is ``-∂φ/∂t``, (n_c,); zero by default."""
    error: np.ndarray = None  # type: ignore[assignment]
    """The value of ``φ``, (n_c,); zero by default, and for nonholonomic rows."""

    def __post_init__(self):
        _freeze(self, "K", 2)
        for name in ("k", "rate", "error"):
            _freeze(self, name, 1, len(self.K))

    @property
    def count(self) -> int:
        """Number ``n_c`` of constraint equations."""
        return len(self.K)

    @property
    def motion_subspace(self):
        """Subspace of allowed velocities: the null space of ``K``."""
        return Subspace.null(self.K, "motion")

    @property
    def force_subspace(self):
        """The constraint forces it can exert: the range of ``Kᵀ`` — RBDA (3.15)."""
        return Subspace.span(self.K.T, "force")

    @property
    def rank(self) -> int:
        """Number ``n_ic`` of independent constraint equations."""
        return self.force_subspace.dim

    def stack(self, other):
        """Constraint that stacks the equations of this one and another."""
        names = ("K", "k", "rate", "error")
        return Implicit(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))

    def some(self, rows):
        """Constraint of some of the equations, by row; of all for None."""
        if rows is None:
            return self
        return Implicit(*(getattr(self, n)[rows] for n in ("K", "k", "rate", "error")))

    def to_explicit(self, *, tolerance=RANK_TOLERANCE, scale=0.0, rank=None):
        """Explicit form of the constraint: ``qdd = G ydd + g`` with orthonormal ``G``.

        ``G`` spans the null space of ``K``; ``g`` and ``rate`` are the smallest vectors that meet
        the equations. Raises SingularError where the equations contradict each other.

        Args:
            tolerance: singular values below this times the largest count as zero.
            scale: size of the terms that ``k`` and ``rate`` were computed from, so that rounding
                errors are not taken for contradictions.
            rank: number of independent equations, if it is known; then ``tolerance`` only says
                which contradictions are rounding errors.
        """
        U, s, Vt = np.linalg.svd(self.K)
        r = (int(np.sum(s > tolerance * s[0])) if len(s) else 0) if rank is None else rank
        for name, x in (("K qd = rate", self.rate), ("K qdd = k", self.k)):
            size, rest = max(_norm(x), scale), _norm(U[:, r:].T @ x)
            if rest > np.sqrt(tolerance) * size:
                raise SingularError(
                    f"contradictory constraints: of {self.count} equations {name} only {r} are "
                    f"independent, and the others miss by {rest:.3g}; remove the redundant "
                    f"rows or make their right-hand sides agree"
                )
        particular = Vt[:r].T @ (U[:, :r] / s[:r]).T
        return Explicit(Vt[r:].T, particular @ self.k, particular @ self.rate)


@dataclass(frozen=True, eq=False)
class Explicit:
    """The motion as a function of independent variables ``y``."""

    G: np.ndarray
    """``∂γ/∂y``, (n, m)."""
    g: np.ndarray = None  # type: ignore[assignment]  # None becomes zeros
    """Bias of ``qdd = G ydd + g``, (n,); zero by default."""
    rate: np.ndarray = None  # type: ignore[assignment]
    """Bias of ``qd = G yd + rate``, which is ``∂γ/∂t``, (n,); zero by default."""

    def __post_init__(self):
        _freeze(self, "G", 2)
        for name in ("g", "rate"):
            _freeze(self, name, 1, len(self.G))

    @property
    def motion_subspace(self):
        """Subspace of allowed velocities: the range of ``G``."""
        return Subspace.span(self.G, "motion")

    @property
    def force_subspace(self):
        """Subspace of constraint forces, ``Gᵀ tau_c = 0`` — RBDA (3.16)."""
        return self.motion_subspace.complement()

    def to_implicit(self):
        """Implicit form of the constraint, ``K qdd = k``, with orthonormal rows."""
        K = self.force_subspace.basis.T
        return Implicit(K, K @ self.g, K @ self.rate)


def _freeze(owner, name, ndim, size=None):
    """Set a dataclass field to a float array of the right shape; zeros for None."""
    given = getattr(owner, name)
    value = np.zeros(size or 0) if given is None else np.asarray(given, dtype=float)
    if value.ndim != ndim or (size is not None and len(value) != size):
        expected = "a matrix" if ndim == 2 else f"shape ({size},)"
        raise ShapeError(f"{type(owner).__name__}.{name} must have {expected}, got {value.shape}")
    object.__setattr__(owner, name, value)


def _norm(x):
    """Euclidean norm of a vector of numbers of any kind."""
    return float(np.linalg.norm(x))


# --- equations of motion under constraints: RBDA §3.2 --------------------------------------------
# From ``H qdd + C = tau`` and a constraint to the constrained motion. The constraint may be
# redundant: the acceleration is unique all the same, and of the constraint forces the smallest are
# returned. CPU only: dense linear algebra with NumPy, ranks by singular values.


class SubsystemEquation(NamedTuple):
    """``H qdd + C = tau`` of a system or subsystem — RBDA (3.1).

    A single rigid body is one too, with inertia, bias force and applied force in these places.
    """

    H: np.ndarray
    C: np.ndarray
    tau: np.ndarray

    @classmethod
    def from_body(cls, I, p, f):
        """The equation ``I a + p = f`` of a rigid body."""
        return cls(I.to_matrix().astype(float), p.to_array(), f.to_array())

    def acceleration(self):
        """Acceleration ``qdd`` of the system without constraints."""
        return _solve_positive(np.asarray(self.H, dtype=float), self.tau - self.C)


class ImplicitSolution(NamedTuple):
    """Motion of a system under an implicit constraint."""

    qdd: np.ndarray
    """Acceleration, (n,); unique."""
    lam: np.ndarray
    """Constraint-force variables, (n_c,); the smallest, where they are not unique."""
    tau_c: np.ndarray
    """Constraint force ``Kᵀ lam``, (n,); unique."""
    rank: int
    """Number of independent constraints, n_ic."""
    indeterminacy: int
    """Degrees of freedom left in ``lam``, n_c - n_ic."""


class ExplicitSolution(NamedTuple):
    """Motion of a system under an explicit constraint."""

    ydd: np.ndarray
    """Acceleration of the independent variables, (m,)."""
    qdd: np.ndarray
    """Acceleration ``G ydd + g``, (n,)."""
    tau_c: np.ndarray
    """Constraint force, (n,)."""


def collect(*systems) -> SubsystemEquation:
    """Block-diagonal equation of motion of several unconnected systems — RBDA (3.10)."""
    H = block_diagonal([s.H for s in systems])
    C, tau = (np.concatenate([np.zeros(0), *parts]) for parts in _columns(systems))
    return SubsystemEquation(H, C, tau)


def block_diagonal(blocks):
    """Block-diagonal matrix of matrices of any shape."""
    rows, columns = (sum(b.shape[n] for b in blocks) for n in (0, 1))
    A, r, c = np.zeros((rows, columns)), 0, 0
    for b in blocks:
        A[r : r + b.shape[0], c : c + b.shape[1]] = b
        r, c = r + b.shape[0], c + b.shape[1]
    return A


def apply_implicit(
    system, constraint, *, tolerance=RANK_TOLERANCE, scale=0.0, rank=None
) -> ImplicitSolution:
    """Accelerations and constraint forces of a system under ``K qdd = k`` — RBDA (3.17).

    The accelerations that the constraint allows are ``G z + g`` with orthonormal ``G``; the
    projected equation (3.20) gives ``z``. So ``H`` need only be positive definite on what the
    constraint allows: massless bodies are allowed where others carry them along.

    Args:
        system: an ``SubsystemEquation`` of n variables.
        constraint: an ``Implicit`` constraint on them.
        tolerance: singular values of ``K`` below this times the largest count as zero.
        scale: size of the terms that ``k`` was computed from; see ``Implicit.to_explicit``.
        rank: number of independent constraints, if it is known.
    """
    _check_sizes(system, constraint.K.shape[1])
    explicit = constraint.to_explicit(tolerance=tolerance, scale=scale, rank=rank)
    _, qdd, tau_c = apply_explicit(system, explicit)
    rank = constraint.K.shape[1] - explicit.G.shape[1]
    U, s, Vt = np.linalg.svd(constraint.K, full_matrices=False)
    lam = U[:, :rank] @ ((Vt[:rank] @ tau_c) / s[:rank])
    return ImplicitSolution(qdd, lam, constraint.K.T @ lam, rank, constraint.count - rank)


def project(system, constraint) -> SubsystemEquation:
    """Equation ``H_G ydd + C_G = u`` of a system in independent variables ``y`` — RBDA (3.21)."""
    (H, C, tau), G, g = system, constraint.G, constraint.g
    _check_sizes(system, len(G))
    return SubsystemEquation(G.T @ H @ G, G.T @ (C + H @ g), G.T @ tau)


def apply_explicit(system, constraint) -> ExplicitSolution:
    """Accelerations and constraint forces of a system under ``qdd = G ydd + g`` — RBDA (3.20)."""
    ydd = project(system, constraint).acceleration()
    qdd = constraint.G @ ydd + constraint.g
    return ExplicitSolution(ydd, qdd, system.H @ qdd + system.C - system.tau)


def implicit_equations(system, constraint):
    """Matrix and right-hand side of RBDA (3.17) for ``(qdd, -lam)``; singular if redundant."""
    (H, C, tau), K, k = system, constraint.K, constraint.k
    n_c = len(K)
    return np.block([[H, K.T], [K, np.zeros((n_c, n_c))]]), np.concatenate([tau - C, k])


def _solve_positive(H, b):
    """Solution ``H⁻¹ b`` for a symmetric positive-definite matrix, or SingularError."""
    d = np.sqrt(np.maximum(np.diagonal(H), np.finfo(float).tiny))
    scaled = H / np.outer(d, d)  # a unit diagonal, whatever the units of the variables
    if len(H) and np.linalg.eigvalsh(scaled)[0] <= 64 * len(H) * np.finfo(float).eps:
        raise SingularError(
            f"the equation of motion is singular: some allowed motion moves no inertia "
            f"({len(H)} degrees of freedom, inertia matrix of rank {np.linalg.matrix_rank(H)}); "
            f"give mass to the bodies that take part in it, or constrain it"
        )
    return np.linalg.solve(scaled, b / d) / d


def _columns(systems):
    """Bias forces and joint forces of several systems as columns."""
    return [s.C for s in systems], [s.tau for s in systems]


def _check_sizes(system, n):
    """Raise an error unless a system has ``n`` variables."""
    if np.shape(system.H) != (n, n) or np.shape(system.C) != (n,) or np.shape(system.tau) != (n,):
        raise ShapeError(
            f"the constraint is on {n} variables, the system has H {np.shape(system.H)}, "
            f"C {np.shape(system.C)}, tau {np.shape(system.tau)}"
        )

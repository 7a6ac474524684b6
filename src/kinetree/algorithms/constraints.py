"""Motion constraints at one instant: implicit, explicit, and from one to the other — RBDA §3.2.

    implicit:   φ = 0       K qd = rate        K qdd = k
    explicit:   q = γ(y)    qd = G yd + rate   qdd = G ydd + g                  RBDA (3.11)

``rate`` is zero unless the constraint depends on time or is driven; ``k = -Kd qd`` and
``g = Gd yd`` gather everything that velocities cause. Host-only: ranks are decided with NumPy's
singular values.
"""

from dataclasses import dataclass

import numpy as np

from kinetree.algorithms.subspace import RANK_TOLERANCE, Subspace
from kinetree.errors import ShapeError, SingularError

__all__ = ["Explicit", "Implicit", "check_same_constraint"]


@dataclass(frozen=True, eq=False)
class Implicit:
    """Equations that the motion satisfies.

    Attributes:
        K: constraint matrix ``∂φ/∂q``, (n_c, n).
        k: right-hand side of ``K qdd = k``, (n_c,); zero by default.
        rate: right-hand side of ``K qd = rate``, which is ``-∂φ/∂t``, (n_c,); zero by default.
        error: the value of ``φ``, (n_c,); zero by default, and for nonholonomic rows.
    """

    K: np.ndarray
    k: np.ndarray = None  # type: ignore[assignment]  # None becomes zeros
    rate: np.ndarray = None  # type: ignore[assignment]
    error: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self):
        _freeze(self, "K", 2)
        for name in ("k", "rate", "error"):
            _freeze(self, name, 1, len(self.K))

    @property
    def count(self) -> int:
        """``n_c``, the number of equations."""
        return len(self.K)

    @property
    def motion_subspace(self):
        """The velocities it allows (up to ``rate``): the null space of ``K``."""
        return Subspace.null(self.K, "motion")

    @property
    def force_subspace(self):
        """The constraint forces it can exert: the range of ``Kᵀ`` — RBDA (3.15)."""
        return Subspace.span(self.K.T, "force")

    @property
    def rank(self) -> int:
        """``n_ic``, the number of independent equations."""
        return self.force_subspace.dim

    def stacked(self, other):
        """Both constraints at once."""
        names = ("K", "k", "rate", "error")
        return Implicit(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))

    def some(self, rows):
        """Some of the equations; all for None."""
        if rows is None:
            return self
        return Implicit(*(getattr(self, n)[rows] for n in ("K", "k", "rate", "error")))

    def to_explicit(self, *, tolerance=RANK_TOLERANCE, scale=0.0, rank=None):
        """The same constraint with independent velocity variables, ``G`` orthonormal.

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
    """The motion as a function of independent variables ``y``.

    Attributes:
        G: ``∂γ/∂y``, (n, m).
        g: bias of ``qdd = G ydd + g``, (n,); zero by default.
        rate: bias of ``qd = G yd + rate``, which is ``∂γ/∂t``, (n,); zero by default.
    """

    G: np.ndarray
    g: np.ndarray = None  # type: ignore[assignment]  # None becomes zeros
    rate: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self):
        _freeze(self, "G", 2)
        for name in ("g", "rate"):
            _freeze(self, name, 1, len(self.G))

    @property
    def motion_subspace(self):
        """The velocities it allows (up to ``rate``): the range of ``G``."""
        return Subspace.span(self.G, "motion")

    @property
    def force_subspace(self):
        """The constraint forces it can exert, ``Gᵀ tau_c = 0`` — RBDA (3.16)."""
        return self.motion_subspace.complement()

    def to_implicit(self):
        """The same constraint as equations, with orthonormal rows."""
        K = self.force_subspace.basis.T
        return Implicit(K, K @ self.g, K @ self.rate)


def check_same_constraint(implicit, explicit, *, tolerance=1e-9):
    """Raise unless both describe one constraint: ``K G = 0``, ``K g = k`` — RBDA (3.12).

    ``implicit.error`` must then be ``φ(γ(y))``, which is zero. Dimensions count as well: ``G``
    must span all that ``K`` allows.
    """
    K, G = implicit.K, explicit.G
    if K.shape[1] != len(G):
        raise ShapeError(f"K has {K.shape[1]} columns and G {len(G)} rows; both must be n")
    size = max(_norm(K), np.finfo(float).tiny)
    checks = (
        ("phi(gamma(y)) = 0", implicit.error, 1.0),
        ("K G = 0", K @ G, size * _norm(G)),
        ("K rate = rate", K @ explicit.rate - implicit.rate, size * _norm(explicit.rate)),
        ("K g = k", K @ explicit.g - implicit.k, size * _norm(explicit.g) + _norm(implicit.k)),
    )
    for name, residual, scale in checks:
        if _norm(residual) > tolerance * max(scale, np.finfo(float).tiny):
            raise ShapeError(
                f"the implicit and the explicit form are different constraints: {name} "
                f"is missed by {_norm(residual):.3g}"
            )
    free, spanned = implicit.motion_subspace.dim, explicit.motion_subspace.dim
    if free != spanned:
        raise ShapeError(
            f"the implicit and the explicit form are different constraints: K allows {free} "
            f"velocity freedoms and G spans {spanned}"
        )


def _freeze(owner, name, ndim, size=None):
    """Set a field to a float array of the right shape, zeros where None was given."""
    given = getattr(owner, name)
    value = np.zeros(size or 0) if given is None else np.asarray(given, dtype=float)
    if value.ndim != ndim or (size is not None and len(value) != size):
        expected = "a matrix" if ndim == 2 else f"shape ({size},)"
        raise ShapeError(f"{type(owner).__name__}.{name} must have {expected}, got {value.shape}")
    object.__setattr__(owner, name, value)


def _norm(x):
    return float(np.linalg.norm(x))

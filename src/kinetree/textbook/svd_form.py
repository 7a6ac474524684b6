"""The equation of motion that does not fail at kinematic singularities — Spencer ch. 3, (3.5).

    vdot = V2 (V2ᵀ M V2)⁻¹ V2ᵀ (F + M pinv(G) Gdot v) - pinv(G) Gdot v

with ``G = U [diag(sigma) 0] [V1 V2]ᵀ``. Where ``G`` loses rank the pseudoinverse leaves the lost
direction alone. The form says how near a singularity is, and whether the pass is benign; it does
not resolve the singularity. At the singular point itself ``V2`` is an arbitrary part of a larger
null space, so that the branch on which the motion goes on is decided by rounding,
with a ``SingularityWarning``.
"""

from typing import NamedTuple

import numpy as np

from kinetree import errors
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, SingularError, SingularityWarning
from kinetree.loops.kinematics.constraint import rank as rank_of
from kinetree.loops.state_space.multipliers import Stabilization, solved_inertia, velocity_products
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.textbook.system_invariants import project_position

THRESHOLD = 1e-12
"""Singular values below this times the largest count as zero."""
_AWAY = 1e-2
"""How far from a configuration others are sought, in units of the coordinates."""


def _rank_at(system, q):
    """Number of independent constraints at a configuration."""
    return rank_of(system.G(q), system.scaling)


def _next_to(system, q):
    """Up to three configurations on the constraint manifold next to ``q``."""
    rng, found = np.random.default_rng(0), []
    for _ in range(3):
        step = rng.normal(size=system.n)
        try:
            near = system.space.move(np.asarray(q, dtype=float), _AWAY * step)
            found.append(project_position(system, near))
        except SingularError:
            continue
    return found


class SVDEvaluation(NamedTuple):
    """Accelerations at one state, with indicators of their reliability."""

    vdot: np.ndarray
    """Accelerations, (n,)."""
    sigma: np.ndarray
    """Singular values of ``G``, descending, (rank,)."""
    kappa: float
    """Their ratio, largest to smallest: 1 at best, infinite at a singularity — §3.1."""
    indicator: float
    """``|v_m u_mᵀ Gdot v|``: vanishes like the smallest singular value in a benign pass — (3.7)."""
    K: np.ndarray
    """``V2``, orthonormal basis of the null space, (n, p)."""
    c: np.ndarray
    """``Kdot ydot = -pinv(G) Gdot v``, (n,)."""
    rank: int
    """Number of nonzero singular values: smaller at a singularity."""

    @property
    def is_arbitrary(self) -> bool:
        """Whether the state is at a singularity, so that ``K`` depends on rounding errors."""
        return self.kappa * THRESHOLD >= 1


def arbitrary(t, seen: SVDEvaluation):
    """Warning message about an evaluation at a singularity at time ``t`` [s]."""
    n, p = seen.K.shape
    return (
        f"the constraints are dependent at t = {t:.6g} s: smallest singular value "
        f"{seen.sigma[-1]:.3g}, condition {seen.kappa:.3g}. They leave {p + 1} of {n} directions "
        f"free instead of {p}, of which rounding errors have chosen {p}: accelerations are "
        f"arbitrary, and the motion goes on on one of several branches. Start a little away from "
        f"the singularity to choose"
    )


class SVDForm:
    """Accelerations of a constrained system by singular values.

    Attributes:
        system: the constrained system; redundant constraints are allowed.
        threshold: singular values below this times the largest count as zero. Larger ones, from
            1e-3 or so, soften the constraints near singularities: stable, but not accurate.
        damping: ``mu`` of the damped inverse ``Gᵀ (G Gᵀ + mu² 1)⁻¹``, whose norm is at most
            ``1 / (2 mu)``; softens as well. Zero for none.
        stabilization: ``Stabilization(alpha, beta)``, or None.
    """

    def __init__(
        self,
        system: ConstrainedSystem,
        *,
        q: ArrayLike | None = None,
        rank: int | None = None,
        threshold: float = THRESHOLD,
        damping: float = 0.0,
        stabilization: Stabilization | None = None,
    ):
        """Choose how the inverse is made.

        Args:
            system: the constrained system.
            q: a configuration away from singularities at which independent constraints are
                counted; by default they are counted all over the manifold of a model, and for
                other systems where the form is first evaluated, and next to that.
            rank: their number, if known. One that contradicts the constraints is rejected at the
                first evaluation.
            threshold: see above.
            damping: see above.
            stabilization: see above.
        """
        if not (0 <= threshold < 1 and 0 <= damping < np.inf):
            raise ShapeError(
                f"threshold of SVDForm is relative to the largest singular value, from 0 to less "
                f"than 1, and damping is not negative; got threshold = {threshold!r} and damping = "
                f"{damping!r}"
            )
        if rank is not None and rank not in range(min(system.m, system.n) + 1):
            raise ShapeError(
                f"rank must be an integer from 0 to {min(system.m, system.n)}, as the system "
                f"has {system.m} constraints on {system.n} velocities; got {rank!r}"
            )
        self.system, self.stabilization = system, stabilization
        self.threshold, self.damping = threshold, damping
        self._rank = rank if q is None or rank is not None else _rank_at(system, q)
        self._unchecked = rank is not None

    @property
    def rank(self) -> int | None:
        """Number of independent constraints away from singularities; None while unknown."""
        if self._rank is None and self.system.scaling is not None:
            self._rank = self.system.scaling.generic_rank()
        return self._rank

    def acceleration(self, t: float, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Constrained acceleration ``vdot`` by SVD, (n,)."""
        return self.evaluate(t, q, v).vdot

    def evaluate(self, t: float, q: ArrayLike, v: ArrayLike, *, warn: bool = True) -> SVDEvaluation:
        """``SVDEvaluation``: the acceleration ``vdot`` with its diagnostics.

        Warns:
            SingularityWarning: the state is right at a singularity, where ``V2`` and with it
                ``vdot`` is arbitrary; not with ``warn=False``.
        """
        system, r = self.system, self._rank_near(q)
        terms = system.constraint(q, v)
        rows = self._row_units()
        products = rows * velocity_products(terms, v, self.stabilization)
        U, s, Vt = np.linalg.svd(rows[:, None] * terms.G)
        U, sigma, V1, V2 = U[:, :r], s[:r], Vt[:r].T, Vt[r:].T
        along = U.T @ products
        c = -V1 @ (self.inverse_values(sigma) * along)
        M = system.M(q)
        z = solved_inertia(V2.T @ M @ V2, V2.T @ (system.F(t, q, v) - M @ c))
        kappa = sigma[0] / sigma[-1] if r and sigma[-1] > 0 else (np.inf if r else 1.0)
        indicator = abs(float(U[:, -1] @ (rows * terms.Gdot_v))) if r else 0.0
        count = int(np.sum(sigma > self.threshold * sigma[0])) if r else 0
        found = SVDEvaluation(V2 @ z + c, sigma, float(kappa), indicator, V2, c, count)
        if warn and found.is_arbitrary:
            errors.warn(arbitrary(t, found), SingularityWarning)
        return found

    def pseudo_inverse(self, q: ArrayLike) -> np.ndarray:
        """Pseudo-inverse (n, m) of ``G`` by this form's SVD — Spencer (3.4)."""
        r, rows = self._rank_near(q), self._row_units()
        U, s, Vt = np.linalg.svd(rows[:, None] * self.system.G(q))
        return (Vt[:r].T * self.inverse_values(s[:r])) @ (U[:, :r].T * rows)

    def _rank_near(self, q):
        """Constraint rank, computed at ``q`` and nearby if not known yet."""
        if self._unchecked:
            self._check_rank(q)
        if self.rank is None:
            here, near = _rank_at(self.system, q), _next_to(self.system, q)
            if not near and here < min(self.system.m, self.system.n):
                raise SingularError(
                    f"{here} of {self.system.m} constraints are independent here, and no "
                    f"configuration that satisfies them was found next to it, so that SVDForm "
                    f"cannot tell redundant constraints from a singularity: give rank=, or q= away "
                    f"from singularities"
                )
            self._rank = max([here, *(_rank_at(self.system, x) for x in near)])
        return self._rank

    def _check_rank(self, q):
        """Raise ShapeError if the given rank contradicts that at ``q`` or nearby."""
        least = here = _rank_at(self.system, q)
        if here < self._rank:
            least = max([here, *(_rank_at(self.system, x) for x in _next_to(self.system, q))])
        if here > self._rank or least < self._rank:
            raise ShapeError(
                f"rank = {self._rank} of SVDForm contradicts the constraints, of which {least} are "
                f"independent here{'' if here > self._rank else ' and next to it'}; leave rank out "
                f"to have it counted"
            )
        self._unchecked = False

    def _row_units(self):
        """Row scale factors (m,) of the constraints, 1 if none is redundant."""
        system = self.system
        if system.scaling is None or self._rank == system.m:
            return np.ones(system.m)
        return system.scaling.rows

    def inverse_values(self, sigma: ArrayLike) -> np.ndarray:
        """Damped inverses of singular values, zero below the threshold."""
        if len(sigma) == 0:
            return sigma
        counts = sigma > self.threshold * sigma[0]
        damped = sigma**2 + self.damping**2
        return np.divide(sigma, damped, out=np.zeros_like(sigma), where=counts)


# --- singular passes: Spencer §3.1, ch. 5 --------------------------------------------------------


class SingularPass(NamedTuple):
    """A close approach to a configuration at which constraints become dependent.

    The motion may have gone through a bifurcation there: what follows is one of several branches.
    """

    time: float
    """When it was closest [s], between samples."""
    sigma: float
    """The smallest singular value of ``G`` among the samples."""
    kappa: float
    """Its ratio to the largest, inverted."""
    indicator: float
    """``|u_mᵀ Gdot v|`` there; as small as ``sigma`` in a benign pass."""

    def __str__(self):
        return (
            f"near singular at t = {self.time:.4f} s: smallest singular value {self.sigma:.3g}, "
            f"condition {self.kappa:.3g}, indicator {self.indicator:.3g}; the motion may have gone "
            f"through a bifurcation"
        )


class SingularityWatch:
    """Detects close approaches from one evaluation of the SVD form for each step.

    Attributes:
        limit: condition from which an approach counts.
        passes: what was found so far.
    """

    def __init__(self, limit: float = 100.0):
        self.limit, self.passes = limit, []
        self._recent = []

    def update(self, t: float, evaluation: SVDEvaluation) -> SingularPass | None:
        """Record a step; returns the ``SingularPass`` that it completes, or None.

        A pass is complete one step after the smallest singular value has been smallest; the first
        sample counts as a pass if the motion starts at a singularity.
        """
        sigma = float(evaluation.sigma[-1]) if len(evaluation.sigma) else np.inf
        self._recent = [*self._recent[-2:], (t, sigma, evaluation)]
        values = [s for _, s, _ in self._recent]
        if len(values) == 2 and values[0] < values[1]:
            return self._note(self._recent[0], self._recent[0][0])
        if len(values) == 3 and values[1] <= values[0] and values[1] < values[2]:
            return self._note(self._recent[1], self._lowest())
        return None

    def _note(self, sample, time):
        """``SingularPass`` of a close approach to a singularity, recorded; None if not close."""
        _, sigma, evaluation = sample
        if not evaluation.kappa >= self.limit:
            return None
        found = SingularPass(time, sigma, evaluation.kappa, evaluation.indicator)
        self.passes.append(found)
        return found

    def _lowest(self):
        """Time of the minimum of a parabola through three squared singular values."""
        t, s = (np.array(x) for x in zip(*((t, s**2) for t, s, _ in self._recent), strict=True))
        left, right = (s[1] - s[0]) / (t[1] - t[0]), (s[2] - s[1]) / (t[2] - t[1])
        curvature = (right - left) / (t[2] - t[0])
        return float((t[0] + t[1]) / 2 - left / (2 * curvature))

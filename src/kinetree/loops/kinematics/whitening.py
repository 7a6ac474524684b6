"""Constraint equations in coordinates in which the inertia matrix is the identity.

With ``H = LᵀDL`` and ``x = √D L a``, the smallest ``a`` in the metric of ``H`` that satisfies
``K a = t`` is the smallest ``x`` that satisfies ``Y x = t``, where ``Yᵀ = D^(-1/2) L⁻ᵀ Kᵀ``. Rows
of ``Y`` are made orthogonal one by one (Gram and Schmidt, modified): the condition of this is the
distance from a singular configuration, while that of ``K H⁻¹ Kᵀ`` is its square. A row that is
nothing new, as one is in a singular configuration, is damped away.

``H`` of the spanning tree is singular where bodies without inertia are carried along by others.
Then ``H + w KᵀK`` takes its place, which is positive definite if every motion that the constraints
allow moves inertia. It gives the same motion: what it adds is a force ``Kᵀ w K a``, which is one
more force of the constraints.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import crba, ltl
from kinetree.spatial.ops import sqrt

_DAMPING = 1e-16  # of the mean square of all rows: a row with less that is new is damped away
_TINY = 1e-200


class FactoredInertia(NamedTuple):
    """Factors of ``H``."""

    L: Any
    root: Any
    """``√D``."""
    lam: tuple

    def forces(self, f):
        """Whitened forces ``D^{-1/2} L⁻ᵀ f`` of joint forces (nv,) or (nv, n)."""
        y = ltl.solve_lt(self.L, self.lam, f, unit=True)
        return (y.T / self.root).T

    def motion(self, x):
        """Velocities or accelerations ``L⁻¹ D^{-1/2} x`` of a whitened vector."""
        return ltl.solve_l(self.L, self.lam, x / self.root, unit=True)


class OrthogonalRows(NamedTuple):
    """Rows of ``Y``, orthogonal."""

    Y: list
    w: list
    """What is new in each row."""
    weight: list
    """One over its square, damped."""
    c: list
    """How much of the rows before is in each."""
    health: list
    """Square of what is new in each, relative to the mean square: 0 in a singular position."""

    def apply(self, x):
        """Product ``Y x`` of the whitened constraint rows with a whitened vector."""
        return np.array([y @ x for y in self.Y])


def whitening(model, q, K=None, weight=0.0) -> FactoredInertia:
    """``FactoredInertia`` of ``H``, or of ``H + weight KᵀK`` if a weight is given."""
    if weight and K is not None:
        return factorize(model, crba.joint_space_inertia(model, q) + weight * (K.T @ K))
    return _with_root(model, crba.inertia_factors(model, q), model.expanded_parent)


def sparsity(model, weight):
    """Parent array of the sparsity pattern of the factors in ``whitening``."""
    return ltl.dense(model.nv) if weight else model.expanded_parent


def factorize(model, M) -> FactoredInertia:
    """``FactoredInertia`` of a dense inertia matrix."""
    lam = ltl.dense(model.nv)
    return _with_root(model, ltl.ltdl(M, lam, lambda _: no_inertia(model)), lam)


def _with_root(model, L, lam):
    """``FactoredInertia`` from factors ``H = LᵀDL``, with the square roots of ``D``."""
    root = np.array([sqrt(L[k, k]) for k in range(model.nv)])
    return FactoredInertia(L, root, lam)


def no_inertia(model):
    """Error message for a model with an allowed motion that moves no inertia."""
    return (
        f"the equation of motion of model {model.name!r} is singular: some motion that its loops "
        f"allow moves no inertia; give mass to the bodies that take part in it, or constrain it"
    )


def orthogonal(inertia: FactoredInertia, K) -> OrthogonalRows:
    """``OrthogonalRows``: whitened constraint matrix ``K`` (r, nv), by Gram-Schmidt.

    Rows are compared with each other, so they should be pure numbers, lengths being measured in
    lengths of the mechanism.
    """
    Y = list(inertia.forces(K.T).T)
    usual = sum(y @ y for y in Y) / len(Y) + _TINY
    w, weight, c, health = [], [], [], []
    for y in Y:
        rest, part = y, []
        for u, one_over in zip(w, weight, strict=True):
            part.append((rest @ u) * one_over)
            rest = rest - part[-1] * u
        square = rest @ rest
        w.append(rest)
        c.append(part)
        weight.append(1 / (square + _DAMPING * usual))
        health.append(square / usual)
    return OrthogonalRows(Y, w, weight, c, health)


def smallest(rows: OrthogonalRows, t):
    """Minimum-norm whitened vector ``x`` with ``Y x = t``."""
    return sum(w * s for w, s in zip(rows.w, _parts(rows, t), strict=True))


def multipliers(rows: OrthogonalRows, t):
    """Multipliers ``l`` (r,) of the minimum-norm solution ``x = Yᵀ l`` of ``Y x = t``."""
    parts, found = _parts(rows, t), []
    for i in range(len(parts) - 1, -1, -1):  # Y = (1 + c) w
        later = zip(range(len(parts) - 1, i, -1), found, strict=True)
        found.append(parts[i] - sum(rows.c[j][i] * l_j for j, l_j in later))
    return np.array(found[::-1])


def _parts(rows: OrthogonalRows, t):
    """Coefficients of the orthogonal rows in the minimum-norm ``x`` with ``Y x = t``."""
    wanted: list = []
    for t_i, part in zip(t, rows.c, strict=True):
        wanted.append(t_i - sum(c * a for c, a in zip(part, wanted, strict=True)))
    return [weight * a for weight, a in zip(rows.weight, wanted, strict=True)]

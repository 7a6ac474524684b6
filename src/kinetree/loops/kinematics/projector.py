"""Projection of states in the metric of the masses: one compiled kernel for known rows of ``K``.

The rows must be independent: ``K H⁻¹ Kᵀ`` is factorised without pivoting, and pivots are checked
at run time. Positions take chord steps, which use the factors of the start: the drift of a step of
an integrator is so small that each gains as many digits as the state is off.
"""

from math import prod

import numpy as np

from kinetree.algorithms import crba, ltl
from kinetree.algorithms.loop_constraints import loop_constraints, loop_errors
from kinetree.errors import SingularError
from kinetree.functional.kernel import kernel
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.descent import descend
from kinetree.loops.kinematics.rank import independent_rows, scaling

__all__ = ["fast_projection"]

_STEPS = 3
_MOST = 4  # sets of rows for which one model gets kernels


@kernel
def _project(model, q, qd, *, rows):
    rows = [int(row) for row in rows.split()]
    c = loop_constraints(model, q, model.zero_velocity)
    to_joints = _impulses(model, q, c.K[rows])
    for _ in range(_STEPS):
        q = model.integrate(q, to_joints(-loop_errors(model, q)[rows]))
    c = loop_constraints(model, q, qd)
    qd = qd + _impulses(model, q, c.K[rows])(-c.rate[rows])
    return q, qd, loop_errors(model, q), loop_constraints(model, q, qd).rate


def _impulses(model, q, K):
    """What takes a change of constraints to the joint motion of least kinetic energy, (nv,)."""
    L, lam = crba.inertia_factors(model, q), model.expanded_parent
    Z = np.column_stack([ltl.solve_ltdl(L, lam, column) for column in K])
    chain = ltl.dense(len(K))
    factors = ltl.ltdl(K @ Z, chain)
    return lambda change: Z @ ltl.solve_ltdl(factors, chain, change)


def fast_projection(model, q, qd, tolerance):
    """``q, qd`` projected, and which samples of them are good to the tolerance, (...,).

    None where no kernel will do: then ranks have to be decided anew.
    """
    known, units = model.kernels.setdefault("loops.projection rows", []), scaling(model)
    for rows in (*reversed(known), None):
        if rows is None:
            rows = _rows_near(model, q.reshape(prod(q.shape[:-1]), model.nq)[:1])
            if not rows or rows in known or len(known) >= _MOST:
                return None
            known.append(rows)
        try:
            closed, moving, error, rate = _project(model, q, qd, rows=rows)
        except SingularError:
            continue
        limit = np.full(len(units.rows), tolerance)
        if units.policy.is_known:  # by what the rows that are left out may miss
            limit[[str(k) not in rows.split() for k in range(len(limit))]] += units.policy.slack
        speed = np.maximum(np.max(np.abs(moving / units.columns), axis=-1), 1.0)
        good = np.all(np.abs(error * units.rows) <= limit, axis=-1)
        good &= np.all(np.abs(rate * units.rows) <= limit * speed[..., None], axis=-1)
        if np.any(good):
            return closed, moving, good
    return None


def _rows_near(model, q):
    """Independent rows on the manifold; beside it, redundant constraints seem independent."""
    closed = descend(model, q, tolerance=0.0, iterations=50).q[0]
    K = constraint(model, closed, np.zeros(model.nv)).K
    return " ".join(map(str, independent_rows(K, scaling(model))))

"""Derivatives of forward dynamics from those of inverse dynamics.

``tau(q, qd, qdd(q, qd, tau)) = tau`` for every ``tau``; differentiating both sides gives

    ∂qdd/∂q = -H⁻¹ ∂tau/∂q      ∂qdd/∂qd = -H⁻¹ ∂tau/∂qd      ∂qdd/∂tau = H⁻¹

with the derivatives of inverse dynamics taken at the true acceleration (J. Carpentier and
N. Mansard, "Analytical derivatives of rigid body dynamics algorithms", 2018). Positions, velocities
and composite inertias are shared by all parts; ``H⁻¹`` acts through the sparse factors of ``H``.
The joints must meet the conditions of ``rnea_derivatives``.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import aba, armature, ltl, minv, regressors, rnea_derivatives
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.propagation import moves_no_inertia
from kinetree.algorithms.rnea_derivatives import (
    composite_forces,
    force_derivatives,
    inverse_dynamics_derivatives,
    joint_forces,
    joint_space_inertia,
)
from kinetree.spatial import crm


class ForwardDynamicsDerivatives(NamedTuple):
    """Derivatives of the joint accelerations, each (nv, nv): row ``i`` for ``qdd_i``."""

    dq: np.ndarray
    """Along the tangent directions of the configuration."""
    dqd: np.ndarray
    """With respect to the velocity variables."""
    dtau: np.ndarray
    """With respect to the joint forces: ``H⁻¹``, symmetric."""


@refuses("loops", "couplings", use="kinetree.differentiate")
def forward_dynamics_derivatives(
    model, q, qd, tau, f_ext=None, *, composite_bodies=rnea_derivatives.composite_bodies
):
    """Derivatives of the joint accelerations ``qdd`` with respect to ``q``, ``qd`` and ``tau``.

    ``composite_bodies`` chooses the coordinates: the function of this name in
    ``rnea_derivatives`` or in ``body_coordinates``.
    """

    def singular(k):
        i = next(i for i, at in enumerate(model.v_slice) if k < at.stop)
        return moves_no_inertia(model, i)

    lam = model.expanded_parent
    bodies = composite_bodies(model, q, qd)
    L = ltl.ltdl(joint_space_inertia(model, bodies), lam, singular)
    zero = model.zero_velocity
    C = joint_forces(model, bodies, composite_forces(model, bodies, qd, zero, f_ext), zero)
    qdd = ltl.solve_ltdl(L, lam, tau - C)
    forces = composite_forces(model, bodies, qd, qdd, f_ext)
    dq, dqd = force_derivatives(model, bodies, forces)
    known_q, known_qd = _free_root_columns(model, bodies, forces)
    dq, dqd = _solve_columns(L, lam, (dq, dqd), (known_q, known_qd))
    return ForwardDynamicsDerivatives(dq, dqd, ltl.inverse_ltdl(L, lam))


@refuses("loops", "couplings", use="kinetree.differentiate")
def forward_dynamics_derivatives_by_articulated_bodies(
    model, q, qd, tau, f_ext=None, *, wrt=("q", "qd", "tau")
):
    """Derivatives of ``qdd`` by those in ``wrt``, with ``H⁻¹`` applied by articulated bodies.

    On one column after the other, as code for every robot needs it.
    """
    bodies = aba.articulated_bodies(model, q, qd, tau, f_ext)
    found: dict[str, Any] = dict.fromkeys(("q", "qd", "tau"))
    if "tau" in wrt:
        found["tau"] = model.matrix(q)
    if "q" in wrt or "qd" in wrt:
        d = inverse_dynamics_derivatives(model, q, qd, bodies.qdd, f_ext)
        found |= {"q": d.dq, "qd": d.dqd}
    solved = [found[name] for name in ("q", "qd") if name in wrt]
    minv.solve_columns(model, bodies.joints, *solved, inverse=found["tau"])
    return ForwardDynamicsDerivatives(found["q"], found["qd"], found["tau"])


@refuses("loops", "couplings", use="kinetree.differentiate")
def forward_dynamics_by_inertias(model, q, qd, tau, f_ext=None, *, bodies=None):
    """Derivatives of ``qdd`` by inertial parameters, (nv, 10 body_count): ``-H⁻¹ Y``.

    ``bodies`` are those whose columns are wanted, all by default.
    """
    found = aba.articulated_bodies(model, q, qd, tau, f_ext)
    Y = regressors.regressor_in_base_coordinates(model, q, qd, found.qdd, bodies=bodies)
    minv.solve_columns(model, found.joints, Y, columns=model.parameter_columns())
    return Y


def _free_root_columns(model, bodies, forces):
    """Known derivatives of ``qdd`` by a floating base's variables: rows and values, by variable.

    When it turns, gravity turns in its coordinates; when its linear velocity changes, it moves
    through them. Both add the same motion ``m`` to the accelerations of all bodies, the forces
    ``IC_i m``, and cancel if the base alone accelerates by ``-m``. External forces, which do not
    turn along, leave only the second.
    """
    known_q, known_qd = {}, {}
    for i in model.children[0]:
        J, at = bodies.J[i], model.v_slice[i]
        if not model.joint[i].constant_subspace or armature.is_present(model, i):
            continue
        if not np.array_equal(J.to_array(), np.eye(6)):
            continue
        turned, moved = forces.Jdd[i].to_array(), crm(bodies.v[i], J).to_array()
        for k in range(6):
            if forces.fx is None:
                known_q[at.start + k] = at, -turned[:, k]
            if k >= 3:
                known_qd[at.start + k] = at, -moved[:, k]
    return known_q, known_qd


def _solve_columns(L, lam, B, known):
    """Solve ``-H⁻¹ B`` for several ``B`` from the factors of ``H``; ``known`` columns are given.

    Column ``j`` of ``B`` is zero but for the variables that support ``j`` or hang on it. So is it
    after the first half of the solution; in the second half the others follow those that they
    share with ``j``, by coefficients that do not depend on the column.

    Generated code keeps the order of this source. So columns ``j`` of all ``B`` go side by side, to
    share what they are multiplied with while it is in a register, and so do two neighbours, which
    can be written to memory together.
    """
    n = len(lam)
    B = np.stack(B, axis=-1)
    for k, columns in enumerate(known):
        B[:, list(columns), k] = 0
    path = [(*reversed(list(ltl.ancestors(lam, k))), k) for k in range(n)]
    above = [p[:-1] for p in path]
    below = [[k for k in range(n) if i in above[k]] for i in range(n)]
    minus_D_inv = -1 / np.diagonal(L)
    X, W = np.zeros_like(B), {}
    for first in range(0, n, 2):
        pair = slice(first, min(first + 2, n))
        b, y, x = B[:, pair], np.zeros_like(B[:, pair]), X[:, pair]
        for i in reversed(range(n)):
            y[i] = _less(b[i], L[:, i], y, below[i])
        for i in range(n):
            for (supports, count), js in _alike(path, i, pair).items():
                if supports:
                    x[i, js] = _less(y[i, js] * minus_D_inv[i], L[i], x[:, js], above[i])
                else:
                    w = _following(L, path, i, count, W)
                    x[i, js] = sum(w[a] * x[a, js] for a in path[i][:count])
    for k, columns in enumerate(known):
        for column, (rows, values) in columns.items():
            X[rows, column, k] = values
    return np.moveaxis(X, -1, 0)


def _alike(path, i, pair):
    """Columns of a pair of variables, grouped by how variable ``i`` is related to each in the tree.

    That is, whether one supports the other, and how many variables support both. Columns that have
    nothing to do with ``i`` are left out.
    """
    groups = {}
    for at, j in enumerate(range(pair.start, pair.stop)):
        shared = [a for a, b in zip(path[i], path[j], strict=False) if a == b]
        if shared:
            groups.setdefault((shared[-1] in (i, j), len(shared)), []).append(at)
    return groups


def _less(x, row, column, indices):
    """Difference ``x - Σ row[k] column[k]`` over the indices, term by term."""
    for k in indices:
        x = x - row[k] * column[k]
    return x


def _following(L, path, i, count, W):
    """Coefficients by which variable ``i`` follows the first ``count`` ones on its path."""
    if (i, count) not in W:
        between = path[i][count:-1]
        w = {k: _following(L, path, k, count, W) for k in between}
        W[i, count] = {
            a: _less(-L[i, a], L[i], {k: w[k][a] for k in between}, between)
            for a in path[i][:count]
        }
    return W[i, count]

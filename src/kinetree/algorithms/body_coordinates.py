"""Composite bodies for ``rnea_derivatives``, each in the coordinates of its own body.

There the axes of joints are constants, mostly unit vectors, so that products with them cost
nothing; but what goes from body to body has to be transformed. That takes fewer operations than
one frame for all where transforms are cheap (``model.views.axial_view``) and axes point in many
directions, and more where most axes are parallel.
"""

from kinetree.algorithms.coriolis import BodyCoriolis
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.rnea_derivatives import CompositeBodies, require_applicable, subtree_sums
from kinetree.spatial import crm, skew
from kinetree.spatial.axial_screw import AxialScrew, ScrewProduct

__all__ = ["composite_bodies"]


@refuses("couplings", use="kinetree.differentiate")
def composite_bodies(model, q, qd):
    """Positions, velocities and composite inertias."""
    lam, NB = model.parent, model.body_count
    require_applicable(model)
    X_0, X, v, v_lam, S, Sd, B = ([None] * (NB + 1) for _ in range(7))
    for i in range(1, NB + 1):
        X_J, S[i], v_J, _ = model.jcalc(i, q, qd)
        X_i = X_J @ model.tree_transform[i]
        if lam[i] == 0:
            X_0[i], v_lam[i] = X_i, model.zero_motion
        else:
            X[i], X_0[i] = X_i, ScrewProduct(X_i, X_0[lam[i]])
            v_lam[i] = X_i @ v[lam[i]]
        v[i] = v_lam[i] + v_J
        Sd[i] = crm(v_lam[i], S[i])
        B[i] = BodyCoriolis.of(model.inertia[i], 2 * v[i])
    IC, BC = subtree_sums(lam, X, model.inertia), subtree_sums(lam, X, B, _carried)
    F = [None, *(IC[i] @ S[i] for i in range(1, NB + 1))]
    return CompositeBodies(X_0, X, v, v_lam, S, Sd, list(model.inertia), B, IC, BC, F)


def _carried(X, B):
    """``Xᵀ B X``; about coordinate axes at their lower cost — RBDA §A.4."""
    if isinstance(X, ScrewProduct):
        for factor in X.factors:
            B = _carried(factor, B)
        return B
    if not isinstance(X, AxialScrew):
        return B.inverse_transformed(X)
    back, shift = X.rotation.inverse(), X.rotation.rows([0, 0, X.d])
    p = back.vectors(B.p)
    return BodyCoriolis(back.general(B.P) - skew(shift) @ skew(p), p)

"""Impact at one point with tangential and torsional restitution, and torsional friction.

Softer bodies touch in a patch: it resists spin about the normal with a couple, up to ``μ_r λ_n``,
and gives back some of what it stored in the tangential and the torsional direction. The model is
algebraic (Brach): sliding and spinning are reversed, ``ζ' = -E ζ`` as in RBDA (11.71), if that
takes no more than friction has; otherwise friction is at its limit, against the sliding or
spinning at the start. Rows are (normal, tangent 1, tangent 2, spin). Host-only.
"""

import numpy as np

__all__ = ["patch_impact"]


def patch_impact(W, zeta, restitution, limits):
    """Impulse at a patch, (4,); the last is a couple about the normal [N·m·s].

    Args:
        W: velocity change per impulse, (4, 4).
        zeta: relative velocity before, the last an angular velocity about the normal, (4,).
        restitution: along the normal, the tangents and about the normal, (3,).
        limits: coefficients of friction: of sliding, and of spin [m].
    """
    e_n, e_t, e_r = restitution
    target = -np.array([e_n, e_t, e_t, e_r]) * zeta
    parts = (slice(1, 3), slice(3, 4))
    at_limit = [mu == 0 for mu in limits]
    for _ in range(3):
        lam = _impulse(W, zeta, target, parts, limits, at_limit)
        beyond = [
            not limited and np.linalg.norm(lam[part]) > mu * lam[0]
            for part, mu, limited in zip(parts, limits, at_limit, strict=True)
        ]
        if not any(beyond):
            break
        at_limit = [a or b for a, b in zip(at_limit, beyond, strict=True)]
    return lam


def _impulse(W, zeta, target, parts, limits, at_limit):
    """Impulse with some parts at their limits: ``λ = B y``, ``y`` free, the normal among it."""
    normal, free = np.array([1.0, 0, 0, 0]), [0]
    for part, mu, limited in zip(parts, limits, at_limit, strict=True):
        size = np.linalg.norm(zeta[part])
        if not limited:
            free += range(4)[part]
        elif size > 0:
            normal[part] = -mu * zeta[part] / size
    B = np.eye(4)[:, free]
    B[:, 0] = normal
    A = W[free] @ B
    return B @ np.linalg.lstsq(A, (target - zeta)[free], rcond=1e-13)[0]

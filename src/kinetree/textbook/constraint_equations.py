"""Constrained equations of motion in the forms that are not solved — RBDA §3.2.

(3.18) and (3.19), and the condition (3.12) that two forms of a constraint satisfy.
"""

import numpy as np

from kinetree.errors import ShapeError


def check_same_constraint(implicit, explicit, *, tolerance=1e-9):
    """Raise an error unless implicit and explicit forms describe one constraint — RBDA (3.12).

    ``implicit.error`` must then be ``φ(γ(y))``, which is zero. Dimensions count as well: ``G``
    must span all that ``K`` allows.
    """
    K, G = implicit.K, explicit.G
    if K.shape[1] != len(G):
        raise ShapeError(f"K has {K.shape[1]} columns and G {len(G)} rows; both must be n")
    size = max(np.linalg.norm(K), np.finfo(float).tiny)
    checks = (
        ("phi(gamma(y)) = 0", implicit.error, 1.0),
        ("K G = 0", K @ G, size * np.linalg.norm(G)),
        ("K rate = rate", K @ explicit.rate - implicit.rate, size * np.linalg.norm(explicit.rate)),
        (
            "K g = k",
            K @ explicit.g - implicit.k,
            size * np.linalg.norm(explicit.g) + np.linalg.norm(implicit.k),
        ),
    )
    for name, residual, scale in checks:
        if np.linalg.norm(residual) > tolerance * max(scale, np.finfo(float).tiny):
            raise ShapeError(
                f"the implicit and the explicit form are different constraints: {name} "
                f"is missed by {np.linalg.norm(residual):.3g}"
            )
    free, spanned = implicit.motion_subspace.dim, explicit.motion_subspace.dim
    if free != spanned:
        raise ShapeError(
            f"the implicit and the explicit form are different constraints: K allows {free} "
            f"velocity degrees of freedom and G spans {spanned}"
        )


def explicit_equations(system, constraint):
    """Matrix and right side of RBDA (3.18): motion with ``qdd = G ydd + g``, constraint force."""
    (H, C, tau), G, g = system, constraint.G, constraint.g
    n, m = G.shape
    one, O = np.eye(n), np.zeros
    A = np.block([[H, -one, O((n, m))], [-one, O((n, n)), G], [O((m, n)), G.T, O((m, m))]])
    return A, np.concatenate([tau - C, -g, O(m)])


def dual_equations(system, constraint):
    """Matrix and right side of RBDA (3.19): (3.18) without ``qdd``, for ``(-tau_c, ydd)``.

    Of less use than its dual (3.17): it needs the inverse of ``H``. The book prints the unknown as
    ``tau_c``; eliminating ``qdd`` from (3.18) gives it the other sign, as ``-lam`` in (3.17) has.
    """
    (H, C, tau), G, g = system, constraint.G, constraint.g
    m = G.shape[1]
    H_inv = np.linalg.inv(H)
    A = np.block([[H_inv, G], [G.T, np.zeros((m, m))]])
    return A, np.concatenate([H_inv @ (tau - C) - g, np.zeros(m)])

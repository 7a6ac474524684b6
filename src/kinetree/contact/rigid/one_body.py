"""One rigid body against fixed surfaces, without friction — RBDA §11.1, §11.2.

The textbook case, in spatial vectors: normals ``n`` through the points of contact, forces ``n λ``
with ``λ ≥ 0``, and separation accelerations ``n · a + ṅ · v ≥ 0``, one of the two zero. For
mechanisms see ``forward_dynamics``.
"""

from typing import NamedTuple

import numpy as np

from kinetree.arrays.functions import on_host
from kinetree.contact.complementarity import lcp
from kinetree.contact.rigid.refusals import require_solution
from kinetree.errors import ContactError, ShapeError
from kinetree.spatial import Motion, cross_force

__all__ = ["BodyContact", "body_contact"]

_CLOSING = 1e-6  # [m/s] separation velocity that still counts as zero


class BodyContact(NamedTuple):
    """Motion of one body in contact.

    Attributes:
        lam: contact forces [N], (n,); one of many, where normals are dependent.
        a: spatial acceleration of the body, unique.
        zetadot: separation accelerations [m/s²], (n,), unique.
        M: separation accelerations per contact force [1/kg], (n, n) — RBDA (11.19).
        d: separation accelerations without contact forces [m/s²], (n,) — RBDA (11.20).
    """

    lam: np.ndarray
    a: Motion
    zetadot: np.ndarray
    M: np.ndarray
    d: np.ndarray


@on_host
def body_contact(inertia, v, f, normals, normal_rates=None) -> BodyContact:
    """Contact forces on one body, and its acceleration.

    Args:
        inertia: spatial inertia of the body.
        v: its spatial velocity; separation velocities ``n · v`` must be zero.
        f: all other forces on it, gravity among them.
        normals: unit forces along the normals through the points of contact, (n, 6); away from the
            surfaces.
        normal_rates: their rates, (n, 6); zero by default.

    Raises:
        ContactError: a contact closes or opens, so that an impulse is called for, or none.
        InfeasibleContactError: no contact forces keep all contacts from closing.
    """
    N = np.asarray(normals, dtype=float)
    if N.ndim != 2 or N.shape[1] != 6:
        raise ShapeError(f"normals must be forces (n, 6), got shape {N.shape}")
    Ndot = np.zeros(N.shape) if normal_rates is None else np.asarray(normal_rates, dtype=float)
    zeta = N @ v.to_array()
    if np.any(np.abs(zeta) > _CLOSING):
        k = int(np.argmax(np.abs(zeta)))
        raise ContactError(
            f"contact {k} has the separation velocity {zeta[k]:.6g} m/s, and contact forces are "
            f"for velocities of zero: below it is a matter of impact, above there is no contact"
        )
    I = inertia.to_matrix().astype(float)
    free = np.linalg.solve(I, (f - cross_force(v, inertia @ v)).to_array())
    I_inv_N = np.linalg.solve(I, N.T)
    M, d = N @ I_inv_N, N @ free + Ndot @ v.to_array()
    if len(N) == 1:  # RBDA (11.10)
        lam = np.maximum(-d / M[0], 0.0)
    else:
        found = lcp.pivoting((M + M.T) / 2, d)
        require_solution(found, [str(k) for k in range(len(N))])
        lam = found.lam
    return BodyContact(lam, Motion.from_array(free + I_inv_N @ lam), M @ lam + d, M, d)

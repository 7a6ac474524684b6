"""Rates of the point and normal of a contact between two curved surfaces.

RBDA §11.1 takes the rate of the normal as known. It follows from the curvature of the surfaces. Let
``w`` be the rate of the normal and ``u`` the velocity of the contact, both in a frame that
moves with one of the bodies. A smooth surface ties them, ``w = K u``: a ball of radius R has
``K = 1/R``, a plane 0. On a corner the normal turns while the contact stays, on an edge it does
one across and the other along. All are covered by two matrices of the tangent plane,

    w = turn @ s,   u = travel @ s   (s any tangent vector),

which are 1, R for a ball, 0, 1 for a plane, 1, 0 for a corner. The motion of the contact is what
both bodies agree on: D. J. Montana, "The kinematics of contact and grasp" (1988), here with a gap.
"""

import numpy as np


def contact_rates(contacts, v_p, v_s):
    """Rates of the points and normals of contacts, each (n, 3).

    Args:
        contacts: ``Contacts``.
        v_p: spatial velocities of the predecessors in base coordinates, (n, 6).
        v_s: those of the successors.

    Where two flat faces, or parallel edges, lie against each other, the point may be anywhere on
    them, and no normal suits both once they turn apart. Then least squares decide.
    """
    n, gap = contacts.normal, np.asarray(contacts.gap)[:, None]
    turn, travel = _matrices(contacts)
    p_p, p_s = contacts.point - n * gap / 2, contacts.point + n * gap / 2
    at_p, at_s = (v[:, 3:] + np.cross(v[:, :3], p) for v, p in ((v_p, p_p), (v_s, p_s)))
    with_p = np.cross(v_p[:, :3], n)  # the rate of the normal if it were fixed to the predecessor
    slip = at_s - at_p
    slip = slip - n * np.sum(n * slip, axis=1, keepdims=True)
    spin = np.cross(v_s[:, :3] - v_p[:, :3], n)
    # One point: travel_p s_p + gap turn_p s_p - travel_s s_s = slip - gap with_p.
    # One normal: turn_p s_p + turn_s s_s = spin.
    scale = gap[..., None]
    A = np.block([[travel[:, 0] + scale * turn[:, 0], -travel[:, 1]], [turn[:, 0], turn[:, 1]]])
    s = _solved(A, np.concatenate([slip - gap * with_p, spin], axis=1))
    normal_rate = with_p + _times(turn[:, 0], s[:, :3])
    on_p, on_s = at_p + _times(travel[:, 0], s[:, :3]), at_s + _times(travel[:, 1], s[:, 3:])
    return (on_p + on_s) / 2, normal_rate


def _matrices(contacts):
    if contacts.turn is not None:
        return contacts.turn, contacts.travel
    across = _across(contacts.normal)
    none = np.zeros_like(across)
    return np.stack([none, across], axis=1), np.stack([across, none], axis=1)


def _solved(A, b):
    """Least-squares solutions of least length: normals and free motions drop out of them."""
    return _times(np.linalg.pinv(A, rcond=1e-9), b) if len(A) else b


def _times(matrices, vectors):
    return np.einsum("nij,nj->ni", matrices, vectors)


def _across(normal):
    normal = np.asarray(normal)
    return np.eye(3) - normal[..., :, None] * normal[..., None, :]


# --- Kinds of surfaces ---------------------------------------------------------------------------


def flat(normal):
    """(turn, travel) of a plane, each (3, 3)."""
    return np.zeros((3, 3)), _across(normal)


def corner(normal):
    """(turn, travel) of a point that sticks out."""
    return _across(normal), np.zeros((3, 3))


def edge(normal, along):
    """(turn, travel) of a straight edge with the unit direction ``along``."""
    travel = np.outer(along, along)
    return _across(normal) - travel, travel


def curved(normal, K):
    """(turn, travel) of a smooth surface with the shape operator ``K`` [1/m], (3, 3).

    ``K`` maps tangent vectors to how the outward normal changes along them: positive where the
    surface bulges.
    """
    across = _across(normal)
    return across @ K @ across, across


# --- Surfaces of the shapes ----------------------------------------------------------------------
# RBDA §11.6: a polyhedron has normals that are constant by pieces, and no curvature to speak of.

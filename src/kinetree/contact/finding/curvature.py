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

from kinetree.contact.finding.height_fields import height_and_derivatives
from kinetree.contact.finding.shapes import hull_of
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, HeightField, Plane, Sphere


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

_NEAR = 1e-6  # part of the size of a shape by which a point may miss a face, edge or corner


def surface_at(placed, point, normal):
    """(turn, travel), each (3, 3), in base coordinates.

    Args:
        placed: the shape.
        point: a point of its surface, in base coordinates, (3,).
        normal: outward normal of the contact there, (3,).
    """
    R = placed.axes
    turn, travel = _local(placed.shape, placed.local(point), R.T @ normal)
    return R @ turn @ R.T, R @ travel @ R.T


def _local(shape, x, n):
    if isinstance(shape, Plane):
        return flat(n)
    if isinstance(shape, Sphere):
        return _ball(n, shape.radius)
    if isinstance(shape, Capsule):
        beyond = abs(x[2]) > shape.length / 2
        return _ball(n, shape.radius) if beyond else _tube(n, shape.radius)
    if isinstance(shape, Cylinder):
        return _cylinder(shape, x, n)
    if isinstance(shape, Ellipsoid):
        form = np.diag(1 / np.square(shape.radii))
        gradient = form @ x
        return curved(n, form / np.sqrt(gradient @ gradient))
    if isinstance(shape, HeightField):
        s = height_and_derivatives(shape, x[0], x[1])
        bend = np.array([[s.hxx, s.hxy, 0], [s.hxy, s.hyy, 0], [0, 0, 0]])
        return curved(n, -bend / np.sqrt(1 + s.hx**2 + s.hy**2))
    if isinstance(shape, Box):
        half = np.array(shape.size) / 2
        faces = np.eye(3)[np.abs(x) >= half - _NEAR * half.max()]
        return _polyhedron(n, faces)
    hull = hull_of(shape)
    distance = hull.offsets - hull.normals @ x
    size = np.ptp(hull.vertices, axis=0).max()
    return _polyhedron(n, hull.normals[distance <= _NEAR * size])


def _ball(n, radius):
    return curved(n, np.eye(3) / radius)


def _tube(n, radius):
    """A cylinder's side: curved around z, straight along it."""
    return curved(n, np.diag([1.0, 1.0, 0.0]) / radius)


def _cylinder(shape, x, n):
    size = max(shape.radius, shape.length)
    rho = np.hypot(x[0], x[1])
    on_side = rho >= shape.radius - _NEAR * size
    on_end = abs(x[2]) >= shape.length / 2 - _NEAR * size
    if not on_side:
        return flat(n)
    if not on_end:
        return _tube(n, shape.radius)
    # The rim is an edge that turns: along it, the normal is carried around the axis.
    outward = np.array([x[0], x[1], 0]) / rho
    along = np.cross([0, 0, 1], outward)
    turn, travel = edge(n, along)
    return turn + (n @ outward / shape.radius) * travel, travel


def _polyhedron(n, faces):
    """Face, edge or corner, by how many different faces meet at the point."""
    axes = np.linalg.svd(faces)[2] if len(faces) else np.eye(3)
    kinds = np.sum(np.linalg.svd(faces, compute_uv=False) > 1e-5) if len(faces) else 0
    if kinds >= 3:
        return corner(n)
    return edge(n, axes[2]) if kinds == 2 else flat(n)


def surfaces_between(a, b, found):
    """(turn, travel), each (2, 3, 3), of the first and second shape at a ``Touch``."""
    half = found.normal * (found.gap / 2)
    sides = [
        _ball(normal, radius) if radius else surface_at(placed, found.point + away, normal)
        for placed, away, normal, radius in (
            (a, -half, found.normal, found.radii[0]),
            (b, half, -found.normal, found.radii[1]),
        )
    ]
    turn, travel = (np.stack(part) for part in zip(*sides, strict=True))
    if found.face is not None and np.trace(travel[0] + travel[1]) < 1.5:
        # Corners on corners, as of equal boxes on top of each other: one of them is on a face.
        turn[found.face], travel[found.face] = flat(found.normal)
    return turn, travel

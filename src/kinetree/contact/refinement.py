"""A normal between two shapes to the last digit, from one that is nearly right.

The distance of convex shapes is the largest width of a slab between them, over all directions; if
they overlap, minus the least depth. Near its maximum the width changes little, so that a search by
widths leaves the direction uncertain by the square root of their error. Here the direction comes
from a condition that is met only there: the farthest points of both lie along the normal. Newton's
method solves it on curved surfaces and corners, faces and edges are tried as they are.
"""

import numpy as np

from kinetree.contact.supports import support

__all__ = ["refined_normal"]

_TILT = 1e-2  # [rad] by which the direction may be wrong
_EXACT = 1e-9  # [rad]
_PARALLEL = 1e-6  # [rad] between edges that count as one direction
_STEPS = 10


def refined_normal(a, b, normal):
    """The direction of largest width near a unit ``normal``, the width, and a point of ``a``."""
    tries = [normal, *_faces_and_edges(a, b, normal)]
    tries += [n for tilt in (_TILT, _EXACT) if (n := _newton(a, b, normal, tilt)) is not None]
    tries = [n for n in tries if n @ normal > 1 - _TILT]
    widths = [_width(a, b, n) for n in tries]
    best = max(widths)
    # Of directions that are equally good the later ones are exact.
    k = max(k for k, w in enumerate(widths) if w >= best - 1e-13 * (1 + abs(best)))
    return tries[k], widths[k], _foot(a, b, tries[k], widths[k])


def _width(a, b, n):
    return float(n @ (support(b, -n, 0.0).point - support(a, n, 0.0).point))


def _foot(a, b, n, width):
    """The nearest point of ``a``, from the side where it is a single one."""
    first, second = support(a, n, _EXACT), support(b, -n, _EXACT)
    single = first.edge is None and first.face is None
    return first.point if single else second.point - width * n


def _faces_and_edges(a, b, normal):
    """Normals of faces, and of the planes of two edges, that are close to the normal."""
    first, second = support(a, normal, _TILT), support(b, -normal, _TILT)
    found = [s * face for s, face in ((1, first.face), (-1, second.face)) if face is not None]
    if first.edge is not None and second.edge is not None:
        n = np.cross(first.edge, second.edge)
        length = np.sqrt(n @ n)
        if length > _PARALLEL:
            found.append(n / np.copysign(length, n @ normal))
    return found


def _different(edges):
    """Edges without those that are parallel to an earlier one."""
    kept: list = []
    for e in edges:
        if all(np.sum(np.cross(e, other) ** 2) > _PARALLEL**2 for other in kept):
            kept.append(e)
    return kept


def _newton(a, b, normal, tilt):
    """The normal at which the farthest points of both shapes lie along it, or None."""
    n = normal
    for _ in range(_STEPS):
        first, second = support(a, n, tilt), support(b, -n, tilt)
        edges = _different([s.edge for s in (first, second) if s.edge is not None])
        if len(edges) > 1 or first.face is not None or second.face is not None:
            return None
        for e in edges:  # the normal is at right angles to an edge; across it, it may turn
            n = n - e * (e @ n)
            if not n @ n > 0.5:
                return None  # an edge along the normal: the shape is nearly a point, or a needle
            n = n / np.sqrt(n @ n)
        free = np.linalg.svd(np.array([n, *edges]))[2][1 + len(edges) :]
        between = second.point - first.point
        M = free @ (first.bend + second.bend + (n @ between) * np.eye(3)) @ free.T
        if np.linalg.eigvalsh(M)[0] <= 0:
            return None  # no maximum nearby: corners that overlap
        step = free.T @ np.linalg.solve(M, free @ between)
        n = n + step
        n = n / np.sqrt(n @ n)
        if np.max(np.abs(step)) < 1e-15:
            break
    return n

"""Convex polygons: hulls of points of a plane, and one cut by another."""

import numpy as np

__all__ = ["clipped", "hull_order"]


def hull_order(points, tolerance=1e-12):
    """Numbers of the points on the convex hull of points of a plane, counter-clockwise.

    Points on edges, and all but one of those that coincide, are left out. Andrew's monotone chain.

    Args:
        points: (n, 2).
        tolerance: how far, as a part of the size of the set, a point must stick out.
    """
    points = np.asarray(points, dtype=float)
    order = np.lexsort((points[:, 1], points[:, 0]))
    size = np.max(np.ptp(points, axis=0)) if len(points) else 0.0
    chain = _half_hull(points, order, tolerance * size)
    back = _half_hull(points, order[::-1], tolerance * size)
    result = chain[:-1] + back[:-1]
    return result or [int(order[0])] if len(order) else []


def _half_hull(points, order, tolerance):
    chain: list[int] = []
    for k in order:
        if chain and np.max(np.abs(points[k] - points[chain[-1]])) <= tolerance:
            continue
        while len(chain) > 1 and _height(points, chain[-2], chain[-1], k) <= tolerance:
            chain.pop()
        chain.append(int(k))
    return chain


def _height(points, a, b, c):
    """How far b is to the right of the line from a to c."""
    (x, y), (u, v) = points[b] - points[a], points[c] - points[a]
    return (x * v - y * u) / max(np.hypot(u, v), np.finfo(float).tiny)


def clipped(points, window):
    """The part of a convex polygon, or of a segment or point, that lies over a convex window.

    Sutherland and Hodgman's algorithm. Coordinates beyond the first two are carried along.

    Args:
        points: corners in order, (n, k) with k at least 2.
        window: corners, counter-clockwise, (m, 2).
    """
    corners = [np.asarray(p, dtype=float) for p in points]
    for a, b in zip(window, np.roll(window, -1, axis=0), strict=True):
        edge = b - a
        inside = [edge[0] * (p[1] - a[1]) - edge[1] * (p[0] - a[0]) for p in corners]
        corners = _cut(corners, inside, 1e-12 * (edge @ edge))
    return np.array(corners).reshape(-1, np.shape(points)[1])


def _cut(corners, inside, tolerance):
    """The corners that are inside, and where sides cross the line."""
    n, kept = len(corners), []
    for k in range(n):
        here, there = inside[k], inside[(k + 1) % n]
        if here >= -tolerance:
            kept.append(corners[k])
        crosses = (here > tolerance and there < -tolerance) or (
            here < -tolerance and there > tolerance
        )
        if crosses and not (n == 2 and k == 1):  # a segment has one side, not two
            kept.append(corners[k] + here / (here - there) * (corners[(k + 1) % n] - corners[k]))
    return kept

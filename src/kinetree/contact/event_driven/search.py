"""Search for features of two shapes that are near."""

import numpy as np

from kinetree.contact.event_driven.kinds import FAR, PARALLEL, TURNED, crossing, join_rows
from kinetree.contact.event_driven.round_kinds import UPRIGHT, RimEdges, Rims, SidePoints
from kinetree.contact.event_driven.vectors import dot

_SAME = 1e-9  # [m] between contacts with the same normal that are one


def near(k, a, b, margin, tolerance):
    """List of the features of two placed polyhedra with gaps up to ``margin``.

    Each is a key, gap, how far it is outside, point and normal. Those deeper than ``tolerance``
    are not among them.
    """
    found, size = [], min(a.size, b.size)
    for kind, (ground, other) in enumerate(((a, b), (b, a))):
        apart = other.corner @ ground.normal.T - ground.offset
        faces = apart[:, : ground.flat]
        for i, j in np.argwhere((faces >= -tolerance) & (faces <= margin)).tolist():
            beyond = np.max(np.delete(apart[i], j), initial=-FAR)
            down = -np.min(other.cone[i] @ ground.normal[j])
            outside = max(beyond, size * (down - TURNED))
            if outside <= margin:
                sign = 1 if kind == 0 else -1
                n = sign * ground.normal[j]
                found.append(((k, kind, i, j, sign), apart[i, j], outside, other.corner[i], n))
    found += _edges(k, a, b, margin, tolerance)
    return found + (_round(k, a, b, margin, tolerance) if a.barrel or b.barrel else [])


def _edges(k, a, b, margin, tolerance):
    """List of edge-edge features of two polyhedra with gaps up to ``margin``."""
    size = min(a.size, b.size)
    first, second = (np.flatnonzero(_within(x, y, margin)) for x, y in ((a, b), (b, a)))
    if not (len(first) and len(second)):
        return []
    between = b.start[second][None] - a.start[first][:, None]
    lines = a.along[first][:, None], b.along[second][None]
    across, square, s, t = crossing(*lines, between)
    beyond = np.maximum(
        np.maximum(-s, s - a.length[first][:, None]), np.maximum(-t, t - b.length[second])
    )
    found = []
    for sign in (1, -1):
        n = sign * across / np.sqrt(square)[..., None]
        gap = dot(n, between) - a.radius[first][:, None] - b.radius[second]
        down_a = np.einsum("eki,efi->efk", a.inward[first], n).max(-1)
        down_b = np.einsum("fki,efi->efk", b.inward[second], -n).max(-1)
        outside = np.maximum(beyond, size * (np.maximum(down_a, down_b) - TURNED))
        good = (gap >= -tolerance) & (gap <= margin) & (outside <= margin)
        for i, j in np.argwhere(good & (square > PARALLEL**2)).tolist():
            x = a.start[first[i]] + s[i, j] * a.along[first[i]] + a.radius[first[i]] * n[i, j]
            key = (k, 2, int(first[i]), int(second[j]), sign)
            found.append((key, gap[i, j], outside[i, j], x, n[i, j]))
    return found


def _round(k, a, b, margin, tolerance):
    """List of features of a cylinder and a polyhedron with gaps up to ``margin``."""
    second, other = (1, a) if b.barrel else (0, b)
    ends, faces, edges = range(2), range(len(other.normal)), range(len(other.start))
    corners = range(len(other.corner))
    keys = {
        Rims: [(4 - second, i, j) for i in ends for j in faces],
        SidePoints: [(6 - second, i, 0) for i in corners],
        RimEdges: [(8 - second, i, j) for i in edges for j in ends],
    }
    found, R, r = [], np.eye(3)[None], np.zeros((1, 3))
    for kind, rows in keys.items():
        every = [(k, *row, 1) for row in rows]
        at = join_rows(kind, [((a, b), (0, 0), key) for key in every]).at(R, r)
        outside = np.maximum(at.beyond, at.turned)
        deep = tolerance
        if kind is Rims:  # lower than the polygon, by little where they take over
            deep = max(tolerance, UPRIGHT * max(s.barrel.radius for s in (a, b) if s.barrel))
        good = (at.gap >= -deep) & (at.gap <= margin) & (outside <= margin)
        for m in np.flatnonzero(good):
            found.append((every[m], at.gap[m], outside[m], at.point[m], at.normal[m]))
    return found


def _within(a, b, margin):
    """Mask (e,) of the edges of ``a`` that come within ``margin`` of the box around ``b``."""
    if not len(b.corner):
        return np.zeros(len(a.start), dtype=bool)
    ends = np.stack([a.start, a.start + a.along * a.length[:, None]])
    margin = margin + max(a.radius.max(initial=0.0), b.radius.max(initial=0.0))
    low, high = b.corner.min(axis=0) - margin, b.corner.max(axis=0) + margin
    return np.all((ends.min(axis=0) <= high) & (ends.max(axis=0) >= low), axis=1)


def distinct(found, held):
    """Features without those at the same place as others: held and nearest ones stay."""

    def rank(feature):
        key, gap, outside, _, _ = feature
        return key not in held, outside > 0, max(gap, outside), key[1]

    kept: list = []
    for feature in sorted(found, key=rank):
        _, gap, outside, x, n = feature
        twins = (
            abs(gap - g) <= _SAME
            and n @ m > 1 - _SAME
            and np.linalg.norm((x - y) - n * (n @ (x - y))) <= _SAME
            for _, g, o, y, m in kept
            if max(o, outside) <= _SAME
        )
        if not any(twins):
            kept.append(feature)
    return kept

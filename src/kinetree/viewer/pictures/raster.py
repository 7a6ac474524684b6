"""Triangles into pixels, with NumPy alone: a depth buffer, for many small triangles at once.

Triangles are sorted by the size of the square of pixels that they lie in, and all of one size are
looked at together: which pixel centres are inside, and how deep. Of large squares, only those tiles
are looked at that the triangle can be in.
"""

import numpy as np

__all__ = ["rasterized"]

_NEAR = 1e-3
_AT_ONCE = 4_000_000  # pixels looked at together
_TILE = 8  # pixels along a side


def rasterized(points, faces, width, height):
    """Which triangle is in front at every pixel, and how deep it is there.

    Args:
        points: corners in the picture: columns, rows [pixel], and depth, larger is farther, (n, 3).
        faces: triangles, (m, 3).
        width: of the picture [pixel].
        height: of the picture [pixel].

    Returns:
        Numbers of triangles, (height, width), -1 for none; and depths, infinite for none.
    """
    depth, owner = np.full(width * height, np.inf), np.full(width * height, -1)
    corners = points[faces]
    low = np.ceil(corners[..., :2].min(axis=1) - 0.5)
    high = np.floor(corners[..., :2].max(axis=1) - 0.5)
    seen = np.all(corners[..., 2] > _NEAR, axis=1) & np.all(high >= low, axis=1)
    seen &= np.all(high >= 0, axis=1) & (low[:, 0] < width) & (low[:, 1] < height)
    low = np.clip(low, 0, [width - 1, height - 1])
    high = np.clip(high, 0, [width - 1, height - 1])
    side = np.where(seen, np.max(high - low, axis=1, initial=0) + 1, 0).astype(int)
    size = 2 ** np.ceil(np.log2(np.maximum(side, 1))).astype(int)
    for cell in np.unique(size[seen]):
        which = np.flatnonzero(seen & (size == cell))
        step = max(1, _AT_ONCE // cell**2)
        for start in range(0, len(which), step):
            some, at, side = (
                which[start : start + step],
                low[which[start : start + step]],
                int(cell),
            )
            if side > _TILE:
                in_tile, at = _tiles(corners[some], at, side)
                some, side = some[in_tile], _TILE
            _fill(corners[some], at, some, side, width, height, depth, owner)
    return owner.reshape(height, width), depth.reshape(height, width)


def _fill(corners, low, numbers, cell, width, height, depth, owner):
    """Put those pixels of some triangles into the picture that are in front of what is there."""
    steps = np.arange(cell, dtype=np.float32)
    weights = []
    for start, right, down in _weights(corners, low + 0.5):
        across = start[:, None] + right[:, None] * steps
        along = (down[:, None] * steps)[:, :, None]
        weights.append(across.astype(np.float32)[:, None, :] + along.astype(np.float32))
    inside = (weights[0] >= 0) & (weights[1] >= 0) & (weights[2] >= 0)
    n, row, column = np.nonzero(inside)
    x, y = low[n, 0].astype(int) + column, low[n, 1].astype(int) + row
    kept = (x < width) & (y < height)
    n, row, column, at = n[kept], row[kept], column[kept], (y * width + x)[kept]
    # Depth is linear in its inverse.
    shares = np.stack([w[n, row, column] for w in weights], axis=1)
    z = 1 / np.sum(shares / corners[n, :, 2], axis=1)
    who = numbers[n]
    order = np.lexsort((z, at))
    at, z, who = at[order], z[order], who[order]
    first = np.concatenate([[True], at[1:] != at[:-1]]) if len(at) else np.zeros(0, bool)
    at, z, who = at[first], z[first], who[first]
    nearer = z < depth[at]
    depth[at[nearer]], owner[at[nearer]] = z[nearer], who[nearer]


def _tiles(corners, low, cell):
    """Of squares, those tiles that a triangle may be in: of which square, and where they begin.

    Most of the square around a long thin triangle is empty.
    """
    half = (_TILE - 1) / 2
    steps = np.arange(0, cell, _TILE)
    possible = np.ones((len(low), len(steps), len(steps)), dtype=bool)
    for start, right, down in _weights(corners, low + 0.5 + half):
        largest = start + half * (np.abs(right) + np.abs(down)) + 1e-5
        possible &= (
            largest[:, None, None]
            + right[:, None, None] * steps
            + down[:, None, None] * steps[:, None]
            >= 0
        )
    n, row, column = np.nonzero(possible)
    return n, low[n] + _TILE * np.stack([column, row], axis=1)


def _weights(corners, origin):
    """Of each corner, at a point and how it grows to the right and downwards: linear in both."""
    a, b, c = (corners[:, k, :2] - origin for k in range(3))
    area = _turn(b - a, c - a)
    area = np.where(np.abs(area) < 1e-12, np.inf, area)
    for p, r in ((b, c), (c, a), (a, b)):
        yield _turn(p, r) / area, (p - r)[:, 1] / area, (r - p)[:, 0] / area


def _turn(p, r):
    """The cross product of vectors in the plane, (n, 2) each."""
    return p[:, 0] * r[:, 1] - p[:, 1] * r[:, 0]

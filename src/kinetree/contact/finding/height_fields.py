"""Bicubic splines through heights on an even grid, with first and second derivatives.

On numbers, the 16 coefficients around a point are looked up. Compiled code cannot look things up:
there the weights of all coefficients are computed, and most are zero.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.dual import Dual
from kinetree.contact.finding.shapes import absolute, clamped
from kinetree.spatial.ops import less, select


class Surface(NamedTuple):
    """Height at a point, and its derivatives with respect to x and y."""

    h: Any
    hx: Any
    hy: Any
    hxx: Any
    hxy: Any
    hyy: Any


@lru_cache(maxsize=64)
def spline_coefficients(heights):
    """Coefficients of the B-splines, one more on every side than there are heights."""
    c = np.array(heights, dtype=float)
    for axis in (0, 1):
        n = c.shape[axis]
        A = np.zeros((n + 2, n + 2))
        for i in range(n):
            A[i + 1, i : i + 3] = 1 / 6, 4 / 6, 1 / 6
        A[0, :3] = A[-1, -3:] = 1, -2, 1  # natural ends: no curvature at the edge
        c = np.moveaxis(c, axis, 0)
        padded = np.zeros((n + 2, *c.shape[1:]))
        padded[1:-1] = c
        c = np.moveaxis(np.linalg.solve(A, padded), 0, axis)
    return c


def height_and_derivatives(field, x, y) -> Surface:
    """The surface of a ``HeightField`` at (x, y), in its own coordinates."""
    c = spline_coefficients(field.heights)
    wx, dx, ddx, first = _weights(x, field.size[0], c.shape[0])
    wy, dy, ddy, second = _weights(y, field.size[1], c.shape[1])
    c = c[first : first + len(wx), second : second + len(wy)]
    along, gradient, bend = (_sum(w, c) for w in (wx, dx, ddx))
    return Surface(
        _sum(wy, along), _sum(wy, gradient), _sum(dy, along),
        _sum(wy, bend), _sum(dy, gradient), _sum(ddy, along),
    )  # fmt: skip


def hollow(field) -> float:
    """No hollow of a ``HeightField`` is more curved than this [1/m]; 0 where there is none.

    Second derivatives of a spline are between those of its coefficients, taken as differences.
    """
    c = spline_coefficients(field.heights)
    steps = [size / (n - 3) for size, n in zip(field.size, c.shape, strict=True)]
    xx, yy = (np.diff(c, 2, axis=k) / steps[k] ** 2 for k in (0, 1))
    xy = np.diff(np.diff(c, axis=0), axis=1) / (steps[0] * steps[1])
    along = max(float(xx.max()), float(yy.max()), 0.0)
    return along + float(np.abs(xy).max())


def surface_at_points(field, x, y) -> Surface:
    """The same at many points at once, (n,) each; on floats only."""
    c = spline_coefficients(field.heights)
    rows, wx, dx, ddx = _weights_at_points(x, field.size[0], c.shape[0])
    columns, wy, dy, ddy = _weights_at_points(y, field.size[1], c.shape[1])
    around = c[rows[:, :, None], columns[:, None, :]]
    return Surface(
        *(
            np.einsum("nij,ni,nj->n", around, a, b)
            for a, b in ((wx, wy), (dx, wy), (wx, dy), (ddx, wy), (dx, dy), (wx, ddy))
        )
    )


def _weights_at_points(x, size, count):
    """Numbers of the coefficients that matter, their weights and two derivatives, (n, 4) each."""
    step = size / (count - 3)
    place = np.clip((x + size / 2) / step, 0, count - 3)
    first = np.minimum(place.astype(int), count - 4)
    f = place - first
    g = 1 - f
    w = np.stack([g**3, 4 - 6 * f**2 + 3 * f**3, 4 - 6 * g**2 + 3 * g**3, f**3], axis=-1) / 6
    d = np.stack([-(g**2), 3 * f**2 - 4 * f, 4 * g - 3 * g**2, f**2], axis=-1) / 2
    dd = np.stack([g, 3 * f - 2, 3 * g - 2, f], axis=-1)
    inside = (np.abs(x) <= size / 2)[:, None]
    return first[:, None] + np.arange(4), w, inside * d / step, inside * dd / step**2


def _sum(weights, values):
    total = 0
    for w, v in zip(weights, values, strict=True):
        total = total + w * v
    return total


def _weights(x, size, count):
    """Weights of coefficients and of their first two derivatives, and which one is the first."""
    step = size / (count - 3)
    place = clamped((x + size / 2) / step, 0, count - 3)
    level = less(size / 2, absolute(x)[0])
    number = place.value if isinstance(place, Dual) else place
    if isinstance(number, (float, int, np.number)):
        first = min(int(number), count - 4)
        chosen = range(first, first + 4)
    else:
        first, chosen = 0, range(count)
    weights = [_bump(place - (k - 1)) for k in chosen]
    flat = [(w, select(level, 0, d / step), select(level, 0, dd / step**2)) for w, d, dd in weights]
    return (*zip(*flat, strict=True), first)


def _bump(t):
    """The cubic B-spline about 0, and its first and second derivative."""
    u, sign = absolute(t)
    near, far = less(u, 1), less(u, 2)
    v = 2 - u
    value = select(near, 2 / 3 - u * u + u * u * u / 2, select(far, v * v * v / 6, 0))
    rate = select(near, -2 * u + 3 * u * u / 2, select(far, -v * v / 2, 0))
    bend = select(near, -2 + 3 * u, select(far, v, 0))
    return value, sign * rate, bend

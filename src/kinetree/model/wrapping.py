"""The shortest way around a circle, a sphere or a cylinder, for tendons.

In the plane through the centre of a sphere and two points, and in that across the axis of a
cylinder, the way is two tangents and an arc, or, where the path touches the shape from within, two
straight lines that meet on it under equal angles. Along the axis of a cylinder height grows in
proportion to length: unrolled, the path is straight.

Which way it is follows MuJoCo (mju_wrap), so that its models have the same lengths. All ways are
computed, with numbers that stay finite where a way does not exist, and the right one is selected.
"""

from math import pi
from typing import Any, NamedTuple

import numpy as np

from kinetree.spatial.ops import atan2, cos, less, select, sin, sqrt
from kinetree.spatial.vector3 import cross, norm

TINY = 1e-15
_ROUNDS = 12  # of Newton's method, which converges from one side
_GRAZING = 1e-7  # angle of an arc [rad] up to which a negative one is a rounding error


class Winding(NamedTuple):
    """A way from one point to another."""

    wraps: Any
    """Whether it leaves the straight line."""
    touching: Any
    """Points where it comes to the shape and leaves it, two arrays (3,)."""
    arc: Any
    """Length between them."""


def way_around(shape: str, radius: Any, p0: Any, p1: Any, side: Any = None) -> Winding:
    """Shortest path from ``p0`` to ``p1`` around a sphere or a cylinder along z, or past ``side``.

    Args:
        shape: "sphere" or "cylinder".
        radius: of it.
        p0: where the path comes from, (3,).
        p1: where it goes, (3,).
        side: a point where it is to pass, (3,), or None for the shorter way.
    """
    axes = _plane(p0, p1) if shape == "sphere" else np.eye(3, dtype=int)[:2]
    d0, d1 = axes @ p0, axes @ p1
    if side is None:
        wraps, (a, b), arc = _around(d0, d1, radius, None)
    else:
        wraps, (a, b), arc = _by_side(
            d0, d1, radius, axes @ side, less(side @ side, radius * radius)
        )
    touching = [axes.T @ a, axes.T @ b]
    if shape == "cylinder":
        before, after = (_distance(x, y) for x, y in ((d0, a), (d1, b)))
        slope = (p1[2] - p0[2]) / _positive(before + arc + after)
        heights = [p0[2] + slope * before, p0[2] + slope * (before + arc)]
        touching = [x + np.array([0, 0, z]) for x, z in zip(touching, heights, strict=True)]
        arc = arc * sqrt(1 + slope * slope)
    return Winding(wraps, touching, arc)


def _plane(p0, p1):
    """Orthonormal axes of the plane of two points and the origin, (2, 3)."""
    x = p0 / sqrt(_positive(p0 @ p0))
    n, (a, b, c) = cross(p0, p1), x
    # Where the points are opposite each other any plane will do: that of the longer of two edges.
    flat = less(abs(_real(c)), abs(_real(a)))
    other = np.array([select(flat, -b, 0 * a), select(flat, a, -c), select(flat, 0 * a, b)])
    n = _select(less(TINY * TINY, n @ n), n, other)
    return np.array([x, cross(n / norm(n), x)])


def _by_side(d0, d1, r, side, inside):
    """Wrapping around a circle, or inside it if the side point is within; planar."""
    within = _within(d0, d1, r)
    if _known_outcome(inside):
        return within
    around = _around(d0, d1, r, side)
    if _known_outcome(inside) is False:
        return around
    return (
        select(inside, within[0], around[0]),
        [_select(inside, x, y) for x, y in zip(within[1], around[1], strict=True)],
        select(inside, within[2], around[2]),
    )


def _around(d0, d1, r, side):
    """Planar wrapping around a circle: whether it wraps, tangent points and arc length.

    Where the line hits the circle, the way is the shorter one, or that on which a side is, if it is
    on one: if the turn from one point to the side goes on to the other. Where it does not, the path
    is caught behind the circle by a side there.
    """
    s0, s1, across = _square(d0), _square(d1), d1 - d0
    apart = _square(across)
    outside = _not(_either(less(s0, r * r), less(s1, r * r), less(apart, TINY)))
    t = -(across @ d0) / _positive(apart)
    hit = _not(less(r * r, _square(d0 + across * _clip(t, 0.0, 1.0))))
    sense = shorter = select(less(_turn(d0, d1), 0), 1.0, -1.0)  # 1: clockwise
    if side is not None:
        to, on = _turn(d0, side), _turn(side, d1)
        sense = select(less(0, to) & less(0, on), -1.0, sense)
        sense = select(less(to, 0) & less(on, 0), 1.0, sense)
        hit = _either(hit, less(sense * shorter, 0))
    s0, s1 = (select(outside, s, 2 * r * r + 0 * s) for s in (s0, s1))
    h0, h1 = (sense * r * sqrt(_positive(s - r * r)) for s in (s0, s1))
    a = (d0 * (r * r) + h0 * np.array([d0[1], -d0[0]])) / s0
    b = (d1 * (r * r) - h1 * np.array([d1[1], -d1[0]])) / s1
    turn = atan2(-sense * _turn(a, b), a @ b)
    return outside & hit, (a, b), r * select(less(turn, -_GRAZING), turn + 2 * pi, turn)


def _within(d0, d1, r):
    """Planar path that touches the circle from inside in one point: whether, point, arc 0.

    With ``φ`` the angle of incidence there, ``asin(A sin φ) + asin(B sin φ) - 2 φ + G = 0``, where
    ``A`` and ``B`` are the radius over the distances of the points from the centre, and ``G`` is
    the angle between these. The left side is concave: Newton's method comes down from ``π/2``.
    """
    s0, s1, across = _square(d0), _square(d1), d1 - d0
    outside = less(r * r, s0) & less(r * r, s1)
    s0, s1 = (select(outside, s, 2 * r * r + 0 * s) for s in (s0, s1))
    apart = _square(across)
    t = -(across @ d0) / _positive(apart)
    nearest = _square(d0 + across * t)
    through = less(0, t) & less(t, 1) & less(nearest, r * r)
    A, B = r / sqrt(s0), r / sqrt(s1)
    turn = _turn(d0, d1)
    G = atan2(_absolute(turn), d0 @ d1)
    phi: Any = pi / 2 + 0 * G
    for _ in range(_ROUNDS):
        s, c = sin(phi), cos(phi)
        a, b = (sqrt(_positive(1 - k * k * s * s)) for k in (A, B))
        f = atan2(A * s, a) + atan2(B * s, b) - 2 * phi + G
        df = A * c / a + B * c / b - 2
        phi = phi - f / select(less(df, -TINY), df, -1 + 0 * df)
    first = less(0, turn)
    k, near = select(first, A, B), _select(first, d0 * (A / r), d1 * (B / r))
    s = sin(phi)
    turned = phi - atan2(k * s, sqrt(_positive(1 - k * k * s * s)))
    x, y = cos(turned), sin(turned)
    touch = r * np.array([x * near[0] - y * near[1], y * near[0] + x * near[1]])
    middle = d0 + d1
    middle = middle * (r / sqrt(_positive(_square(middle))))
    # Where the points are that close to the circle, there is no such angle, as in MuJoCo.
    last = atan2(A, sqrt(_positive(1 - A * A))) + atan2(B, sqrt(_positive(1 - B * B))) - pi + G
    touch = _select(_either(less(0, last), less(G, 4e-8)), middle, touch)
    return outside & _not(through) & less(G, pi - 4e-8), (touch, touch), 0 * G


# --- numbers of any kind -------------------------------------------------------------------------


def _square(v):
    """Squared length of a planar vector."""
    return v[0] * v[0] + v[1] * v[1]


def _turn(a, b):
    """Cross product of two planar vectors."""
    return a[0] * b[1] - a[1] * b[0]


def _distance(x, y):
    """Distance of two planar points, with defined derivatives at zero."""
    s = _square(x - y)
    return select(less(TINY * TINY, s), sqrt(_positive(s)), 0 * s)


def _positive(x):
    """The number if it is positive, else 1, so that roots and quotients stay defined."""
    return select(less(TINY * TINY, x), x, 1 + 0 * x)


def _clip(x, low, high):
    """Number clipped to two bounds."""
    x = select(less(x, low), low + 0 * x, x)
    return select(less(high, x), high + 0 * x, x)


def _absolute(x):
    """Absolute value of a number of any kind."""
    return select(less(x, 0), -x, x)


def _real(x):
    """Real part of a number of any kind."""
    return x.real if isinstance(x, (complex, np.complexfloating)) else x


def _select(condition, a, b):
    """One of two vectors, chosen by a condition elementwise."""
    return np.array([select(condition, x, y) for x, y in zip(a, b, strict=True)])


def _either(first, *others):
    """Logical or of traced conditions."""
    for other in others:
        first = first | other
    return first


def _not(condition):
    """Logical not of a traced or plain condition."""
    return not condition if isinstance(condition, (bool, np.bool_)) else ~condition


def _known_outcome(condition):
    """Truth value of a condition that is constant while tracing, else None."""
    return bool(condition) if isinstance(condition, (bool, np.bool_)) else None

"""Height fields: the ground as a spline, conditions of feet and their matrices by differences.

A matrix that is not quite right would lead to the same feet, in more steps or from fewer starts.
"""

import numpy as np
import pytest
from support.closeness import assert_close
from support.convex_shapes import touches_of

from kinetree.contact.collision import fields
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.collision.tables import TOUCHES, Touch
from kinetree.contact.finding.shapes import Placed, surface_at_points
from kinetree.model.geometry import Box, Ellipsoid, HeightField
from kinetree.spatial.rotation import rotation_exp

N = 17


def waves(x, y):
    return 0.1 * np.sin(5 * x + 0.3) * np.cos(4 * y) + 0.2 * x * y


LINE = np.linspace(-1.0, 1.0, N)
HILLS = HeightField(tuple(tuple(float(waves(x, 0.7 * y)) for y in LINE) for x in LINE), (2.0, 1.4))
J = 1  # number of the ground among the shapes


@pytest.fixture(scope="module")
def shapes():
    identity = np.eye(3), np.zeros(3)
    return placed_table(Placed(Ellipsoid((0.1, 0.2, 0.3)), *identity), Placed(HILLS, *identity))


def numbers(rng, mode):
    """What the ground is sampled against."""
    par = np.zeros(16)
    par[:3] = *rng.uniform(-0.5, 0.5, 2), 0.4
    if mode == fields.ROUND:
        par[3:6] = rng.choice([0.0, 1.0]) * rng.normal(size=3)
        par[6] = 0.1
    elif mode == fields.FACE:
        par[3:6] = (f := rng.normal(size=3) - (0, 0, 3)) / np.linalg.norm(f)
    else:
        par[3:12] = rotation_exp(rng.normal(size=3)).ravel()
        par[12:15] = np.array([0.1, 0.2, 0.3]) ** 2
    return par


def surface(x, y):
    s = surface_at_points(HILLS, np.array([x]), np.array([y]))
    return np.array([s.h[0], s.hx[0], s.hy[0], s.hxx[0], s.hxy[0], s.hyy[0]])


def test_the_ground_and_its_derivatives(shapes, rng):
    for _ in range(30):
        x, y = rng.uniform(-0.95, 0.95), rng.uniform(-0.65, 0.65)
        s = np.zeros(6)
        fields.ground(shapes, J, x, y, s)
        assert_close(s, surface(x, y), scale=100.0, ulps=1e3)
        assert fields.height_at(shapes, J, x, y) == s[0]
    assert_close(fields.spacing(shapes, J), 1.4 / (N - 1))


@pytest.mark.parametrize("mode", [fields.ROUND, fields.FACE, fields.BALL])
def test_how_near_the_ground_is(mode, shapes, rng):
    for _ in range(20):
        par, (x, y) = numbers(rng, mode), rng.uniform(-0.6, 0.6, 2)
        g = np.array([x, y, surface(x, y)[0]])
        found = fields.clearance_at(shapes, J, mode, par, x, y)
        if mode == fields.ROUND:
            way = par[3:6] @ par[3:6]
            t = np.clip((g - par[:3]) @ par[3:6] / way, 0, 1) if way else 0.0
            expected = np.linalg.norm(par[:3] + t * par[3:6] - g)
        elif mode == fields.FACE:
            expected = (g - par[:3]) @ par[3:6]
        else:
            own = par[3:12].reshape(3, 3).T @ (g - par[:3])
            expected = np.linalg.norm(own / np.sqrt(par[12:15]))
        assert_close(found, expected, scale=1.0)


def nearest(mode, par, g, up):
    """Point of the shape that belongs to a point of the ground with a normal."""
    if mode == fields.ROUND:
        way = par[3:6] @ par[3:6]
        t = np.clip((g - par[:3]) @ par[3:6] / way, 0, 1) if way else 0.0
        return par[:3] + t * par[3:6]
    if mode == fields.FACE:
        return g - (g - par[:3]) @ par[3:6] * par[3:6]
    R, squares = par[3:12].reshape(3, 3), par[12:15]
    d = -R.T @ up  # the farthest point of an ellipsoid
    return par[:3] + R @ (squares * d) / np.sqrt(squares @ d**2)


@pytest.mark.parametrize("mode", [fields.ROUND, fields.FACE, fields.BALL])
def test_conditions_of_feet_and_their_matrix(mode, shapes, rng):
    """Tangents times the way to the shape; or of a face, the slope against its normal."""
    exact, e = 0, 1e-6
    for _ in range(60):
        par, (x, y) = numbers(rng, mode), rng.uniform(-0.6, 0.6, 2)
        p, M = np.zeros(3), np.zeros(4)

        def at(x, y, par=par, p=p, M=M):
            return np.array(fields.conditions(shapes, J, mode, par, x, y, p, M))

        found = at(x, y)
        matrix, point = M.reshape(2, 2).copy(), p.copy()
        s = surface(x, y)
        g, up = np.array([x, y, s[0]]), np.array([-s[1], -s[2], 1.0])
        expected = nearest(mode, par, g, up)
        assert_close(point, expected, scale=1.0, ulps=1e3)
        tangents = np.array([[1, 0, s[1]], [0, 1, s[2]]])
        way = par[3:6] if mode == fields.FACE else expected - g
        assert_close(found, tangents @ way, scale=1.0, ulps=1e3)
        differences = np.column_stack([(at(x + e, y) - at(x - e, y)) / (2 * e),
                                       (at(x, y + e) - at(x, y - e)) / (2 * e)])  # fmt: skip
        bend = np.array([[s[3], s[4]], [s[4], s[5]]])
        plain = -np.eye(2) - np.outer(s[1:3], s[1:3])
        if mode == fields.ROUND and np.linalg.eigvalsh(differences).max() > -1e-3:
            assert_close(matrix, plain, scale=1.0)  # beyond the centre of curvature
            continue
        exact += 1
        size = 1 + np.abs(bend).max()
        np.testing.assert_allclose(matrix, differences, atol=1e-6 * size)
    assert exact > 20


def test_feet_are_put_along_the_normal_of_the_ground(shapes, rng):
    touch = Touch(
        point=np.zeros((TOUCHES, 3)), normal=np.zeros((TOUCHES, 3)), gap=np.zeros(TOUCHES),
        feature=np.zeros(TOUCHES, dtype=np.int64), second=J, margin=0.2,
    )  # fmt: skip
    R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
    pose = shapes.pose[J].copy()
    shapes.pose[J] = np.column_stack([R, o]).ravel()
    try:
        for away, radius, there in ((0.25, 0.1, True), (0.35, 0.1, False), (-0.1, 0.0, True)):
            touch.count = 3
            x, y = rng.uniform(-0.6, 0.6, 2)
            s = surface(x, y)
            n = np.array([-s[1], -s[2], 1.0]) / np.sqrt(1 + s[1] ** 2 + s[2] ** 2)
            g = np.array([x, y, s[0]])
            fields.put_foot(shapes, touch, x, y, g + away * n, radius, 77)
            assert touch.count == 3 + there
            if there:
                gap = away - radius
                assert_close(touch.gap[3], gap, scale=1.0)
                assert_close(touch.normal[3], -R @ n, scale=1.0)
                assert_close(touch.point[3], R @ (g + gap / 2 * n) + o, scale=1.0)
                assert touch.feature[3] == 77
    finally:
        shapes.pose[J] = pose


@pytest.mark.parametrize("rim", [True, False])
def test_curves_over_the_ground(rim, shapes, rng):
    curve = rng.normal(size=9)
    curve[:3] = 0.1, 0.2, 0.5
    curve[3:] *= 0.2
    for s in rng.uniform(0, 1, 10):
        p = np.zeros(3)
        fields.on_curve(rim, curve, s, p)
        a, b = (np.cos(s), np.sin(s)) if rim else (s, 0.0)
        expected = curve[:3] + a * curve[3:6] + b * curve[6:]
        assert_close(p, expected, scale=1.0)
        h, hx, hy, *_ = surface(*p[:2])
        high = (p[2] - h) / np.sqrt(1 + hx**2 + hy**2)
        assert_close(fields.curve_clearance(shapes, J, rim, curve, s), high, scale=1.0, ulps=1e3)


CRESTS = HeightField(
    tuple((float(0.02 * np.cos(16 * x)),) * 33 for x in np.linspace(-1, 1, 33)), (2.0, 2.0)
)


def test_an_edge_touches_at_every_crest_that_it_crosses(rng):
    """Samples lie so near to each other that none is passed over."""
    shapes = placed_table(Placed(Box((1, 1, 1)), np.eye(3), np.zeros(3)),
                          Placed(CRESTS, np.eye(3), np.zeros(3)))  # fmt: skip
    crests = 2 * np.pi / 16 * np.arange(-3, 4)
    for n in range(10):
        a, b = rng.uniform(-0.9, -0.5), rng.uniform(0.5, 0.9)
        if n % 2:  # one is as far from an end as two samples from each other
            a, b = crests[1] - 0.0145, crests[5] + 0.0145
        touch = Touch(
            point=np.zeros((TOUCHES, 3)), normal=np.zeros((TOUCHES, 3)), gap=np.zeros(TOUCHES),
            feature=np.zeros(TOUCHES, dtype=np.int64), second=J, margin=0.05, size=1.0,
        )  # fmt: skip
        curve = np.array([a, 0.1, 0.03, b - a, 0.2, 0.0, 0, 0, 0])
        fields.along_curve(shapes, touch, False, curve, 0)
        inside = crests[(crests > a + 0.014) & (crests < b - 0.014)]
        found = np.sort(touch.point[: touch.count, 0])
        assert len(set(touch.feature[: touch.count].tolist())) == touch.count
        for x in inside:
            assert np.abs(found - x).min() < 0.01
        assert touch.count <= len(inside) + 2


BUMP = HeightField(
    tuple(
        tuple(float(0.1 * np.exp(-40 * (x * x + y * y))) for y in np.linspace(-1, 1, 41))
        for x in np.linspace(-1, 1, 41)
    ),
    (2.0, 2.0),
)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_bump_touches_the_face_that_looks_down(axis, side, rng):
    """Whichever of a box it is, tilted a little either way."""
    size = np.array([0.8, 0.7, 0.6])
    down = np.zeros(3)
    down[axis] = side
    base = rotation_exp(np.pi / 2 * np.array([0, 0, rng.integers(4)])) @ _onto(down)
    x = np.linspace(-0.5, 0.5, 201)
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    points = np.column_stack([grid, surface_at_points(BUMP, *grid.T).h])
    for _ in range(6):
        R = rotation_exp(0.05 * rng.normal(size=3)) @ base
        o = np.array([*rng.uniform(-0.1, 0.1, 2), 0.1 + size[axis] / 2 + 0.02])
        found = touches_of(
            Placed(BUMP, np.eye(3), np.zeros(3)), Placed(Box(tuple(size)), R, o), 0.1
        )
        away = np.abs((points - o) @ R) - size / 2
        gap = np.linalg.norm(np.maximum(away, 0), axis=1) + np.minimum(away.max(axis=1), 0)
        assert abs(min(t.gap for t in found) - gap.min()) < 1e-3


def _onto(down):
    """A rotation that takes an axis to the one straight down."""
    first = np.roll(np.abs(down), 1)
    rows = np.array([first, np.cross(-down, first), -down])
    return rows * np.linalg.det(rows)

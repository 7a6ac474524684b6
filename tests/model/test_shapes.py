"""Closed forms against integrals over the shape."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.errors import ModelError
from kinetree.model import shapes
from kinetree.model.validate import inertia_defect
from kinetree.samples import random_placement
from kinetree.spatial import Inertia, xlt

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
TURN = 2 * np.pi * np.arange(16) / 16  # enough for the second harmonic, which is all there is


def on(a, b):
    """Gauss points and weights on an interval: exact for the polynomials met here."""
    return (a + b) / 2 + (b - a) / 2 * NODES, (b - a) / 2 * WEIGHTS


def inertia_of_points(points, weights):
    """Inertia of point masses: the six integrals of density over the body."""
    x = np.asarray(points)
    w = np.asarray(weights)
    squares = np.einsum("k,ki,kj->ij", w, x, x)
    return Inertia(w.sum(), w @ x, np.trace(squares) * np.eye(3) - squares)


def round_solid(radius_at, low, high):
    """Points and weights of a solid of revolution about z."""
    points, weights = [], []
    for z, wz in zip(*on(low, high), strict=True):
        for r, wr in zip(*on(0, radius_at(z)), strict=True):
            for angle in TURN:
                points.append((r * np.cos(angle), r * np.sin(angle), z))
                weights.append(wz * wr * r * 2 * np.pi / len(TURN))
    return points, weights


def box_points(x, y, z):
    axes = [on(-k / 2, k / 2) for k in (x, y, z)]
    points = np.stack(np.meshgrid(*(p for p, _ in axes), indexing="ij"), -1).reshape(-1, 3)
    return points, np.einsum("i,j,k->ijk", *(w for _, w in axes)).ravel()


def ball_points(a, b, c):
    points, weights = [], []
    for r, wr in zip(*on(0, 1), strict=True):
        for u, wu in zip(*on(-1, 1), strict=True):
            s = np.sqrt(1 - u * u)
            for angle in TURN:
                points.append((a * r * s * np.cos(angle), b * r * s * np.sin(angle), c * r * u))
                weights.append(a * b * c * wr * wu * r * r * 2 * np.pi / len(TURN))
    return points, weights


def sphere_points(radius):
    points, weights = [], []
    for u, wu in zip(*on(-1, 1), strict=True):
        for angle in TURN:
            s = np.sqrt(1 - u * u)
            points.append(radius * np.array([s * np.cos(angle), s * np.sin(angle), u]))
            weights.append(radius**2 * wu * 2 * np.pi / len(TURN))
    return points, weights


def tube_points(radius, length):
    points, weights = [], []
    for z, wz in zip(*on(-length / 2, length / 2), strict=True):
        for angle in TURN:
            points.append((radius * np.cos(angle), radius * np.sin(angle), z))
            weights.append(wz * radius * 2 * np.pi / len(TURN))
    return points, weights


def disc_points(radius):
    points, weights = [], []
    for r, wr in zip(*on(0, radius), strict=True):
        for angle in TURN:
            points.append((r * np.cos(angle), r * np.sin(angle), 0.0))
            weights.append(wr * r * 2 * np.pi / len(TURN))
    return points, weights


def cone_points(radius, height):
    return round_solid(lambda z: radius * (0.75 - z / height), -height / 4, 3 * height / 4)


def rod_points(length):
    z, w = on(-length / 2, length / 2)
    return np.column_stack([0 * z, 0 * z, z]), w


SHAPES = {
    "box": (shapes.box, (0.2, 0.3, 0.5), box_points),
    "ellipsoid": (shapes.ellipsoid, (0.2, 0.3, 0.5), ball_points),
    "sphere": (shapes.sphere, (0.3,), lambda r: ball_points(r, r, r)),
    "sphere shell": (shapes.sphere_shell, (0.3,), sphere_points),
    "cylinder": (
        shapes.cylinder,
        (0.2, 0.7),
        lambda r, h: round_solid(lambda z: r, -h / 2, h / 2),
    ),
    "cylinder shell": (shapes.cylinder_shell, (0.2, 0.7), tube_points),
    "disc": (shapes.disc, (0.4,), disc_points),
    "rod": (shapes.rod, (0.9,), rod_points),
    "cone": (shapes.cone, (0.3, 0.8), cone_points),
}


def integrated(shape):
    make, sizes, points = shape
    return make, sizes, inertia_of_points(*points(*sizes))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.covers("Lynch & Park 9.2", by=shapes)
def test_shape_of_unit_density_is_the_integral_over_it(shape):
    make, sizes, expected = integrated(shape)
    given = make(*sizes, density=1.0)
    assert_close(given.parameters(), expected.parameters(), ulps=1000)
    assert_close(make(*sizes, mass=3.0).parameters() * expected.mass / 3, given.parameters())


@pytest.mark.covers("Lynch & Park 9.2", by=shapes.capsule)
def test_capsule_is_the_integral_over_it():
    # a Gauss rule over the whole ball does not integrate its half exactly: split it at z = 0
    r, length = 0.2, 0.5
    tube = inertia_of_points(*round_solid(lambda z: r, -length / 2, length / 2))
    caps = []
    for side in (1, -1):
        points, weights = [], []
        for rho, w_rho in zip(*on(0, r), strict=True):
            for u, wu in zip(*on(0, 1), strict=True):
                s = np.sqrt(1 - u * u)
                for angle in TURN:
                    z = side * (rho * u + length / 2)
                    points.append((rho * s * np.cos(angle), rho * s * np.sin(angle), z))
                    weights.append(w_rho * wu * rho * rho * 2 * np.pi / len(TURN))
        caps.append(inertia_of_points(points, weights))
    expected = tube + caps[0] + caps[1]
    given = shapes.capsule(r, length, density=1.0)
    assert_close(given.parameters(), expected.parameters(), ulps=1000)


@pytest.mark.covers("Lynch & Park 9.2", by=shapes)
def test_limits_of_shapes_are_other_shapes():
    m = {"mass": 2.0}
    cases = [
        (shapes.sphere(0.3, **m), shapes.ellipsoid(0.3, 0.3, 0.3, **m)),
        (shapes.cylinder(0.0, 0.7, **m), shapes.rod(0.7, **m)),
        (shapes.cylinder(0.3, 0.0, **m), shapes.disc(0.3, **m)),
        (shapes.capsule(0.3, 0.0, **m), shapes.sphere(0.3, **m)),
        (shapes.box(0.0, 0.0, 0.7, **m), shapes.rod(0.7, **m)),
        (shapes.cylinder_shell(0.0, 0.7, **m), shapes.rod(0.7, **m)),
        (shapes.sphere(0.0, **m), shapes.point(**m)),
    ]
    for limit, shape in cases:
        assert_close(limit.parameters(), shape.parameters())


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_shapes_are_physically_possible_wherever_they_sit(shape, rng):
    make, sizes, _ = shape
    X = random_placement(rng)
    placed = make(*sizes, mass=1.5, at=X)
    assert inertia_defect(placed) is None
    assert_close(placed.center_of_mass, X.r)
    dense = X.to_matrix().T @ make(*sizes, mass=1.5).to_matrix() @ X.to_matrix()
    assert_close(placed.to_matrix(), dense)
    assert_close(
        make(*sizes, mass=1.5, at=(1, 2, 3)).to_matrix(),
        make(*sizes, mass=1.5, at=xlt(1, 2, 3)).to_matrix(),
    )


def test_axes_are_turned():
    along = {axis: shapes.cylinder(0.1, 1.0, mass=1.0, axis=axis).rotational for axis in "xyz"}
    for k, axis in enumerate("xyz"):
        assert np.argmin(np.diag(along[axis])) == k


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: shapes.box(1, 1, 1),
            "box: give either mass or density, got mass=None, density=None",
        ),
        (lambda: shapes.box(1, 1, 1, mass=1, density=1), "give either mass or density"),
        (
            lambda: shapes.sphere(-1, mass=1),
            "sphere: sizes, mass and density must be finite and not negative, got -1",
        ),
        (
            lambda: shapes.rod(1, mass=float("nan")),
            "rod: sizes, mass and density must be finite and not negative, got nan",
        ),
        (
            lambda: shapes.disc(1, mass=1, axis="w"),
            "axis of a shape must be 'x', 'y' or 'z', got 'w'",
        ),
    ],
)
def test_messages(make, message):
    with pytest.raises(ModelError, match=message):
        make()

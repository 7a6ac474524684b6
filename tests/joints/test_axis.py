"""Joint axes: what is taken, what is refused, and the frames made from them."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.errors import JointError
from kinetree.joints import Cylindrical, Planar, Prismatic, Revolute, SphereInCylinder
from kinetree.joints.axis import (
    as_axis,
    axis_angle,
    axis_rotation,
    completed_basis,
    mass_on,
    rod_along,
)
from kinetree.spatial import Inertia
from kinetree.spatial.rotation import rotation_exp

AXES = [
    "x",
    "y",
    "z",
    "-x",
    "-y",
    "-z",
    "+z",
    (1, 2, 3),
    (0, -2, 0),
    (1e-200, 1e-200, 0),
    (0, 3, 4),
]


def test_letters_and_multiples_of_coordinate_axes_stay_integers():
    assert as_axis("z") == (0, 0, 1)
    assert as_axis("-y") == (0, -1, 0)
    assert as_axis((0, -2.5, 0)) == (0, -1, 0)
    assert all(isinstance(k, int) for k in as_axis((0.0, 0.0, 7.0)))


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_axis_is_a_unit_vector_and_its_basis_is_right_handed_and_orthonormal(axis):
    a = np.array(as_axis(axis))
    u, v = completed_basis(as_axis(axis))
    basis = np.column_stack([u, v, a])
    assert_close(basis.T @ basis, np.eye(3), ulps=4)
    assert_close(np.linalg.det(basis), 1.0, ulps=4)


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_axis_rotation_is_the_exponential_and_axis_angle_its_inverse(axis, rng):
    a = as_axis(axis)
    for angle in rng.uniform(-np.pi, np.pi, 5):
        E = axis_rotation(a, angle)
        assert_close(E, rotation_exp(angle * np.array(a, dtype=float)), ulps=8)
        assert_close(axis_angle(a, E), angle, ulps=16)


def test_axis_angle_is_the_closest_turn(rng):
    a, E = as_axis((1, -1, 2)), rotation_exp(rng.standard_normal(3))
    best = axis_angle(a, E)

    def distance(angle):
        return np.linalg.norm(axis_rotation(a, angle) - E)

    assert all(distance(best) <= distance(best + d) for d in np.linspace(-3, 3, 61))


BAD = [
    "w",
    "xy",
    "--x",
    "",
    None,
    3,
    (0, 0, 0),
    (1, 2),
    (1, np.nan, 0),
    (1, np.inf, 0),
    ("a", 1, 2),
]


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("kind", [Revolute, Prismatic, Cylindrical, Planar, SphereInCylinder])
def test_impossible_axis_is_rejected_with_what_was_expected(kind, bad):
    with pytest.raises(JointError, match=r"must be 'x', 'y', 'z'.*three finite numbers") as error:
        kind(bad)
    assert repr(bad) in str(error.value)


def test_joints_with_the_same_axis_are_equal_however_it_was_written():
    assert Revolute("-y") == Revolute((0, -3, 0))
    assert hash(Revolute("-y")) == hash(Revolute((0, -3, 0)))
    assert Revolute("y") != Revolute("-y")
    assert Revolute("z") != Prismatic("z")


def test_inertia_that_may_move_across_an_axis_is_that_of_points_moved_onto_it(rng):
    points, mass = rng.normal(size=(5, 3)), rng.uniform(1, 2, 5)
    a = rng.normal(size=3)
    a /= np.linalg.norm(a)

    def body(r):
        turning = sum(
            m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(mass, r, strict=True)
        )
        return Inertia(mass.sum(), mass @ r, turning)

    moved = body(np.outer(points @ a, a))
    assert_close(mass_on(a, body(points)).to_matrix(), moved.to_matrix())
    rod = rod_along(a, body(points))
    assert_close(rod.to_matrix(), Inertia(0, np.zeros(3), moved.rotational).to_matrix())

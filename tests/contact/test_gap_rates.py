"""Rates of gaps: every formula against differences of the gap along a motion."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import (
    derivatives,
    gaps_along,
    pairs_of,
    random_placement,
    speeds_along,
    state,
    two_bodies,
)

import kinetree as kt
from kinetree.contact.collision.curvature import curvatures, surface_at
from kinetree.contact.contacts import bias, jacobian, spatial_normals, velocity
from kinetree.contact.finding import candidates
from kinetree.contact.scene import Scene
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Plane,
    Sphere,
)

HILLS = HeightField(((0.1, 0.0, 0.2, 0.1), (0.0, 0.3, 0.1, 0.0), (0.2, 0.1, 0.0, 0.2)), (3.0, 4.0))
PAIRS = {
    "ball on plane": (Plane(), Sphere(0.3), 0.4),
    "capsule on plane": (Plane(), Capsule(0.1, 0.5), 0.4),
    "box on plane": (Plane(), Box((0.3, 0.4, 0.5)), 0.4),
    "cylinder on plane": (Plane(), Cylinder(0.2, 0.5), 0.4),
    "ellipsoid on plane": (Plane(), Ellipsoid((0.1, 0.2, 0.3)), 0.4),
    "ball on ball": (Sphere(0.2), Sphere(0.3), 0.5),
    "ball on capsule": (Capsule(0.1, 2.0), Sphere(0.3), 0.4),
    "ball on the end of a capsule": (Capsule(0.1, 0.1), Sphere(0.3), 0.6),
    "ball on box": (Box((0.6, 0.7, 0.8)), Sphere(0.1), 0.5),
    "ball inside box": (Box((0.6, 0.7, 0.8)), Sphere(0.1), 0.05),
    "ball on cylinder": (Cylinder(0.3, 0.7), Sphere(0.1), 0.5),
    "ball inside cylinder": (Cylinder(0.3, 0.7), Sphere(0.1), 0.1),
    "capsule on capsule": (Capsule(0.1, 0.9), Capsule(0.2, 0.8), 0.35),
    "ball on hills": (HILLS, Sphere(0.2), 0.45),
}


def scene_and_state(name, rng):
    a, b, distance = PAIRS[name]
    level = isinstance(a, HeightField)  # its formulas hold above the ground
    places = {} if level else {"at_a": random_placement(rng), "at_b": random_placement(rng)}
    model = two_bodies(a, b, fixed=level, **places)
    direction = np.array([0.3, 0.2, 1.0]) if level else rng.normal(size=3)
    offset = distance * direction / np.linalg.norm(direction)
    return Scene(model), *state(model, rng, offset)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.covers("RBDA 11.1", "RBDA 11.3", "RBDA 11.4", by=(candidates.terms, bias))
def test_rates_of_gaps_are_the_rows_and_the_biases(name, rng):
    for _ in range(3):
        scene, q, qd = scene_and_state(name, rng)
        _, J, b = candidates.terms(scene.model, q, qd, pairs_of(scene))
        first, second = derivatives(gaps_along(scene, q, qd))
        np.testing.assert_allclose(J[:, 0] @ qd, first, atol=1e-9)
        np.testing.assert_allclose(b[:, 0], second, atol=3e-6)
        first, _ = derivatives(speeds_along(scene, q, qd))
        np.testing.assert_allclose(b, first, atol=1e-7)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.covers("RBDA 11.1", by=candidates.point_velocities)
def test_points_move_over_the_surface_of_the_first_body_as_differences_say(name, rng):
    scene, q, qd = scene_and_state(name, rng)
    model, pairs = scene.model, pairs_of(scene)
    body = pairs[0][0].body
    first = kt.poses(model, q)[body - 1] if body else np.eye(4)

    def carried(t):
        """The points, where the first body would have taken them back to its place at zero."""
        later = model.integrate(q, t * qd)
        points = candidates.positions(model, later, pairs)[1]
        back = first @ np.linalg.inv(kt.poses(model, later)[body - 1] if body else np.eye(4))
        return points @ back[:3, :3].T + back[:3, 3]

    _, _, axes = candidates.positions(model, q, pairs)
    expected = np.einsum("nij,nj->ni", axes[:, 1:], derivatives(carried)[0])
    found = candidates.point_velocities(model, q, qd, pairs)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_no_pairs_have_no_points(rng):
    scene, q, qd = scene_and_state("ball on ball", rng)
    shapes = [part.shape for part in candidates.positions(scene.model, q, [])]
    assert shapes == [(0,), (0, 3), (0, 3, 3)]
    assert [p.shape for p in candidates.velocities(scene.model, q, qd, [])] == [(0,), (0, 3)]
    assert candidates.point_velocities(scene.model, q, qd, []).shape == (0, 2)


@pytest.mark.covers("RBDA 11.1", "RBDA 11.6", by=(bias, curvatures))
def test_equal_boxes_on_top_of_each_other_move_like_one_that_is_a_little_smaller(rng):
    def biases(size, turn):
        model = two_bodies(Box((0.4, 0.3, 0.2)), Box(size), fixed=True)
        q = model.neutral()
        q[2] = 0.2 * turn

        contacts = Scene(model).contacts(q, margin=1e-9)
        assert contacts.size == 4
        order = np.lexsort(np.sign(contacts.point[:, :2]).T)
        return bias(model, q, qd, contacts)[order], contacts.point[order]

    qd = rng.normal(size=6)
    for turn in (1, -1):
        (found, points), (expected, inner) = (
            biases((0.4 - d, 0.3 - d, 0.2), turn) for d in (0.0, 1e-5)
        )
        np.testing.assert_allclose(points, inner, atol=1e-5)
        np.testing.assert_allclose(found, expected, atol=1e-3)
        assert np.abs(found).max() > 0.1


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.covers("RBDA 11.1", "RBDA 11.6", by=(bias, surface_at))
def test_curvature_of_the_surfaces_gives_the_same_bias(name, rng):
    for _ in range(3):
        scene, q, qd = scene_and_state(name, rng)
        contacts = scene.contacts(q, margin=10.0)
        gaps, J, b = candidates.terms(scene.model, q, qd, pairs_of(scene))
        same = [int(np.argmin(np.abs(gaps - gap))) for gap in contacts.gap]
        assert_close(contacts.gap.min(), gaps.min(), scale=1.0)
        assert_close(contacts.gap, gaps[same], scale=1.0)
        assert_close(jacobian(scene.model, q, contacts), J[same], ulps=1000)
        np.testing.assert_allclose(bias(scene.model, q, qd, contacts), b[same], atol=1e-7)


@pytest.mark.covers("RBDA 11.1", by=spatial_normals)
def test_normal_as_a_force_times_velocity_is_the_speed_of_separation(rng):
    scene, q, qd = scene_and_state("ball on ball", rng)
    contacts = scene.contacts(q, margin=10.0)
    v = [kt.velocity(scene.model, q, qd, name) for name in ("first", "second")]
    separation = spatial_normals(contacts)[0] @ (v[1] - v[0])
    assert_close(separation, velocity(scene.model, q, qd, contacts)[0, 0], scale=10.0)
    assert_close(
        jacobian(scene.model, q, contacts) @ qd, velocity(scene.model, q, qd, contacts), scale=10.0
    )


@pytest.mark.covers("RBDA 11.1", by=bias)
def test_ball_rolling_in_a_plane_has_no_normal_bias_and_a_corner_the_centripetal_one():
    for shape, expected in ((Sphere(0.5), 0.0), (Box((1.0, 1.0, 1.0)), 0.5 * 4.0**2)):
        model = two_bodies(Plane(), shape, fixed=True)
        q, qd = model.neutral(), np.zeros(6)
        q[2] = 0.5
        qd[1] = 4.0  # about y
        contacts = Scene(model).contacts(q, margin=1e-9)
        np.testing.assert_allclose(bias(model, q, qd, contacts)[:, 0], expected, atol=1e-12)


@pytest.mark.covers("RBDA 11.1", "RBDA 11.6", by=bias)
def test_corner_on_hills_accelerates_away_by_the_curvature_of_the_ground(rng):
    model = two_bodies(HILLS, Box((0.2, 0.2, 0.2)), fixed=True)
    scene = Scene(model)
    q, qd = model.neutral(), np.concatenate([np.zeros(3), rng.normal(size=3)])
    q[:3] = 0.1, -0.2, 1.0
    for _ in range(6):  # until a corner touches
        found = scene.contacts(q, margin=1.0)
        k = found.gap.argmin()
        q[2] -= found.gap[k] / found.normal[k, 2]

    def least(t):
        return scene.contacts(model.integrate(q, t * qd), margin=1.0).gap.min()

    first, second = derivatives(least)
    contacts = scene.contacts(q, margin=1e-6)
    np.testing.assert_allclose(velocity(model, q, qd, contacts)[0, 0], first, atol=1e-8)
    np.testing.assert_allclose(bias(model, q, qd, contacts)[0, 0], second, atol=1e-5)


CONVEX = {
    "ellipsoids": (Ellipsoid((0.2, 0.3, 0.4)), Ellipsoid((0.3, 0.2, 0.25)), 0.62),
    "ellipsoid on box": (Box((0.4, 0.5, 0.6)), Ellipsoid((0.3, 0.2, 0.25)), 0.7),
    "ellipsoid on cylinder": (Cylinder(0.3, 0.4), Ellipsoid((0.3, 0.2, 0.25)), 0.7),
    "boxes": (Box((0.4, 0.5, 0.6)), Box((0.3, 0.2, 0.25)), 0.7),
    "cylinders": (Cylinder(0.3, 0.4), Cylinder(0.2, 0.3), 0.7),
    "capsule and box": (Box((0.4, 0.5, 0.6)), Capsule(0.1, 0.4), 0.7),
    "cone and ball": (Cone(0.3, 0.4), Sphere(0.1), 0.6),
    "cone and ellipsoid": (Cone(0.3, 0.5), Ellipsoid((0.3, 0.2, 0.25)), 0.7),
    "cones": (Cone(0.3, 0.5), Cone(0.2, 0.6), 0.7),
}


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.covers("RBDA 11.1", "RBDA 11.6", by=(bias, Scene.contacts))
def test_bias_of_general_convex_pairs_is_the_second_derivative_of_their_distance(name, rng):
    a, b, distance = CONVEX[name]
    model = two_bodies(a, b)
    scene = Scene(model)
    compared = 0
    for _ in range(8):
        direction = rng.normal(size=3)
        q, qd = state(model, rng, distance * direction / np.linalg.norm(direction))

        def least(t, q=q, qd=qd):
            return scene.contacts(model.integrate(q, t * qd), margin=10.0).gap.min()

        (first, second), (_, wider) = derivatives(least, 4e-4), derivatives(least, 8e-4)
        if abs(second - wider) > 1e-4 * (1 + abs(second)):
            continue  # another corner or edge takes over on the way
        contacts = scene.contacts(q, margin=10.0)
        k, compared = int(np.argmin(contacts.gap)), compared + 1
        np.testing.assert_allclose(velocity(model, q, qd, contacts)[k, 0], first, atol=1e-9)
        found = bias(model, q, qd, contacts)[k, 0]
        np.testing.assert_allclose(found, second, atol=1e-5)
    assert compared >= 3


def test_contacts_on_one_body_and_the_base_do_not_depend_on_who_comes_first():
    model = two_bodies(Plane(), Sphere(0.5), fixed=True)
    swapped = model.replace(geometry=model.geometry[::-1])
    q = model.neutral()
    for m in (model, swapped):
        contacts = Scene(m).contacts(q)
        assert (contacts.predecessor, contacts.successor) == (0, 1)
        assert_close(contacts.normal, [[0.0, 0.0, 1.0]])
    upside_down = model.replace(
        geometry=(Geometry(0, Sphere(0.5), name="a"), Geometry(1, Plane(), name="b"))
    )
    contacts = Scene(upside_down).contacts(q)
    assert_close(contacts.normal, [[0.0, 0.0, -1.0]])
    assert_close(contacts.gap, [-0.5])

"""Sets of contacts: those that the others make superfluous."""

import numpy as np
import pytest
from scipy.optimize import nnls
from support.closeness import assert_close
from support.convex_shapes import farthest_points

from kinetree.algorithms.closed.inverse_dynamics import nonnegative_least_squares
from kinetree.contact.collision.kinds.kind import DISC
from kinetree.contact.contacts import Contacts, spatial_normals
from kinetree.contact.finding.shapes import Placed
from kinetree.contact.rigid.problem import disc_corners, positive_dependence, reduced
from kinetree.errors import ModelError
from kinetree.model.geometry import Cylinder

UP = np.array([0.0, 0.0, 1.0])


def contacts_at(points, normals=None, gaps=None):
    points = np.asarray(points, dtype=float)
    n = len(points)
    normals = np.tile(UP, (n, 1)) if normals is None else np.asarray(normals, dtype=float)
    gaps = np.zeros(n) if gaps is None else np.asarray(gaps)
    return Contacts(
        np.zeros(n, int), np.ones(n, int), points, normals, gaps, tuple(map(str, range(n)))
    )


def ring(count, radius=1.0, start=0.3):
    angles = start + 2 * np.pi * np.arange(count) / count
    return np.column_stack([radius * np.cos(angles), radius * np.sin(angles), np.zeros(count)])


def can_exert(contacts, wrench):
    return missing(contacts, wrench) < 1e-9


def missing(contacts, wrench):
    """What forces along the normals leave of a wrench."""
    G = spatial_normals(contacts).T
    return np.linalg.norm(G @ nonnegative_least_squares(G, wrench) - wrench)


@pytest.mark.covers("RBDA 11.6", by=nonnegative_least_squares)
def test_least_squares_agree_with_scipy(rng):
    for m, n in ((6, 3), (6, 6), (6, 20), (3, 0)):
        for _ in range(20):
            A, b = rng.normal(size=(m, n)), rng.normal(size=m)
            x = nonnegative_least_squares(A, b)
            rest = np.linalg.norm(A @ x - b)
            assert np.all(x >= 0)
            expected = nnls(A, b)[1] if n else np.linalg.norm(b)
            assert_close(rest, expected, ulps=1e4, scale=1.0)


@pytest.mark.covers("RBDA 11.6", by=positive_dependence)
def test_normal_amid_a_polygon_is_a_combination_of_those_at_its_corners():
    points = np.concatenate([ring(5), [[0.1, -0.2, 0.0]]])
    vectors = spatial_normals(contacts_at(points))
    coefficients, rest = positive_dependence(vectors, 5)
    assert rest < 1e-13
    assert coefficients[5] == 0
    assert_close(coefficients.sum(), 1.0)
    assert_close(coefficients @ points, points[5], scale=1.0)
    _, rest = positive_dependence(vectors, 0)
    assert rest > 0.1


@pytest.mark.covers("RBDA 11.6", by=reduced)
def test_points_of_a_face_leave_the_corners_of_their_hull(rng):
    inside = [0.4 * ring(7, start=1.0), 0.5 * (ring(5) + np.roll(ring(5), 1, axis=0))]
    points = np.concatenate([*inside, ring(5), ring(5)[:2]])
    full = contacts_at(points + np.array([3.0, -2.0, 0.5]), gaps=1e-3 * np.arange(len(points)))
    kept = reduced(full)
    assert sorted(kept.names, key=int) == [str(k) for k in range(12, 17)]  # the first of each
    for _ in range(20):  # the same wrenches as before
        wrench = rng.uniform(size=len(points)) @ spatial_normals(full)
        assert can_exert(kept, wrench)


@pytest.mark.covers("RBDA 11.6", by=reduced)
def test_points_of_an_edge_leave_its_ends(rng):
    line = np.linspace(-1, 1, 7)[:, None] * [[0.3, 0.4, 0.0]]
    assert sorted(reduced(contacts_at(line)).names) == ["0", "6"]
    assert reduced(contacts_at(line[:1])).size == 1
    assert reduced(contacts_at(np.tile(line[:1], (3, 1)))).names == ("0",)


def test_pairs_of_bodies_are_reduced_one_by_one():
    full = contacts_at(np.concatenate([ring(4), ring(4), [[0.0, 0.0, 0.0]]]))
    successors = np.array([1] * 4 + [2] * 5)
    kept = reduced(full._replace(successor=successors))
    assert kept.names == tuple("01234567")


@pytest.mark.covers("RBDA 11.6", by=disc_corners)
def test_polygons_approach_a_disc():
    for radius, accuracy in ((1.0, 0.1), (0.2, 1e-3), (3.0, 1e-4)):
        n = disc_corners(radius, accuracy)
        short = [radius * (1 - np.cos(np.pi / k)) for k in (n - 1, n)]
        assert short[0] > accuracy >= short[1]
    assert disc_corners(1.0, 0.6) == 3
    disc = farthest_points(
        Placed(Cylinder(0.5, 1.0), np.eye(3), np.zeros(3)), np.array([0.0, 0.0, -1.0])
    )
    assert disc.shape == (DISC, 3)
    # Until where the load may lean: the radius of the circle inside the polygon.
    for n, expected in ((4, np.cos(np.pi / 4)), (64, np.cos(np.pi / 64))):
        polygon = contacts_at(ring(n, start=0.0))
        between = np.array([np.cos(np.pi / n), np.sin(np.pi / n), 0])
        for reach, held in ((0.999 * expected, True), (1.001 * expected, False)):
            moment = np.cross(reach * between, UP)
            assert can_exert(polygon, np.concatenate([moment, UP])) == held


@pytest.mark.covers("RBDA 11.6", by=reduced)
def test_curved_contact_is_reduced_to_the_requested_accuracy():
    circle = contacts_at(ring(120))
    coarse, fine = reduced(circle, accuracy=0.1), reduced(circle, accuracy=1e-3)
    assert 4 < coarse.size < fine.size < 100
    for kept, accuracy in ((coarse, 0.1), (fine, 1e-3)):
        gap = max(missing(kept, v) for v in spatial_normals(circle))
        assert gap <= accuracy
    # The ruled surface z = x tan(y) against a line along x: no finite set does.
    y = np.linspace(-1, 1, 61)
    normals = np.column_stack([0 * y, -np.sin(y), np.cos(y)])
    points = np.column_stack([0 * y, y, 0 * y])
    screw = contacts_at(points, normals)
    sizes = [reduced(screw, accuracy=a).size for a in (0.3, 0.03, 0.003)]
    assert sizes[0] < sizes[1] < sizes[2] < 61


def test_wrong_accuracies_are_named():
    with pytest.raises(ModelError, match=r"accuracy must be a length in metres.*got -1"):
        reduced(contacts_at(ring(3)), accuracy=-1)
    with pytest.raises(ModelError, match="accuracy must be positive, got 0: a disc has no corn"):
        disc_corners(1.0, 0)

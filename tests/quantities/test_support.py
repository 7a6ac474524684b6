"""The polygon of support and the distance to its edge."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.quantities.centroidal import hull, support_margin

SQUARE = np.array([[0, 0, 0], [2, 0, 0.3], [2, 2, -0.1], [0, 2, 0], [1, 1, 0.5], [1, 0, 0]], float)


@pytest.mark.parametrize(
    ("point", "margin"),
    [((1, 1, 7), 1.0), ((0.25, 1, 0), 0.25), ((0, 1, 0), 0.0), ((-3, -4, 0), -5.0),
     ((1, 2.5, 0), -0.5)],
)  # fmt: skip
def test_distance_to_the_edge_of_a_square(point, margin):
    assert_close(support_margin(SQUARE, np.array(point, float)), margin, scale=4)


def test_the_ground_may_be_tilted_and_points_come_in_batches(rng):
    R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    R = R * np.sign(np.linalg.det(R))
    points = rng.uniform(-1, 3, (4, 5, 3))
    flat = support_margin(SQUARE, points)
    assert flat.shape == (4, 5)
    tilted = support_margin(SQUARE @ R.T, points @ R.T, up=R[:, 2] * 9.81)
    assert_close(tilted, flat, scale=10)


def test_margin_of_an_interior_point_is_the_smallest_distance_to_any_line_of_the_hull(rng):
    contacts = rng.standard_normal((12, 3))
    corners = hull(contacts[:, :2])
    ahead = np.roll(corners, -1, axis=0)
    p = contacts.mean(axis=0)
    edge = ahead - corners
    to = p[:2] - corners
    distance = (edge[:, 0] * to[:, 1] - edge[:, 1] * to[:, 0]) / np.linalg.norm(edge, axis=1)
    assert np.all(distance > 0)
    assert_close(support_margin(contacts, p), distance.min())


def test_one_or_two_feet_give_no_inside():
    two = np.array([[0.0, 0, 0], [1, 0, 0]])
    assert_close(support_margin(two, np.array([0.5, 0.0, 0])), 0.0, scale=1)
    assert_close(support_margin(two, np.array([0.5, 0.2, 0])), -0.2)
    assert_close(support_margin(two[:1], np.array([3.0, 4.0, 0])), -5.0)


def test_a_standing_quadruped_is_stable_and_a_leaning_one_is_not():
    m = kt.samples.quadruped()
    q = m.neutral()
    feet = [n for n in (*m.frame_names, *m.body_names) if "foot" in n or "shank" in n]
    contacts = np.array([kt.pose(m, q, n)[:3, 3] for n in feet])
    c = kt.center_of_mass(m, q)
    assert support_margin(contacts, c, up=-m.gravity) > 0
    assert support_margin(contacts, c + np.array([1.0, 0, 0]), up=-m.gravity) < 0


def test_messages():
    with pytest.raises(kt.ShapeError, match=r"contacts must be points \(n, 3\), at least one"):
        support_margin(np.zeros((0, 3)), np.zeros(3))
    with pytest.raises(kt.ShapeError, match=r"point must have 3 coordinates"):
        support_margin(SQUARE, np.zeros(2))
    with pytest.raises(kt.ShapeError, match="up must be a direction"):
        support_margin(SQUARE, np.zeros(3), up=(0, 0, 0))

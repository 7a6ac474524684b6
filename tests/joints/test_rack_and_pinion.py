"""Rack and pinion: the book's vectors — RBDA Example 4.6."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.joints import RackAndPinion, Revolute
from kinetree.spatial import rz


@pytest.mark.covers("RBDA Example 4.6", by=RackAndPinion)
def test_vectors_are_the_printed_ones(rng):
    r = 0.25
    q, qd = rng.standard_normal((2, 1))
    X_J, S, v_J, c_J = RackAndPinion(r).jcalc(q, qd)
    c, s = np.cos(q[0]), np.sin(q[0])
    assert_close(X_J.E, rz(q[0]), ulps=2)
    assert_close(X_J.r, [r * q[0], 0, 0], ulps=2)
    assert_close(S.to_array()[:, 0], [0, 0, 1, r * c, -r * s, 0], ulps=2)
    assert_close(v_J.to_array(), np.array([0, 0, 1, r * c, -r * s, 0]) * qd[0], ulps=4)
    assert_close(c_J.to_array(), np.array([0, 0, 0, -r * s, -r * c, 0]) * qd[0] ** 2, ulps=4)
    in_rack = X_J.inverse() @ v_J
    w = qd[0]
    assert_close(in_rack.to_array(), [0, 0, w, r * w, -r * q[0] * w, 0], ulps=8)


@pytest.mark.covers("RBDA Example 4.6", by=RackAndPinion)
def test_the_touching_point_of_the_pinion_is_at_rest(rng):
    r = 0.25
    q, qd = rng.standard_normal((2, 1))
    X_J, _, v_J, _ = RackAndPinion(r).jcalc(q, qd)
    v = X_J.inverse() @ v_J
    contact = X_J.r + np.array([0, r, 0])
    assert_close(v.linear + np.cross(v.angular, contact), np.zeros(3), scale=1.0, ulps=4)


def test_radius_zero_is_a_revolute_joint(rng):
    q, qd = rng.standard_normal((2, 1))
    a, b = RackAndPinion(0).jcalc(q, qd), Revolute("z").jcalc(q, qd)
    assert_close(a[0].to_matrix(), b[0].to_matrix(), ulps=1)
    for x, y in zip(a[1:], b[1:], strict=True):
        assert_close(x.to_array(), y.to_array(), ulps=1)


@pytest.mark.parametrize("turns", [-2.3, 0.1, 5.7])
def test_coordinates_count_turns(turns):
    joint, q = RackAndPinion(0.1), np.array([2 * np.pi * turns])
    assert_close(joint.coordinates(joint.transform(q)), q, ulps=8)

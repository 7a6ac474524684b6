"""Universal joint: two hinges, and the angles of the cross."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba
from kinetree.joints import Revolute, Universal
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement

AXES = ["xy", "yx", "xz", "zx", "yz", "zy"]


@pytest.mark.covers("Tutorial 5", "6-D Guide 2: Joint Models", by=Universal)
@pytest.mark.parametrize("axes", AXES)
def test_universal_joint_is_two_hinges_with_a_massless_cross(axes, rng):
    at, inertia = random_placement(rng), random_inertia(rng)
    one = ModelBuilder().body("b", joint=Universal(axes), at=at, inertia=inertia).build()
    cross = ModelBuilder().body("cross", joint=Revolute(axes[0]), at=at)
    two = cross.body("b", on="cross", joint=Revolute(axes[1]), inertia=inertia).build()
    q, qd, tau = rng.standard_normal((3, 2))
    a, b = (aba.forward_dynamics(m, q, qd, tau) for m in (one, two))
    assert_close(a, b, ulps=1e4)


@pytest.mark.parametrize("axes", AXES)
def test_angles_are_recovered_in_all_quadrants(axes, rng):
    joint = Universal(axes)
    for _ in range(8):
        q = rng.uniform(-np.pi, np.pi, 2)
        assert_close(joint.coordinates(joint.transform(q)), q, ulps=20)


def test_shafts_at_an_angle_turn_at_the_rates_of_the_textbook():
    """tan(out) = tan(in) cos(bend): the classical Hooke joint with fixed shaft directions."""
    bend = 0.6
    joint = Universal("xy")
    shaft = np.array([0, -np.sin(bend), np.cos(bend)])  # of the output, in the parent frame
    for turn in (0.3, 1.0, 1.4):
        # The input fork, on the z shaft, carries the x axis of the cross; the output shaft is the
        # child's z axis and must point along `shaft`, relative to the turned input fork.
        c, s = np.cos(turn), np.sin(turn)
        seen = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) @ shaft
        q = np.array([np.arctan2(-seen[1], seen[2]), np.arcsin(seen[0])])
        R = (joint.transform(q).E @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])).T
        assert_close(R[:, 2], shaft, ulps=8)
        # Turn of the output fork's y axis about its shaft, from the bend plane's normal x.
        normal, other = np.array([1, 0, 0]), np.cross(shaft, [1, 0, 0])
        out = np.arctan2(-(R[:, 1] @ normal), R[:, 1] @ other)
        assert_close(np.tan(out), np.tan(turn) * np.cos(bend), ulps=50)

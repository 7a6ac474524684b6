"""Sphere in cylinder: a ball joint on a slider."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba
from kinetree.algorithms.kinematics import body_accelerations
from kinetree.joints import Prismatic, SphereInCylinder, Spherical
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement


@pytest.mark.covers("RBDA 8.10", by=SphereInCylinder)
@pytest.mark.parametrize("axis", ["z", "-x", (1, 2, 2)])
def test_it_is_a_slider_and_a_ball_with_a_massless_body(axis, rng):
    at, inertia, joint = random_placement(rng), random_inertia(rng), SphereInCylinder(axis)
    one = ModelBuilder().body("b", joint=joint, at=at, inertia=inertia).build()
    slider = ModelBuilder().body("slider", joint=Prismatic(axis), at=at)
    two = slider.body("b", on="slider", joint=Spherical(), inertia=inertia).build()
    q, (qd, tau) = joint.random(rng), rng.standard_normal((2, 4))
    qdd = aba.forward_dynamics(one, q, qd, tau)
    slide_first, turn_first = [3, 0, 1, 2], [4, 0, 1, 2, 3]
    other = aba.forward_dynamics(two, q[turn_first], qd[slide_first], tau[slide_first])
    assert_close(qdd[slide_first], other, ulps=1e4)
    a = body_accelerations(one, q, qd, qdd)[2][1]
    b = body_accelerations(two, q[turn_first], qd[slide_first], other)[2][2]
    assert_close(a.to_array(), b.to_array(), ulps=1e4)


@pytest.mark.covers("RBDA 8.10", by=SphereInCylinder)
def test_constraint_forces_are_perpendicular_to_the_cylinder_in_the_parent(rng):
    joint = SphereInCylinder("z")
    q = joint.random(rng)
    E, T = joint.transform(q).E, joint.constraint_subspace(q)
    assert not np.any(T.angular)
    assert_close(E.T @ T.linear, np.eye(3)[:, :2], ulps=8)


def test_quaternion_part_is_checked_and_normalised(rng):
    joint = SphereInCylinder("z")
    q = joint.random(rng)
    q[:4] *= 2
    assert "unit length, got length 2" in joint.defect(q)
    fixed = joint.normalize(q)
    assert joint.defect(fixed) is None
    assert fixed[4] == q[4]

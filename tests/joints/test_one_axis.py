"""Revolute, prismatic, helical, cylindrical: the printed models, and one as another."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba, rnea
from kinetree.joints import Cylindrical, Helical, Prismatic, Revolute
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import dense, rotz, rz, xlt


@pytest.mark.covers("RBDA Table 4.1", by=(Revolute, Prismatic, Helical, Cylindrical))
def test_models_are_those_of_the_table(rng):
    q, h = rng.standard_normal(2), 0.3
    e = np.eye(6)
    rows = [
        (Revolute(), rz(q[0]), [0, 0, 0], e[:, [2]], e[:, [0, 1, 3, 4, 5]]),
        (Prismatic(), np.eye(3), [0, 0, q[0]], e[:, [5]], e[:, [0, 1, 2, 3, 4]]),
        (
            Helical(pitch=h), rz(q[0]), [0, 0, h * q[0]], e[:, [2]] + h * e[:, [5]],
            np.column_stack([e[:, [0, 1, 3, 4]], [0, 0, -h, 0, 0, 1]]),
        ),
        (Cylindrical(), rz(q[0]), [0, 0, q[1]], e[:, [2, 5]], e[:, [0, 1, 3, 4]]),
    ]  # fmt: skip
    for joint, E, r, S, T in rows:
        X_J, S_J, v_J, c_J = joint.jcalc(q[: joint.nq], np.ones(joint.nv))
        assert_close(X_J.E, E, ulps=2)
        assert_close(X_J.r, np.array(r), ulps=2)
        assert_close(S_J.to_array(), S, ulps=1)
        assert_close(joint.constraint_subspace(q).to_array(), T, ulps=1)
        assert_close(v_J.to_array(), S @ np.ones(joint.nv), ulps=1)
        assert not np.any(c_J.to_array())


@pytest.mark.covers("6-D Guide 2: Joint Models", by=Helical)
@pytest.mark.parametrize("pitch", [0.1, -0.2])
def test_helical_transform_is_that_of_the_guide(pitch, rng):
    q = rng.standard_normal(1)
    X_J, S, _, _ = Helical("z", pitch=pitch).jcalc(q, np.ones(1))
    expected = rotz(q[0]) @ xlt(0, 0, q[0] * pitch)
    assert_close(X_J.to_matrix(), expected.to_matrix(), ulps=2)
    assert_close(S.to_array()[:, 0], [0, 0, 1, 0, 0, pitch], ulps=1)


@pytest.mark.parametrize("axis", ["z", "-x", (1, 2, 3)])
def test_helical_joint_of_pitch_zero_is_revolute(axis, rng):
    q, qd = rng.standard_normal((2, 1))
    helical, revolute = Helical(axis, pitch=0), Revolute(axis)
    for a, b in zip(helical.jcalc(q, qd)[1:], revolute.jcalc(q, qd)[1:], strict=True):
        np.testing.assert_array_equal(a.to_array(), b.to_array())
    np.testing.assert_array_equal(
        helical.transform(q).to_matrix(), revolute.transform(q).to_matrix()
    )
    X = random_placement(rng)
    assert_close(helical.coordinates(X), revolute.coordinates(X), ulps=4)


@pytest.mark.covers("RBDA 4.4", by=Helical)
def test_helical_coordinates_count_turns():
    joint = Helical("y", pitch=-0.02)
    q = np.array([9.7])  # more than one turn
    assert_close(joint.coordinates(joint.transform(q)), q, ulps=8)


@pytest.mark.covers("RBDA 4.4", "6-D Guide 2: Joint Models", by=Cylindrical)
@pytest.mark.parametrize("axis", ["z", "-y", (1, 2, 3)])
def test_cylindrical_is_revolute_and_prismatic_with_a_massless_body(axis, rng):
    at, first, last = random_placement(rng), random_inertia(rng), random_inertia(rng)
    arm = ModelBuilder().body("arm", joint=Revolute("x"), inertia=first)
    one = arm.body("bob", on="arm", joint=Cylindrical(axis), at=at, inertia=last).build()
    arm = ModelBuilder().body("arm", joint=Revolute("x"), inertia=first)
    arm.body("nothing", on="arm", joint=Revolute(axis), at=at)
    two = arm.body("bob", on="nothing", joint=Prismatic(axis), inertia=last).build()
    q, qd, tau = rng.standard_normal((3, 3))
    a, b = (aba.forward_dynamics(m, q, qd, tau) for m in (one, two))
    assert_close(a, b, ulps=1e4)
    assert_close(rnea.inverse_dynamics(two, q, qd, a), tau, ulps=1e4)


@pytest.mark.parametrize("joint", [Revolute(), Prismatic(), Helical(pitch=0.4), Cylindrical()])
def test_one_axis_subspaces_are_the_same_in_both_frames(joint, rng):
    q = joint.random(rng)
    S, X = joint.motion_subspace(q).to_array(), joint.transform(q).to_matrix()
    assert_close(X @ S, S, ulps=4)
    assert_close(dense.crm(S[:, 0]) @ S, np.zeros((6, joint.nv)), scale=1.0, ulps=1)

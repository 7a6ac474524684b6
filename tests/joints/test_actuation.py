"""Active force subspaces from actuator wrenches — RBDA Example 3.2."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.errors import ShapeError, SingularError
from kinetree.joints import Cylindrical, Fixed, Revolute, Universal, active_subspace_from_wrench
from kinetree.spatial import Force


@pytest.mark.covers("RBDA Example 3.2", "RBDA 3.5", by=active_subspace_from_wrench)
def test_gear_tooth_force_of_the_book():
    r, f = 0.05, 120.0
    contact, push = np.array([-r, 0, 0]), np.array([0, f, 0])
    wrench = Force(np.cross(contact, push), push)
    assert_close(wrench.to_array(), [0, 0, -r * f, 0, f, 0], ulps=2)
    T_a = active_subspace_from_wrench(Revolute("z"), np.zeros(1), wrench)
    assert_close(T_a.to_array()[:, 0], [0, 0, 1, 0, -1 / r, 0], ulps=2)


def test_any_wrench_that_does_work_gives_unit_power(rng):
    for joint in (Revolute((1, 2, 3)), Cylindrical("y"), Universal("zx")):
        q = joint.random(rng)
        wrench = Force.from_array(rng.standard_normal((6, joint.nv)))
        T_a = active_subspace_from_wrench(joint, q, wrench)
        assert_close(T_a.T @ joint.motion_subspace(q), np.eye(joint.nv), ulps=500)


def test_it_differs_from_the_default_by_constraint_forces_only(rng):
    joint, q = Revolute("z"), np.zeros(1)
    T_a = active_subspace_from_wrench(joint, q, Force.from_array(rng.standard_normal(6)))
    difference = T_a - joint.active_subspace(q)
    T = joint.constraint_subspace(q).to_array()
    residual = difference.to_array() - T @ (np.linalg.pinv(T) @ difference.to_array())
    assert_close(residual, np.zeros((6, 1)), ulps=50, scale=np.max(np.abs(T_a.to_array())))


def test_wrench_without_work_is_rejected():
    sideways = Force.from_array(np.array([1.0, 0, 0, 0, 2.0, 0]))
    with pytest.raises(SingularError, match="does no work on the freedom of this Revolute joint"):
        active_subspace_from_wrench(Revolute("z"), np.zeros(1), sideways)
    twice = Force.from_array(np.ones((6, 2)))
    with pytest.raises(SingularError, match="does no work on the freedom of this Cylindrical"):
        active_subspace_from_wrench(Cylindrical("z"), np.zeros(2), twice)


def test_wrong_number_of_wrenches_is_rejected():
    with pytest.raises(ShapeError, match=r"Cylindrical has 2 degrees of freedom .* got 1"):
        active_subspace_from_wrench(Cylindrical(), np.zeros(2), Force.from_array(np.ones(6)))
    with pytest.raises(ShapeError, match="Fixed has 0 degrees of freedom"):
        active_subspace_from_wrench(Fixed(), np.zeros(0), Force.from_array(np.ones(6)))

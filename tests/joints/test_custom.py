"""Joints from a transform alone."""

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import check_dynamics_of_chain

from kinetree.errors import JointError
from kinetree.joints import CustomJoint, Euler, RackAndPinion, Spherical, Universal, check_joint
from kinetree.spatial import rotx, roty, rotz, xlt
from kinetree.spatial.ops import cos, sin


def cam(q):
    """Turns and rises with the angle, twice a turn."""
    return rotz(q[0]) @ xlt(0.3 * cos(q[0]), 0.2 * sin(2 * q[0]), 0.1 * q[0])


def ellipsoid(q):
    """Rolls its z axis over an ellipsoid and spins about it."""
    a, b, spin = q
    turn = rotz(spin) @ roty(b) @ rotx(a)
    return turn @ xlt(0.1 * sin(b), -0.2 * sin(a) * cos(b), 0.3 * cos(a) * cos(b) - 0.3)


@pytest.mark.covers("RBDA 4.6", by=CustomJoint)
@pytest.mark.parametrize(("placement", "freedoms"), [(cam, 1), (ellipsoid, 3)])
def test_custom_joint_keeps_the_contract(placement, freedoms, rng):
    check_joint(CustomJoint(placement, freedoms), rng)


@pytest.mark.parametrize("joint", [RackAndPinion(0.2), Universal("zx"), Euler("xyz")], ids=str)
def test_differentiated_transform_gives_the_subspace_and_bias_of_the_built_in(joint, rng):
    custom = CustomJoint(joint.transform, joint.nv)
    q, qd = joint.random(rng), rng.standard_normal(joint.nv)
    for a, b in zip(custom.jcalc(q, qd)[1:], joint.jcalc(q, qd)[1:], strict=True):
        assert_close(a.to_array(), b.to_array(), ulps=50, scale=5.0)


def test_bias_stays_exact_to_all_digits():
    joint, custom = Universal("xy"), CustomJoint(Universal("xy").transform, 2)
    with mpmath.workdps(50):
        q = np.array([mpmath.mpf(1) / 3, mpmath.mpf(2) / 7])
        qd = np.array([mpmath.mpf(1) / 9, mpmath.mpf(3) / 11])
        a, b = (j.jcalc(q, qd)[3].to_array() for j in (custom, joint))
        assert max(abs(x) for x in a - b) < mpmath.mpf(10) ** -48


def test_custom_joints_run_in_the_algorithms(rng):
    joints = [CustomJoint(cam, 1), Spherical(), CustomJoint(ellipsoid, 3)]
    check_dynamics_of_chain(joints, rng)


def test_coordinates_that_cannot_be_found_are_reported():
    far = CustomJoint(lambda q: xlt(sin(q[0]) / 10, cos(q[0]) / 10, 0), 1)
    with pytest.raises(JointError, match=r"not found in 100 steps .* method coordinates\(X\)"):
        far.coordinates(xlt(100.0, 0.3, 0))

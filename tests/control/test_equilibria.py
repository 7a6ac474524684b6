"""Configurations that some of the joints can hold."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.control import equilibrium


def at_rest(m, q, tau):
    qdd = kt.forward_dynamics(m, q, np.zeros(m.nv), tau)
    assert np.abs(qdd).max() < 1e-10


def test_driven_joints_hold_any_configuration(rng):
    m = kt.samples.arm()
    q0 = m.random_configuration(rng)
    q, tau = equilibrium(m, q0)
    assert np.array_equal(q, q0)
    assert_close(tau, kt.gravity_force(m, q0), ulps=10)
    at_rest(m, q, tau)


def test_a_pole_is_balanced_upright_or_hangs():
    m = kt.samples.cart_pole()
    for start, end in ((3.0, np.pi), (0.2, 0.0)):
        q, tau = equilibrium(m, [0.7, start], actuated=["rail"])
        assert_close(q, [0.7, end], ulps=100, scale=1.0)
        at_rest(m, q, tau)


@pytest.mark.parametrize("joint", ["shoulder", "elbow"])
def test_the_mass_centre_is_above_the_joint_that_is_not_driven(joint):
    m = kt.samples.double_pendulum()
    q, tau = equilibrium(m, [[2.9, 0.5], [0.3, 0.4]], actuated=[joint])
    assert np.abs(tau[:, 0 if joint == "elbow" else 1]).max() == 0
    at_rest(m, q, tau)
    if joint == "elbow":
        assert np.abs(kt.center_of_mass(m, q)[:, 0]).max() < 1e-12
    assert np.abs(q[0] - q[1]).max() > 1


def test_joints_may_be_held():
    m = kt.samples.double_pendulum()
    q, tau = equilibrium(m, [3.0, 0.5], actuated=["elbow"], hold=["elbow"])
    assert q[1] == 0.5
    at_rest(m, q, tau)


def test_a_hanging_body_on_a_ball_joint(rng):
    ball = kt.shapes.sphere(0.1, mass=1.0, at=(0.1, 0.2, -0.5))
    m = kt.ModelBuilder("lamp").body("lamp", joint=kt.Spherical(), inertia=ball).build()
    q0 = m.integrate(m.neutral(), [0.5, 0.2, 0.9])
    q, tau = equilibrium(m, q0, actuated=())
    assert abs(np.linalg.norm(q) - 1) < 1e-12
    assert np.all(tau == 0)
    assert np.abs(kt.center_of_mass(m, q)[:2]).max() < 1e-12


def test_errors_name_what_is_wrong():
    m = kt.samples.quadruped()
    with pytest.raises(
        kt.errors.EquilibriumError, match="stay on the joints 'root', which are not driven"
    ):
        equilibrium(m, m.neutral(), actuated=m.joint_names[1:])
    m = kt.samples.cart_pole()
    with pytest.raises(
        kt.errors.EquilibriumError, match=r"sample \(1,\): .*no joint that may move changes that"
    ):
        equilibrium(m, [[0, 0], [0, 1.0]], actuated=["rail"], hold=["pivot"])
    with pytest.raises(kt.UnknownNameError, match="must be names of joints in a list, got 'rail'"):
        equilibrium(m, [0, 1.0], actuated="rail")

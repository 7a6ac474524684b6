"""Motions of independent coordinates, the forces they take, and gradients for planning."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.loops.kinematics.constraint import closure_error, constraint
from kinetree.loops.linear.coordinate_motion import coordinate_motion
from kinetree.loops.linear.derivatives import torque_derivatives
from kinetree.samples.earthmovers import loader

LOADER = loader()
JOINTS = ["boom_joint", "bucket_joint"]
MOTORS = ["lift_piston_joint", "tilt_piston_joint"]
TIMES = np.linspace(0.0, 1.0, 5)


def planned(c):
    """``y``, ``yd``, ``ydd`` along polynomials in time with coefficients (2, 3)."""
    powers = np.arange(2, 5)
    basis = TIMES[:, None] ** powers
    rates = powers * TIMES[:, None] ** (powers - 1)
    accelerations = powers * (powers - 1) * TIMES[:, None] ** (powers - 2)
    return basis, rates, accelerations, [b @ c.T for b in (basis, rates, accelerations)]


@pytest.mark.covers("Spencer A.3", by=coordinate_motion)
def test_motions_keep_loops_closed(rng):
    *_, motion = planned(0.2 * rng.standard_normal((2, 3)))
    q, qd, qdd = coordinate_motion(LOADER, np.zeros(8), *motion, independent=JOINTS)
    c = constraint(LOADER, q, qd)
    assert np.abs(closure_error(LOADER, q)).max() < 1e-14
    assert np.abs(c.rate).max() < 1e-13
    assert_close(np.einsum("tcn,tn->tc", c.K, qdd), c.k, ulps=1e4, scale=10)
    for array, given in zip((q, qd, qdd), motion, strict=True):
        assert_close(array[:, [0, 5]], given, ulps=1000, scale=1)
    once = coordinate_motion(LOADER, q[3], *(a[4] for a in motion), independent=JOINTS)
    assert_close(once.q, q[4], ulps=1000)


def test_variables_of_loop_joints_can_lead():
    y = np.array([[0.0, 0.1], [0.0, 0.12]])
    q0 = np.zeros(8)
    names = ["boom_joint", "tilt_eye"]
    start = coordinate_motion(LOADER, q0, y[0], 0 * y[0], 0 * y[0], independent=names)
    q, *_ = coordinate_motion(LOADER, start.q, y, 0 * y, 0 * y, independent=names)
    assert_close(q[0], start.q, ulps=1000)
    assert np.abs(closure_error(LOADER, q)).max() < 1e-14
    assert np.abs(q[1] - q[0]).max() > 1e-3


def cost(c):
    """Half the sum of squares of the cylinder forces [kN], and its gradient by ``c``."""
    basis, rates, accelerations, motion = planned(c)
    q, qd, qdd = coordinate_motion(LOADER, np.zeros(8), *motion, independent=JOINTS)
    tau, dy, dyd, dydd = torque_derivatives(LOADER, q, qd, qdd, actuated=MOTORS, independent=JOINTS)
    tau, dy, dyd, dydd = (a / 1e3 for a in (tau, dy, dyd, dydd))
    gradient = sum(
        np.einsum("ti,tij,tk->jk", tau, derivative, b)
        for derivative, b in ((dy, basis), (dyd, rates), (dydd, accelerations))
    )
    return np.sum(tau**2) / 2, gradient


@pytest.mark.covers("Spencer 4.3", by=torque_derivatives)
def test_the_gradient_of_a_cost_of_forces(rng):
    c, h = 0.2 * rng.standard_normal((2, 3)), 1e-4
    _, gradient = cost(c)
    for index in np.ndindex(c.shape):
        e = np.zeros_like(c)
        e[index] = h
        derivative = 8 * (cost(c + e)[0] - cost(c - e)[0]) - (
            cost(c + 2 * e)[0] - cost(c - 2 * e)[0]
        )
        assert abs(derivative / (12 * h) - gradient[index]) < 1e-8 * np.abs(gradient).max()


def test_forces_bring_about_the_motion(rng):
    *_, motion = planned(0.2 * rng.standard_normal((2, 3)))
    q, qd, qdd = coordinate_motion(LOADER, np.zeros(8), *motion, independent=JOINTS)
    f_ext = rng.standard_normal((8, 6))
    found = torque_derivatives(LOADER, q, qd, qdd, f_ext, actuated=MOTORS)
    tau = np.zeros((len(TIMES), 8))
    tau[:, [2, 7]] = found.tau
    again = kt.forward_dynamics(LOADER, q, qd, tau, f_ext)
    assert_close(again, qdd, ulps=1e6)


def test_motors_that_do_not_control_the_mechanism_are_named():
    rest = np.zeros(8)
    with pytest.raises(kt.SingularError, match="'lift_piston_joint' do not control model 'loader'"):
        torque_derivatives(LOADER, rest, rest, rest, actuated=["lift_piston_joint"])
    with pytest.raises(kt.SingularError, match="2 degrees of freedom, and as many forces must act"):
        torque_derivatives(LOADER, rest, rest, rest, actuated=["boom_joint", "lift_piston_joint"])
    with pytest.raises(kt.ShapeError, match=r"y must have shape \(2,\) or \(samples, 2\)"):
        coordinate_motion(LOADER, rest, [0.0], [0.0], [0.0], independent=JOINTS)
    with pytest.raises(
        kt.errors.UnreachableError, match="finds no closed configuration with boom_joint"
    ):
        coordinate_motion(LOADER, rest, [0.0, 9.0], [0.0] * 2, [0.0] * 2, independent=JOINTS)


def test_coordinates_of_a_free_joint_are_displacements(rng):
    """A loader that floats: position by displacement, velocity by velocity variables."""
    floating = kt.edit.floating(LOADER)
    names, chosen = ["floating", *JOINTS], [0, 1, 2, 3, 4, 5, 6, 11]
    y, yd, ydd = 0.3 * rng.standard_normal((3, 4, 8))
    q, qd, qdd = coordinate_motion(floating, floating.neutral(), y, yd, ydd, independent=names)
    c = constraint(floating, q, qd)
    assert np.abs(closure_error(floating, q)).max() < 1e-13
    assert np.abs(c.rate).max() < 1e-12
    assert_close(np.einsum("tcn,tn->tc", c.K, qdd), c.k, ulps=1e5, scale=10)
    displaced = floating.difference(floating.neutral(), q)
    for found, given in ((displaced, y), (qd, yd), (qdd, ydd)):
        assert_close(found[:, chosen], given, ulps=1e4, scale=1)

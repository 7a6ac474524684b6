"""Ball joints: quaternion, Euler angles, rotation vector and three hinges are one joint."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba
from kinetree.algorithms.kinematics import body_accelerations
from kinetree.joints import Euler, Exponential, Revolute, Spherical
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import rz, skew
from kinetree.spatial.rotation import quaternion_exp, rotation_from_quaternion


@pytest.mark.covers("RBDA 4.5", "RBDA Table 4.1", by=Spherical)
def test_quaternion_about_z_is_the_coordinate_rotation(rng):
    angle = rng.uniform(-np.pi, np.pi)
    q = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    assert_close(Spherical().transform(q).E, rz(angle), ulps=4)
    assert_close(Spherical().neutral(), [1, 0, 0, 0], ulps=0)


@pytest.mark.covers("RBDA 4.5", by=Spherical)
def test_quaternion_rate_keeps_the_length_and_turns_the_frame(rng):
    joint = Spherical()
    p, w = joint.random(rng), rng.standard_normal(3)
    rate = joint.configuration_rate(p, w)
    assert abs(p @ rate) < 1e-15
    h = 1e-30
    dE = np.imag(rotation_from_quaternion(p + 1j * h * rate)) / h
    assert_close(dE, -skew(w) @ joint.transform(p).E, ulps=20)


@pytest.mark.covers("Tutorial 5", by=Spherical.rate_matrix)
def test_world_angular_velocity_is_twice_the_quaternion_matrix_times_rate(rng):
    joint = Spherical()
    p = joint.random(rng)
    w, x, y, z = p
    Q = np.array([[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]])
    omega = rng.standard_normal(3)
    E = joint.transform(p).E
    assert_close(2 * Q @ joint.rate_matrix(p) @ omega, E.T @ omega, ulps=20)
    assert np.linalg.matrix_rank(Q) == 3


def test_unnormalised_quaternion_is_no_rotation_and_is_reported(rng):
    joint = Spherical()
    p = 1.1 * joint.random(rng)
    E = joint.transform(p).E
    assert np.max(np.abs(E @ E.T - np.eye(3))) > 0.01
    defect = "quaternion (w, x, y, z) must have unit length, got length 1.1; model.normalize(q)"
    assert joint.defect(p) == f"{defect} scales it"
    assert_close(np.linalg.norm(joint.normalize(p)), 1.0, ulps=2)
    assert joint.defect(joint.normalize(p)) is None


def test_opposite_quaternions_are_one_orientation(rng):
    joint = Spherical()
    p = joint.random(rng)
    assert_close(joint.transform(-p).E, joint.transform(p).E, ulps=1)
    assert_close(joint.difference(p, -p), np.zeros(3), scale=1.0, ulps=4)


BALLS = [Euler("zyx"), Euler("xyz"), Euler("zxz"), Euler("yxy"), Exponential()]


@pytest.mark.covers("RBDA 4.5", "Tutorial 5", by=(Spherical, Euler, Exponential))
@pytest.mark.parametrize("joint", BALLS, ids=str)
def test_same_motion_and_power_as_with_a_quaternion(joint, rng):
    at, first, last = random_placement(rng), random_inertia(rng), random_inertia(rng)

    def arm(ball):
        builder = ModelBuilder().body("arm", joint=Revolute("y"), inertia=first)
        return builder.body("bob", on="arm", joint=ball, at=at, inertia=last).build()

    q = joint.random(rng)
    qd, tau = rng.standard_normal((2, 3))
    X_J, S, v_J, _ = joint.jcalc(q, qd)
    moment = joint.active_subspace(q) @ tau
    p = Spherical().coordinates(X_J)
    hinge, hinge_rate, hinge_tau = rng.standard_normal((3, 1))

    def accelerations(model, q, qd, tau):
        q, qd, tau = (
            np.concatenate(pair) for pair in ((hinge, q), (hinge_rate, qd), (hinge_tau, tau))
        )
        qdd = aba.forward_dynamics(model, q, qd, tau)
        return np.concatenate([a.to_array() for a in body_accelerations(model, q, qd, qdd)[2][1:]])

    ours = accelerations(arm(joint), q, qd, tau)
    reference = accelerations(arm(Spherical()), p, v_J.angular, moment.angular)
    condition = np.linalg.cond(S.angular)
    assert_close(ours, reference, ulps=1e4, condition=condition)
    assert_close(tau @ qd, moment.angular @ v_J.angular, ulps=50, scale=10.0)


@pytest.mark.covers("6-D Guide 2: Joint Models", by=(Euler, Revolute))
@pytest.mark.parametrize("sequence", ["zyx", "xyz", "zxz"])
def test_ball_joint_is_three_hinges_with_massless_bodies(sequence, rng):
    at, inertia = random_placement(rng), random_inertia(rng)
    euler = ModelBuilder().body("b", joint=Euler(sequence), at=at, inertia=inertia).build()
    builder = ModelBuilder().body("h1", joint=Revolute(sequence[0]), at=at)
    builder.body("h2", on="h1", joint=Revolute(sequence[1]))
    hinges = builder.body("b", on="h2", joint=Revolute(sequence[2]), inertia=inertia).build()
    q = Euler(sequence).random(rng)
    qd, tau = rng.standard_normal((2, 3))
    a, b = (aba.forward_dynamics(m, q, qd, tau) for m in (euler, hinges))
    assert_close(a, b, ulps=1e5)


def test_integrate_is_a_turn_about_a_fixed_axis(rng):
    joint = Spherical()
    p, dv = joint.random(rng), rng.standard_normal(3)
    half = joint.integrate(joint.integrate(p, dv / 2), dv / 2)
    assert_close(half, joint.integrate(p, dv), ulps=20)
    assert_close(joint.integrate(joint.neutral(), dv), quaternion_exp(dv), ulps=4)

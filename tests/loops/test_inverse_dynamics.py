"""Inverse dynamics of mechanisms with loops: forces of actuators, fed back, give the motion."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import rnea
from kinetree.algorithms.closed import joint_space
from kinetree.errors import (
    LoopError,
    ModelError,
    ShapeError,
    SingularError,
    TraceError,
    UnknownNameError,
)
from kinetree.loops.dynamics.inverse_dynamics import actuation, inverse_dynamics
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.loop_joints import loop_joint_forces, loop_velocities
from kinetree.model import JointDynamics, Limits, MechanismGraph, ModelBuilder
from kinetree.samples.book_linkages import actuated_arm
from kinetree.samples.random_mechanisms import random_closed_mechanism

L1, L2 = 1.0, 0.6
ARM = actuated_arm(L1, L2)  # RBDA Fig. 8.3
LINK = kt.shapes.box(0.3, 0.1, 0.1, mass=2.0, at=(0.15, 0, 0))


def arm_state(y, yd, ydd):
    """A motion of ``ARM`` and its ``u1``, ``u2`` — RBDA §8.11."""
    c, s = np.cos(y[0]), np.sin(y[0])
    d = np.sqrt(L1**2 + L2**2 - 2 * L1 * L2 * c)
    u1, u2 = (L2**2 - L1 * L2 * c) / d**2, L1 * L2 * s / d
    u3 = (L1**2 - L2**2) * L1 * L2 * s / d**4 * yd[0] ** 2
    u4 = (L1 * L2 * c - u2**2) / d * yd[0] ** 2
    G = np.array([[1, 0], [u1, 0], [u2, 0], [0, 1]])
    q = np.array([y[0], np.arctan2(L2 * s, L2 * c - L1), d, y[1]])
    return q, G @ yd, G @ ydd + np.array([0, u3, u4, 0]), (u1, u2, G)


@pytest.mark.covers("RBDA 8.12", "RBDA Example 8.2", by=(inverse_dynamics, actuation))
def test_actuators_of_figure_8_3_follow_the_matrix_of_the_book():
    model, yd = ARM, np.array([1.5, -0.7])
    q, qd, qdd, (u1, u2, G) = arm_state([0.8, 0.4], yd, np.array([2.0, 3.0]))
    assert_close([u1, u2], [-0.110743028522, 0.594621092526], ulps=1e5)
    tau_ID = rnea.inverse_dynamics(model, q, qd, qdd)
    found = inverse_dynamics(model, q, qd, qdd, actuated=["rod_joint", "forearm_joint"])
    u = np.concatenate([found.u["rod_joint"], found.u["forearm_joint"]])
    assert_close(u, np.array([[1 / u2, u1 / u2, 1, 0], [0, 0, 0, 1]]) @ tau_ID, ulps=1e4)
    assert found.actuation.proper
    assert found.actuation.kind == "proper"
    # u is not the force of yd: the power is u times the velocities of the actuators
    assert_close(found.tau @ qd, u @ (G[2:] @ yd), ulps=1e4)
    assert abs(u @ yd - found.tau @ qd) > 1
    assert_close(kt.forward_dynamics(model, q, qd, found.tau), qdd, ulps=1e5)


@pytest.mark.covers("RBDA 8.12", by=actuation)
def test_actuation_depends_on_the_configuration():
    model, at = ARM, ["rod_joint", "forearm_joint"]
    q = np.stack([arm_state([y, 0.3], np.zeros(2), np.zeros(2))[0] for y in (0.8, 0.0, np.pi)])
    found = actuation(model, q, at)
    assert found.kind.tolist() == ["proper", *["underactuated and redundant"] * 2]
    assert found.rank.tolist() == [2, 1, 1]
    assert str(found) == "proper in 1, underactuated and redundant in 2"
    assert actuation(model, q[0], ["arm_joint"]).kind == "underactuated"
    every = actuation(model, q[0])
    assert (every.kind, every.freedoms, every.mobility, every.rank) == ("redundant", 4, 2, 2)
    both = actuation(model, q[0], ["arm_joint", "barrel_joint", "eye"])
    assert (both.underactuated, both.redundant, both.proper) == (True, True, False)
    assert "drive 1 of 2 degrees of freedom" in str(both)


@pytest.mark.covers("RBDA 8.12", by=inverse_dynamics)
@pytest.mark.parametrize("seed", range(6))
def test_forces_fed_back_give_the_acceleration_again(seed, rng):
    model, q, qd = random_closed_mechanism(seed)
    tau = rng.standard_normal(model.nv)
    qdd = joint_space.forward_dynamics(model, q, qd, tau)
    found = inverse_dynamics(model, q, qd, qdd)
    assert_close(joint_space.forward_dynamics(model, q, qd, found.tau), qdd, ulps=1e7)
    assert np.linalg.norm(found.tau) <= np.linalg.norm(tau) * (1 + 1e-9)  # of all, the smallest
    assert_close(found.tau @ qd, tau @ qd, ulps=1e7, scale=1 + abs(tau @ qd))
    K = constraint(model, q, qd).K
    tree = rnea.inverse_dynamics(model, q, qd, qdd)
    assert_close(found.tau + K.T @ found.lam, tree, ulps=1e7)


def four_bar_motion(model, speed=3.0, acceleration=5.0):
    """The crank at a given motion, from the constraints."""
    q = np.array(model.posture("home").q)
    c = constraint(model, q, np.zeros(model.nv))
    G = np.linalg.svd(c.K)[2][2:].T
    G = G / G[model.v_slice[model.joint_index("crank_joint")].start]
    qd = speed * G[:, 0]
    c = constraint(model, q, qd)
    g = np.linalg.lstsq(c.K, c.k, rcond=1e-9)[0]
    crank = model.v_slice[model.joint_index("crank_joint")].start
    return q, qd, g + G[:, 0] * (acceleration - g[crank])


def test_springs_and_dampers_of_all_joints_are_part_of_the_balance():
    given = JointDynamics(stiffness=5.0, damping=0.4, friction=0.1, rest=0.3)
    model = kt.samples.four_bar().replace(dynamics={"rocker_joint": given, "pin": given})
    q, qd, qdd = four_bar_motion(model)
    found = inverse_dynamics(model, q, qd, qdd)
    passive = kt.passive_force(model, q, qd)
    assert_close(found.tau - passive, [found.u["crank_joint"][0], 0, 0], ulps=1e4)
    assert_close(kt.forward_dynamics(model, q, qd, found.tau), qdd, ulps=1e6)


@pytest.mark.covers("RBDA 8.6", "RBDA 8.12", by=inverse_dynamics)
def test_an_actuator_in_a_loop_joint_is_one_in_the_tree_of_another_cut():
    model = kt.samples.four_bar()
    graph = MechanismGraph.from_model(model.replace(actuators=()))
    recut = graph.to_model(["crank_joint", "rocker_joint", "pin"])
    q, qd, qdd = four_bar_motion(model)
    found = inverse_dynamics(model, q, qd, qdd, actuated=["pin"])
    other = inverse_dynamics(recut, *four_bar_motion(recut), actuated=["pin"])
    assert_close(found.u["pin"], other.u["pin"], ulps=1e5)
    assert_close(found.tau, loop_joint_forces(model, q, found.u), ulps=1e4)
    power = found.u["pin"] @ loop_velocities(model, q, qd)["pin"]
    assert_close(power, found.tau @ qd, ulps=1e4)


def test_weights_and_bounds_share_the_load():
    model = kt.samples.four_bar()
    motion = four_bar_motion(model)
    both = {"actuated": ["crank_joint", "rocker_joint"]}
    plain = inverse_dynamics(model, *motion, **both)
    dear = inverse_dynamics(model, *motion, **both, weights={"crank_joint": 1e6})
    assert abs(dear.u["crank_joint"]) < 1e-3 * abs(plain.u["crank_joint"])
    most = 0.5 * float(abs(plain.u["crank_joint"][0]))
    bounded = inverse_dynamics(model, *motion, **both, bounds={"crank_joint": most})
    assert_close(abs(bounded.u["crank_joint"]), [most], ulps=1e4)
    for found in (plain, dear, bounded):
        assert found.actuation.kind == "redundant"
        assert_close(
            kt.forward_dynamics(model, motion[0], motion[1], found.tau), motion[2], ulps=1e6
        )
    with pytest.raises(SingularError, match="within their bounds"):
        inverse_dynamics(model, *motion, bounds={"crank_joint": (-1e-3, 1e-3)})
    limited = model.replace(limits={"crank_joint": Limits(effort=most)})
    assert_close(
        inverse_dynamics(limited, *motion, **both, bounds="model").tau, bounded.tau, ulps=1e4
    )


def test_batches_and_couplings():
    model = kt.samples.four_bar()
    motions = [four_bar_motion(model, s, 2.0) for s in (0.0, 1.0, 2.0)]
    q, qd, qdd = (np.stack(x) for x in zip(*motions, strict=True))
    found = inverse_dynamics(model, q, qd, qdd)
    assert found.u["crank_joint"].shape == (3, 1)
    for k, motion in enumerate(motions):
        assert_close(found.tau[k], inverse_dynamics(model, *motion).tau, ulps=1e4)
    assert found.lam.shape == found.unique.shape == (3, 5)
    assert np.all(found.unique == found.unique[0])
    assert not np.all(found.unique)

    geared = (
        ModelBuilder()
        .body("motor", joint=kt.Revolute("z"), inertia=LINK)
        .body("load", joint=kt.Revolute("z"), at=(1, 0, 0), inertia=LINK)
        .coupling("gear", joint="load_joint", source="motor_joint", coefficients=(0, -3.0))
        .build()
    )
    q, qdd = np.array([0.2]), np.array([1.0])
    tree = rnea.inverse_dynamics(geared.uncoupled, [0.2, -0.6], np.zeros(2), [1.0, -3.0])
    for name, ratio in (("motor_joint", 1.0), ("load_joint", -3.0)):
        found = inverse_dynamics(geared, q, np.zeros(1), qdd, actuated=[name])
        assert_close(found.u[name], [(tree[0] - 3 * tree[1]) / ratio], ulps=100)


def test_messages():
    model = kt.samples.four_bar()
    q, qd, qdd = four_bar_motion(model)
    assert_close(kt.inverse_dynamics(model, q, qd, qdd), inverse_dynamics(model, q, qd, qdd).tau)
    with pytest.raises(ShapeError, match=r"q does not satisfy loop 'pin'.*assemble"):
        inverse_dynamics(model, q + 0.1, qd, qdd)
    with pytest.raises(ShapeError, match="qd does not satisfy loop 'pin': "):
        inverse_dynamics(model, q, qd + np.array([1, 0, 0]), qdd)
    with pytest.raises(ShapeError, match=r"sample \(1,\): qdd does not satisfy loop 'pin'"):
        inverse_dynamics(model, q, qd, np.stack([qdd, qdd + np.array([50, 0, 0])]))
    with pytest.raises(UnknownNameError, match="no joint 'crank_jiont'; did you mean"):
        inverse_dynamics(model, q, qd, qdd, actuated=["crank_jiont"])
    with pytest.raises(UnknownNameError, match="names of joints in a list"):
        inverse_dynamics(model, q, qd, qdd, actuated="pin")
    with pytest.raises(ModelError, match="names joint 'pin' 2 times"):
        inverse_dynamics(model, q, qd, qdd, actuated=["pin", "pin"])
    with pytest.raises(UnknownNameError, match="weights: joint 'pin' is not actuated"):
        inverse_dynamics(model, q, qd, qdd, weights={"pin": 1.0})
    with pytest.raises(ModelError, match="weight of joint 'crank_joint' must be positive"):
        inverse_dynamics(model, q, qd, qdd, weights={"crank_joint": 0.0})
    with pytest.raises(UnknownNameError, match="bounds must be given by joint name"):
        inverse_dynamics(model, q, qd, qdd, bounds="tight")
    with pytest.raises(ModelError, match="the smallest and the largest force"):
        inverse_dynamics(model, q, qd, qdd, bounds={"crank_joint": (1, -1)})
    with pytest.raises(ShapeError, match="one number or a pair"):
        inverse_dynamics(model, q, qd, qdd, bounds={"crank_joint": (1, 2, 3)})
    ball = kt.ModelBuilder().body("a", joint=kt.Spherical(), inertia=LINK).build()
    bounds = {"a_joint": ([-1, -1, 2], [1, 1, 1])}  # one of three is the wrong way round
    with pytest.raises(ModelError, match=r"force, got \[-1.0, -1.0, 2.0\] and \[1.0, 1.0, 1.0\]"):
        inverse_dynamics(ball, ball.neutral(), np.zeros(3), np.zeros(3), bounds=bounds)
    with pytest.raises(TraceError, match="call it outside the kernel"):
        inverse_dynamics(model, q.astype(object), qd, qdd)
    still = arm_state([0.8, 0.4], np.zeros(2), np.zeros(2))[:3]
    with pytest.raises(SingularError, match="drive 1 of its 2 degrees of freedom here and cannot"):
        inverse_dynamics(ARM, *still, actuated=["rod_joint"])
    fixed = kt.ModelBuilder().body("a", joint=kt.Fixed(), inertia=LINK).build()
    with pytest.raises(LoopError, match="'a_joint' has no freedom"):
        actuation(fixed, np.zeros(0), ["a_joint"])

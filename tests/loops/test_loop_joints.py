"""Joints that close loops: variables measured on the bodies, forces that do the right work."""

from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close
from support.special_joints import Slot

import kinetree as kt
from kinetree.algorithms import energy, rnea
from kinetree.algorithms.closed.forces import forces_on_bodies, loop_joint_motion
from kinetree.algorithms.energy import elastic_energy
from kinetree.algorithms.kinematics import base_transforms, body_velocities, joint_transforms
from kinetree.algorithms.passive import passive_force
from kinetree.errors import LoopError, ShapeError, UnknownNameError
from kinetree.joints import CustomJoint, Prismatic, Revolute, Spherical
from kinetree.loops.kinematics.loop_joints import (
    actuation_matrix,
    limit_distances,
    loop_joint_forces,
    loop_positions,
    loop_velocities,
)
from kinetree.model import JointDynamics, Limits, MechanismGraph, ModelBuilder
from kinetree.samples.random_mechanisms import LOOP_JOINTS, random_closed_mechanism
from kinetree.spatial import rotz, xlt
from kinetree.spatial.ops import cos

CAM = CustomJoint(lambda q: xlt(0, 0.2 * cos(q[0]), 0) @ rotz(q[0]), 1)
KINDS = [*(j for j in LOOP_JOINTS if j.nv), Slot(), CAM]


def mechanism(joint, seed=5):
    return random_closed_mechanism(seed, kind="spatial", bodies=5, loops=1, loop_joints=[joint])


def across(model, q, qd):
    """Transform and velocity across the first loop joint, from the bodies."""
    loop = model.loops[0]
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    _, v = body_velocities(model, q, qd)
    v = [X.inv_apply(m) for X, m in zip(X_0, v, strict=True)]
    X_p = loop.predecessor_placement @ X_0[loop.predecessor]
    X_s = loop.successor_placement @ X_0[loop.successor]
    return X_s @ X_p.inverse(), X_s @ (v[loop.successor] - v[loop.predecessor])


@pytest.mark.covers("RBDA 8.2", "RBDA 8.4", "RBDA 8.6", by=(loop_joint_motion, forces_on_bodies))
@pytest.mark.parametrize("joint", KINDS, ids=lambda j: type(j).__name__)
def test_state_and_forces_of_every_kind_of_loop_joint(joint, rng):
    model, q, qd = mechanism(joint)
    found = loop_joint_motion(model, q, qd)
    X_J, v_J = across(model, q, qd)
    assert_close(joint.transform(found.q).to_matrix(), X_J.to_matrix(), ulps=1e4)
    assert_close(joint.jcalc(found.q, found.qd)[2].to_array(), v_J.to_array(), ulps=1e4)
    assert_close(found.B.T @ qd, found.qd, ulps=1e4)

    f = rng.standard_normal(joint.nv)
    tau = found.B @ f
    assert_close(tau @ qd, f @ found.qd, ulps=1e4)  # power, with T_a where the joint is
    on_bodies = forces_on_bodies(model, q, f)
    assert_close(energy.generalized_force(model, q, on_bodies), tau, ulps=1e4)
    C = rnea.bias_force(model, q, qd)  # Table 8.3: C - tau_a in one pass
    assert_close(rnea.bias_force(model, q, qd, on_bodies), C - tau, ulps=1e5)


@pytest.mark.covers("RBDA 8.6", by=passive_force)
@pytest.mark.parametrize("joint", KINDS, ids=lambda j: type(j).__name__)
def test_springs_and_dampers_of_loop_joints_balance_power(joint, rng):
    model, q, qd = mechanism(joint)
    rest = joint.random(rng)
    k, d = rng.uniform(1, 2, joint.nv), rng.uniform(1, 2, joint.nv)
    given = JointDynamics(damping=d, stiffness=k, rest=rest)
    model = model.replace(dynamics={model.loops[0].name: given})
    damping = -d @ loop_joint_motion(model, q, qd).qd ** 2
    power = passive_force(model, q, qd) @ qd - damping

    def energy(s):
        return elastic_energy(model, model.integrate(q, s * qd))

    h = 1e-3
    change = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    if joint.rates_are_velocities:  # otherwise springs of different stiffness have no potential
        assert power == pytest.approx(-change, rel=1e-7, abs=1e-9)
    assert_close(kt.passive_force(model, q, qd), passive_force(model, q, qd), ulps=1e5)


@pytest.mark.parametrize("joint", KINDS, ids=lambda j: type(j).__name__)
def test_angles_count_alike_after_a_turn_and_other_variables_do_not(joint, rng):
    q = joint.random(rng)
    for k in range(joint.nq):
        turned = q + 2 * np.pi * (np.arange(joint.nq) == k)
        same = np.allclose(joint.transform(q).to_matrix(), joint.transform(turned).to_matrix())
        assert same == (k in joint.angles) or isinstance(joint, CustomJoint)


def cut_at(joint, dynamics):
    """The four-bar with a spring in one joint, cut at another."""
    graph = MechanismGraph.from_model(kt.samples.four_bar())
    model = graph.to_model([n for n in graph.joint_names if n != joint])
    return model.replace(dynamics=dynamics)


def test_motion_does_not_depend_on_where_a_loop_with_a_spring_is_cut():
    at_home = loop_positions(cut_at("pin", {}), np.zeros(3))["pin"]
    spring = {"pin": JointDynamics(stiffness=20.0, damping=0.3, rest=at_home + 0.4)}
    models = [cut_at(name, spring) for name in ("pin", "coupler_joint", "rocker_joint")]
    accelerations = []
    for model in models:
        q = np.array(model.posture("home").q)
        K = kt.algorithms.closed.joint_space.constraint(model, q, np.zeros(model.nv)).implicit.K
        G = np.linalg.svd(K)[2][2:].T
        crank = model.v_slice[model.joint_index("crank_joint")].start
        qd = (G / G[crank])[:, 0]  # at 1 rad/s
        tau = kt.passive_force(model, q, qd)
        accelerations.append(kt.forward_dynamics(model, q, qd, tau)[crank])
    assert_close(accelerations, [accelerations[0]] * 3, ulps=1e5)


def test_batches_and_names():
    model, q, qd = mechanism(Prismatic("y"))
    name = model.loops[0].name
    batch = np.stack([q, q])
    assert loop_positions(model, batch)[name].shape == (2, 1)
    assert_close(loop_velocities(model, batch, qd)[name][1], loop_velocities(model, q, qd)[name])
    tau = loop_joint_forces(model, batch, {name: 3.0})
    assert tau.shape == (2, model.nv)
    assert_close(tau[0], loop_joint_forces(model, q, {name: [3.0]}))
    with pytest.raises(UnknownNameError, match="has no loop joint 'pin'"):
        loop_joint_forces(model, q, {"pin": 1.0})
    with pytest.raises(ShapeError, match=r"must have shape \(..., 1\), got \(2,\)"):
        loop_joint_forces(model, q, {name: np.zeros(2)})
    with pytest.raises(UnknownNameError, match="that joint closes a loop"):
        model.joint_index(name)


def hinge(turn, limits=None, dynamics=None):
    """A body on a hinge, and a loop joint that measures the same angle."""
    return (
        ModelBuilder()
        .body("a", joint=Revolute("z"), inertia=kt.shapes.box(0.1, 0.1, 0.1, mass=1.0))
        .loop("gauge", predecessor="base", successor="a", joint=Revolute("z"), at=(0, 0, 1),
              successor_at=xlt(0, 0, 1) , limits=limits, dynamics=dynamics)
        .build()
    ), np.array([turn])  # fmt: skip


def test_angles_are_measured_near_the_limits_or_the_rest_position():
    model, q = hinge(4.0)
    assert_close(loop_positions(model, q)["gauge"], [4.0 - 2 * np.pi], ulps=100)
    model, q = hinge(4.0, Limits(2.0, 5.0))
    assert_close(loop_positions(model, q)["gauge"], [4.0], ulps=100)
    distance = limit_distances(model, q)["gauge"]
    assert_close(distance.lower, [2.0], ulps=100)
    assert_close(distance.upper, [1.0], ulps=100)
    model, q = hinge(4.0, dynamics=JointDynamics(stiffness=2.0, rest=3.0))
    assert_close(kt.passive_force(model, q, np.zeros(1)), [-2.0], ulps=100)
    assert not limit_distances(model, q)


def test_actuators_of_loop_joints_act_where_the_joint_is():
    model, q, _ = mechanism(Spherical())
    loop = model.loops[0]
    tree, on_loop = kt.model.Actuator("t", 1, (2.0,) * model.joint[1].nv), kt.model.Actuator(
        "l", 0, (1.0, 2.0, 3.0), loop=1
    )  # fmt: skip
    driven = model.replace(actuators=(tree, on_loop))
    A = actuation_matrix(driven, q)
    assert_close(A[:, 1], loop_joint_forces(driven, q, {loop.name: [1.0, 2.0, 3.0]}), ulps=100)
    assert_close(A[:, 0], driven.replace(actuators=(tree,)).actuation[:, 0])
    with pytest.raises(LoopError, match=r"see kinetree\.loops\.actuation_matrix"):
        _ = driven.actuation
    assert driven.replace(loops=()).actuators == (tree,)
    other = driven.replace(loops=(replace(loop, name="x"), loop))
    assert other.actuators[1].loop == 2

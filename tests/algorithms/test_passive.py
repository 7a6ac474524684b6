"""Springs, dampers and dry friction."""

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import gripper
from support.states import random_state

import kinetree as kt
from kinetree.algorithms import passive
from kinetree.joints import REPRESENTATIVES, Free, Planar, Revolute
from kinetree.model import JointDynamics, ModelBuilder
from kinetree.samples import random_tree


def sprung(model, rng):
    """The model with all there is in every joint."""
    return model.replace(
        dynamics={
            b.joint_name: JointDynamics(
                damping=rng.uniform(0, 1, b.joint.nv),
                friction=rng.uniform(0, 1, b.joint.nv),
                stiffness=rng.uniform(0, 1, b.joint.nv),
                rest=b.joint.random(rng),
            )
            for b in model.bodies
        }
    )


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_sum_of_three(seed):
    rng = np.random.default_rng(seed)
    model = sprung(random_tree(4, rng, joints=REPRESENTATIVES), rng)
    q, qd, _ = random_state(model, rng)
    rest = np.concatenate([b.dynamics.rest for b in model.bodies])
    k, d, c = (
        np.concatenate([getattr(b.dynamics, name) for b in model.bodies])
        for name in ("stiffness", "damping", "friction")
    )
    expected = -k * model.difference(rest, q) - d * qd - c * np.sign(qd)
    assert_close(passive.passive_force(model, q, qd), expected)
    assert_close(kt.passive_force(model, q, qd), expected)
    batch = kt.passive_force(model, np.stack([q, rest]), np.stack([qd, 0 * qd]))
    assert_close(batch, np.stack([expected, 0 * expected]))


def test_joints_without_it_have_none(rng):
    model = random_tree(3, rng, joints=[Revolute("x"), Free()])
    q, qd, _ = random_state(model, rng)
    assert kt.passive_force(model, q, qd).tolist() == [0.0] * model.nv
    hand = gripper(rng)  # one of its joints follows another
    assert kt.passive_force(hand, *random_state(hand, rng)[:2]).shape == (10,)


def test_a_spring_is_slack_at_its_rest_and_neutral_by_default():
    at = {"stiffness": 2.0, "rest": 0.5}
    builder = ModelBuilder().body("a", joint=Revolute("x"), dynamics=JointDynamics(**at))
    model = builder.body("b", joint=Revolute("x"), dynamics=JointDynamics(stiffness=3.0)).build()
    force = kt.passive_force(model, [0.5, 0.0], np.zeros(2))
    assert force.tolist() == [0.0, 0.0]
    assert_close(kt.passive_force(model, [0.75, 1.0], np.zeros(2)), [-0.5, -3.0])


def test_dry_friction_changes_sign_with_the_velocity_and_is_zero_at_rest():
    dynamics = JointDynamics(friction=0.3)
    model = ModelBuilder().body("a", joint=Revolute("x"), dynamics=dynamics).build()
    speeds = np.array([-2.0, -1e-300, 0.0, 1e-300, 5.0])[:, None]
    force = kt.passive_force(model, np.zeros(1), speeds)
    assert force[:, 0].tolist() == [0.3, 0.3, 0.0, -0.3, -0.3]


def test_derivatives(rng):
    model = sprung(random_tree(2, rng, joints=[Free(), Revolute("x"), Planar()]), rng)
    q, qd, _ = random_state(model, rng)
    dq, dqd = kt.differentiate(kt.passive_force, ("q", "qd"))(model, q, qd)
    d = np.concatenate([b.dynamics.damping for b in model.bodies])
    assert_close(dqd, -np.diag(d))
    step = 1e-30
    for j, e in enumerate(np.eye(model.nv)):
        along = passive.passive_force(model, q + 1j * step * model.configuration_rate(q, e), qd)
        assert_close(dq[:, j], along.imag / step, ulps=1000, scale=10)


def test_parameters_can_be_inputs(rng):
    model = gripper(rng)
    q, qd, _ = random_state(model, rng)
    f = kt.compile(kt.passive_force, model, parameters=("damping:lead", "stiffness:lead"))
    k = model.v_slice[2].start
    change = f(q, qd, [1.2], [4.0]) - kt.passive_force(model, q, qd)
    assert_close(change[k], -qd[k], ulps=1000)
    assert not np.any(np.delete(change, k))


def test_other_numbers():
    dynamics = JointDynamics(stiffness=2.0, friction=0.5, damping=1.0)
    model = ModelBuilder().body("a", joint=Revolute("x"), dynamics=dynamics).build()
    x = np.array([mpmath.mpf(1) / 3])
    assert passive.passive_force(model, x, x)[0] == -(x[0] * 3 + mpmath.mpf("0.5"))

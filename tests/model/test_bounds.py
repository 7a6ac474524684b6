"""Limits of all joints as arrays, and one number for all variables of a joint."""

import numpy as np
import pytest

import kinetree as kt

BALL = kt.shapes.sphere(0.1, mass=1.0)


def robot(**of_trunk):
    return (
        kt.ModelBuilder()
        .body("trunk", joint=kt.Free(), inertia=BALL, **of_trunk)
        .body(
            "arm", on="trunk", joint=kt.Revolute("y"), inertia=BALL,
            limits=kt.Limits(lower=-1.0, upper=2.0, velocity=3.0, effort=40.0),
        )
        .body("hand", on="arm", joint=kt.Prismatic("z"), inertia=BALL, limits=kt.Limits(upper=0.5))
        .build()
    )  # fmt: skip


def test_limits_are_arrays_over_the_variables_and_infinite_where_there_is_none():
    m, inf = robot(), np.inf
    lower, upper = m.position_limits
    assert lower.tolist() == [-inf] * 7 + [-1.0, -inf]
    assert upper.tolist() == m.position_limits.upper.tolist() == [inf] * 7 + [2.0, 0.5]
    assert m.velocity_limits.tolist() == [inf] * 6 + [3.0, inf]
    assert m.effort_limits.tolist() == [inf] * 6 + [40.0, inf]
    assert np.all(m.random_configuration(0, count=50)[:, 7] < upper[7])


def test_limits_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        robot().position_limits.lower[0] = 0.0


def test_a_joint_that_follows_bounds_its_leader():
    """The right finger moves twice as far, and stops the left one at 0.02 m and 0.5 m/s."""
    limits = kt.Limits(lower=0.0, upper=0.04, velocity=1.0, effort=20.0)
    builder = kt.ModelBuilder()
    for name in ("left", "right"):
        builder.body(name, joint=kt.Prismatic("y"), inertia=BALL, limits=limits, joint_name=name)
    gear = {"joint": "right", "source": "left", "coefficients": (0, 2)}
    m = builder.coupling("gear", **gear).build()
    assert m.position_limits.upper.tolist() == [0.02]
    assert (m.velocity_limits.tolist(), m.effort_limits.tolist()) == ([0.5], [20.0])


@pytest.mark.parametrize("joint", [kt.Spherical(), kt.Planar(), kt.Free()], ids=str)
def test_one_number_is_that_of_every_velocity_variable_of_a_joint(joint):
    dynamics = kt.JointDynamics(armature=0.1, damping=0.2, friction=0.3, stiffness=0.4)
    limits = kt.Limits(velocity=5.0, effort=6.0)
    m = kt.ModelBuilder().body(
        "a", joint=joint, inertia=BALL, dynamics=dynamics, limits=limits
    ).build()  # fmt: skip
    assert m.bodies[0].dynamics.damping == (0.2,) * joint.nv
    assert m.armature.tolist() == [0.1] * joint.nv
    assert m.velocity_limits.tolist() == [5.0] * joint.nv
    assert kt.Model.from_dict(m.to_dict()) == m
    assert m == m.replace(dynamics={"a_joint": dynamics}, limits={"a_joint": limits})


def test_loop_joints_spread_one_number_too():
    loop = kt.Loop("ball", 0, 1, kt.Spherical(), dynamics=kt.JointDynamics(damping=0.2))
    assert loop.dynamics.damping == (0.2,) * 3


def test_positions_of_several_variables_have_units_of_their_own():
    limits = kt.Limits(lower=0.0)
    builder = kt.ModelBuilder().body("a", joint=kt.Planar(), inertia=BALL, limits=limits)
    with pytest.raises(kt.ModelError, match=r"lower.* 3 .*1"):
        builder.build()


def test_a_joint_that_does_not_move_has_no_effort():
    limits = kt.Limits(effort=1.0)
    builder = kt.ModelBuilder().body("a", joint=kt.Fixed(), inertia=BALL, limits=limits)
    with pytest.raises(kt.ModelError, match="effort"):
        builder.build()

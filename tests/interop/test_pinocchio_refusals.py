"""What cannot be carried over is refused, or reported, by name."""

import warnings

import numpy as np
import pinocchio as pin
import pytest
from support.pinocchio_mechanisms import (
    add,
    mechanism,
)

from kinetree import samples
from kinetree.errors import InteropError, ModelWarning
from kinetree.interop import pinocchio as P
from kinetree.joints import (
    Revolute,
)
from kinetree.model import JointDynamics, ModelBuilder


def test_rotors_that_are_not_in_the_armature_are_reported_by_name(rng):
    theirs = mechanism("FreeFlyer", rng)
    theirs.rotorInertia[[3, theirs.nv - 1]] = 0.1
    theirs.armature[3] = 0.1  # one of them is
    with pytest.warns(
        ModelWarning, match="rotor inertia of joints 'slider' not converted"
    ) as caught:
        P.from_model(theirs)
    assert caught[0].filename == __file__


def test_friction_that_differs_by_direction_is_reported_by_name(rng):
    theirs = mechanism("RX", rng)
    theirs.upperDryFrictionLimit[3] = 0.2
    with pytest.warns(ModelWarning, match="friction of joints 'slider' differ in the two"):
        m = P.from_model(theirs)
    assert m.bodies[m.joint_index("slider") - 1].dynamics.friction == (0.2,)


def test_springs_are_reported_by_name(rng):
    m = ModelBuilder("toy").body(
        "a", joint=Revolute("y"), inertia=samples.random_inertia(rng),
        dynamics=JointDynamics(stiffness=3.0),
    ).build()  # fmt: skip
    with pytest.warns(ModelWarning, match="'toy': springs of joints 'a_joint' not") as caught:
        P.to_model(m)
    assert caught[0].filename == __file__


def test_drives_with_wrenches_of_their_own_are_reported_by_name(rng):
    m = ModelBuilder("toy").body(
        "a", joint=Revolute("y"), inertia=samples.random_inertia(rng),
        dynamics=JointDynamics(active_predecessor=(0, 0.1, 0, 0, 0, 1)),
    ).build()  # fmt: skip
    with pytest.warns(ModelWarning, match="drives of joints 'a_joint' not converted") as caught:
        P.to_model(m)
    assert caught[0].filename == __file__


def test_kinds_without_a_counterpart_are_rejected_by_name(rng):
    theirs = pin.Model()
    add(theirs, 0, pin.JointModelEllipsoid(0.1, 0.2, 0.3), "egg", rng)
    with pytest.raises(InteropError, match=r"joint 'egg' is a JointModelEllipsoid, which has no"):
        P.from_model(theirs)


def test_composite_joints_without_parts_are_rejected_by_name(rng):
    theirs = pin.Model()
    add(theirs, 0, pin.JointModelComposite(), "nothing", rng)
    with pytest.raises(InteropError, match=r"composite joint 'nothing' has no parts"):
        P.from_model(theirs)


def test_axes_that_are_not_unit_vectors_are_rejected(rng):
    theirs = pin.Model()
    joint = pin.JointModelRevoluteUnaligned(np.array([1.0, 0.0, 0.0]))
    joint.axis = np.array([2.0, 0.0, 0.0])
    add(theirs, 0, joint, "bent", rng)
    with pytest.raises(InteropError, match=r"axis of joint 'bent' must be a unit vector, got \[2"):
        P.from_model(theirs)


def test_angular_gravity_is_rejected(rng):
    theirs = mechanism("RX", rng)
    theirs.gravity.angular = np.array([0.0, 0.0, 1.0])
    with pytest.raises(InteropError, match="gravity must be a uniform linear acceleration"):
        P.from_model(theirs)


def test_loops_are_rejected_by_name(rng):
    builder = ModelBuilder("bars")
    builder.body("a", joint=Revolute("y"), inertia=samples.random_inertia(rng))
    builder.body("b", joint=Revolute("y"), inertia=samples.random_inertia(rng))
    m = builder.loop("pin", predecessor="a", successor="b", joint=Revolute("y")).build()
    with pytest.raises(InteropError, match="model 'bars' has loop joints: 'pin'"):
        P.to_model(m)


def test_nothing_is_warned_about_in_a_plain_model(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        P.from_model(mechanism("RX", rng))


def test_something_else_than_a_model_is_rejected():
    with pytest.raises(InteropError, match=r"needs a pinocchio.Model, got str; .*robot\.model"):
        P.from_model("robot.urdf")

"""What cannot be carried over is refused, or reported, by name."""

import warnings

import numpy as np
import pinocchio as pin
import pytest
from pinocchio_mechanisms import (
    add,
    mechanism,
)

from kinetree import samples
from kinetree.errors import InteropError, ModelWarning
from kinetree.interop import pinocchio as P
from kinetree.joints import (
    Revolute,
)
from kinetree.model import ModelBuilder


def test_mimic_joints_are_refused_by_name(rng):
    theirs = pin.Model()
    for name in ("leader", "follower"):
        add(theirs, theirs.njoints - 1, pin.JointModelRX(), name, rng)
    mimicking = pin.transformJointIntoMimic(theirs, 1, 2, 2.0, 0.1)
    with pytest.raises(InteropError, match=r"mimic joints yet; .* follow another one: 'follower'"):
        P.from_model(mimicking)


@pytest.mark.parametrize(
    ("attribute", "what"), [("armature", "armature"), ("rotorInertia", "rotor inertia")]
)
def test_armature_and_rotor_inertia_are_refused_by_name(attribute, what, rng):
    theirs = mechanism("FreeFlyer", rng)
    getattr(theirs, attribute)[[3, theirs.nv - 1]] = 0.1
    expected = (
        f"does not carry {what} yet; these joints have it: 'joint', 'slider'. Set {attribute}"
    )
    with pytest.raises(InteropError, match=expected):
        P.from_model(theirs)


def test_damping_and_friction_are_reported_once_by_name(rng):
    theirs = mechanism("RX", rng)
    theirs.damping[[0, 1]] = 0.1
    theirs.friction[3] = 0.2
    with pytest.warns(ModelWarning) as caught:
        P.from_model(theirs)
    assert [str(w.message) for w in caught] == [
        "model 'RX': damping of joints 'shoulder', 'joint' and friction of joints 'slider' not "
        "carried along; Pinocchio's own dynamics ignore them too"
    ]
    assert caught[0].filename == __file__


def test_kinds_without_a_counterpart_are_refused_by_name(rng):
    theirs = pin.Model()
    add(theirs, 0, pin.JointModelEllipsoid(0.1, 0.2, 0.3), "egg", rng)
    with pytest.raises(InteropError, match=r"joint 'egg' is a JointModelEllipsoid, which has no"):
        P.from_model(theirs)


def test_composite_joints_without_parts_are_refused_by_name(rng):
    theirs = pin.Model()
    add(theirs, 0, pin.JointModelComposite(), "nothing", rng)
    with pytest.raises(InteropError, match=r"composite joint 'nothing' has no parts"):
        P.from_model(theirs)


def test_axes_that_are_not_unit_vectors_are_refused(rng):
    theirs = pin.Model()
    joint = pin.JointModelRevoluteUnaligned(np.array([1.0, 0.0, 0.0]))
    joint.axis = np.array([2.0, 0.0, 0.0])
    add(theirs, 0, joint, "bent", rng)
    with pytest.raises(InteropError, match=r"axis of joint 'bent' must be a unit vector, got \[2"):
        P.from_model(theirs)


def test_angular_gravity_is_refused(rng):
    theirs = mechanism("RX", rng)
    theirs.gravity.angular = np.array([0.0, 0.0, 1.0])
    with pytest.raises(InteropError, match="gravity must be a uniform linear acceleration"):
        P.from_model(theirs)


def test_loops_are_refused_by_name(rng):
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


def test_something_else_than_a_model_is_refused():
    with pytest.raises(InteropError, match=r"needs a pinocchio.Model, got str; .*robot\.model"):
        P.from_model("robot.urdf")

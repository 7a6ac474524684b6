"""Names, frames and limits of models that come from Pinocchio or go there."""

import numpy as np
import pinocchio as pin
import pytest
from support.pinocchio_mechanisms import (
    assert_same_dynamics,
    mechanism,
    random_se3,
    random_state,
)

from kinetree import samples
from kinetree.errors import ModelWarning
from kinetree.interop import pinocchio as P
from kinetree.joints import (
    Free,
    Planar,
    Prismatic,
    Revolute,
)
from kinetree.model import Limits, ModelBuilder
from kinetree.spatial import Inertia

# --- names and frames ------------------------------------------------------------------------


def test_links_name_the_bodies_and_other_frames_stay_frames(rng):
    theirs = mechanism("RX", rng)
    placement = random_se3(rng)
    theirs.addBodyFrame("floor", 0, pin.SE3.Identity(), 0)
    theirs.addBodyFrame("upper", 1, pin.SE3.Identity(), 0)
    theirs.addBodyFrame("upper_cover", 1, pin.SE3.Identity(), 0)
    theirs.addBodyFrame("payload", 3, placement, 0)
    for name, kind in (
        ("tool", pin.FrameType.OP_FRAME),
        ("flange", pin.FrameType.FIXED_JOINT),
        ("imu", pin.FrameType.SENSOR),
    ):
        theirs.addFrame(pin.Frame(name, 3, 0, placement, kind))
    ours = P.from_model(theirs)
    assert ours.body_names == ("floor", "upper", "joint", "wrist", "slider")
    assert ours.frame_names == ("upper_cover", "payload", "tool", "flange", "imu")
    assert ours.frame("tool").body == ours.body_index("wrist")
    assert_same_dynamics(ours, theirs, *random_state(theirs, rng))


def test_frames_with_the_same_name_are_renamed_with_a_warning(rng):
    theirs = mechanism("RX", rng)
    placement = random_se3(rng)
    theirs.addFrame(pin.Frame("tool", 2, 0, placement, pin.FrameType.FIXED_JOINT))
    theirs.addFrame(pin.Frame("tool", 3, 0, placement, pin.FrameType.OP_FRAME))
    theirs.addFrame(pin.Frame("tool", 3, 0, placement, pin.FrameType.BODY))
    theirs.addFrame(pin.Frame("tool_fixed_joint", 3, 0, placement, pin.FrameType.SENSOR))
    with pytest.warns(ModelWarning) as caught:
        ours = P.from_model(theirs)
    assert ours.frame_names == (
        "tool_fixed_joint",
        "tool_op_frame",
        "tool",
        "tool_fixed_joint_sensor",
    )
    assert [ours.frame(name).body for name in ours.frame_names] == [2, 3, 3, 3]
    assert str(caught[0].message) == (
        "model 'RX': frames renamed, since another body or frame has the same name: 'tool' to "
        "'tool_fixed_joint', 'tool' to 'tool_op_frame', 'tool_fixed_joint' to "
        "'tool_fixed_joint_sensor'"
    )
    assert caught[0].filename == __file__


def test_a_joint_without_a_link_lends_its_name_unless_a_link_has_it(rng):
    theirs = mechanism("RX", rng)
    theirs.addBodyFrame("wrist", 1, pin.SE3.Identity(), 0)
    ours = P.from_model(theirs)
    assert ours.body_names == ("universe", "wrist", "joint", "wrist_body", "slider")
    assert ours.joint_names == ("shoulder", "joint", "wrist", "slider")


# --- limits ----------------------------------------------------------------------------------


def test_limits_are_carried_both_ways(rng):
    limits = {
        "free": Limits(
            lower=(-1, -2, -3, *[-np.inf] * 4), upper=(1, 2, 3, *[np.inf] * 4),
            velocity=(1, 2, 3, 4, 5, 6), effort=(10, 20, 30, 40, 50, 60),
        ),
        "hinge": Limits(lower=-0.5, upper=1.5, velocity=2.0, effort=7.0),
        "half": Limits(upper=1.0),
        "none": None,
        "flat": Limits(lower=(-np.inf, -1, -2), upper=(np.inf, 3, 4), velocity=(1, 2, 3)),
    }  # fmt: skip
    joints = [Free(), Revolute("x"), Prismatic("y"), Revolute("z"), Planar("z")]
    builder, parent = ModelBuilder(), None
    for (name, limit), joint in zip(limits.items(), joints, strict=True):
        inertia = samples.random_inertia(rng)
        builder.body(name, on=parent, joint=joint, inertia=inertia, limits=limit)
        parent = name
    theirs = P.to_model(builder.build())
    assert theirs.lowerPositionLimit[:3].tolist() == [-1, -2, -3]
    assert theirs.velocityLimit[:7].tolist() == [4, 5, 6, 1, 2, 3, 2]
    assert theirs.lowerEffortLimit[:7].tolist() == [-40, -50, -60, -10, -20, -30, -7]
    assert theirs.lowerVelocityLimit[:7].tolist() == [-4, -5, -6, -1, -2, -3, -2]
    again = P.from_model(theirs)
    assert again.bodies[0].limits == limits["free"]
    assert again.bodies[1].limits == limits["hinge"]
    inf = np.inf
    assert again.bodies[2].limits == Limits(lower=-inf, upper=1.0, velocity=inf, effort=inf)
    assert again.bodies[3].limits is None
    assert again.bodies[4].limits.lower == (-inf, -1, -2)
    assert again.bodies[4].limits.velocity == (1, 2, 3)


def test_an_unbounded_joint_has_no_position_limits(rng):
    theirs = mechanism("RUBX", rng)
    theirs.lowerPositionLimit[:] = -1.01
    theirs.upperPositionLimit[:] = 1.01
    ours = P.from_model(theirs)
    assert ours.bodies[1].limits is None
    assert ours.bodies[0].limits.lower == (-1.01,)


def test_limits_without_a_variable_there_are_reported():
    limits = Limits(lower=(-1, -1, -1), upper=(1, 1, 1))
    inertia = Inertia.from_mass_center(1.0, np.zeros(3), np.eye(3))
    m = ModelBuilder().body("disc", joint=Planar("z"), inertia=inertia, limits=limits).build()
    expected = r"joint 'disc_joint': limits of position variables \[0\] not converted"
    with pytest.warns(ModelWarning, match=expected) as caught:
        P.to_model(m)
    assert caught[0].filename == __file__


def test_one_sided_effort_limits_are_reported(rng):
    theirs = mechanism("RX", rng)
    theirs.effortLimit[1] = 5.0
    theirs.lowerEffortLimit[1] = -1.0
    with pytest.warns(ModelWarning, match="effort limits of joints 'joint' differ in the two"):
        ours = P.from_model(theirs)
    assert ours.bodies[1].limits.effort == (5.0,)

"""Joints: kinds, places, axes, limits, damping."""

import math
import sys

import numpy as np
import pytest
from support.closeness import assert_close
from support.urdf_files import arm, joint, link, quietly, read, robot

from kinetree.errors import LoadError
from kinetree.joints import Fixed, Free, Planar, Prismatic, Revolute
from kinetree.spatial.rotation import euler_rotation, rotation_from_quaternion

ORIGIN = "<origin xyz='1 2 3' rpy='0.1 0.2 0.3'/>"


@pytest.mark.parametrize(
    ("kind", "joint"),
    [
        ("revolute", Revolute("y")),
        ("continuous", Revolute("y")),
        ("prismatic", Prismatic("y")),
        ("planar", Planar("y")),
        ("floating", Free()),
    ],
)
def test_every_kind_has_its_joint(kind, joint):
    inside = "<axis xyz='0 1 0'/>" if kind != "floating" else ""
    inside += "<limit lower='-1' upper='1'/>" if kind in ("revolute", "prismatic") else ""
    model = quietly(arm(kind, inside))
    assert model.joint[1] == joint
    assert model.joint_names == ("j",)
    assert model.base_name == "base"
    assert model.name == "r"


def test_fixed_joint_without_lumping():
    model = quietly(arm("fixed", "<axis xyz='0 0 0'/>"), lump=False)
    assert model.joint[1] == Fixed()


@pytest.mark.parametrize(
    ("xyz", "axis"),
    [
        ("1 0 0", (1, 0, 0)),
        ("0 -1 0", (0, -1, 0)),
        ("0 0 5", (0, 0, 1)),
        ("3 0 4", (0.6, 0.0, 0.8)),
        ("1e-200 0 0", (1, 0, 0)),
    ],
)
def test_axis_is_scaled_to_unit_length(xyz, axis):
    model = quietly(arm("continuous", f"<axis xyz='{xyz}'/>"))
    assert_close(np.array(model.joint[1].axis, dtype=float), np.array(axis, dtype=float), ulps=2)


def test_axis_is_x_by_default():
    assert quietly(arm("continuous", "")).joint[1] == Revolute("x")


def test_origin_puts_the_joint_on_the_parent():
    X = quietly(arm("continuous", ORIGIN)).tree_transform[1]
    assert_close(X.E, euler_rotation("zyx", (0.3, 0.2, 0.1)), ulps=2)
    assert X.r.tolist() == [1, 2, 3]


def test_origin_by_a_quaternion():
    inside = "<origin xyz='1 2 3' quat_xyzw='0.5 0.5 -0.5 0.5'/>"
    X = quietly(arm("continuous", inside)).tree_transform[1]
    assert_close(X.E, rotation_from_quaternion((0.5, 0.5, 0.5, -0.5)), ulps=2)


def test_right_angles_are_exact():
    inside = "<origin rpy='1.5707963267948966 -3.141592653589793 -1.5707963267948966'/>"
    E = quietly(arm("continuous", inside)).tree_transform[1].E
    assert set(np.unique(np.abs(E))) == {0.0, 1.0}
    assert_close(E, euler_rotation("zyx", (-math.pi / 2, -math.pi, math.pi / 2)), ulps=4)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("<axis xyz='0 0 0'/>", r"r.urdf:4: <axis>: the axis must not be zero"),
        ("<axis/>", "<axis>: attribute 'xyz' is missing"),
        ("<axis xyz='1 0'/>", "must be 3 numbers, got '1 0'"),
        ("<axis xyz='1,0,0'/>", "must be 3 numbers, got '1,0,0'; separate them by spaces"),
        ("<origin rpy='inf 0 0'/>", "'rpy' must be finite, got 'inf'"),
        ("<origin rpy='0 0 0' quat_xyzw='0 0 0 1'/>", "both 'rpy' and 'quat_xyzw'"),
        ("<origin quat_xyzw='0 0 0 2'/>", "must have unit length, got length 2"),
        ("<limit lower='a'/>", "'lower' must hold numbers, got 'a'"),
        ("<dynamics damping='x'/>", "'damping' must hold numbers"),
    ],
)
def test_what_is_wrong_inside_a_joint(inside, message):
    with pytest.raises(LoadError, match=message):
        read(arm("revolute", inside))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            arm("ball"),
            "r.urdf:4: <joint name='j'>: unknown joint type 'ball'; URDF has revolute, c",
        ),
        (arm("revolut"), "unknown joint type 'revolut'; did you mean 'revolute'"),
        (arm().replace("type='revolute'", ""), "attribute 'type' is missing"),
        (arm().replace("name='j'", ""), "attribute 'name' is missing"),
        (arm().replace("name='j'", "name=''"), "attribute 'name' is empty"),
        (arm().replace("<parent link='base'/>", ""), "<joint name='j'>: has no <parent>"),
        (arm().replace("<child link='tip'/>", "<child/>"), "attribute 'link' is missing"),
    ],
)
def test_what_is_wrong_with_a_joint(text, message):
    with pytest.raises(LoadError, match=message):
        read(text)


def test_limits():
    inside = "<limit lower='-1' upper='2' velocity='3' effort='4'/>"
    limits = quietly(arm("revolute", inside)).bodies[0].limits
    assert (limits.lower, limits.upper) == ((-1.0,), (2.0,))
    assert (limits.velocity, limits.effort) == ((3.0,), (4.0,))


def test_the_largest_float_means_no_limit():
    most = repr(sys.float_info.max)
    inside = f"<limit lower='-{most}' upper='{most}' velocity='{most}' effort='inf'/>"
    limits = quietly(arm("prismatic", inside)).bodies[0].limits
    assert (limits.lower, limits.upper) == ((-math.inf,), (math.inf,))
    assert (limits.velocity, limits.effort) == ((math.inf,), (math.inf,))


@pytest.mark.parametrize(
    ("kind", "inside", "notice"),
    [
        ("revolute", "", "r.urdf:4: joint 'j': a revolute joint needs <limit>; it is unlimited"),
        ("prismatic", "<limit effort='1'/>", "lower and upper limit: a prismatic joint needs them"),
        ("continuous", "<limit lower='-1' upper='1'/>", "a continuous joint has none"),
        ("revolute", "<limit lower='2' upper='1'/>", "2 is above 1: the joint is left unlimited"),
        (
            "floating",
            "<limit effort='1'/>",
            "limits of joint 'j': a floating joint has none in URDF",
        ),
        ("planar", "<dynamics damping='1'/>", "joints with one variable alone"),
    ],
)
def test_limits_that_say_nothing_are_noted(kind, inside, notice):
    model, notices = read(arm(kind, inside))
    assert len(notices) == 1
    assert notice in notices[0]
    limits = model.bodies[0].limits
    assert limits is None or (limits.lower, limits.upper) == ((), ())


def test_negative_velocity_limit_is_left_out():
    model, notices = read(arm("revolute", "<limit lower='-1' upper='1' velocity='-1' effort='0'/>"))
    assert "velocity limit: -1 is negative: left out" in notices[0]
    assert model.bodies[0].limits.effort == (0.0,)


def test_damping_and_friction():
    dynamics = (
        quietly(arm("continuous", "<dynamics damping='0.5' friction='2'/>")).bodies[0].dynamics
    )
    assert (dynamics.damping, dynamics.friction) == ((0.5,), (2.0,))
    assert quietly(arm("continuous", "<dynamics damping='0'/>")).bodies[0].dynamics is None


def test_negative_damping_is_noted_and_kept():
    model, notices = read(arm("continuous", "<dynamics damping='-1'/>"))
    assert "r.urdf:4: damping of joint 'j': negative, kept as it is: -1" in notices
    assert model.bodies[0].dynamics.damping == (-1.0,)
    assert len(notices) == 1


def test_safety_controller_and_calibration_are_noted():
    inside = "<safety_controller soft_lower_limit='-1' k_velocity='2'/><calibration rising='0'/>"
    _, notices = read(arm("continuous", inside))
    assert notices == [
        "r.urdf:4: <safety_controller>: soft limits of a controller, not part of a model",
        "r.urdf:4: <calibration>: where a sensor finds its zero, not part of a model",
    ]
    _, notices = read(arm("continuous", "<calibration rising='up'/>"))
    assert notices == [
        "r.urdf:4: <calibration>: where a sensor finds its zero, not part of a model"
    ]


def test_of_elements_that_may_be_there_once_the_first_counts():
    inside = "<axis xyz='0 1 0'/><axis xyz='1 0 0'/>"
    model, notices = read(arm("continuous", inside))
    assert model.joint[1].axis == (0.0, 1.0, 0.0)
    assert notices == [
        "r.urdf:4: <axis>: a second <axis> of <joint>: the first counts, as in other programs"
    ]


def test_planar_joint_moves_normal_to_its_axis():
    model = quietly(arm("planar", "<axis xyz='0 0 1'/>"))
    X = model.joint[1].transform(np.array([0.5, 1.0, 2.0]))
    assert_close(X.r, np.array([1.0, 2.0, 0.0]))


def test_variables_come_in_the_order_of_the_joints():
    links = [link(name, "") for name in "abcd"]
    joints = [joint(n, p, c, "continuous", "") for n, p, c in ("3cd", "1ab", "2ac")]
    assert quietly(robot(*links, *joints)).joint_names == ("1", "2", "3")

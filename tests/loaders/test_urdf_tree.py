"""Roots, circles, duplicates; lumping and floating bases."""

import pytest
from support.closeness import assert_close
from support.urdf_files import MASS, arm, joint, link, quietly, read, robot

from kinetree.algorithms import crba, jacobians
from kinetree.errors import LoadError
from kinetree.joints import Fixed, Free
from kinetree.loaders import read as read_file

ORIGIN = "<origin xyz='0 0 1' rpy='0.3 0 0'/>"
TOOL = robot(
    link("base"),
    link("arm"),
    link("hand"),
    link("tool", ""),
    joint("shoulder", "base", "arm", "continuous", ORIGIN),
    joint("wrist", "arm", "hand", "fixed", ORIGIN),
    joint("tool", "hand", "tool", "fixed", ORIGIN),
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (robot(), "r.urdf:1: <robot name='r'>: the robot has no <link>"),
        ("<sdf/>", "r.urdf:1: <sdf>: the root element of a URDF file is <robot>"),
        (robot("<link/>"), "r.urdf:2: <link>: attribute 'name' is missing"),
        (
            robot(link("a"), link("a")),
            "r.urdf:3: <link name='a'>: the name is taken by another link, on line 2; rename one",
        ),
        (
            robot(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("j", "b", "c")),
            "r.urdf:6: <joint name='j'>: the name is taken by another joint, on line 5",
        ),
        (
            robot(link("a"), link("b")),
            "r.urdf:3: <link name='b'>: the robot must have one root link, but these are the child"
            r" of no joint: 'a' \(line 2\), 'b' \(line 3\)",
        ),
        (
            robot(link("arm"), link("b"), joint("j", "arn", "b")),
            "r.urdf:4: <parent link='arn'>: there is no link 'arn'; did you mean 'arm'",
        ),
        (
            robot(link("a"), joint("j", "a", "zzz")),
            "there is no link 'zzz'; the file has 1 of them",
        ),
        (robot(link("a"), joint("j", "a", "a")), "<joint name='j'>: connects link 'a' to itself"),
        (
            robot(link("a"), link("b"), link("c"), joint("i", "a", "c"), joint("j", "b", "c")),
            "r.urdf:6: <joint name='j'>: link 'c' is already the child of joint 'i', on line 5; a "
            "joint that closes a loop is written as <kinetree:loop>",
        ),
        (
            robot(link("a"), link("b"), joint("i", "a", "b"), joint("j", "b", "a")),
            "every link is the child of a joint: there is no root link, the joints form a circle",
        ),
        (
            robot(link("o"), link("a"), link("b"), joint("i", "a", "b"), joint("j", "b", "a")),
            "joints hang on each other in a circle, not on the root: 'i' -> 'j' -> 'i'",
        ),
    ],
)
def test_what_is_not_a_tree(text, message):
    with pytest.raises(LoadError, match=message):
        read(text)


def test_one_link_is_a_model_without_freedom():
    model = quietly(robot(link("a")))
    assert (model.nv, model.base_name) == (0, "a")


def test_lumping_keeps_every_link_and_fixed_joint_as_a_frame():
    model = quietly(TOOL)
    assert model.body_names == ("base", "arm")
    assert set(model.frame_names) == {"wrist", "hand", "tool"}
    assert model.inertia[1].mass == 4


def test_lumped_and_whole_models_have_the_same_dynamics(rng):
    lumped, whole = quietly(TOOL), quietly(TOOL, lump=False)
    assert whole.body_names == ("base", "arm", "hand", "tool")
    assert [type(j) for j in whole.joint[2:]] == [Fixed, Fixed]
    q = rng.standard_normal(1)
    assert_close(crba.joint_space_inertia(lumped, q), crba.joint_space_inertia(whole, q))
    for name in ("hand", "tool"):
        pose = jacobians.frame_pose(whole, q, whole.frame(name))
        assert_close(jacobians.frame_pose(lumped, q, lumped.frame(name)), pose)


def test_what_is_fixed_to_the_root_is_part_of_the_base():
    text = robot(link("world", ""), link("base"), joint("j", "world", "base", "fixed", ORIGIN))
    model = quietly(text)
    assert (model.base_name, model.body_count) == ("world", 0)
    assert model.frame("base").body == model.frame("j").body == 0


def test_floating_base_gives_the_root_link_a_free_joint_and_its_mass():
    model = quietly(
        arm().replace("<link name='base'>", f"<link name='base'>{MASS}"), floating_base=True
    )
    assert model.body_names == ("world", "base", "tip")
    assert model.joint_names == ("root_joint", "j")
    assert model.joint[1] == Free()
    assert model.inertia[1].mass == 2


def test_floating_base_of_a_massless_world_carries_what_is_fixed_to_it():
    text = robot(
        link("world", ""), link("base"), joint("root_joint", "world", "base", "fixed", ORIGIN)
    )
    model = quietly(text, floating_base=True)
    assert model.body_names == ("universe", "world")
    assert model.joint_names == ("root_joint_1",)
    assert model.inertia[1].mass == 2
    assert model.frame("base").body == 1


def test_joints_and_links_may_share_names():
    text = robot(
        link("a"),
        link("b"),
        link("c"),
        joint("a", "a", "b", "continuous", ""),
        joint("b", "b", "c", "fixed", ""),
    )
    model = quietly(text)
    assert (model.joint_names, model.frame_names) == (("a",), ("c",))


def test_links_and_joints_of_any_order_and_odd_names():
    odd = 'a"b\n;rm -rf / é'
    name = odd.replace('"', "&quot;").replace("\n", "&#10;")
    text = robot(joint("j", "x", name, "continuous", ""), link("x"), link(name))
    assert quietly(text).body_names == ("x", odd)


def test_thousands_of_links(rng):
    count = 2000
    links = (link(f"l{i}") for i in range(count + 1))
    joints = (joint(f"j{i}", f"l{i // 2}", f"l{i + 1}", "continuous", "") for i in range(count))
    assert quietly(robot(*links, *joints)).nv == count


@pytest.mark.parametrize(
    "text",
    [
        robot("<xacro:property name='a' value='1'/>", attributes="xmlns:xacro='urn:x'"),
        robot(link("a"), "<xacro:include filename='b'/>"),
        robot(link("${name}_a")),
        robot(link("a"), "<link name='$(arg b)'/>"),
    ],
)
def test_xacro_is_rejected_with_advice(text):
    with pytest.raises(LoadError, match=r"is xacro, a language that writes URDF. Expand the file"):
        read(text)


def test_what_xacro_leaves_behind_does_no_harm():
    text = arm().replace("<robot", "<!-- ${a} --><robot xmlns:xacro='urn:x'")
    assert quietly(text).nv == 1


def test_what_kinetree_does_not_use_is_listed_with_its_line():
    text = robot(
        link("a", "<texture/>"),
        "<gazebo reference='a'><mu1>1</mu1><kp>1</kp></gazebo>\n",
        "<sensor name='s'/>\n",
        attributes="color='red'",
    )
    assert read(text)[1] == [
        "r.urdf:4: <sensor name='s'>: kinetree does not use it",
        "r.urdf:1: attribute 'color' of <robot name='r'>: kinetree does not use it",
        "r.urdf:3: <gazebo reference='a'>: settings of a simulator: kp",
        "r.urdf:2: <texture>: kinetree does not use it",
    ]


@pytest.mark.parametrize(
    ("inside", "effect", "why"),
    [
        ("<turnGravityOff>true</turnGravityOff><kp>1</kp>", "motion", ": turnGravityOff"),
        ("<turnGravityOff>false</turnGravityOff><kd>1</kd><mu1>1</mu1>", "setting", ": kd"),
        ("<plugin name='p'/><material>Red</material>", "control", ": plugin"),
        ("<provideFeedback>true</provideFeedback>", "setting", ": provideFeedback"),
        ("<material>Red</material>", "picture", ": material"),
        ("", "setting", ""),
    ],
)
def test_settings_of_gazebo_are_named_and_come_by_what_they_change(inside, effect, why, tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(robot(link("a"), f"<gazebo reference='a'>{inside}</gazebo>"))
    (notice,) = read_file(path).notices
    assert (notice.effect, notice.why) == (effect, f"settings of a simulator{why}")

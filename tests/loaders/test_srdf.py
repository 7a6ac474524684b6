"""SRDF beside URDF: what may touch, groups, states, end effectors, the root, passive joints."""

import contextlib
import random
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loaders.fuzzing import hurt
from support.urdf_files import joint, link, robot
from typer.testing import CliRunner

import kinetree as kt
from kinetree.cli.app import app
from kinetree.errors import LoadError, ModelWarning
from kinetree.joints import Planar
from kinetree.model import Group

SOLID = (
    "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
    "</inertial><collision><geometry><sphere radius='0.05'/></geometry></collision>"
)
MOTOR = (
    "<transmission name='{0}_t'><type>transmission_interface/SimpleTransmission</type>"
    "<joint name='{0}'><hardwareInterface>hardware_interface/EffortJointInterface"
    "</hardwareInterface></joint><actuator name='{0}_motor'/></transmission>"
)
HAND = robot(
    *(link(name, SOLID) for name in ("base", "upper", "fore", "palm", "left", "right", "eye")),
    joint("shoulder", "base", "upper"),
    joint("elbow", "upper", "fore"),
    joint("wrist", "fore", "palm", "fixed", "<origin xyz='0 0 0.2'/>"),
    joint("grip", "palm", "left", "prismatic"),
    joint("mirror", "palm", "right", "prismatic",
          "<limit lower='-1' upper='1'/><mimic joint='grip' multiplier='-1'/>"),
    joint("pan", "base", "eye", "continuous", ""),
    MOTOR.format("shoulder"),
    MOTOR.format("pan"),
)  # fmt: skip


def semantics(*lines, name="r"):
    """The text of an SRDF file, each argument on a line of its own, from line 2."""
    return "\n".join([f"<robot name='{name}'>", *lines, "</robot>"])


def read(*lines, text=HAND, **options):
    """The model of the hand with these semantics, and the notices about them, in their order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        model = kt.loads(text, "urdf", srdf=semantics(*lines), **options)
    return model, [line for line in str(model.report).splitlines() if "<srdf>" in line]


def quietly(*lines, **options):
    model, notices = read(*lines, **options)
    assert notices == []
    return model


def test_pairs_of_links():
    model = quietly(
        "<disable_collisions link1='base' link2='fore' reason='Never'/>",
        "<disable_default_collisions link='eye'/>",
        "<enable_collisions link1='eye' link2='palm'/>",
        "<enable_collisions link1='fore' link2='left'/>",
        "<disable_collisions link1='left' link2='fore'/>",
        "<disable_collisions link1='base' link2='base'/>",
    )
    found = {frozenset((p.first, p.second)): p.touch for p in model.contact_pairs}
    off = [("base", "fore"), ("eye", "base"), ("eye", "upper"), ("eye", "fore"), ("eye", "left"),
           ("eye", "right"), ("left", "fore")]  # fmt: skip
    assert found == {frozenset(p): False for p in off} | {frozenset(("eye", "palm")): True}
    assert "Never" in {p.name for p in model.contact_pairs}


def test_groups_of_links_joints_chains_and_groups():
    model = quietly(
        "<group name='arm'><chain base_link='base' tip_link='palm'/></group>",
        "<group name='whole'><group name='arm'/><group name='hand'/></group>",
        "<group name='hand'><link name='left'/><joint name='mirror'/><joint name='wrist'/></group>",
        "<group name='across'><chain base_link='eye' tip_link='upper'/></group>",
        "<end_effector name='gripper' parent_link='palm' group='hand' parent_group='whole'/>",
        "<end_effector name='fingers' parent_link='left' group='hand'/>",
    )
    assert model.groups == (
        Group("arm", ("shoulder", "elbow"), "palm"),
        Group("whole", ("shoulder", "elbow", "grip", "mirror"), "palm"),
        Group("hand", ("grip", "mirror"), "left"),
        Group("across", ("pan", "shoulder"), "upper"),
    )
    q = model.random_configuration(1)
    assert np.array_equal(kt.pose(model, q, "gripper"), kt.pose(model, q, "palm"))
    assert np.array_equal(kt.pose(model, q, "fingers"), kt.pose(model, q, "left"))
    target = kt.pose(model, q, model.group("arm").tip)
    found = kt.inverse_kinematics(model, "palm", target, joints="arm")
    assert found.success
    assert found.q[model.q_indices("hand")] == 0


def test_states_are_postures():
    model = quietly(
        "<group name='arm'><chain base_link='base' tip_link='palm'/></group>",
        "<group name='hand'><joint name='grip'/></group>",
        "<group_state name='home' group='arm'><joint name='elbow' value='0.5'/></group_state>",
        "<group_state name='home' group='hand'><joint name='grip' value='0.25'/></group_state>",
        "<group_state name='out' group='arm'><joint name='elbow' value='0.1'/></group_state>",
        "<group_state name='out' group='hand'><joint name='elbow' value='0.2'/></group_state>",
        "<group_state name='look'><joint name='pan' value='0 1'/></group_state>",
    )
    assert [p.name for p in model.postures] == ["home", "arm/out", "hand/out", "look"]
    named = dict(zip(model.joint_names, model.expand(model.posture("home").q), strict=True))
    assert named == {
        "shoulder": 0, "elbow": 0.5, "grip": 0.25, "mirror": -0.25, "pan": 0,
    }  # fmt: skip
    assert model.posture("hand/out").q[model.q_indices("elbow")] == 0.2
    assert model.posture("look").q[model.q_indices("pan")] == pytest.approx(np.pi / 2)


def test_the_root_joint():
    floating = "<virtual_joint name='float' type='floating' parent_frame='map' child_link='base'/>"
    state = "<group_state name='up'><joint name='float' value='1 2 3 0 0 1 0'/></group_state>"
    model = quietly(floating, state)
    assert model.base_name == "map"
    assert model.joint_names[0] == "float"
    assert model.posture("up").q[:7].tolist() == [1, 2, 3, 0, 0, 0, 1]
    T = kt.pose(model, model.posture("up").q, "base")
    assert np.allclose(T, [[-1, 0, 0, 1], [0, -1, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]], atol=1e-15)
    assert quietly(floating, state, floating_base=True) == model

    planar = floating.replace("floating", "planar")
    model = quietly(planar, state.replace("1 2 3 0 0 1 0", "1 2 0.5"))
    assert isinstance(model.joint[1], Planar)
    assert model.posture("up").q[:3].tolist() == [0.5, 1, 2]

    fixed = quietly(floating.replace("floating", "fixed"))
    assert fixed.base_name == "base"
    assert np.array_equal(kt.pose(fixed, fixed.neutral(), "map"), np.eye(4))

    for line, passed in ((floating, False), (planar, True)):
        with pytest.raises(LoadError, match=rf"<srdf>:2: .*but floating_base={passed} was passed"):
            read(line, floating_base=passed)
    model, notices = read(state.replace("float", "root_joint"))
    assert "no joint 'root_joint'; floating_base=True adds it" in notices[0]
    assert model.posture("up").q.tolist() == model.neutral().tolist()


def test_passive_joints_have_no_actuator():
    model, notices = read("<passive_joint name='pan'/>")
    assert [a.name for a in model.actuators] == ["shoulder_motor"]
    assert notices == [
        "<srdf>:2: transmission 'pan_motor': joint 'pan' is passive: the model has no such actuator"
    ]


def test_names_that_the_robot_does_not_have():
    model, notices = read(
        "<disable_collisions link1='base' link2='for'/>",
        "<disable_collisions link1='for' link2='palm'/>",
        "<group name='arm'><joint name='elbw'/><group name='amr'/></group>",
        "<group_state name='x' group='arms'><joint name='elbow' value='1'/></group_state>",
        "<virtual_joint name='v' type='fixed' parent_frame='world' child_link='palm'/>",
        "<gripper name='g'><position>1</position></gripper>",
        "<group_state name='y'><joint name='wrist' value='1'/></group_state>",
        "<group_state name='z'><joint name='mirror' value='0.5'/></group_state>",
    )
    assert model.posture("x").q[model.q_indices("elbow")] == 1
    told = "\n".join(notices)
    for words in (
        "<srdf>:2: <disable_collisions>: the robot has no link 'for'; did you mean 'fore'? "
        "(2 lines name it)",
        "<srdf>:4: <joint name='elbw'>: the robot has no joint 'elbw'; did you mean 'elbow'?",
        "<srdf>:4: <group name='amr'>: the robot has no group 'amr'; did you mean 'arm'?",
        "<srdf>:5: group 'arms' of a state: the robot has no such group; did you mean 'arm'?",
        "<srdf>:6: <virtual_joint name='v'>: child_link is 'palm'; it moves the whole robot, whose "
        "root link is 'base'",
        "<srdf>:7: <gripper name='g'>",
        "<srdf>:8: joint 'wrist' of a state: it is fixed and has no position",
        "<srdf>:9: joint 'mirror' of state 'z' at 0.5: it follows another joint, which puts it at",
    ):
        assert words in told
    assert told.index("root link") < told.index("'for'") < told.index("'elbw'")  # motion first
    with pytest.raises(LoadError, match=r"strict=True.*\n.*the robot has no link 'for'"):
        read("<disable_collisions link1='base' link2='for'/>", strict=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("<group name='a'/><group name='a'/>", "<srdf>:2: .*taken by another group, on line 2"),
        ("<group name='a'><group name='a'/></group>", "groups contain each other: a > a"),
        ("<group/>", "<srdf>:2: <group>: attribute 'name' is missing"),
        (
            "<group_state name='x'><joint name='elbow' value='1 2 3'/></group_state>",
            "<srdf>:2: <joint name='elbow'>: attribute 'value' must hold 1 numbers, got 3",
        ),
        (
            "<virtual_joint name='v' type='free' child_link='base'/>",
            "the type of a virtual joint is floating, planar or fixed",
        ),
        (
            "<virtual_joint name='elbow' type='planar' child_link='base'/>",
            "the name is taken by a joint of the robot",
        ),
        (
            "<virtual_joint name='v' type='floating' child_link='base'/><group_state name='x'>"
            "<joint name='v' value='0 0 0 0 0 0 0'/></group_state>",
            "a quaternion of length 0; it must be 1",
        ),
        ("<link name='a'/>", "this is a robot with links, URDF"),
    ],
)
def test_files_that_are_rejected(line, message):
    with pytest.raises(LoadError, match=message):
        read(line)


def test_where_semantics_come_from(tmp_path):
    urdf, srdf = tmp_path / "r.urdf", tmp_path / "r.srdf"
    urdf.write_text(HAND)
    srdf.write_text(semantics("<group name='g'><joint name='pan'/></group>"))
    assert "r.srdf: this SRDF file lies beside and is not read" in str(kt.load(urdf).report)
    assert kt.load(urdf, srdf=srdf).group("g").joints == ("pan",)
    assert kt.load(urdf, strict=True).groups == ()
    with pytest.raises(LoadError, match="srdf= belongs to URDF files; this is a file of toml"):
        kt.loads("kinetree = 1", "toml", srdf=srdf)
    with pytest.raises(LoadError, match=r"SRDF describes the robot.*, srdf='r.srdf'\) reads both"):
        kt.load(srdf)
    with pytest.raises(LoadError, match="srdf must be the path of a file, got int"):
        kt.load(urdf, srdf=3)
    with pytest.raises(LoadError, match="there is no such file"):
        kt.load(urdf, srdf=tmp_path / "none.srdf")
    report = str(kt.loads(HAND, "urdf", srdf=semantics(name="q")).report)
    assert "name 'q': the robot of the URDF file is called 'r'" in report


def test_written_and_read_again(tmp_path):
    model = quietly(
        "<group name='arm'><chain base_link='base' tip_link='palm'/></group>",
        "<group name='all'><group name='arm'/><joint name='grip'/><joint name='pan'/>"
        "<joint name='float'/></group>",
        "<virtual_joint name='float' type='floating' child_link='base'/>",
        "<group_state name='up' group='all'><joint name='float' value='1 2 3 0 0 0.6 0.8'/>"
        "<joint name='elbow' value='0.3'/></group_state>",
        "<disable_collisions link1='base' link2='palm' reason='Never'/>",
        "<enable_collisions link1='left' link2='eye' reason='User'/>",
    )
    with pytest.warns(ModelWarning, match=r"groups and contact pairs are not written.*robot.srdf"):
        kt.save(model, tmp_path / "r.urdf")
    kt.save(model, tmp_path / "r.srdf")
    again = kt.load(tmp_path / "r.urdf", srdf=tmp_path / "r.srdf")
    assert again.groups == model.groups
    assert {*again.contact_pairs} == {*model.contact_pairs}
    assert again.postures == model.postures
    text = (tmp_path / "r.urdf").read_text()
    start, end = text.index("<kinetree:posture"), text.index("</kinetree:posture>")
    (tmp_path / "r.urdf").write_text(text[:start] + text[end + len("</kinetree:posture>") :])
    from_srdf = kt.load(tmp_path / "r.urdf", srdf=tmp_path / "r.srdf").posture("up")
    assert np.allclose(from_srdf.q, model.posture("up").q, atol=1e-15)


def test_command_line(tmp_path):
    urdf, srdf = tmp_path / "r.urdf", tmp_path / "s.srdf"
    urdf.write_text(HAND)
    srdf.write_text(semantics("<group name='g'><joint name='pan'/><joint name='elbw'/></group>"))

    def run(*arguments):
        return CliRunner().invoke(app, [*map(str, arguments)])

    assert "g (1 joint)" in run("info", urdf, "--srdf", srdf).stdout
    assert "no joint 'elbw'" in run("check", urdf, "--srdf", srdf, "--json").stdout
    assert run("convert", urdf, tmp_path / "r.toml", "--srdf", srdf).exit_code == 0
    assert kt.load(tmp_path / "r.toml").group("g").joints == ("pan",)
    assert "--srdf is for files" in run("info", "panda", "--srdf", srdf).stderr


@settings(max_examples=60, database=None)
@given(st.integers(0, 2**63))
def test_no_broken_file_brings_anything_down(seed):
    text = semantics(
        "<group name='arm'><chain base_link='base' tip_link='palm'/><link name='eye'/></group>",
        "<group name='all'><group name='arm'/><joint name='grip'/></group>",
        "<virtual_joint name='float' type='floating' parent_frame='map' child_link='base'/>",
        "<group_state name='up' group='all'><joint name='float' value='1 2 3 0 0 0.6 0.8'/>"
        "<joint name='mirror' value='0.3'/></group_state>",
        "<end_effector name='gripper' parent_link='palm' group='all' parent_group='arm'/>",
        "<passive_joint name='pan'/>",
        "<disable_default_collisions link='eye'/>",
        "<enable_collisions link1='eye' link2='palm' reason='User'/>",
    )
    broken = hurt(text.encode(), random.Random(seed))
    with warnings.catch_warnings(), contextlib.suppress(LoadError):
        warnings.simplefilter("ignore")
        model = kt.loads(HAND, "urdf", srdf=b"<" + broken.lstrip(b"<"))
        assert model.body_count > 0

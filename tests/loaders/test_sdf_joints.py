"""Joints of SDF: kinds, axes, limits, dynamics, loops, gearboxes, mimic."""

import math

import numpy as np
import pytest
from support.sdf_files import axis, joint, link, links, load, model, notices

import kinetree as kt
from kinetree.errors import LoadError, ModelWarning

WORLD = joint("w", "fixed", "world", "a")


def pair(kind, more="", b="1 0 0 0 0 0", tail=""):
    return model(link("a") + link("b", b) + WORLD + joint("j", kind, "a", "b", more) + tail)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("revolute", kt.Revolute("y")),
        ("continuous", kt.Revolute("y")),
        ("prismatic", kt.Prismatic("y")),
        ("ball", kt.Spherical()),
    ],
)
def test_kinds_with_one_axis_or_none(kind, expected):
    m = load(pair(kind, "" if kind == "ball" else axis("0 2 0")))
    assert m.joint[1] == expected
    assert m.body_names == ("world", "b")


def test_axis_expressed_in_another_frame():
    m = load(pair("revolute", axis("1 0 0", expressed_in="a"), b="0 0 0 0 0 1.5707963267948966"))
    assert m.joint[1] == kt.Revolute("-y")
    m = load(pair("revolute", axis("1 0 0", expressed_in="__model__"), b="0 0 0 0 0 0.5"))
    np.testing.assert_allclose(m.joint[1].axis, [math.cos(0.5), -math.sin(0.5), 0], rtol=1e-15)
    old = pair(
        "revolute",
        axis("1 0 0", "<use_parent_model_frame>1</use_parent_model_frame>"),
        b="0 0 0 0 0 0.5",
    ).replace("1.9", "1.6")
    assert load(old).joint[1] == m.joint[1]


def test_screw_pitch_is_per_turn_or_as_it_used_to_be():
    new = load(pair("screw", axis() + "<screw_thread_pitch>0.5</screw_thread_pitch>"))
    old = load(pair("screw", axis() + f"<thread_pitch>{-4 * math.pi}</thread_pitch>"))
    assert new.joint[1] == kt.Helical("z", pitch=0.5 / (2 * math.pi))
    np.testing.assert_allclose(old.joint[1].pitch, new.joint[1].pitch, rtol=1e-15)
    np.testing.assert_allclose(links(new, [2 * math.pi])["b"][:3, 3], [1, 0, 0.5], atol=1e-15)


def test_universal_turns_about_its_two_axes():
    m = load(pair("universal", axis("0 0 1") + axis("0 1 0", tag="axis2")))
    T = links(m, [math.pi / 2, math.pi / 2])["b"]
    # The second axis, y of the child, has come to point along -x.
    np.testing.assert_allclose(T[:3, 1], [-1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(T[:3, 3], [1, 0, 0], atol=1e-15)
    assert m.nv == 2


def test_revolute2_with_axes_at_an_angle_has_a_massless_link_between():
    m = load(pair("revolute2", axis("0 0 1") + axis("0 1 1", tag="axis2")))
    assert m.joint_names == ("j", "j_axis2")
    assert m.body_names == ("world", "j_between", "b")
    straight = load(pair("revolute2", axis("0 0 1") + axis("1 0 0", tag="axis2")))
    assert isinstance(straight.joint[1], kt.Universal)
    with pytest.raises(LoadError, match="axis and axis2 are parallel"):
        load(pair("revolute2", axis("0 0 1") + axis("0 0 1", tag="axis2")))


def test_limits_and_dynamics():
    limit = (
        "<limit><lower>-1</lower><upper>2</upper><effort>3</effort><velocity>4</velocity></limit>"
    )
    dynamics = (
        "<dynamics><damping>0.1</damping><friction>0.2</friction><spring_stiffness>5"
        "</spring_stiffness><spring_reference>0.3</spring_reference></dynamics>"
    )
    m = load(pair("revolute", axis(more=limit + dynamics)))
    assert m.bodies[0].limits == kt.Limits(-1, 2, 4, 3)
    expected = {"damping": 0.1, "friction": 0.2, "stiffness": 5, "rest": 0.3}
    assert m.bodies[0].dynamics == kt.model.JointDynamics(**expected)


def test_infinite_and_negative_limits_are_none():
    limit = "<limit><lower>-1e16</lower><upper>inf</upper><effort>-1</effort></limit>"
    assert load(pair("revolute", axis(more=limit))).bodies[0].limits is None
    limit = "<limit><lower>-1</lower><upper>1</upper><velocity>2</velocity></limit>"
    assert load(pair("continuous", axis(more=limit))).bodies[0].limits == kt.Limits(velocity=2)


def test_limits_the_wrong_way_round_are_noted(tmp_path):
    limit = "<limit><lower>1</lower><upper>-1</upper></limit>"
    found = notices(pair("revolute", axis(more=limit)), tmp_path)
    assert any("1 is above -1" in n for n in found)


def test_four_bar_closes_a_loop():
    """A parallelogram; the joint without limits and springs is the one that closes it."""
    bounded = axis("0 1 0", "<limit><lower>-1</lower><upper>1</upper></limit>")
    m = load(
        model(
            link("a", "0 0 0 0 0 0")
            + link("b", "0 0 1 0 0 0")
            + link("c", "1 0 0 0 0 0")
            + joint("j1", "revolute", "world", "a", bounded)
            + joint("j2", "revolute", "a", "b", bounded)
            + joint("j3", "revolute", "world", "c", axis("0 1 0"))
            + joint("j4", "revolute", "c", "b", "<pose>1 0 0 0 0 0</pose>" + bounded)
        )
    )
    assert [loop.name for loop in m.loops] == ["j3"]
    assert set(m.joint_names) == {"j1", "j2", "j4"}
    assert m.bodies[m.joint_index("j4") - 1].limits == kt.Limits(-1, 1)
    loop = m.loops[0]
    places = links(m)
    np.testing.assert_allclose(places["c"][:3, 3], [1, 0, 0], atol=1e-15)
    assert loop.joint == kt.Revolute("y")


def test_joint_that_closes_a_loop_keeps_its_limits(tmp_path):
    bounded = axis("0 1 0", "<limit><lower>-1</lower><upper>1</upper></limit>")
    text = model(
        link("a") + link("b", "0 0 1 0 0 0")
        + joint("j1", "revolute", "world", "a", bounded)
        + joint("j2", "revolute", "a", "b", bounded)
        + joint("j3", "revolute", "world", "b", bounded)
    )  # fmt: skip
    assert not notices(text, tmp_path)
    loop = load(text).loops[0]
    assert loop.name == "j2"
    assert loop.limits == kt.Limits(-1, 1)


def test_mimic_is_a_coupling():
    more = axis(
        more='<mimic joint="j"><multiplier>2</multiplier><offset>0.5</offset>'
        "<reference>0.1</reference></mimic>"
    )
    m = load(
        pair(
            "revolute",
            axis(),
            tail=link("c", "2 0 0 0 0 0") + joint("k", "revolute", "b", "c", more),
        )
    )
    (c,) = m.couplings
    assert (c.name, m.joint_names[c.joint - 1], m.joint_names[c.source - 1]) == (
        "k_mimic",
        "k",
        "j",
    )
    np.testing.assert_allclose(c.coefficients, (0.3, 2))
    bad = model(
        link("a")
        + WORLD
        + link("b")
        + joint("k", "revolute", "a", "b", axis(more='<mimic joint="x"/>'))
    )
    with pytest.warns(ModelWarning, match="no joint 'x' to follow"):
        assert load(bad).couplings == ()


@pytest.mark.parametrize(("sign", "expected"), [("0 0 1", -3.0), ("0 0 -1", 3.0)])
def test_gearbox_couples_the_two_joints_on_its_reference_body(sign, expected):
    """theta_2 = -ratio theta_1, each in the direction of the axis of the gearbox."""
    gear = (
        "<gearbox_reference_body>a</gearbox_reference_body><gearbox_ratio>3</gearbox_ratio>"
        + axis("0 0 1")
        + axis(sign, tag="axis2")
    )
    m = load(
        model(
            link("a") + link("b", "1 0 0 0 0 0") + link("c", "0 1 0 0 0 0") + WORLD
            + joint("jb", "revolute", "a", "b", axis())
            + joint("jc", "revolute", "a", "c", axis())
            + joint("g", "gearbox", "b", "c", gear)
        )
    )  # fmt: skip
    (c,) = m.couplings
    assert m.joint_names[c.joint - 1] == "jc"
    assert c.coefficients == (0.0, expected)


def test_gearbox_without_joints_to_its_reference_is_noted(tmp_path):
    gear = "<gearbox_reference_body>a</gearbox_reference_body>" + axis() + axis(tag="axis2")
    text = pair(
        "revolute", axis(), tail=link("c", "0 1 0 0 0 0") + joint("g", "gearbox", "b", "c", gear)
    )
    assert any("no revolute joint connects both" in n for n in notices(text, tmp_path))


def test_redundant_fixed_joint_is_left_out(tmp_path):
    text = pair("fixed", tail=joint("k", "fixed", "world", "b"))
    assert any("cannot move" in n for n in notices(text, tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (pair("hinge"), "unknown joint type 'hinge'; SDF has revolute"),
        (pair("revolute", axis("0 0 0")), "axis must not be zero"),
        (pair("revolute", axis("0 0")), "must be 3 numbers"),
        (pair("screw", "<thread_pitch>0</thread_pitch>"), "must not be zero"),
        (model(link("a") + joint("j", "revolute", "a", "a")), "connects 'a' to itself"),
        (model(link("a") + joint("j", "revolute", "a", "ab")), "no frame 'ab' here; did you mean"),
        (model(link("a") + joint("j", "revolute", "b", "a")), "no link or frame 'b' here"),
        (pair("gearbox"), "needs <gearbox_reference_body>"),
        (model('<joint name="j" type="fixed"><child>a</child></joint>'), "has no <parent>"),
    ],
)  # fmt: skip
def test_bad_joint(text, message):
    with pytest.raises(LoadError, match=message) as caught:
        load(text)
    assert str(caught.value).startswith("robot.sdf:1: ")

"""Where things are: poses relative to frames, nested models, includes."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.sdf_files import joint, link, links, load, model, poses, sdf

from kinetree.errors import LoadError


def pose(x, y, z, roll=0, pitch=0, yaw=0):
    T = np.eye(4)
    T[:3, :3] = Rotation.from_euler("xyz", [roll, pitch, yaw]).as_matrix()
    T[:3, 3] = x, y, z
    return T


def test_poses_are_composed_along_relative_to():
    m = load(
        model(
            "<pose>0 0 1 0 0 0.3</pose>"
            + link("a", "1 0 0 0.1 0.2 0.3")
            + '<frame name="f" attached_to="a"><pose>0 2 0 0 0 1</pose></frame>'
            + '<frame name="g"><pose relative_to="f">0 0 3 0.5 0 0</pose></frame>'
            + link("b", "1 1 1 0 0 0.7", "g")
            + joint("j", "fixed", "world", "a")
            + joint("k", "fixed", "a", "b")
        ),
        lump=False,
    )
    M = pose(0, 0, 1, 0, 0, 0.3)
    a = M @ pose(1, 0, 0, 0.1, 0.2, 0.3)
    f = a @ pose(0, 2, 0, 0, 0, 1)
    g = f @ pose(0, 0, 3, 0.5, 0, 0)
    expected = {"a": a, "b": g @ pose(1, 1, 1, 0, 0, 0.7), "f": f, "g": g}
    found = poses(m)
    for name, T in expected.items():
        np.testing.assert_allclose(found[name], T, atol=1e-14)
    assert m.frames[0].body == m.body_index("a")


def test_degrees_and_quaternions():
    m = load(
        model(
            '<link name="a"><pose degrees="true">1 2 3 0 0 90</pose></link>'
            '<link name="b"><pose rotation_format="quat_xyzw">1 2 3 0 0 0.6 0.8</pose></link>'
            + joint("j", "fixed", "world", "a")
            + joint("k", "fixed", "world", "b")
        )
    )
    np.testing.assert_allclose(poses(m)["a"], pose(1, 2, 3, 0, 0, np.pi / 2), atol=1e-15)
    np.testing.assert_allclose(
        poses(m)["b"], pose(1, 2, 3, 0, 0, 2 * np.arctan2(0.6, 0.8)), atol=1e-15
    )


def test_joint_pose_is_relative_to_its_child_unless_it_says_otherwise():
    parts = link("a") + link("b", "1 0 0 0 0 0")
    world = joint("w", "fixed", "world", "a")
    at_child = load(
        model(parts + world + joint("j", "revolute", "a", "b", "<pose>0 1 0 0 0 0</pose>"))
    )
    at_parent = load(
        model(
            parts
            + world
            + joint("j", "revolute", "a", "b", '<pose relative_to="a">1 1 0 0 0 0</pose>')
        )
    )
    for m in (at_child, at_parent):
        quarter = links(m, [np.pi / 2])["b"]  # about the vertical through (1, 1, 0)
        np.testing.assert_allclose(quarter, pose(2, 1, 0, 0, 0, np.pi / 2), atol=1e-15)


def test_placing_a_link_directly_on_a_joint_is_exact():
    m = load(
        model(
            link("a")
            + joint("w", "fixed", "world", "a")
            + joint(
                "j", "revolute", "a", "b", '<pose relative_to="a">0.1 0.2 0.3 0.4 0.5 0.6</pose>'
            )
            + '<link name="b"><pose relative_to="j"/></link>'
        )
    )
    assert m.frame_names == ("a",)  # no b_link: the body frame is the link frame
    assert m.bodies[0].placement.r.tolist() == [0.1, 0.2, 0.3]


def test_nested_models_have_names_with_colons():
    inner = '<model name="in"><pose>0 0 2 0 0 0</pose>' + link("x", "1 0 0 0 0 0") + "</model>"
    m = load(
        model(
            link("a")
            + inner
            + joint("w", "fixed", "world", "a")
            + joint("j", "revolute", "a", "in::x")
            + '<frame name="f" attached_to="in"><pose>0 0 1 0 0 0</pose></frame>'
        )
    )
    assert m.body_names == ("world", "in::x")
    np.testing.assert_allclose(poses(m)["in::x"], pose(1, 0, 2))
    np.testing.assert_allclose(poses(m)["f"], pose(0, 0, 3))
    assert m.frames[m.frame_names.index("f")].body == 1


def test_placement_frame_puts_that_frame_at_the_pose():
    m = load(
        model(
            "<pose>5 0 0 0 0 1.2</pose>"
            + link("a", "1 0 0 0 0 0.3")
            + link("b", "0 1 0 0 0 0")
            + joint("j", "revolute", "a", "b")
            + joint("w", "fixed", "world", "a"),
            attributes='placement_frame="b"',
        )
    )
    np.testing.assert_allclose(poses(m)["b"], pose(5, 0, 0, 0, 0, 1.2), atol=1e-15)


def test_circle_of_poses_is_named():
    with pytest.raises(
        LoadError, match=r"robot.sdf:\d+: .*relative to each other: 'b' -> 'c' -> 'b'"
    ):
        load(
            model(
                link("a", "1 0 0 0 0 0", "b")
                + link("b", "0 0 0 0 0 1", "c")
                + link("c", "0 0 0 0 0 1", "b")
            )
        )


def test_circle_of_attachments_is_named():
    frames = (
        '<frame name="f" attached_to="g"><pose relative_to="__model__"/></frame>'
        '<frame name="g" attached_to="f"><pose relative_to="__model__"/></frame>'
    )
    with pytest.raises(LoadError, match="attached to each other: 'f' -> 'g' -> 'f'"):
        load(model(link("a") + frames))


def test_unknown_frame_suggests_another():
    with pytest.raises(LoadError, match=r"no frame 'uper' here; did you mean 'upper'\?"):
        load(model(link("upper") + link("b", "0 0 0 0 0 1", "uper")))


def test_names_are_unique():
    with pytest.raises(LoadError, match="the name 'a' is taken by the link on line 1"):
        load(model(link("a") + link("a")))
    with pytest.raises(LoadError, match="the name 'a' is taken by the link"):
        load(model(link("a") + link("b") + joint("a", "revolute", "a", "b")))
    m = load(model(link("a") + link("b") + joint("b", "revolute", "a", "b"), version="1.6"))
    assert m.joint_names[-1] == "b"


def test_long_chain_of_poses_takes_no_recursion():
    chain = "".join(f'<frame name="f{k}" attached_to="f{k + 1}"/>' for k in range(3000))
    m = load(model(link("a") + chain + '<frame name="f3000"/>'))
    assert len(m.frames) == 3001


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<pose>1 2 3</pose>", "must be 6 numbers"),
        ("<pose>1 2 3 0 0 nan</pose>", "must be finite"),
        ('<pose rotation_format="quat_xyzw">0 0 0 1 1 1 1</pose>', "unit length"),
        ('<pose rotation_format="euler">0 0 0 1 1 1</pose>', "rotation_format must be"),
    ],
)
def test_bad_pose(text, message):
    with pytest.raises(LoadError, match=message):
        load(sdf(f'<model name="m"><link name="a">{text}</link></model>'))

"""Groups of joints: names for several at once, wherever joints are named."""

import pickle

import numpy as np
import pytest
from support.mechanisms import gripper

import kinetree as kt
from kinetree.errors import ModelError, UnknownNameError
from kinetree.model import Group


def two_arms():
    """Two arms of two joints each, on a torso."""
    builder = kt.ModelBuilder("two arms").body("torso", joint=kt.Revolute("z"))
    for side, y in (("left", 0.2), ("right", -0.2)):
        names = (f"{side} upper", f"{side} fore")
        one = kt.shapes.box(0.1, 0.1, 0.4, mass=2.0)
        builder.body(names[0], on="torso", joint=kt.Spherical(), at=(0, y, 0), inertia=one)
        builder.body(names[1], on=names[0], joint=kt.Revolute("y"), at=(0, 0, 0.4), inertia=one)
        builder.frame(f"{side} hand", on=names[1], at=(0, 0, 0.4))
        joints = [f"{name}_joint" for name in names]
        builder.group(side, joints=joints, tip=f"{side} hand")
    builder.group("both", joints=("left", "right"))
    return builder.posture("raised", q={"left": [1, 0, 0, 0, 0.5], "torso_joint": 0.1}).build()


def test_groups_name_joints_and_their_variables():
    model = two_arms()
    assert model.group("left") == Group(
        "left", ("left upper_joint", "left fore_joint"), "left hand"
    )
    assert model.group("both").joints == (*model.group("left").joints, *model.group("right").joints)
    assert model.q_indices("left").tolist() == [1, 2, 3, 4, 5]
    assert model.v_indices("right", "torso_joint").tolist() == [5, 6, 7, 8, 0]
    assert model.posture("raised").q[model.q_indices("left")].tolist() == [1, 0, 0, 0, 0.5]
    assert "groups: left, right, both" in model.summary()


def test_groups_travel_with_the_model(tmp_path):
    model = two_arms()
    for suffix in ("toml", "json"):
        path = tmp_path / f"arms.{suffix}"
        kt.save(model, path)
        assert kt.load(path).groups == model.groups
        assert kt.load(path) == model
    assert pickle.loads(pickle.dumps(model)).groups == model.groups
    assert model.replace(groups=()) != model
    graph = kt.model.MechanismGraph("again", base_name=model.base_name).add_model(model)
    assert graph.to_model().groups == model.groups


def test_formats_without_groups_say_so(tmp_path):
    model = two_arms().replace(joint={"left upper_joint": kt.Revolute("x")}, postures=())
    model = model.replace(joint={"right upper_joint": kt.Revolute("x")})
    for suffix, words in (("urdf", "groups and contact pairs"), ("sdf", "3 groups")):
        with pytest.warns(kt.errors.ModelWarning, match=words):
            kt.save(model, tmp_path / f"arms.{suffix}")
    model = model.replace(inertia={"torso": kt.shapes.sphere(0.1, mass=1)})
    with pytest.warns(kt.errors.ModelWarning, match="not in the MJCF: groups 'left', 'right'"):
        kt.save(model, tmp_path / "arms.xml")


def test_groups_keep_to_what_is_left_of_a_model():
    model = two_arms()
    left = kt.edit.extract(model, "left upper")
    assert left.groups == (model.group("left"), Group("both", model.group("left").joints))
    held = kt.edit.lock(model, {"right fore_joint": 0.5}, lump=True)
    assert held.group("right") == Group("right", ("right upper_joint",), "right hand")
    twice = kt.edit.attach(model, model, on="left hand", prefix="next ")
    assert twice.groups[:3] == model.groups
    assert twice.group("next left").joints == tuple(f"next {j}" for j in left.joint_names)
    assert twice.group("next left").tip == "next left hand"


def test_inverse_kinematics_moves_one_group():
    """Only the joints of the group move, and the result is that of the model with others locked."""
    model = two_arms()
    q0 = model.random_configuration(3)
    q = q0.copy()
    q[model.q_indices("left")] = model.random_configuration(4)[model.q_indices("left")]
    target = kt.pose(model, q, "left hand")[:3, 3]
    found = kt.inverse_kinematics(model, "left hand", target, q0, joints="left")
    assert found.success
    others = np.setdiff1d(np.arange(model.nq), model.q_indices("left"))
    assert np.array_equal(found.q[others], q0[others])
    assert np.allclose(kt.pose(model, found.q, "left hand")[:3, 3], target, atol=1e-8)
    free = kt.inverse_kinematics(model, "left hand", target, q0)
    assert free.q[0] != q0[0]
    with pytest.raises(ModelError, match=r"nothing .* moves the frames .* only .*right fore"):
        kt.inverse_kinematics(model, "left hand", target, joints="right")
    with pytest.raises(UnknownNameError, match="no joint or group 'lef'; did you mean 'left'"):
        kt.inverse_kinematics(model, "left hand", target, joints=["lef"])


def test_followers_of_a_group_have_no_variables(rng):
    model = gripper(rng).replace(groups=(Group("fingers", ("lead", "follow")),))
    assert model.q_indices("fingers").tolist() == model.q_indices("lead").tolist()


@pytest.mark.parametrize(
    ("group", "error", "message"),
    [
        (Group("x", ("left fore_jnt",)), UnknownNameError, "group 'x' has joint .* did you mean"),
        (Group("x", ("torso_joint",) * 2), ModelError, "group 'x' must have each joint once"),
        (Group("torso_joint"), ModelError, "group 'torso_joint' has the name of a joint"),
        (Group("x", tip="hand"), UnknownNameError, "tip of group 'x' is 'hand', which the model"),
        (Group("left"), ModelError, "group name 'left' is used"),
        ("left", ModelError, "a model needs Group objects here, got str"),
    ],
)
def test_groups_that_are_rejected(group, error, message):
    model = two_arms()
    with pytest.raises(error, match=message):
        model.replace(groups=(*model.groups, group))
    with pytest.raises(ModelError, match="joints of group 'x' must be a sequence of names"):
        Group("x", "torso_joint")
    with pytest.raises(UnknownNameError, match="no group 'lef'; did you mean 'left'"):
        model.group("lef")
    builder = kt.ModelBuilder().body("a", joint=kt.Revolute("x")).group("g", joints="a_joint")
    builder.posture("p", q={"g": [1, 2]})
    with pytest.raises(ModelError, match="group 'g' in posture 'p' needs 1 entries, got 2"):
        builder.build()

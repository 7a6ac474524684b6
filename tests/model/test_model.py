"""The model itself: structure, offsets, names, replacing, freezing."""

import copy
import pickle

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import gripper
from support.special_joints import Slot

from kinetree.algorithms import aba, crba, rnea
from kinetree.errors import ModelError, UnknownNameError
from kinetree.joints import (
    REPRESENTATIVES,
    Cylindrical,
    Fixed,
    Free,
    Prescribed,
    Revolute,
    Spherical,
)  # fmt: skip
from kinetree.model import Loop, Model, ModelBuilder, shapes
from kinetree.samples import (
    four_bar,
    humanoid,
    panda,
    random_inertia,
    random_placement,
    random_tree,
)

BALL = shapes.sphere(0.1, mass=1.0, at=(0.2, 0.1, 0.3))


def mixed(joints):
    """A branched tree with one body for each joint."""
    rng = np.random.default_rng(7)
    builder = ModelBuilder("mixed")
    for i, joint in enumerate(joints):
        on = None if i == 0 else f"b{rng.integers(i)}"
        inertia, at = random_inertia(rng), random_placement(rng)
        builder.body(f"b{i}", on=on, joint=joint, at=at, inertia=inertia)
    return builder.build()


@pytest.mark.covers("RBDA 4.6", "RBDA Table 4.3", "6-D Guide 2: Geometry", by=Model)
def test_table_4_3_fields():
    m = four_bar()
    assert m.body_count == 3
    assert m.parent == (-1, 0, 1, 0)
    assert len(m.joint) == len(m.tree_transform) == len(m.inertia) == 4
    assert len(m.loops) == 1
    assert (m.loops[0].predecessor, m.loops[0].successor) == (2, 3)
    # N+1 body frames and N frames on the predecessors, which meet at q = 0
    assert len(m.body_names) + len(m.tree_transform[1:]) == 2 * m.body_count + 1
    for i in range(1, 4):
        X_J = m.jcalc(i, m.neutral(), m.zero_velocity)[0]
        assert_close(X_J.to_matrix(), np.eye(6))


@pytest.mark.covers("RBDA 4.6", "6-D Guide 2: Joint Models", by=Model)
def test_positions_and_velocities_have_their_own_offsets():
    m = mixed([Spherical(), Fixed(), Revolute("x"), Free(), Cylindrical("z"), Slot()])
    assert m.nq == 4 + 0 + 1 + 7 + 2 + 1
    assert m.nv == 3 + 0 + 1 + 6 + 2 + 1 == sum(j.nv for j in m.joint[1:])
    for slices, size in ((m.q_slice, "nq"), (m.v_slice, "nv")):
        assert slices[0] == slice(0, 0)
        assert slices[-1].stop == getattr(m, size)
        for i, joint in enumerate(m.joint[1:], start=1):
            assert slices[i].stop - slices[i].start == getattr(joint, size)
            assert slices[i].start == slices[i - 1].stop


@pytest.mark.covers("RBDA 4.6", by=Model)
def test_a_tree_of_every_joint_kind_and_a_joint_of_ones_own_does_dynamics(rng):
    m = mixed([*REPRESENTATIVES, Slot()])
    q, (qd, qdd) = m.random_configuration(rng), rng.standard_normal((2, m.nv))
    tau = rnea.inverse_dynamics(m, q, qd, qdd)
    H, C = crba.joint_space_inertia(m, q), rnea.bias_force(m, q, qd)
    assert_close(H @ qdd + C, tau, ulps=1e3)
    assert_close(aba.forward_dynamics(m, q, qd, tau), qdd, condition=np.linalg.cond(H))


@pytest.mark.covers("RBDA 4.6", "RBDA Table 6.4", by=Model)
def test_expanded_parents_are_the_sparsity_of_the_inertia_matrix(rng):
    ball, hinge, weld = Spherical(), Revolute("x"), Fixed()
    m = mixed([weld, hinge, ball, weld, hinge, weld, ball, weld, hinge, ball, weld, hinge])
    H = crba.joint_space_inertia(m, m.random_configuration(rng))
    allowed = np.eye(m.nv, dtype=bool)
    for k in range(m.nv):
        j = m.expanded_parent[k]
        while j >= 0:
            allowed[k, j] = allowed[j, k] = True
            j = m.expanded_parent[j]
    np.testing.assert_array_equal(H != 0, allowed)


@pytest.mark.covers("Spencer A.2", by=(Model, Loop))
def test_pointers_of_the_closed_chain_in_the_thesis():
    """Spencer Table A.1: links 1 and 2 on the ground, 2-3-4 a chain, the cut joins 4 to 1."""
    builder = ModelBuilder()
    for name, on in (("1", None), ("2", None), ("3", "2"), ("4", "3")):
        builder.body(name, on=on, joint=Revolute("z"))
    m = builder.loop("5", predecessor="1", successor="4", joint=Revolute("z")).build()
    assert m.parent[1:] == (0, 0, 2, 3)
    assert m.children[1:] == ((), (3,), (4,), ())
    assert m.subtree[1:] == ((1,), (2, 3, 4), (3, 4), (4,))
    (virtual,) = m.loops  # the virtual link: its parent, and the link it must coincide with
    assert (virtual.predecessor, virtual.successor) == (1, 4)
    assert (m.body_count, m.nv, len(m.loops), virtual.joint.nv) == (4, 4, 1, 1)


def test_structure_sets_belong_to_the_parents():
    m = random_tree(10, 3)
    for i in range(1, 11):
        assert i in m.children[m.parent[i]]
        assert m.support[i][-1] == i
        for j in m.support[i]:
            assert i in m.subtree[j]


def test_names_are_found_and_typos_are_answered():
    m = panda()
    assert m.body_index("base") == 0
    assert m.body_index("link3") == m.joint_index("link3_joint") == 3
    assert m.frame("grasp").body == m.body_index("palm")
    assert m.frame("link3").placement.r.tolist() == [0, 0, 0]
    with pytest.raises(
        UnknownNameError, match="model 'panda' has no body 'lnk3'; did you mean 'link"
    ):
        m.body_index("lnk3")
    with pytest.raises(
        UnknownNameError, match=r"has no joint 'zzz'; known: 'link1_joint', .*in all"
    ):
        m.joint_index("zzz")
    with pytest.raises(UnknownNameError, match="no frame or body 'grsp'; did you mean 'grasp'"):
        m.frame("grsp")
    with pytest.raises(KeyError):
        m.frame("grsp")


def test_replace_changes_the_given_fields_and_nothing_else():
    m = panda()
    n = m.replace(
        inertia={"link3": BALL},
        joint={"link3_joint": Revolute("x")},
        placement={"link3_joint": m.tree_transform[4]},
        gravity=(0, 0, -1.62),
        loops=[Loop("tie", 1, 2)],
    )
    assert n.inertia[3].mass == BALL.mass
    assert n.joint[3] == Revolute("x")
    np.testing.assert_array_equal(n.tree_transform[3].E, m.tree_transform[4].E)
    assert n.gravity.tolist() == [0, 0, -1.62]
    assert m.inertia[3].mass == 3.23
    assert (m.loops, len(n.loops)) == ((), 1)
    assert m.replace() == m
    with pytest.raises(ModelError, match="base 'base' does not move and has no inertia"):
        m.replace(inertia={"base": BALL})
    with pytest.raises(TypeError, match=r"Model\.replace has no argument 'mass'"):
        m.replace(mass=3)
    with pytest.raises(UnknownNameError, match="no joint 'link3'; did you mean 'link3_joint'"):
        m.replace(joint={"link3": Fixed()})


def test_a_model_is_frozen():
    m = humanoid()
    with pytest.raises(
        AttributeError, match=r"a model is frozen: cannot set 'gravity'; model.replace"
    ):
        m.gravity = (0, 0, 0)
    with pytest.raises(ValueError, match="read-only"):
        m.gravity[2] = 0
    with pytest.raises(ValueError, match="read-only"):
        m.zero_velocity[0] = 1


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_and_pickles_are_equal_and_frozen(duplicate, rng):
    m = humanoid()
    _ = m.fingerprint, m.subtree
    n = duplicate(m)
    assert n == m
    q, qd = m.random_configuration(rng), rng.standard_normal(m.nv)
    np.testing.assert_array_equal(rnea.bias_force(n, q, qd), rnea.bias_force(m, q, qd))
    with pytest.raises(AttributeError, match="frozen"):
        n.name = "other"


def test_repr_counts():
    assert repr(four_bar()) == "Model('four-bar': 3 bodies, nq=3, nv=3, 1 loop)"
    assert (
        repr(ModelBuilder("a").body("b", joint=Fixed()).build()) == "Model('a': 1 body, nq=0, nv=0)"
    )


def test_gravity_as_a_spatial_vector():
    assert humanoid().a_g.to_array().tolist() == [0, 0, 0, 0, 0, -9.81]


def test_model_at_a_time():
    drive = Prescribed(Revolute("z"), lambda t: ([2 * t], [2.0], [0.0]))
    m = (
        ModelBuilder()
        .body("a", joint=drive, inertia=BALL)
        .body("b", on="a", joint=Revolute("x"))
        .build()
    )
    now = m.at(0.5)
    assert_close(now.jcalc(1, np.zeros(1), np.zeros(1))[0].E, Revolute("z").transform([1.0]).E)
    assert now.joint[2] is m.joint[2]
    assert humanoid().at(1.0) == humanoid()
    still = panda()
    assert still.at(2.0) is still


def test_accessors_of_what_is_attached(rng):
    model = gripper(rng)
    assert model.armature.tolist() == [0.0] * 6 + [0.1, 0.7, 0.0, 0.0, 0.0]
    assert model.armature_joints == (2, 4)
    assert model.actuation.shape == (model.nv, 2)
    assert model.actuation[6, 0] == 50
    assert model.actuation[7:, 1].tolist() == [1, 0, 2]
    for array in (model.armature, model.actuation):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert model.posture("home").name == "home"
    with pytest.raises(UnknownNameError, match="no posture 'hoem'; did you mean 'home'"):
        model.posture("hoem")
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert again.couplings == model.couplings

"""Models go to Pinocchio and come back with the same dynamics."""

import numpy as np
import pinocchio as pin
import pytest
from support.closeness import assert_close
from support.pinocchio_mechanisms import (
    KINDS,
    SHARED,
    assert_same_dynamics,
    mechanism,
    random_body,
    random_se3,
    random_state,
)

from kinetree import samples
from kinetree.algorithms import kinematics, rnea
from kinetree.errors import InteropError, ModelWarning
from kinetree.interop import pinocchio as P
from kinetree.joints import (
    REPRESENTATIVES,
    Cylindrical,
    Euler,
    Exponential,
    Fixed,
    Free,
    Planar,
    Prismatic,
    RackAndPinion,
    Reversed,
    Revolute,
    Screw,
    SphereInCylinder,
    Spherical,
)
from kinetree.model import Body, Frame, Model, ModelBuilder
from kinetree.spatial import Inertia, Plucker

every_kind = pytest.mark.parametrize("kind", KINDS)


# --- from Pinocchio --------------------------------------------------------------------------


@every_kind
def test_every_kind_of_joint_keeps_its_dynamics(kind, rng):
    theirs = mechanism(kind, rng)
    ours = P.from_model(theirs)
    assert ours.nv == theirs.nv
    for _ in range(3):
        assert_same_dynamics(ours, theirs, *random_state(theirs, rng))


@every_kind
def test_every_kind_of_joint_survives_there_and_back(kind, rng):
    ours = P.from_model(mechanism(kind, rng))
    theirs = P.to_model(ours)
    again = P.from_model(theirs)
    assert again.joint_names == ours.joint_names
    assert again.body_names == ours.body_names
    assert [type(j) for j in again.joint] == [type(j) for j in ours.joint]
    assert_same_dynamics(ours, theirs, *random_state(theirs, rng))
    for a, b in zip(again.bodies, ours.bodies, strict=True):
        assert_close(a.placement.to_matrix(), b.placement.to_matrix())
        assert_close(a.inertia.parameters(), b.inertia.parameters())


def test_a_composite_joint_becomes_a_chain_of_numbered_joints(rng):
    ours = P.from_model(mechanism("CompositeOfComposite", rng))
    chain = ("joint_1", "joint_2_1", "joint_2_2")
    assert ours.joint_names == ("shoulder", *chain, "wrist", "slider")
    assert ours.body_names == ("universe", "shoulder", *chain, "wrist", "slider")
    assert ours.parent == (-1, 0, 1, 2, 3, 4, 1)
    assert [I.mass for I in ours.inertia[2:4]] == [0, 0]


def test_parts_of_a_composite_joint_keep_clear_of_the_names_of_links(rng):
    theirs = mechanism("Composite", rng)
    theirs.addBodyFrame("joint_2", 1, pin.SE3.Identity(), 0)
    ours = P.from_model(theirs)
    names = ("universe", "joint_2", "joint_1", "joint_2_body", "joint_3", "wrist", "slider")
    assert ours.body_names == names


def test_a_universal_joint_with_general_axes_becomes_two_revolute_joints(rng):
    ours = P.from_model(mechanism("UniversalUnaligned", rng))
    assert ours.joint_names == ("shoulder", "joint_1", "joint_2", "wrist", "slider")
    assert isinstance(ours.joint[2], Revolute)
    assert isinstance(ours.joint[3], Revolute)


def test_gravity_and_name_are_kept(rng):
    theirs = mechanism("RX", rng)
    theirs.gravity.linear = np.array([1.0, 2.0, -3.0])
    theirs.name = "tilted"
    ours = P.from_model(theirs)
    assert ours.name == "tilted"
    assert ours.gravity.tolist() == [1.0, 2.0, -3.0]
    assert_same_dynamics(ours, theirs, *random_state(theirs, rng))


def test_the_model_does_not_change_with_the_one_it_came_from(rng):
    theirs = mechanism("RX", rng)
    ours = P.from_model(theirs)
    before = ours.fingerprint
    theirs.jointPlacements[1].translation = np.ones(3)
    theirs.inertias[1].lever = np.ones(3)
    theirs.gravity.linear = np.zeros(3)
    assert (
        Model(ours.bodies, gravity=ours.gravity, name="RX", base_name="universe").fingerprint
        == before
    )


def test_inertia_of_the_universe_is_left_out(rng):
    theirs = mechanism("RX", rng)
    theirs.appendBodyToJoint(0, random_body(rng), random_se3(rng))
    assert_same_dynamics(P.from_model(theirs), theirs, *random_state(theirs, rng))


# --- to Pinocchio ----------------------------------------------------------------------------

MISSING = (Screw, Cylindrical, RackAndPinion, Exponential, SphereInCylinder, Reversed)
OTHER_VARIANTS = {
    *(Planar(axis) for axis in ((0.5, 1.0, -1.0),)),
    Planar("z", translation="child"),
    Free(translation="child"),
    Euler("zxz"),
}


def _with_joint(joint, rng):
    builder = ModelBuilder("arm")
    builder.body("a", joint=Revolute("y"), inertia=samples.random_inertia(rng))
    at = samples.random_placement(rng)
    builder.body("b", on="a", joint=joint, at=at, inertia=samples.random_inertia(rng))
    builder.body("c", on="b", joint=Revolute("x"), inertia=samples.random_inertia(rng))
    return builder.build()


@pytest.mark.parametrize("joint", REPRESENTATIVES, ids=repr)
def test_every_kind_of_joint_is_supported_or_rejected_by_name(joint, rng):
    m = _with_joint(joint, rng)
    if isinstance(joint, MISSING):
        kind = type(joint).__name__
        with pytest.raises(InteropError, match=f"joint 'b_joint' is a {kind}, which Pinocchio"):
            P.to_model(m)
    elif joint in OTHER_VARIANTS:
        with pytest.raises(InteropError) as caught:
            P.to_model(m)
        assert f"joint 'b_joint' is {joint!r}; of this kind Pinocchio only has" in str(caught.value)
    else:
        theirs = P.to_model(m)
        assert_same_dynamics(m, theirs, *random_state(theirs, rng))


def test_random_trees_with_fixed_joints_and_frames_keep_their_dynamics(rng):
    for _ in range(5):
        tree = samples.random_tree(10, rng, joints=SHARED)
        placed = [Frame(f"frame{i}", i, samples.random_placement(rng)) for i in range(11)]
        m = tree.replace(frames=tuple(placed), gravity=(1.0, 2.0, 3.0))
        theirs = P.to_model(m)
        assert theirs.check(theirs.createData())
        assert_same_dynamics(m, theirs, *random_state(theirs, rng))
        again = P.from_model(theirs)
        assert_same_dynamics(again, theirs, *random_state(theirs, rng))
        kept = {b.joint_name for b in m.bodies if not isinstance(b.joint, Fixed)}
        assert set(again.joint_names) == kept
        assert set(again.frame_names) >= set(m.frame_names)


def test_a_tree_comes_back_equal(rng):
    """Depth first already, so that nothing is renumbered; no fixed joints to lump."""
    joints = (Revolute("z"), Prismatic((1.0, 1.0, 0.0)), Spherical(), Euler(), Planar())
    tree = samples.random_tree(6, rng, joints=joints, branching=0, floating_base=True)
    again = P.from_model(P.to_model(tree))
    assert (again.name, again.body_names, again.joint_names) == (
        tree.name,
        tree.body_names,
        tree.joint_names,
    )
    assert again.joint[1:] == tree.joint[1:]
    assert again.parent == tree.parent
    q, qd = tree.random_configuration(rng), rng.standard_normal(tree.nv)
    qdd = rng.standard_normal(tree.nv)
    assert_close(rnea.inverse_dynamics(again, q, qd, qdd), rnea.inverse_dynamics(tree, q, qd, qdd))


def test_body_velocities_are_the_same_vectors_in_another_order(rng):
    theirs = mechanism("Spherical", rng)
    ours, data = P.from_model(theirs), theirs.createData()
    q, v, a = random_state(theirs, rng)
    pin.forwardKinematics(theirs, data, q, v, a)
    p, qd, qdd = (
        P.from_q(ours, theirs, q),
        P.from_v(ours, theirs, q, v),
        P.from_a(ours, theirs, q, v, a),
    )
    _, velocity, acceleration = kinematics.body_accelerations(ours, p, qd, qdd)
    for i in range(1, theirs.njoints):
        assert_close(velocity[i].to_array(), np.roll(data.v[i].vector, 3))
        assert_close(acceleration[i].to_array(), np.roll(data.a[i].vector, 3))


def test_a_massless_and_an_impossible_body_are_written_as_they_are():
    odd = Inertia(2.0, np.array([0.1, 0.2, 0.3]), np.diag([9.0, 1.0, 1.0]))
    spin = Inertia(0.0, np.zeros(3), np.eye(3))
    bodies = tuple(
        Body(name, i, Revolute("x"), Plucker.identity(), inertia, f"{name}_joint")
        for i, (name, inertia) in enumerate(
            {"massless": Inertia.zero(), "odd": odd, "spin": spin}.items()
        )
    )
    with pytest.warns(ModelWarning, match="physically impossible"):
        m = Model(bodies, strict=False)
    theirs = P.to_model(m)
    assert theirs.inertias[1].matrix().tolist() == np.zeros((6, 6)).tolist()
    with pytest.warns(ModelWarning, match="physically impossible") as caught:
        again = P.from_model(theirs)
    assert [str(w.message).split("'")[1] for w in caught] == ["odd", "spin"]
    for i in (2, 3):
        assert_close(again.inertia[i].parameters(), m.inertia[i].parameters())

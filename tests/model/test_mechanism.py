"""Mechanisms given as graphs: any tree, any polarity, any body frame, the same physics."""

from copy import deepcopy

import numpy as np
import pytest
from support.closeness import assert_close
from support.motions import body_motions, carried_over, frame_pose

from kinetree.algorithms.crba import joint_space_inertia
from kinetree.algorithms.kinematics import base_transforms, body_accelerations
from kinetree.algorithms.rnea import bias_force
from kinetree.errors import ModelError, UnknownNameError
from kinetree.joints import (
    Cylindrical,
    Fixed,
    Free,
    Planar,
    Prismatic,
    RackAndPinion,
    Reversed,
    Revolute,
    Spherical,
    Universal,
)  # fmt: skip
from kinetree.model import Limits, Loop, MechanismGraph, ModelBuilder
from kinetree.model.mechanism import reversed_joint
from kinetree.samples import random_inertia, random_placement, satellite
from kinetree.samples.linkages import slider_crank_graph
from kinetree.spatial import Motion, crm

JOINTS = (
    Revolute("z"), Revolute((1.0, -2.0, 0.5)), Prismatic("x"), Spherical(), Cylindrical("y"),
    Universal("xy"), Planar("z"), RackAndPinion(0.2), Fixed(),
)  # fmt: skip


def random_parts(rng, bodies):
    """Names with parent, joint, placements on both sides, inertia."""
    return [
        (
            f"b{i}",
            "base" if i == 1 else f"b{rng.integers(1, i)}",
            JOINTS[rng.integers(len(JOINTS))],
            random_placement(rng),
            random_placement(rng),
            random_inertia(rng),
        )
        for i in range(1, bodies + 1)
    ]


def as_graph(parts, flip=()):
    """The mechanism of ``parts``; joints in ``flip`` are written from child to parent."""
    graph = MechanismGraph()
    for name, *_, inertia in reversed(parts):  # the order in which bodies come does not matter
        graph.body(name, inertia=inertia)
    for name, parent, joint, X_P, X_S, _ in parts:
        if name in flip:
            ends = {"predecessor": name, "successor": parent, "at": X_S, "successor_at": X_P}
            graph.joint(f"{name}_joint", Reversed(joint), **ends)
        else:
            ends = {"predecessor": parent, "successor": name, "at": X_P, "successor_at": X_S}
            graph.joint(f"{name}_joint", joint, **ends)
    return graph


def as_tree_with_massless_bodies(parts):
    """The same by hand: a massless body on each joint, the body itself welded to it."""
    builder = ModelBuilder()
    for name, parent, joint, X_P, X_S, inertia in parts:
        builder.body(f"{name}_side", on=parent, joint=joint, at=X_P, joint_name=f"{name}_joint")
        builder.body(name, on=f"{name}_side", joint=Fixed(), at=X_S.inverse(), inertia=inertia,
                     joint_name=f"{name}_weld")  # fmt: skip
    return builder.build()


def assert_same_motion(one, other, names, ulps=1e3):
    for name in names:
        assert_close(one[name], other[name], ulps=ulps)


@pytest.mark.covers("RBDA 4.1", "RBDA 4.2", by=MechanismGraph)
def test_body_frames_and_polarity_do_not_change_the_motion(rng):
    for _ in range(4):
        parts = random_parts(rng, 6)
        names = [part[0] for part in parts]
        reference = as_tree_with_massless_bodies(parts)
        q = reference.random_configuration(rng)
        qd, tau = rng.standard_normal((2, reference.nv))
        expected = body_motions(reference, q, qd, tau=tau)
        for flip in ((), names, [n for n in names if rng.random() < 0.5]):
            model = as_graph(parts, flip).to_model()
            state = (
                carried_over(reference, model, q, "q"),
                carried_over(reference, model, qd, "v"),
            )
            moved = body_motions(model, *state, tau=carried_over(reference, model, tau, "v"))
            assert_same_motion(moved, expected, names)
            for name in names:  # the frame a body was described in is still there
                pose = frame_pose(model, state[0], f"{name}_link")
                assert_close(pose, frame_pose(reference, q, name), ulps=1e3)


@pytest.mark.covers("RBDA 4.1", by=MechanismGraph)
def test_a_joint_written_backwards_becomes_a_reversed_joint():
    def model(forward):
        ends = ("base", "pinion") if forward else ("pinion", "base")
        graph = MechanismGraph().body("pinion", inertia=random_inertia(np.random.default_rng(1)))
        return graph.joint("rack", RackAndPinion(0.1), predecessor=ends[0], successor=ends[1])

    assert model(True).to_model().joint[1] == RackAndPinion(0.1)
    assert model(False).to_model().joint[1] == Reversed(RackAndPinion(0.1))
    assert model(False).spanning_tree().forward == (None, False)
    assert reversed_joint(Reversed(Revolute("x"))) == Revolute("x")


def test_forward_graph_without_shifted_frames_is_the_model_of_the_builder(rng):
    parts = [(n, p, j, X_P, None, I) for n, p, j, X_P, _, I in random_parts(rng, 5)]
    builder = ModelBuilder()
    graph = MechanismGraph()
    for name, parent, joint, at, _, inertia in parts:
        builder.body(name, on=parent, joint=joint, at=at, inertia=inertia)
        graph.body(name, inertia=inertia)
        ends = {"predecessor": parent, "successor": name}
        graph.joint(f"{name}_joint", joint, at=at, **ends)
    builder.frame("eye", on="b3", at=(0, 0, 1))
    graph.frame("eye", on="b3", at=(0, 0, 1))
    assert graph.to_model() == builder.build()
    assert MechanismGraph.from_model(builder.build()).to_model() == builder.build()


@pytest.mark.covers("RBDA 4.1", by=MechanismGraph)
def test_any_body_can_be_the_floating_base(rng):
    parts = [part for part in random_parts(rng, 5) if part[0] != "b1"]
    names = ["b1", *(part[0] for part in parts)]
    graph = MechanismGraph().body("b1", inertia=random_inertia(rng))
    for name, parent, joint, X_P, X_S, inertia in parts:
        graph.body(name, inertia=inertia)
        ends = {"predecessor": parent, "successor": name, "at": X_P, "successor_at": X_S}
        graph.joint(f"{name}_joint", joint, **ends)

    reference = deepcopy(graph).float_unconnected("b1").to_model()
    q, qd = reference.random_configuration(rng), rng.standard_normal(reference.nv)
    tau = rng.standard_normal(reference.nv)
    tau[reference.v_slice[reference.body_index("b1")]] = 0
    expected = body_motions(reference, q, qd, tau=tau)
    for root in names[1:]:
        model = deepcopy(graph).float_unconnected(root).to_model()
        assert model.nv == reference.nv
        q_new, qd_new = state_of_other_root(reference, model, root, q, qd)
        moved = body_motions(model, q_new, qd_new, tau=carried_over(reference, model, tau, "v"))
        assert_same_motion(moved, expected, names)


def state_of_other_root(reference, model, root, q, qd):
    """The state of ``model``, which floats on ``root``, that is the state of ``reference``."""
    q_new, qd_new = carried_over(reference, model, q, "q"), carried_over(reference, model, qd, "v")
    i = model.body_index(root)
    link = f"{root}_link" if f"{root}_link" in reference.frame_names else root
    frame = reference.frame(link)
    X, v, _ = body_accelerations(reference, q, qd, reference.zero_velocity)
    X_0 = base_transforms(reference, X)
    q_new[model.q_slice[i]] = Free().coordinates(frame.placement @ X_0[frame.body])
    qd_new[model.v_slice[i]] = (frame.placement @ v[frame.body]).to_array()
    return q_new, qd_new


@pytest.mark.covers("RBDA 4.1", by=MechanismGraph)
def test_satellite_has_six_more_variables_than_its_joints():
    model = satellite()
    assert (model.nv, model.joint_names) == (6 + 1, ("bus_floating", "hinge"))
    assert not np.any(model.gravity)


@pytest.mark.covers("RBDA 4.1", "RBDA 4.2", by=MechanismGraph)
def test_every_spanning_tree_of_the_slider_crank_moves_alike(rng):
    """Gravity and loop constraints solved as one dense system, for each of the four trees."""
    graph = slider_crank_graph()
    reference, speed = None, 1.7
    for arcs in graph.connectivity().spanning_trees():
        model = graph.to_model([graph.joint_names[k] for k in arcs])
        assert (model.body_count, len(model.loops)) == (3, 1)
        q = model.neutral()
        K, _ = loop_constraint(model, q, np.zeros(model.nv))
        qd = np.linalg.svd(K)[2][-1]  # one freedom: the crank turns, the rest follows
        crank = body_motions(model, q, qd, np.zeros(model.nv))["crank"]
        qd = qd * speed / crank[1]
        K, k = loop_constraint(model, q, qd)
        H, C = joint_space_inertia(model, q), bias_force(model, q, qd)
        n, m = model.nv, len(K)
        system = np.block([[H, K.T], [K, np.zeros((m, m))]])
        qdd = np.linalg.lstsq(system, np.concatenate([-C, k]), rcond=1e-12)[0][:n]
        moved = body_motions(model, q, qd, qdd)
        reference = moved if reference is None else reference
        assert_same_motion(moved, reference, ("crank", "rod", "piston"), ulps=1e3)
    assert abs(reference["piston"][9]) > 0.01  # it does accelerate


def loop_constraint(model, q, qd):
    """``K, k`` with ``K qdd = k``, from differences of body accelerations — RBDA (8.14)."""
    (loop,) = model.loops
    T = loop.joint.constraint_subspace(np.zeros(1)).to_array()

    def relative(qd, qdd):
        X, v, a = body_accelerations(model, q, qd, qdd)
        X_0 = base_transforms(model, X)
        p, s = loop.predecessor, loop.successor
        here = loop.successor_placement @ X_0[s]

        def moved(x, i):
            return here @ X_0[i].inv_apply(x) if i else Motion.zero()

        v_J = moved(v[s], s) - moved(v[p], p)
        return T.T @ (moved(a[s], s) - moved(a[p], p) - crm(moved(v[s], s), v_J)).to_array()

    bias = relative(qd, np.zeros(model.nv))
    K = np.column_stack([relative(qd, e) - bias for e in np.eye(model.nv)])
    return K, -bias


@pytest.mark.covers("RBDA 4.2", by=(MechanismGraph, Loop))
def test_two_routes_to_a_loop_joint_meet_at_the_assembled_position():
    model = slider_crank_graph().to_model()
    (loop,) = model.loops
    X, _, _ = body_accelerations(model, model.neutral(), model.zero_velocity, model.zero_velocity)
    X_0 = base_transforms(model, X)
    one = loop.predecessor_placement @ X_0[loop.predecessor]
    other = loop.successor_placement @ X_0[loop.successor]
    assert_close(one.to_pose(), other.to_pose())
    # N_B + 2 N_L locating frames
    assert len(model.tree_transform[1:]) + 2 * len(model.loops) == 3 + 2


def test_limits_follow_a_joint_also_where_it_closes_a_loop():
    limits = Limits(-1, 1)
    graph = MechanismGraph().body("a").body("b")
    graph.joint("j", Revolute("z"), predecessor="a", successor="base", limits=limits)
    graph.joint("k", Revolute("z"), predecessor="a", successor="b")
    assert graph.to_model().bodies[0].limits == limits
    graph.joint("l", Revolute("z"), predecessor="b", successor="base", limits=limits)
    assert graph.to_model().loop_names == ("k",)  # the joint that needs no variable
    assert graph.to_model(["j", "k"]).loops[0].limits == limits


@pytest.mark.covers("RBDA 4.1", by=MechanismGraph)
def test_messages():
    graph = MechanismGraph().body("arm").body("hand")
    with pytest.raises(ModelError, match="body 'base' is the base, and there is exactly one"):
        graph.body("base")
    with pytest.raises(ModelError, match="body 'arm' is already there"):
        graph.body("arm")
    graph.joint("elbow", Revolute("z"), predecessor="arm", successor="hand")
    with pytest.raises(
        ModelError, match=r"nothing connects 'arm', 'hand' to the base 'base'.*float"
    ):
        graph.to_model()
    with pytest.raises(UnknownNameError, match=r"floating body is 'hnd'.*did you mean 'hand'"):
        graph.float_unconnected("hnd")
    graph.float_unconnected()
    assert graph.to_model().joint_names == ("arm_floating", "elbow")
    with pytest.raises(UnknownNameError, match=r"tree joint is 'elbo'.*did you mean 'elbow'"):
        graph.to_model(["elbo"])
    with pytest.raises(UnknownNameError, match="body of frame 'eye' is 'head'"):
        deepcopy(graph).frame("eye", on="head").to_model()
    with pytest.raises(UnknownNameError, match="successor of joint 'x' is 'foot'"):
        deepcopy(graph).joint("x", Fixed(), predecessor="arm", successor="foot").to_model()
    with pytest.raises(ModelError, match="joint 'x' connects body 'arm' to itself"):
        deepcopy(graph).joint("x", Fixed(), predecessor="arm", successor="arm").to_model()
    with pytest.raises(ModelError, match="'at' must be a position of 3 numbers"):
        graph.joint("x", Fixed(), predecessor="arm", successor="hand", at=(1, 2))

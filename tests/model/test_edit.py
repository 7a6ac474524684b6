"""Edits change the model, not the physics."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.motions import body_motions, carried_over, frame_pose
from support.states import random_state

from kinetree.algorithms import crba, rnea
from kinetree.algorithms.kinematics import base_transforms, body_accelerations
from kinetree.errors import LoopError, ModelError, UnknownNameError
from kinetree.joints import Cylindrical, Fixed, Free, Prismatic, Reversed, Revolute, Spherical
from kinetree.model import (
    Frame,
    Limits,
    Loop,
    Model,
    attach,
    edit,
    extract,
    floating,
    lock,
    lump_fixed,
    reroot,
    shapes,
)  # fmt: skip
from kinetree.samples import four_bar, humanoid, panda, quadruped, random_placement, random_tree
from kinetree.spatial import Motion, crf, xlt

JOINTS = (Revolute("z"), Prismatic("x"), Spherical(), Cylindrical("y"), Revolute((1, 2, 3)))


def decorated(model, rng):
    """With a frame on every body, the base too, and loops that lead up and down."""
    n = model.body_count
    frames = [Frame(f"eye{i}", i, random_placement(rng)) for i in range(n + 1)]
    loops = [
        Loop(f"tie{k}", p, s, Revolute("x"), random_placement(rng), random_placement(rng))
        for k, (p, s) in enumerate([(n, 1), (0, n), (n - 1, n)])
    ]
    return model.replace(frames=frames, loops=loops)


def loop_transforms(model, q):
    """From predecessor to successor frame of each loop joint, at q."""
    X_0 = base_transforms(
        model, body_accelerations(model, q, model.zero_velocity, model.zero_velocity)[0]
    )
    return {
        loop.name: (
            loop.successor_placement
            @ X_0[loop.successor]
            @ (loop.predecessor_placement @ X_0[loop.predecessor]).inverse()
        ).to_matrix()
        for loop in model.loops
    }


def assert_same_frames_and_loops(model, q, other, q_other, names=None):
    for name in model.frame_names if names is None else names:
        assert_close(frame_pose(other, q_other, name), frame_pose(model, q, name), ulps=1e3)
    if names is None:
        expected, found = loop_transforms(model, q), loop_transforms(other, q_other)
        assert found.keys() == expected.keys()
        for name in expected:
            assert_close(found[name], expected[name], ulps=1e3)


@pytest.mark.covers("RBDA 4.1", by=lump_fixed)
def test_lumping_fixed_joints_keeps_the_motion(rng):
    for _ in range(4):
        model = random_tree(10, rng, joints=(*JOINTS, Fixed(), Fixed(), Fixed()))
        model = decorated(
            model.replace(joint={"body1_joint": Revolute("x"), "body10_joint": Revolute("y")}), rng
        )
        model = model.replace(loops=model.loops[:1])
        lumped = lump_fixed(model)
        assert not any(isinstance(j, Fixed) for j in lumped.joint[1:])
        assert (lumped.nq, lumped.nv) == (model.nq, model.nv)
        q, qd, tau = random_state(model, rng)
        moved, expected = body_motions(lumped, q, qd, tau=tau), body_motions(model, q, qd, tau=tau)
        for name in lumped.body_names[1:]:
            assert_close(moved[name], expected[name], ulps=1e4)
        H = crba.joint_space_inertia(model, q)
        assert_close(crba.joint_space_inertia(lumped, q), H, ulps=1e3)
        assert_close(rnea.bias_force(lumped, q, qd), rnea.bias_force(model, q, qd), ulps=1e3)
        assert_same_frames_and_loops(model, q, lumped, q)
        for name in model.body_names:  # every old body is still there, as a body or as a frame
            assert_close(frame_pose(lumped, q, name), frame_pose(model, q, name), ulps=1e3)


def test_lumping_the_gripper_of_the_panda():
    lumped = lump_fixed(panda())
    assert lumped.body_count == panda().body_count - 1
    assert lumped.frame("palm").body == lumped.body_index("link7")
    assert_close(lumped.inertia[7].mass, panda().inertia[7].mass + panda().inertia[8].mass)
    assert lump_fixed(lumped) == lumped


def test_a_loop_within_one_lump_is_an_error():
    model = panda().replace(loops=[Loop("strap", 7, 8)])
    with pytest.raises(
        LoopError, match="'strap' connects 'link7' and 'palm', which fixed joints make one"
    ):
        lump_fixed(model)


@pytest.mark.parametrize("lump", [False, True])
def test_locked_joints_stand_still_and_the_rest_moves_as_if_held(rng, lump):
    model = decorated(random_tree(8, rng, joints=JOINTS), rng)
    q, qd, tau = random_state(model, rng)
    held = ["body2_joint", "body5_joint"]
    for name in held:
        qd[model.v_slice[model.joint_index(name)]] = 0
    positions = {name: q[model.q_slice[model.joint_index(name)]] for name in held}
    locked = lock(model, positions, lump=lump)
    free = np.concatenate(
        [
            np.arange(model.nv)[model.v_slice[i]]
            for i in range(1, 9)
            if model.joint_names[i - 1] not in held
        ]
    )
    H, C = crba.joint_space_inertia(model, q), rnea.bias_force(model, q, qd)
    qdd = np.zeros(model.nv)
    qdd[free] = np.linalg.solve(H[np.ix_(free, free)], (tau - C)[free])
    expected = body_motions(model, q, qd, qdd)
    q_, qd_, tau_ = (
        carried_over(model, locked, x, kind) for x, kind in ((q, "q"), (qd, "v"), (tau, "v"))
    )
    moved = body_motions(locked, q_, qd_, tau=tau_)
    for name in locked.body_names[1:]:
        assert_close(moved[name], expected[name], ulps=1e4)
    assert_same_frames_and_loops(model, q, locked, q_)


def test_locking_takes_a_number_and_drops_limits():
    model = panda()
    locked = lock(model, {"link4_joint": -1.5})
    assert (locked.nv, locked.bodies[3].limits) == (model.nv - 1, None)
    assert locked.bodies[4].limits == model.bodies[4].limits
    with pytest.raises(ModelError, match="joint 'link4_joint' has 1 position variables, got"):
        lock(model, {"link4_joint": (1, 2)})
    with pytest.raises(ModelError, match=r"joint 'root' cannot be locked there: .*quaternion"):
        lock(humanoid(), {"root": (0, 0, 0, 0, 0, 0, 0)})
    with pytest.raises(UnknownNameError, match="no joint 'link4'"):
        lock(model, {"link4": 0.0})


@pytest.mark.covers("RBDA 4.1", "6-D Guide 2: Connectivity", by=reroot)
def test_another_root_gives_the_same_motion(rng):
    model = decorated(
        random_tree(7, rng, joints=(*JOINTS, Fixed()), floating_base=True, branching=0), rng
    )
    model = model.replace(
        limits={"body2_joint": Limits(*([-9] * model.joint[2].nq, [9] * model.joint[2].nq))}
    )
    q, qd, tau = random_state(model, rng)
    tau[:6] = 0
    expected = body_motions(model, q, qd, tau=tau)
    X, v, _ = body_accelerations(model, q, qd, model.zero_velocity)
    X_0 = base_transforms(model, X)
    for root in ("body3", "body7"):
        other = reroot(model, root)
        assert isinstance(other.joint[other.body_index(root)], Free)
        assert other.parent[other.body_index(root)] == 0
        assert set(other.joint_names) == set(model.joint_names)
        i, k = model.body_index(root), other.body_index(root)
        q_, qd_, tau_ = (
            carried_over(model, other, x, kind) for x, kind in ((q, "q"), (qd, "v"), (tau, "v"))
        )
        q_[other.q_slice[k]] = Free().coordinates(X_0[i] @ model.tree_transform[1].inverse())
        qd_[other.v_slice[k]] = v[i].to_array()
        moved = body_motions(other, q_, qd_, tau=tau_)
        for name in model.body_names[1:]:
            assert_close(moved[name], expected[name], ulps=1e4)
        assert_same_frames_and_loops(model, q, other, q_)
        link = "body1_link"
        assert_close(frame_pose(other, q_, link), frame_pose(model, q, "body1"), ulps=1e3)
    assert isinstance(reroot(model, "body2").joint[2], Reversed)


def test_rerooting_there_and_back_keeps_the_frames():
    there = reroot(humanoid(), "left_foot")
    assert there.parent[there.body_index("left_foot")] == 0
    assert there.joint_names[0] == "root"
    back = reroot(there, "pelvis")
    assert back.nv == humanoid().nv
    assert not any(isinstance(j, Reversed) for j in back.joint[1:])
    assert reroot(humanoid(), "pelvis") == humanoid()


def test_only_floating_mechanisms_can_change_their_root():
    with pytest.raises(
        ModelError, match=r"by joint 'link1_joint', a Revolute; only a mechanism on a Free"
    ):
        reroot(panda(), "link3")
    with pytest.raises(ModelError, match="'base' is the base; choose a moving body"):
        reroot(humanoid(), "base")


def test_an_attached_model_moves_as_on_its_own_base(rng):
    """On a link that stands still, the mounted model moves as if fixed to the base."""
    model, other = panda(), decorated(random_tree(5, rng, joints=JOINTS), rng)
    at = random_placement(rng)
    both = attach(model, other, on="grasp", at=at, prefix="tool_")
    assert (both.nv, both.body_count) == (model.nv + other.nv, model.body_count + 5)
    q, (q1, qd1, qdd1) = model.random_configuration(rng), random_state(other, rng)
    qq = np.concatenate([q, q1])
    still = np.zeros(model.nv)
    mount = frame_pose(model, q, "grasp") @ at.to_pose()
    alone = other.replace(gravity=mount[:3, :3].T @ model.gravity)
    tau = rnea.inverse_dynamics(
        both, qq, np.concatenate([still, qd1]), np.concatenate([still, qdd1])
    )
    assert_close(tau[model.nv :], rnea.inverse_dynamics(alone, q1, qd1, qdd1), ulps=1e4)
    for name in (*other.frame_names, *other.body_names):
        there = mount @ frame_pose(other, q1, name)
        assert_close(frame_pose(both, qq, f"tool_{name}"), there, ulps=1e3)
    for name, X in loop_transforms(other, q1).items():
        assert_close(loop_transforms(both, qq)[f"tool_{name}"], X, ulps=1e3)
    # what carries sees the load as part of the body, wherever both are described
    H = crba.joint_space_inertia(both, qq)
    assert_close(H[model.nv :, model.nv :], crba.joint_space_inertia(other, q1), ulps=1e3)


def test_attaching_to_the_base_puts_two_mechanisms_side_by_side(rng):
    both = attach(panda(), panda(), at=(0, 1, 0), prefix="right_")
    q, q1 = (panda().random_configuration(rng) for _ in range(2))
    H = crba.joint_space_inertia(both, np.concatenate([q, q1]))
    assert not H[:9, 9:].any()
    assert_close(H[9:, 9:], crba.joint_space_inertia(panda(), q1), ulps=1e3)
    assert both.frame("right_base").body == 0
    with pytest.raises(ModelError, match="body name 'link1' is used 2 times"):
        attach(panda(), panda())


@pytest.mark.covers("RBDA 4.1", by=extract)
def test_an_extracted_subtree_is_a_block_of_the_whole(rng):
    model = decorated(random_tree(9, rng, joints=JOINTS), rng).replace(loops=())
    q = model.random_configuration(rng)
    H = crba.joint_space_inertia(model, q)
    for i in range(1, 10):
        part = extract(model, f"body{i}")
        assert part.body_names == (
            model.body_names[model.parent[i]], *(model.body_names[k] for k in model.subtree[i]),
        )  # fmt: skip
        assert part.frame_names == tuple(f"eye{k}" for k in model.subtree[i])
        at = np.concatenate([np.arange(model.nv)[model.v_slice[k]] for k in model.subtree[i]])
        q_part = carried_over(model, part, q, "q")
        assert_close(crba.joint_space_inertia(part, q_part), H[np.ix_(at, at)], ulps=1e3)
    assert extract(model, "base") is model


def test_loops_inside_a_subtree_go_along_and_others_are_an_error():
    ends = (humanoid().body_index(name) for name in ("left_thigh", "left_ankle"))
    model = humanoid().replace(loops=[Loop("tendon", *ends)])
    assert extract(model, "left_thigh").loops[0].successor == 3
    assert extract(model, "torso").loops == ()
    with pytest.raises(LoopError, match="'tendon' ties the subtree of 'left_shank' to body"):
        extract(model, "left_shank")


@pytest.mark.covers("RBDA 4.1", "6-D Guide 2: Connectivity", by=floating)
def test_a_floating_base_that_is_held_is_a_fixed_base(rng):
    model = decorated(panda(), rng)
    loose = floating(model, inertia=shapes.box(0.2, 0.2, 0.1, mass=3.0))
    assert (loose.nv, loose.body_names[:3]) == (model.nv + 6, ("world", "base", "link1"))
    q, qd, qdd = random_state(model, rng)
    held = np.concatenate([Free().neutral(), q])
    tau = rnea.inverse_dynamics(
        loose, held, np.concatenate([np.zeros(6), qd]), np.concatenate([np.zeros(6), qdd])
    )
    assert_close(tau[6:], rnea.inverse_dynamics(model, q, qd, qdd), ulps=1e3)
    H = crba.joint_space_inertia(loose, held)
    assert_close(H[6:, 6:], crba.joint_space_inertia(model, q), ulps=1e3)
    assert_same_frames_and_loops(model, q, loose, held)


def test_momentum_of_a_floating_mechanism_is_conserved(rng):
    """No force acts on the whole but gravity: the rate of momentum is the weight."""
    model = floating(panda(), inertia=shapes.box(0.2, 0.2, 0.1, mass=3.0))
    q, qd, tau = random_state(model, rng)
    tau[:6] = 0
    motions = body_motions(model, q, qd, tau=tau)
    X, _, _ = body_accelerations(model, q, qd, model.zero_velocity)
    X_0 = base_transforms(model, X)
    rate, moment = np.zeros(6), np.zeros(6)
    for i, name in enumerate(model.body_names[1:], start=1):
        I = model.inertia[i].inverse_transformed(X_0[i])
        velocity, a = (Motion.from_array(x) for x in np.split(motions[name], 2))
        rate += (I @ a + crf(velocity, I @ velocity)).to_array()
        moment += (I @ model.a_g).to_array()
    assert_close(rate, moment, ulps=1e4)


def test_edits_compose_on_a_linkage():
    model = four_bar()
    onboard = attach(quadruped(), model, on="trunk", at=xlt(0, 0, 0.1))
    again = lump_fixed(lock(onboard, {"crank_joint": 0.4}))
    assert len(again.loops) == 1
    assert again.body_names[again.loops[0].successor] == "rocker"
    assert again.frame("crank").body == again.body_index("trunk")
    assert isinstance(again, Model)
    tools = {"attach", "extract", "floating", "grounded", "lock", "lump_fixed", "reroot"}
    assert set(edit.__all__) == tools | {"decompose", "immerse"}

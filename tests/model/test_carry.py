"""Structural changes take everything along: dynamics, couplings, geometry, actuators, postures."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import assert_same_parts, gripper

from kinetree.algorithms import crba, jacobians
from kinetree.errors import LoopError, ModelError
from kinetree.joints import Fixed, Free, Revolute
from kinetree.model import (
    JointDynamics,
    ModelBuilder,
    attach,
    extract,
    floating,
    geometry,
    lock,
    lump_fixed,
    reroot,
)
from kinetree.samples import random_inertia


def shape_poses(model, q):
    """Poses of all shapes in the base."""
    X = [
        g.placement.to_pose()
        if g.body == 0
        else jacobians.frame_pose(model, q, model.frame(model.body_names[g.body]))
        @ g.placement.to_pose()
        for g in model.geometry
    ]
    return np.array(X)


def test_lumping_moves_shapes_with_their_bodies(rng):
    model = gripper(rng)
    lumped = lump_fixed(model)
    q = model.random_configuration(rng)
    assert_close(shape_poses(lumped, q), shape_poses(model, q))
    assert lumped.body_names[lumped.geometry[1].body] == "left"
    assert [b.dynamics for b in lumped.bodies] == [
        b.dynamics for b in model.bodies if not isinstance(b.joint, Fixed)
    ]
    assert lumped.postures == model.postures
    (c,) = lumped.couplings
    names = lumped.joint_names
    assert (names[c.joint - 1], names[c.source - 1]) == ("follow", "lead")
    assert [names[a.joint - 1] for a in lumped.actuators] == ["lead", "socket"]


class TestLock:
    def test_a_leader_takes_its_followers_along(self, rng):
        model = gripper(rng)
        locked = lock(model, {"lead": 0.5})
        for name in ("lead", "follow"):
            body = locked.bodies[locked.joint_index(name) - 1]
            assert isinstance(body.joint, Fixed)
            assert body.dynamics is None
        assert not locked.couplings
        assert [a.name for a in locked.actuators] == ["muscle"]
        home = model.posture("home")
        at = [k for i in (1, 3, 5) for k in range(model.nq)[model.q_slice[i]]]
        assert locked.posture("home").q.tolist() == [home.q[k] for k in at]
        assert not locked.posture("home").moves
        assert len(locked.posture("thrown").qd) == locked.nv
        q = np.array(home.q)
        assert_close(shape_poses(locked, q[at]), shape_poses(model, q))

    def test_a_follower_cannot_be_locked_alone_or_elsewhere(self, rng):
        model = gripper(rng)
        with pytest.raises(ModelError, match="'follow' follows 'lead' by coupling 'gear' and can"):
            lock(model, {"follow": 0.1})
        with pytest.raises(ModelError, match=r"holds joint 'follow' at -0.825; .* locked at 0.1"):
            lock(model, {"follow": 0.1, "lead": 0.5})
        lock(model, {"follow": -0.825, "lead": 0.5})

    def test_a_joint_that_is_held_can_be_locked_there_alone(self, rng):
        model = (
            ModelBuilder().body("a", joint=Revolute("x")).coupling("c", joint="a_joint",
                                                                  coefficients=0.3).build()
        )  # fmt: skip
        assert lock(model, {"a_joint": 0.3}).couplings == ()
        with pytest.raises(ModelError, match=r"holds joint 'a_joint' at 0.3; .* locked at 0.4"):
            lock(model, {"a_joint": 0.4})


class TestReroot:
    def test_postures_are_where_they_were(self, rng):
        model = gripper(rng)
        turned = reroot(model, "right")
        names = turned.joint_names
        (c,) = turned.couplings
        assert (names[c.joint - 1], names[c.source - 1]) == ("follow", "lead")
        for p in model.postures:
            new = turned.posture(p.name)
            q, q_new = np.array(p.q), np.array(new.q)
            assert_close(shape_poses(turned, q_new), shape_poses(model, q), ulps=1000)
            assert new.moves == p.moves
            if p.moves:
                for name in model.body_names:
                    v, v_new = (
                        jacobians.frame_velocity(m, x, np.array(xd), m.frame(name))
                        for m, x, xd in ((model, q, p.qd), (turned, q_new, new.qd))
                    )
                    if f"{name}_link" not in turned.frame_names:
                        assert_close(v_new, v, ulps=1000)

    def test_what_the_free_joint_has_is_in_the_way(self, rng):
        model = gripper(rng)
        assert reroot(model, "palm") is model
        sticky = model.replace(dynamics={"float": JointDynamics(damping=[1.0] * 6)})
        with pytest.raises(ModelError, match="joint 'float' has dynamics, in the axes of body"):
            reroot(sticky, "right")

    def test_armature_of_joints_that_turn_round_stays(self, rng):
        model = gripper(rng)
        turned = reroot(model, "right")
        assert turned.bodies[turned.joint_index("follow") - 1].dynamics.armature == (0.7,)


class TestAttach:
    def test_both_keep_what_they_have(self, rng):
        arm = gripper(rng)
        whole = attach(arm, gripper(rng), on="tip", at=(0, 0, 0.1), prefix="2_")
        assert len(whole.geometry) == 8
        assert whole.geometry[7].body == arm.frame("tip").body
        assert [c.name for c in whole.couplings] == ["gear", "2_gear"]
        assert [whole.joint_names[a.joint - 1] for a in whole.actuators] == [
            "lead", "socket", "2_lead", "2_socket",
        ]  # fmt: skip
        assert [p.name for p in whole.postures] == ["home", "thrown", "2_home", "2_thrown"]
        assert whole.posture("2_home").q.tolist() == [*arm.neutral(), *arm.posture("home").q]
        assert whole.posture("thrown").qd.tolist() == [*arm.posture("thrown").qd, *[0.0] * arm.nv]

    def test_postures_of_one_name_become_one(self, rng):
        def link(name):
            b = ModelBuilder().body(name, joint=Revolute("x"), inertia=random_inertia(rng))
            return b.posture("home", q={f"{name}_joint": 0.5}).build()

        assert attach(link("a"), link("b")).posture("home").q.tolist() == [0.5, 0.5]


class TestExtract:
    def test_the_part_keeps_what_it_has(self, rng):
        model = gripper(rng).replace(loops=(), couplings=())
        part = extract(model, "left")
        assert part.joint_names == ("lead", "pad_joint", "socket")
        assert [part.joint_names[a.joint - 1] for a in part.actuators] == ["lead", "socket"]
        assert [part.body_names[g.body] for g in part.geometry] == ["pad"]
        assert part.bodies[0].dynamics == model.bodies[1].dynamics
        assert part.posture("home").q.tolist() == [0.5, 1.0, 0.0, 0.0, 0.0]

    def test_a_coupling_that_leads_out_is_an_error(self, rng):
        with pytest.raises(LoopError, match="coupling 'gear' leads out of the subtree of 'left'"):
            extract(gripper(rng).replace(loops=()), "left")

    def test_couplings_inside_go_along(self, rng):
        inner = gripper(rng)
        whole = attach(ModelBuilder().body("x", joint=Revolute("x")).build(), inner, on="x")
        part = extract(whole, "palm")
        assert part.couplings == inner.couplings
        assert part.postures == inner.postures


def test_floating_base_shifts_all_numbers(rng):
    model = gripper(rng)
    free = floating(model, joint_name="new")
    (c,), (old,) = free.couplings, model.couplings
    assert (c.joint, c.source) == (old.joint + 1, old.source + 1)
    assert [g.body for g in free.geometry] == [g.body + 1 for g in model.geometry]
    assert free.posture("home").q.tolist() == [*Free().neutral(), *model.posture("home").q]
    assert free.actuation.shape == (free.nv, 2)
    assert np.array_equal(free.actuation[6:], model.actuation)


def test_dynamics_depends_on_nothing_but_the_numbers(rng):
    """Geometry, actuators and postures have no part in the equation of motion."""
    model = gripper(rng)
    bare = model.replace(geometry=(), actuators=(), postures=())
    q = model.random_configuration(rng)
    H, expected = crba.joint_space_inertia(model, q), crba.joint_space_inertia(bare, q)
    assert np.array_equal(H, expected)
    assert_same_parts(model, model.replace(name="other"))


def test_base_keeps_its_shapes(rng):
    ground = ModelBuilder().geometry(geometry.Plane()).build()
    assert lump_fixed(ground).geometry[0].body == 0

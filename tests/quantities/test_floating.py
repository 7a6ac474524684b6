"""Floating bases, relative to the base: the same motions as on a free joint."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings
from support.closeness import assert_close
from support.states import conditioning, random_external_forces

import kinetree as kt
from kinetree import floating
from kinetree.algorithms import aba, crba, floating_base, rnea
from kinetree.algorithms.closed import maximal
from kinetree.model import edit
from kinetree.samples import random_inertia, random_tree
from kinetree.spatial import Force, Motion

SEEDS = range(2100 if settings.default.max_examples > 1000 else 42)


def random_floating(rng, bodies):
    """A random tree on a floating base, a state with external forces, and the same on the base."""
    model = edit.floating(random_tree(bodies, rng), inertia=random_inertia(rng))
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    tau = np.concatenate([np.zeros(6), rng.standard_normal(model.nv - 6)])
    f = random_external_forces(model, rng)
    X = model.joint[1].jcalc(q[:7], qd[:6])[0]
    return model, q, qd, tau, f, np.array([(X.star @ force).to_array() for force in f[1:]])


@pytest.mark.covers("RBDA 9.4", "RBDA Table 9.4", by=floating_base.forward_dynamics)
@pytest.mark.covers("RBDA 9.5", "RBDA Table 9.6", by=floating_base.inverse_dynamics)
@pytest.mark.covers("RBDA 9.3", "RBDA Table 9.5", by=floating_base.equation_of_motion)
@pytest.mark.covers("RBDA Example 9.2", by=floating_base.reduced_equation)
@pytest.mark.parametrize("seed", SEEDS)
def test_both_views_give_the_same_motion(seed):
    rng = np.random.default_rng(seed)
    model, q, qd, tau, f, seen = random_floating(rng, seed % 7)
    tree, I_0 = floating.of(model)
    q_, v_0, qd_ = q[7:], qd[:6], qd[6:]
    gravity = model.joint[1].jcalc(q[:7], v_0)[0].E @ model.gravity
    v, a_g = Motion.from_array(v_0), Motion(np.zeros(3), gravity)
    forces, condition = [Force.from_array(x) for x in seen], conditioning(model, q)

    qdd = aba.forward_dynamics(model, q, qd, tau, f)
    scale = float(np.max(np.abs(qdd)))
    forward = floating_base.forward_dynamics(tree, I_0, q_, v, qd_, tau[6:], a_g, forces)
    found = np.concatenate([forward.a_0.to_array(), forward.joints])
    assert_close(found, qdd, scale=scale, condition=condition)

    inverse = floating_base.inverse_dynamics(tree, I_0, q_, v, qd_, qdd[6:], a_g, forces)
    H = crba.joint_space_inertia(model, q)
    assert_close(inverse.a_0.to_array(), qdd[:6], scale=scale, condition=condition)
    force_scale = float(np.max(np.abs(H)) * max(scale, 1.0))
    assert_close(inverse.joints, tau[6:], scale=force_scale, condition=condition)

    equation = floating_base.equation_of_motion(tree, I_0, q_, v, qd_, a_g, forces)
    I0c, F, H_joints, p0c, C = equation
    assert_close(np.block([[I0c.to_matrix(), F], [F.T, H_joints]]), H, condition=10)
    bias = rnea.bias_force(model, q, qd, f)
    assert_close(np.concatenate([p0c, C]), bias, condition=1e3)
    H_fl, C_fl = floating_base.reduced_equation(equation)
    assert_close(H_fl @ qdd[6:] + C_fl, tau[6:], scale=force_scale, condition=condition)


def test_compiled_batches_equal_the_free_joint(rng):
    model = kt.samples.quadruped()
    base = floating.of(model)
    q = np.array([model.random_configuration(rng) for _ in range(4)])
    qd, _qdd = rng.standard_normal((2, 4, model.nv))
    tau = np.concatenate([np.zeros((4, 6)), rng.standard_normal((4, model.nv - 6))], axis=-1)
    q_, v_0, qd_, gravity = floating.base_state(model, q, qd)
    a_0, joints = floating.forward_dynamics(base, q_, v_0, qd_, tau[:, 6:], gravity)
    expected = kt.forward_dynamics(model, q, qd, tau)
    condition = conditioning(model, q[0])
    scale = float(np.max(np.abs(expected)))
    found = np.concatenate([a_0, joints], axis=-1)
    assert_close(found, expected, scale=scale, condition=condition)
    a_0, forces = floating.inverse_dynamics(base, q_, v_0, qd_, joints, gravity)
    assert_close(forces, tau[:, 6:], scale=scale, condition=condition)

    equation = floating.equation_of_motion(base, q_, v_0, qd_, gravity)
    assert_close(equation.I0c, kt.mass_matrix(model, q)[..., :6, :6], condition=10)
    H, C = floating.reduced_equation(base, q_, v_0, qd_, gravity)
    left = np.einsum("kij,kj->ki", H, joints) + C
    assert_close(left, tau[:, 6:], scale=scale, condition=condition)


@pytest.mark.covers("RBDA 9.4", "RBDA 9.5", by=floating.base_state)
@pytest.mark.parametrize("placement", [None, kt.rotx(0.4) @ kt.xlt(0.3, -1.0, 2.0)])
def test_external_forces_of_the_world_are_converted_to_the_base(rng, placement):
    model = kt.samples.quadruped()
    if placement is not None:  # the free joint need not start at the origin of the world
        first = replace(model.bodies[0], placement=placement)
        model = model.replace(bodies=[first, *model.bodies[1:]])
    base = floating.of(model)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    qd, tau = rng.standard_normal((2, 3, model.nv))
    tau[:, :6] = 0
    f_ext = 10 * rng.standard_normal((3, model.body_count, 6))
    *state, gravity, forces = floating.base_state(model, q, qd, f_ext)
    a_0, qdd = floating.forward_dynamics(base, *state, tau[:, 6:], gravity, forces)
    expected = kt.forward_dynamics(model, q, qd, tau, f_ext=f_ext)
    scale, condition = float(np.max(np.abs(expected))), conditioning(model, q[0])
    assert_close(np.concatenate([a_0, qdd], -1), expected, scale=scale, condition=condition)
    a_0, found = floating.inverse_dynamics(base, *state, qdd, gravity, forces)
    assert_close(found, tau[:, 6:], scale=scale, condition=condition)
    assert not np.allclose(forces, f_ext)
    with pytest.raises(kt.ShapeError, match=r"f_ext"):
        floating.base_state(model, q, qd, f_ext[:, 1:])


@pytest.mark.covers("RBDA 9.5", "RBDA Example 9.3", by=floating_base.momentum)
def test_momentum_is_that_of_the_model_on_a_free_joint(rng):
    model = kt.samples.quadruped()
    base = floating.of(model)
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    q_, v_0, qd_, _ = floating.base_state(model, q, qd)
    X = model.joint[1].jcalc(q[:7], qd[:6])[0] @ model.tree_transform[1]
    world = X.inv_apply(Force.from_array(floating.momentum(base, q_, v_0, qd_)))
    assert_close(world.to_array(), kt.momentum(model, q, qd), condition=10)
    # (9.13): twice the kinetic energy
    energy = v_0 @ floating.momentum(base, q_, v_0, qd_)
    equation = floating.equation_of_motion(base, q_, v_0, qd_)
    energy += qd_ @ (equation.F.T @ v_0 + equation.H @ qd_)
    assert_close(energy / 2, kt.kinetic_energy(model, q, qd), condition=10)


@pytest.mark.covers("RBDA Example 9.4", by=floating_base.jacobian_correction)
def test_internal_impulses_keep_the_momentum_and_act_by_the_generalized_jacobian(rng):
    model = kt.samples.quadruped()
    base = floating.of(model)
    q, qd = model.random_configuration(rng), np.zeros(model.nv)
    q_, *_ = floating.base_state(model, q, qd)
    impulse = np.concatenate([np.zeros(6), rng.standard_normal(model.nv - 6)])
    jump = kt.inverse_mass_matrix(model, q) @ impulse
    gained = floating.momentum(base, q_, jump[:6], jump[6:])
    scale = float(np.max(np.abs(impulse)))
    assert_close(gained, np.zeros(6), scale=scale, condition=1e3)
    frame = model.body_names[-1]
    J = floating.generalized_jacobian(base, q_, frame)
    X = model.joint[1].jcalc(q[:7], qd[:6])[0] @ model.tree_transform[1]
    moved = X @ Motion.from_array(kt.velocity(model, q, jump, frame, frame="world"))
    assert_close(J @ jump[6:], moved.to_array(), condition=1e3)


def test_a_force_free_tumbling_mechanism_keeps_momentum_and_energy_rates(rng):
    model, q, qd, *_ = random_floating(rng, 4)
    base = floating.of(model)
    q_, v_0, qd_, _ = floating.base_state(model, q, qd)
    a_0, qdd = floating.forward_dynamics(base, q_, v_0, qd_, np.zeros(len(qd_)))
    rate = kt.kinetic_energy_rate(model, q, qd, np.concatenate([a_0, qdd]))
    scale = float(np.abs(kt.kinetic_energy(model, q, qd)) * np.max(np.abs(qd)))
    assert_close(rate, 0.0, scale=scale, condition=1e4)


def test_two_bodies_have_the_closed_form(rng):
    """RBDA (9.29): one joint between two bodies."""
    I_0, I_1 = random_inertia(rng), random_inertia(rng)
    tree = kt.ModelBuilder("pair").body("b", joint=kt.Revolute("z"), inertia=I_1).build()
    q, v_0, qd = rng.standard_normal(1), rng.standard_normal(6), rng.standard_normal(1)
    equation = floating.equation_of_motion(floating.FloatingBase(tree, I_0), q, v_0, qd)
    X, s, I1 = kt.rotz(q[0]).to_matrix(), np.eye(6)[2], I_1.to_matrix()
    assert_close(equation.H[0, 0], s @ I1 @ s)
    assert_close(equation.F[:, 0], X.T @ I1 @ s, condition=10)
    assert_close(equation.I0c, I_0.to_matrix() + X.T @ I1 @ X, condition=10)


def test_joint_state_and_base_state_are_inverse(rng):
    model = kt.samples.quadruped()
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    q_, v_0, qd_, gravity = floating.base_state(model, q, qd)
    again = floating.joint_state(q[:7], q_, v_0, qd_)
    np.testing.assert_array_equal(again[0], q)
    np.testing.assert_array_equal(again[1], qd)
    assert_close(np.linalg.norm(gravity), np.linalg.norm(model.gravity))


@pytest.mark.covers("RBDA 9.3", by=edit.grounded)
def test_grounded_undoes_floating(rng):
    tree, I_0 = random_tree(5, rng), random_inertia(rng)
    base = floating.of(edit.floating(tree, inertia=I_0))
    assert base.tree.fingerprint == tree.fingerprint
    assert base.tree.base_name == tree.base_name
    np.testing.assert_array_equal(base.inertia.parameters(), I_0.parameters())


def test_what_does_not_float_is_rejected():
    with pytest.raises(kt.ModelError, match="no floating base: a single body on a Free joint"):
        floating.of(kt.samples.panda())
    base = floating.of(kt.samples.quadruped())
    n = base.tree.nv
    with pytest.raises(kt.ShapeError, match="a row for the base and one for each body"):
        floating.forward_dynamics(
            base, base.tree.neutral(), np.zeros(6), np.zeros(n), np.zeros(n), f_ext=np.zeros((2, 6))
        )
    with pytest.raises(TypeError, match="expected a FloatingBase"):
        floating.momentum(base.tree, base.tree.neutral(), np.zeros(6), np.zeros(n))


# --- loops ---------------------------------------------------------------------------------------


def floating_four_bar(rng):
    """A four-bar linkage whose frame floats, closed and moving, and forces on it."""
    model = edit.floating(kt.samples.four_bar(), inertia=random_inertia(rng))
    q = np.concatenate([rng.normal(size=3), rng.normal(size=4), kt.samples.four_bar().neutral()])
    q[3:7] /= np.linalg.norm(q[3:7])
    q = kt.loops.assemble(model, q)
    qd = kt.loops.project_velocity(model, q, rng.standard_normal(model.nv))
    tau = np.concatenate([np.zeros(6), rng.standard_normal(model.nv - 6)])
    return model, q, qd, tau


def test_forward_dynamics_honours_loops(rng):
    model, q, qd, tau = floating_four_bar(rng)
    f = random_external_forces(model, rng)
    X = model.joint[1].jcalc(q[:7], qd[:6])[0]
    seen = np.array([(X.star @ force).to_array() for force in f[1:]])
    base = floating.of(model)
    q_, v_0, qd_, gravity = floating.base_state(model, q, qd)
    a_0, joints = floating.forward_dynamics(base, q_, v_0, qd_, tau[6:], gravity, f_ext=seen)
    found = np.concatenate([a_0, joints])
    expected = maximal.forward_dynamics(model, q, qd, tau, f)
    scale = float(np.max(np.abs(expected)))
    assert_close(found, expected, scale=scale, condition=1e6)
    K, k = kt.loops.constraint(base.tree, q_, qd_)[:2]
    assert_close(K @ joints, k, scale=scale, condition=1e4)


def test_forward_dynamics_of_loops_in_batches(rng):
    model, q, qd, tau = floating_four_bar(rng)
    base = floating.of(model)
    q_, v_0, qd_, gravity = floating.base_state(model, q, qd)
    one = np.concatenate(floating.forward_dynamics(base, q_, v_0, qd_, tau[6:], gravity))
    pulls = gravity * np.array([[1.0], [0.0], [1.0]])
    a_0, joints = floating.forward_dynamics(base, q_, v_0, qd_, tau[6:], pulls)
    assert a_0.shape == (*joints.shape[:-1], 6) == (3, 6)
    np.testing.assert_allclose(a_0[0], one[:6], rtol=1e-12)
    np.testing.assert_allclose(a_0[1], one[:6] - [0, 0, 0, *gravity], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(joints[1], joints[2])


def test_momentum_and_jacobian_of_a_mechanism_with_loops(rng):
    model, q, qd, _ = floating_four_bar(rng)
    base, (q_, v_0, qd_, _) = floating.of(model), floating.base_state(model, q, qd)
    X = model.joint[1].jcalc(q[:7], qd[:6])[0]
    seen = X.star @ Force.from_array(kt.momentum(model, q, qd))
    assert_close(floating.momentum(base, q_, v_0, qd_), seen.to_array(), condition=10)
    recoil = -np.linalg.solve(crba.joint_space_inertia(model, q)[:6, :6],
                              crba.joint_space_inertia(model, q)[:6, 6:] @ qd_)  # fmt: skip
    name = base.tree.body_names[-1]
    moved = X.to_matrix() @ kt.jacobian(model, q, name, frame="world")
    found = floating.generalized_jacobian(base, q_, name) @ qd_
    assert_close(found, moved[:, :6] @ recoil + moved[:, 6:] @ qd_, condition=1e3)


def test_joint_forces_of_a_mechanism_with_loops_are_the_smallest(rng):
    model, q, qd, tau = floating_four_bar(rng)
    base, (q_, v_0, qd_, gravity) = floating.of(model), floating.base_state(model, q, qd)
    a_0, qdd = floating.forward_dynamics(base, q_, v_0, qd_, tau[6:], gravity)
    again, forces = floating.inverse_dynamics(base, q_, v_0, qd_, qdd, gravity)
    scale = float(np.max(np.abs([*a_0, *qdd])))
    assert_close(again, a_0, scale=scale, condition=1e4)
    motors = [base.tree.driven_joint(a) for a in base.tree.actuators]
    assert np.count_nonzero(forces) == len(motors) == 1
    for found, expected in zip(
        floating.forward_dynamics(base, q_, v_0, qd_, forces, gravity), (a_0, qdd), strict=True
    ):
        assert_close(found, expected, scale=scale, condition=1e5)


def test_equation_of_motion_of_a_mechanism_with_loops(rng):
    model, q, qd, tau = floating_four_bar(rng)
    base, (q_, v_0, qd_, gravity) = floating.of(model), floating.base_state(model, q, qd)
    a_0, qdd = floating.forward_dynamics(base, q_, v_0, qd_, tau[6:], gravity)
    for independent in (None, "rocker_joint"):
        options = {"independent": independent}
        G, _, names = kt.loops.null_space(base.tree, q_, qd_, **options)
        ydd = qdd[[base.tree.joint_names.index(name) for name in names]]
        e = floating.equation_of_motion(base, q_, v_0, qd_, gravity, **options)
        scale = float(np.max(np.abs(e.I0c))) * float(np.max(np.abs([*a_0, *qdd])))
        assert_close(e.I0c @ a_0 + e.F @ ydd + e.p0c, np.zeros(6), scale=scale, condition=1e4)
        load = G.T @ tau[6:]
        assert_close(e.F.T @ a_0 + e.H @ ydd + e.C, load, scale=scale, condition=1e4)
        H, C = floating.reduced_equation(base, q_, v_0, qd_, gravity, **options)
        assert_close(H @ ydd + C, load, scale=scale, condition=1e4)
    tree = floating.FloatingBase(base.tree.spanning_tree, base.inertia)
    with pytest.raises(kt.LoopError, match=r"has no loops.*got independent='rocker_joint'"):
        floating.reduced_equation(tree, q_, v_0, qd_, independent="rocker_joint")


@pytest.mark.covers("RBDA Example 9.2", by=floating_base.reduced_equation)
def test_the_reduced_equation_has_none_of_the_zeros_of_a_branched_tree(rng):
    """A binary tree of seven bodies: 27 nonzeros in ``H``, 49 in ``H_fl``, which is dense."""
    builder = kt.ModelBuilder("binary tree")
    for i in range(1, 8):
        on = None if i == 1 else f"b{i // 2}"
        builder.body(
            f"b{i}", on=on, joint=kt.Revolute("xyz"[i % 3]), at=tuple(rng.normal(size=3)),
            inertia=random_inertia(rng),
        )  # fmt: skip
    tree, q = builder.build(), rng.normal(size=7)
    base = floating.FloatingBase(tree, random_inertia(rng))
    equation = floating.equation_of_motion(base, q, np.zeros(6), np.zeros(7))
    H_fl, _ = floating.reduced_equation(base, q, np.zeros(6), np.zeros(7))
    assert np.count_nonzero(equation.H) == 27
    assert np.count_nonzero(H_fl) == 49
    assert np.all(np.linalg.eigvalsh(H_fl) > 0)

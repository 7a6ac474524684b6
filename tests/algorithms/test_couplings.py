"""Couplings: one constraint in two forms, and the motion it leaves."""

from fractions import Fraction

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import conditioning

import kinetree as kt
from kinetree.algorithms import coupled as couplings
from kinetree.algorithms import crba, rnea
from kinetree.algorithms.closed import divide_and_conquer, maximal
from kinetree.algorithms.closed.systems import Explicit, Implicit
from kinetree.errors import ModelError
from kinetree.joints import Free, Helical, Prismatic, Revolute, Spherical
from kinetree.model import Coupling, JointDynamics, ModelBuilder
from kinetree.model.gearing import Gearing
from kinetree.samples import random_inertia, random_placement
from kinetree.textbook import state_space
from kinetree.textbook.constraint_equations import check_same_constraint


def machine(rng, gear=(0.3, -2.0, 0.5)):
    """On a floating base: a leads b leads c, d is held, e follows nothing."""
    builder = ModelBuilder("machine").body("base body", joint=Free(), inertia=random_inertia(rng))
    kinds = (Helical("y", pitch=0.1), Prismatic("x"), Revolute((1, 2, 2)), Revolute("z"))
    for name, joint in zip("cabd", kinds, strict=True):
        builder.body(
            name,
            on="base body" if name in "cd" else "c",
            joint=joint,
            at=random_placement(rng),
            inertia=random_inertia(rng),
            joint_name=name,
            dynamics=JointDynamics(armature=rng.uniform(0.1, 1.0)) if name in "bd" else None,
        )
    builder.body("e", on="d", joint=Spherical(), inertia=random_inertia(rng), joint_name="e")
    builder.coupling("b to c", joint="c", source="b", coefficients=(0.1, 1.5))
    builder.coupling("a to b", joint="b", source="a", coefficients=gear)
    return builder.coupling("hold d", joint="d", coefficients=0.4).build()


def state(model, rng):
    return model.random_configuration(rng), rng.standard_normal(model.nv)


def test_both_forms_are_one_constraint(rng):
    model = machine(rng)
    at = Gearing(model, *state(model, rng))
    K, k = couplings.coupling_rows(model, at.q, at.qd)
    check_same_constraint(Implicit(K, k), Explicit(at.G, at.g))
    assert model.nv == model.uncoupled.nv - 3


def test_rows_are_derivatives_of_where_followers_belong(rng):
    model = machine(rng)
    q, qd = state(model, rng)
    step = 1e-30
    at = Gearing(model, q, qd)
    moved = Gearing(model, q + 1j * step * model.configuration_rate(q, qd), qd.astype(complex))
    followers = [model.uncoupled.q_slice[c.joint].start for c in model.couplings]
    rows = [model.uncoupled.v_slice[c.joint].start for c in model.couplings]
    assert_close(moved.q[followers].imag / step, at.qd[rows])
    assert_close(moved.G.imag / step, at.G_rate)
    assert_close(at.G_rate @ qd, at.g)


def test_exact_numbers_stay_exact():
    b = ModelBuilder().body("a", joint=Prismatic("x")).body("b", joint=Prismatic("x"))
    model = b.coupling("c", joint="b_joint", source="a_joint", coefficients=(1, 2, 3)).build()
    at = Gearing(model, np.array([Fraction(1, 3)]), np.array([Fraction(1, 2)]))
    assert at.q.tolist() == [Fraction(1, 3), Fraction(2)]
    assert at.G.tolist() == [[1], [4]]
    assert at.g.tolist() == [0, Fraction(6, 4)]
    K, k = couplings.coupling_rows(model, at.q, at.qd)
    assert K.tolist() == [[-4, 1]]
    assert k.tolist() == [Fraction(6, 4)]


@pytest.mark.parametrize("gear", [(0.3, -2.0), (0.3, -2.0, 0.5), (0.0, 0.5, 0.2, -0.1)])
def test_motion_is_that_of_the_reduced_system(gear, rng):
    """The follower eliminated by hand: GᵀHG ydd + Gᵀ(C + Hg) = tau — RBDA (3.20)."""
    model = machine(rng, gear)
    q, qd = state(model, rng)
    tau, tree, at = rng.standard_normal(model.nv), model.uncoupled, Gearing(model, q, qd)
    H, C = kt.mass_matrix(tree, at.q), kt.bias_force(tree, at.q, at.qd)
    expected = np.linalg.solve(at.G.T @ H @ at.G, tau - at.G.T @ (C + H @ at.g))
    condition = 100 * conditioning(tree, at.q)
    for method in (None, "aba", "crba", "implicit", "maximal"):
        actual = kt.forward_dynamics(model, q, qd, tau, method=method)
        assert_close(actual, expected, condition=condition)


def test_forces_across_joints_carry_those_of_couplings_and_armature(rng):
    """Newton and Euler give the same forces for the motion; the bearings take their part."""
    model = machine(rng)
    q, qd = state(model, rng)
    s = maximal.solution(model, q, qd, rng.standard_normal(model.nv))
    rne = rnea.newton_euler(model, q, qd, s.qdd)
    X_0 = [None]
    for i in range(1, model.body_count + 1):
        X_0.append(rne.X[i] @ X_0[model.parent[i]] if model.parent[i] else rne.X[i])
        f = X_0[i].T @ rne.f[i]
        assert_close(s.f_J[i].to_array(), f.to_array(), ulps=1000, condition=100)


def test_batches_and_external_forces(rng):
    model = machine(rng)
    states = [state(model, rng) for _ in range(3)]
    q, qd = (np.array(x) for x in zip(*states, strict=True))
    f_ext, tau = rng.standard_normal((2, model.body_count, 6)), np.zeros(model.nv)
    batch = kt.forward_dynamics(model, q, qd, tau, f_ext[0])
    one = kt.forward_dynamics(model, q[1], qd[1], tau, f_ext[0])
    assert_close(batch[1], one, ulps=100)
    assert_close(one, kt.forward_dynamics(model, q[1], qd[1], tau, f_ext[0], method="maximal"),
                 ulps=1000, condition=100)  # fmt: skip


def test_state_derivative_honours_couplings(rng):
    model = machine(rng)
    q, qd = state(model, rng)
    x, tau = state_space.join_state(q, qd), rng.standard_normal(model.nv)
    _, qdd = state_space.split_state(model, state_space.state_derivative(model, x, tau))
    assert_close(qdd, kt.forward_dynamics(model, q, qd, tau), condition=100)


def test_divide_and_conquer_has_no_place_for_couplings(rng):
    model = machine(rng)
    q, qd = state(model, rng)
    bare = model.replace(dynamics=dict.fromkeys(model.joint_names))
    with pytest.raises(ModelError, match="divide_and_conquer does not support coupling 'b to c'"):
        divide_and_conquer.forward_dynamics(bare, q, qd, qd)


def test_inside_kernels_of_ones_own(rng):
    model = machine(rng)
    q, qd = state(model, rng)

    @kt.kernel
    def step(model, q, qd, tau):
        return kt.forward_dynamics(model, q, qd, tau)

    by_ranks = kt.forward_dynamics(model, q, qd, qd, method="implicit")
    assert_close(step(model, q, qd, qd), by_ranks, ulps=1e4)


def test_kinetic_energy_is_that_of_the_reduced_inertia(rng):
    model = machine(rng)
    q, qd = state(model, rng)
    H = crba.joint_space_inertia(model, q)
    assert_close(kt.kinetic_energy(model, q, qd), qd @ H @ qd / 2)


def test_a_joint_that_follows_has_no_motion_of_its_own(rng):
    model = machine(rng)
    with pytest.raises(ModelError, match=r"algorithms for single joints take model\.uncoupled"):
        model.jcalc(model.joint_index("b"), *state(model, rng))


def test_a_belt_lets_two_wheels_turn_as_one():
    """Two wheels about parallel axes, geared 3 to 1: I1 + 9 I2 is what the first one feels."""
    wheel = kt.shapes.cylinder(0.1, 0.02, mass=2.0)
    builder = ModelBuilder(gravity=(0, 0, 0))
    builder.body("one", joint=Revolute("z"), inertia=wheel)
    builder.body("two", joint=Revolute("z"), at=(1, 0, 0), inertia=wheel)
    model = builder.build()
    model = model.replace(couplings=[Coupling("belt", 2, 1, (0.0, 3.0))])
    qdd = kt.forward_dynamics(model, np.zeros(1), np.zeros(1), np.array([1.0]))
    I = wheel.rotational[2, 2]
    assert_close(qdd, np.array([1.0]) / (10 * I))
    assert_close(model.expand_velocity([0.0], [1.0]), [1.0, 3.0])

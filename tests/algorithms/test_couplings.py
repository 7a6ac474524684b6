"""Couplings: one constraint in two forms, and the motion it leaves."""

from fractions import Fraction

import numpy as np
import pytest
from closeness import assert_close
from states import conditioning

import kinetree as kt
from kinetree.algorithms import (
    closure,
    couplings,
    crba,
    divide_and_conquer,
    implicit,
    maximal,
    rnea,
    state_space,
)
from kinetree.algorithms.constraints import Explicit, Implicit, check_same_constraint
from kinetree.errors import LoopError, ModelError, ShapeError
from kinetree.joints import Free, Helical, Prismatic, Revolute, Spherical
from kinetree.model import Coupling, JointDynamics, ModelBuilder
from kinetree.samples import random_inertia, random_placement


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


def coupled_state(model, rng):
    """A state that obeys the couplings of ``machine``, with ``y``-velocities at random."""
    at = {name: model.q_slice[model.joint_index(name)].start for name in "abcd"}
    q = model.random_configuration(rng)
    gear = model.couplings[1].coefficients
    q[at["b"]] = np.polynomial.Polynomial(gear)(q[at["a"]])
    q[at["c"]] = 0.1 + 1.5 * q[at["b"]]
    q[at["d"]] = 0.4
    G = couplings.coupling_map(model, q, np.zeros(model.nv)).G
    return q, G @ rng.standard_normal(G.shape[1])


def test_both_forms_are_one_constraint(rng):
    model = machine(rng)
    q, qd = coupled_state(model, rng)
    K, k, error = couplings.coupling_rows(model, q, qd)
    G, g, independent = couplings.coupling_map(model, q, qd)
    assert len(independent) == model.nv - 3
    check_same_constraint(Implicit(K, k, error=error), Explicit(G, g))
    assert_close(G @ qd[list(independent)], qd)


def test_rows_are_derivatives_of_the_error(rng):
    model = machine(rng)
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    K, k, _ = couplings.coupling_rows(model, q, qd)
    step = 1e-30
    dq = model.configuration_rate(q, qd)
    moved = couplings.coupling_rows(model, q + 1j * step * dq, qd)
    assert_close(moved.error.imag / step, K @ qd)
    assert_close((moved.K @ qd).imag / step, -k)


def test_exact_numbers_stay_exact():
    b = ModelBuilder().body("a", joint=Prismatic("x")).body("b", joint=Prismatic("x"))
    model = b.coupling("c", joint="b_joint", source="a_joint", coefficients=(1, 2, 3)).build()
    q = np.array([Fraction(1, 3), Fraction(2)])
    K, k, error = couplings.coupling_rows(model, q, np.array([Fraction(1, 2), 0]))
    assert K.tolist() == [[-4, 1]]
    assert k.tolist() == [Fraction(6, 4)]
    assert error.tolist() == [0]


@pytest.mark.parametrize("gear", [(0.3, -2.0), (0.3, -2.0, 0.5), (0.0, 0.5, 0.2, -0.1)])
def test_motion_is_that_of_the_reduced_system(gear, rng):
    """The follower eliminated by hand: GᵀHG ydd + Gᵀ(C + Hg) = Gᵀtau — RBDA (3.20)."""
    model = machine(rng, gear)
    q, qd = coupled_state(model, rng)
    tau = rng.standard_normal(model.nv)
    tree = model.replace(couplings=())
    H, C = kt.mass_matrix(tree, q), kt.bias_force(tree, q, qd)
    G, g, _ = couplings.coupling_map(model, q, qd)
    ydd = np.linalg.solve(G.T @ H @ G, G.T @ (tau - C - H @ g))
    expected = G @ ydd + g
    condition = 100 * conditioning(tree, q)
    for method in (None, "implicit", "maximal"):
        actual = kt.forward_dynamics(model, q, qd, tau, method=method)
        assert_close(actual, expected, condition=condition)
    s = implicit.solution(model, q, qd, tau)
    assert (s.rank, s.redundancy) == (3, 0)
    assert_close(H @ s.qdd + C, tau + s.tau_c, condition=condition)
    assert_close(G.T @ s.tau_c, np.zeros(G.shape[1]), scale=np.max(np.abs(s.tau_c)), condition=100)


def test_forces_across_joints_carry_those_of_couplings_and_armature(rng):
    """Newton and Euler, told the motion, ask for the same forces; the bearings take their part."""
    model = machine(rng)
    q, qd = coupled_state(model, rng)
    tau = rng.standard_normal(model.nv)
    s = maximal.solution(model, q, qd, tau)
    rne = rnea.newton_euler(model, q, qd, s.qdd)
    X_0 = [None]
    for i in range(1, model.body_count + 1):
        X_0.append(rne.X[i] @ X_0[model.parent[i]] if model.parent[i] else rne.X[i])
        f = X_0[i].T @ rne.f[i]
        assert_close(s.f_J[i].to_array(), f.to_array(), ulps=1000, condition=100)


def test_batches_and_external_forces(rng):
    model = machine(rng)
    states = [coupled_state(model, rng) for _ in range(3)]
    q, qd = (np.array(x) for x in zip(*states, strict=True))
    f_ext, tau = rng.standard_normal((2, model.body_count, 6)), np.zeros(model.nv)
    batch = kt.forward_dynamics(model, q, qd, tau, f_ext[0])
    one = kt.forward_dynamics(model, q[1], qd[1], tau, f_ext[0])
    assert_close(batch[1], one, ulps=0)
    assert_close(one, kt.forward_dynamics(model, q[1], qd[1], tau, f_ext[0], method="maximal"),
                 ulps=1000, condition=100)  # fmt: skip


def test_state_derivative_honours_couplings(rng):
    model = machine(rng)
    q, qd = coupled_state(model, rng)
    x, tau = state_space.join_state(q, qd), rng.standard_normal(model.nv)
    _, qdd = state_space.split_state(model, state_space.state_derivative(model, x, tau))
    assert_close(qdd, kt.forward_dynamics(model, q, qd, tau))


def test_stabilisation_pulls_the_follower_back(rng):
    model = machine(rng)
    q, qd = coupled_state(model, rng)
    at = model.q_slice[model.joint_index("c")].start
    q[at] += 1e-4
    plain, pulled = (
        implicit.constraint(model, q, qd, stabilization=t).implicit for t in (None, 0.1)
    )
    assert_close(pulled.k - plain.k, [-1e-4 / 0.01, 0.0, 0.0], ulps=1000, scale=1)


class TestRefusals:
    def test_states_off_the_coupling(self, rng):
        model = machine(rng)
        q, qd = coupled_state(model, rng)
        zero, off = np.zeros(model.nv), np.array(q)
        off[model.q_slice[model.joint_index("b")].start] += 0.1
        for method in ("implicit", "maximal"):
            with pytest.raises(ShapeError, match="q violates coupling 'b to c': joint 'c' is"):
                kt.forward_dynamics(model, off, zero, zero, method=method)
            fast = np.array(qd)
            fast[model.v_slice[model.joint_index("c")].start] += 0.1
            with pytest.raises(ShapeError, match=r"qd violates coupling 'b to c': .* 0\.1 m/s or"):
                kt.forward_dynamics(model, q, fast, zero, method=method)
        assert closure.CLOSURE_TOLERANCE == 1e-3

    @pytest.mark.parametrize(
        "function", [kt.mass_matrix, kt.inverse_mass_matrix, kt.gravity_force, kt.christoffel]
    )
    def test_functions_of_independent_joints(self, function, rng):
        model = machine(rng)
        message = (
            r"whose joint 'c' follows 'b' by coupling 'b to c'.*forward_dynamics\(model, ...\) and "
            r"loops.inverse_dynamics\(model, ...\) honour couplings; "
            r"model.replace\(couplings=\(\)\)"
        )
        with pytest.raises(LoopError, match=message):
            function(model, model.neutral())
        held = model.replace(couplings=model.couplings[2:])
        with pytest.raises(LoopError, match="whose joint 'd' is held by coupling 'hold d'"):
            function(held, model.neutral())

    def test_methods_for_trees(self, rng):
        model = machine(rng)
        q, qd = coupled_state(model, rng)
        for method in ("aba", "crba"):
            with pytest.raises(LoopError, match=f"forward_dynamics\\(method='{method}'\\) is not"):
                kt.forward_dynamics(model, q, qd, qd, method=method)
        bare = model.replace(dynamics=dict.fromkeys(model.joint_names))
        with pytest.raises(ModelError, match="divide and conquer has no place for couplings"):
            divide_and_conquer.forward_dynamics(bare, q, qd, qd)

    def test_only_fixed_pivots_can_be_compiled(self, rng):
        model = machine(rng)
        q, qd = coupled_state(model, rng)

        @kt.kernel
        def step(model, q, qd, tau, *, method=None):
            return kt.forward_dynamics(model, q, qd, tau, method=method)

        by_ranks = kt.forward_dynamics(model, q, qd, qd, method="implicit")
        assert_close(step(model, q, qd, qd), by_ranks, ulps=1e4)
        with pytest.raises(kt.TraceError, match="by method 'implicit', solves a general"):
            step(model, q, qd, qd, method="implicit")

    def test_kinematics_and_energy_do_not_mind(self, rng):
        model = machine(rng)
        q, qd = coupled_state(model, rng)
        H = crba.joint_space_inertia(model, q)
        assert_close(kt.kinetic_energy(model, q, qd), qd @ H @ qd / 2)
        assert kt.pose(model, q, "e").shape == (4, 4)


def test_a_belt_lets_two_wheels_turn_as_one(rng):
    """Two wheels about parallel axes, geared 3 to 1: I1 + 9 I2 is what the first one feels."""
    wheel = kt.shapes.cylinder(0.1, 0.02, mass=2.0)
    builder = ModelBuilder(gravity=(0, 0, 0))
    builder.body("one", joint=Revolute("z"), inertia=wheel)
    builder.body("two", joint=Revolute("z"), at=(1, 0, 0), inertia=wheel)
    model = builder.build()
    model = model.replace(couplings=[Coupling("belt", 2, 1, (0.0, 3.0))])
    qdd = kt.forward_dynamics(model, np.zeros(2), np.zeros(2), np.array([1.0, 0.0]))
    I = wheel.rotational[2, 2]
    assert_close(qdd, np.array([1.0, 3.0]) / (10 * I))

"""All bodies and joints at once, by blocks — RBDA §8.13."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_instant

import kinetree
from kinetree.algorithms import aba, rnea
from kinetree.algorithms.closed import maximal
from kinetree.algorithms.kinematics import base_velocities, body_accelerations
from kinetree.errors import SingularError
from kinetree.loops.dynamics import methods
from kinetree.loops.dynamics.methods import ConstrainedEquations
from kinetree.model import Coupling, JointDynamics
from kinetree.samples import (
    chain,
    corner_ladder,
    four_bar,
    random_inertia,
    random_placement,
    random_tree,
)
from kinetree.spatial import Force, Inertia, exp, xlt
from kinetree.textbook.sparse_maximal import _inverse, order_of, solve, solve_bodies


@pytest.mark.covers("RBDA 8.13", by=solve_bodies)
@pytest.mark.parametrize("seed", range(5))
def test_body_accelerations_are_those_of_the_dense_system(seed):
    instant = random_instant(seed)
    model = instant.model
    X_0, v = base_velocities(model, instant.q, instant.qd)
    found = solve_bodies(model, X_0, v, instant.tau)
    expected = maximal.solution(model, instant.q, instant.qd, instant.tau)
    for a, b in zip(found.a, expected.a, strict=True):
        assert_close(a.to_array(), b.to_array(), ulps=1e7, scale=1 + np.abs(b.to_array()).max())
    assert (found.rank, found.redundancy) == (expected.rank, expected.redundancy)


def test_joint_forces_of_a_tree_are_those_of_inverse_dynamics(rng):
    model = random_tree(7, rng)
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    tau, f = rng.standard_normal(model.nv), rng.standard_normal((7, 6))
    X_0, v = base_velocities(model, q, qd)
    forces = [None, *(Force.from_array(x) for x in f)]
    found = solve_bodies(model, X_0, v, tau, forces)
    qdd = aba.forward_dynamics(model, q, qd, tau, forces)
    loads = rnea.newton_euler(model, q, qd, qdd, forces).f
    for i in range(1, 8):
        T_a = model.joint[i].active_subspace(q[model.q_slice[i]])
        f_J = X_0[i].inverse().T @ found.f_c[i] + T_a @ tau[model.v_slice[i]]
        assert_close(f_J.to_array(), loads[i].to_array(), ulps=1e8)


def test_work_is_linear_in_the_rungs_and_the_tree_is_not():
    products, entries = [], []
    for rungs in (8, 16, 32):
        model = corner_ladder(rungs)
        products.append(order_of(model).products)
        lam = model.expanded_parent
        entries.append(sum(_depth(lam, k) for k in range(model.nv)))  # lower triangle of H
    assert products[2] - products[1] == 2 * (products[1] - products[0])
    assert entries[2] - entries[1] > 3.5 * (entries[1] - entries[0])


def _depth(lam, k):
    return 1 if lam[k] < 0 else 1 + _depth(lam, lam[k])


@pytest.mark.parametrize("rungs", [1, 2, 12])
def test_ladders_move_as_their_spanning_trees_say(rungs, rng):
    model = corner_ladder(rungs)
    instant = ConstrainedEquations(
        model, model.neutral(), np.zeros(model.nv), rng.standard_normal(model.nv)
    )
    expected = methods.solve_null_space(instant).qdd
    assert_close(solve(instant).qdd, expected, ulps=1e6)


def test_a_long_chain(rng):
    model = chain(60)
    q, qd, tau = model.random_configuration(rng), *rng.standard_normal((2, 60))
    found = solve(ConstrainedEquations(model, q, qd, tau))
    assert_close(found.qdd, aba.forward_dynamics(model, q, qd, tau), ulps=1e9)


@pytest.mark.covers("RBDA 8.3", "RBDA 8.13", by=solve_bodies)
def test_bodies_that_were_pulled_apart_come_together():
    """Errors of tree joints decay as (1 + t/T) exp(-t/T) — RBDA (8.22); without it they stay."""
    model, dt, T, pull = four_bar().replace(gravity=np.zeros(3)), 1e-3, 0.02, 1e-4

    def gap(X_0):  # from the end of the crank to the coupler's origin
        return np.linalg.norm(X_0[1].r + X_0[1].E.T @ model.tree_transform[2].r - X_0[2].r)

    gaps = {}
    for stabilization in (None, T):
        X_0, v = base_velocities(model, np.zeros(3), np.zeros(3))
        X_0[2] = X_0[2] @ xlt(pull, 0, 0)
        for _ in range(60):
            a = solve_bodies(model, X_0, v, np.zeros(3), stabilization=stabilization).a
            v = [v_i + a_i * dt for v_i, a_i in zip(v, a, strict=True)]
            X_0 = [X_i @ exp(v_i * dt) for X_i, v_i in zip(X_0, v, strict=True)]
        gaps[stabilization] = gap(X_0)
    assert abs(gaps[None] - pull) < 1e-3 * pull
    expected = pull * (1 + 60 * dt / T) * np.exp(-60 * dt / T)
    assert abs(gaps[T] - expected) < 0.2 * expected


@pytest.mark.covers("RBDA 8.13", by=solve_bodies)
def test_gears_and_armature_act_on_the_variables_that_the_bodies_are_at(rng):
    """Three links and a fourth that follows the first by a curve; against articulated bodies."""
    model = chain(4).replace(
        couplings=(Coupling("gear", 4, 1, (0.1, -1.5, 0.4)),),
        dynamics={"link2_joint": JointDynamics(armature=0.7)},
    )
    q, qd, tau = model.random_configuration(rng), *rng.standard_normal((2, 3))
    X_0, v = base_velocities(model.uncoupled, model.expand(q), model.expand_velocity(q, qd))
    found = solve_bodies(model, X_0, v, tau)
    qdd = kinetree.forward_dynamics(model, q, qd, tau)
    full, all_qdd = model.uncoupled, model.expand_acceleration(q, qd, qdd)
    _, _, a = body_accelerations(full, model.expand(q), model.expand_velocity(q, qd), all_qdd)
    for i in range(1, 5):
        expected = X_0[i].inv_apply(a[i]).to_array()
        assert_close(found.a[i].to_array(), expected, ulps=1e6)


def test_a_gear_that_slipped_comes_back():
    model, T, dt = chain(3), 0.02, 1e-3
    model = model.replace(couplings=(Coupling("gear", 3, 1, (0.0, 2.0)),), gravity=np.zeros(3))
    slip, q, qd = 1e-4, np.array([0.2, 0.3, 0.4]), np.zeros(3)
    X_0, v = base_velocities(model.uncoupled, q + np.array([0, 0, slip]), qd)
    for _ in range(60):
        a = solve_bodies(model, X_0, v, np.zeros(2), stabilization=T).a
        v = [v_i + a_i * dt for v_i, a_i in zip(v, a, strict=True)]
        X_0 = [X_i @ exp(v_i * dt) for X_i, v_i in zip(X_0, v, strict=True)]
    placement = [body.placement for body in model.bodies]
    at = [
        float(
            model.bodies[i - 1].joint.coordinates(
                X_0[i] @ (placement[i - 1] @ X_0[i - 1]).inverse()
            )[0]
        )
        for i in (1, 3)
    ]
    left = at[1] - 2 * at[0]
    expected = slip * (1 + 60 * dt / T) * np.exp(-60 * dt / T)
    assert abs(left - expected) < 0.2 * expected


def test_bodies_without_inertia_move_with_those_that_carry_them(rng):
    """A coupler without mass does; a link without mass at the end of a chain has none."""
    model = four_bar().replace(inertia={"coupler": Inertia.zero()})
    qd, tau = np.array([1.0, 0.0, 0.0]), rng.standard_normal(3)
    qd = kinetree.loops.project_velocity(model, np.zeros(3), qd, weights="plain")
    X_0, v = base_velocities(model, np.zeros(3), qd)
    found = solve_bodies(model, X_0, v, tau)
    qdd = kinetree.forward_dynamics(model, np.zeros(3), qd, tau)
    _, _, a = body_accelerations(model, np.zeros(3), qd, qdd)
    for i in range(1, 4):
        assert_close(found.a[i].to_array(), X_0[i].inv_apply(a[i]).to_array(), ulps=1e8)
    assert (found.rank, found.redundancy) == (17, 3)  # of 15 + 5 rows, for 18 - 1 motions
    end = chain(2).replace(inertia={"link2": Inertia.zero()})
    X_0, v = base_velocities(end, np.zeros(2), np.zeros(2))
    with pytest.raises(SingularError, match="nothing determines the acceleration of body 'link2'"):
        solve_bodies(end, X_0, v, np.ones(2))


def test_bodies_without_inertia_are_named():
    model = four_bar().replace(inertia={"rocker": Inertia.zero()})
    with pytest.raises(SingularError, match="body 'rocker' has none"):
        solve(ConstrainedEquations(model, np.zeros(3), np.zeros(3), np.zeros(3)))


@pytest.mark.parametrize("follower", [2, 3])
def test_gears_and_armature_on_branches(follower, rng):
    """Joints whose bodies were not numbered right after the one that carries them."""
    builder, hinge = kinetree.ModelBuilder("branches"), kinetree.Revolute
    joints = (hinge("x"), hinge("y"), hinge("z"), kinetree.Spherical(), kinetree.Planar())
    for i, (parent, joint) in enumerate(zip((0, 1, 1, 2, 1), joints, strict=True), start=1):
        builder.body(
            f"b{i}", on=f"b{parent}" if parent else None, joint=joint,
            at=random_placement(rng), inertia=random_inertia(rng),
        )  # fmt: skip
    model = builder.build().replace(
        couplings=(Coupling("gear", follower, 1, (0.1, -1.5, 0.4)),),
        dynamics={
            "b4_joint": JointDynamics(armature=(0.7, 0.9, 0.2)),
            "b5_joint": JointDynamics(armature=(2.0, 1.5, 0.6)),
        },
    )
    q, qd, tau = model.random_configuration(rng), *rng.standard_normal((2, 8))
    X_0, v = base_velocities(model.uncoupled, model.expand(q), model.expand_velocity(q, qd))
    found = solve_bodies(model, X_0, v, tau)
    all_qdd = model.expand_acceleration(q, qd, kinetree.forward_dynamics(model, q, qd, tau))
    _, _, a = body_accelerations(
        model.uncoupled, model.expand(q), model.expand_velocity(q, qd), all_qdd
    )
    for i in range(1, 6):
        assert_close(found.a[i].to_array(), X_0[i].inv_apply(a[i]).to_array(), ulps=1e6)


@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
def test_whether_there_is_inertia_does_not_depend_on_units(unit, rng):
    A = random_inertia(rng).to_matrix()
    size = np.diagonal(A)
    assert_close(_inverse(unit * A, unit * size, None, str) * unit, np.linalg.inv(A), ulps=1e4)
    with pytest.raises(SingularError, match="and body 3 has none: give it mass"):
        _inverse(1e-15 * unit * A, unit * size, 3, lambda node: f"body {node}")

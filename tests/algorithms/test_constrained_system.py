import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms.closed.systems import (
    Explicit,
    Implicit,
    SubsystemEquation,
    apply_explicit,
    apply_implicit,
    collect,
    implicit_equations,
    project,
)
from kinetree.errors import ShapeError, SingularError
from kinetree.samples import random_inertia
from kinetree.spatial import Force
from kinetree.textbook.constraint_equations import dual_equations, explicit_equations


def random_system(rng, n):
    A = rng.standard_normal((n, n))
    return SubsystemEquation(A @ A.T + np.eye(n), rng.standard_normal(n), rng.standard_normal(n))


def random_constraint(rng, n_c, n):
    return Implicit(rng.standard_normal((n_c, n)), rng.standard_normal(n_c))


def condition(system, constraint):
    return np.linalg.cond(implicit_equations(system, constraint)[0])


@pytest.mark.covers("RBDA 3.2", by=collect)
def test_collected_systems_move_as_each_on_its_own(rng):
    body = SubsystemEquation.from_body(
        random_inertia(rng), *(Force.from_array(rng.standard_normal(6)) for _ in range(2))
    )
    systems = [random_system(rng, 3), body, random_system(rng, 1)]
    together = collect(*systems)
    expected = np.concatenate([s.acceleration() for s in systems])
    assert_close(together.acceleration(), expected, condition=np.linalg.cond(body.H))
    assert_close(together.H[:3, 3:], np.zeros((3, 7)))
    assert collect().H.shape == (0, 0)


@pytest.mark.covers("RBDA 3.2", by=apply_implicit)
@pytest.mark.parametrize("n_c", [0, 1, 3, 6])
def test_implicit_constraint_solves_the_bordered_system(rng, n_c):
    system, constraint = random_system(rng, 6), random_constraint(rng, n_c, 6)
    s = apply_implicit(system, constraint)
    A, b = implicit_equations(system, constraint)
    assert_close(A, A.T)
    x = np.linalg.solve(A, b)
    assert_close(s.qdd, x[:6], condition=condition(system, constraint))
    assert_close(s.lam, -x[6:], condition=condition(system, constraint))
    assert (s.rank, s.indeterminacy) == (n_c, 0)


@pytest.mark.covers("RBDA 3.2", by=apply_implicit)
def test_repeating_a_constraint_changes_neither_motion_nor_constraint_force(rng):
    system, once = random_system(rng, 6), random_constraint(rng, 3, 6)
    twice = once.stack(Implicit(once.K[1:2], once.k[1:2]))
    a, b = apply_implicit(system, once), apply_implicit(system, twice)
    assert (b.rank, b.indeterminacy) == (3, 1)
    assert np.linalg.matrix_rank(implicit_equations(system, twice)[0]) == 6 + 3
    assert_close(b.qdd, a.qdd, condition=condition(system, once))
    assert_close(b.tau_c, a.tau_c, condition=condition(system, once))
    # the smallest multipliers share the load of the repeated row
    assert_close(b.lam[3], b.lam[1], condition=condition(system, once))
    assert_close(b.lam[1] + b.lam[3], a.lam[1], condition=condition(system, once))


def test_contradictory_constraints_are_an_error_and_not_a_compromise(rng):
    system, once = random_system(rng, 6), random_constraint(rng, 2, 6)
    with pytest.raises(SingularError, match=r"contradictory constraints: of 3 equations.*only 2"):
        apply_implicit(system, once.stack(Implicit(once.K[:1], once.k[:1] + 1)))


@pytest.mark.covers("RBDA 3.2", by=apply_explicit)
@pytest.mark.parametrize("m", [0, 1, 4, 6])
def test_implicit_and_explicit_constraint_give_the_same_motion(rng, m):
    system = random_system(rng, 6)
    explicit = Explicit(rng.standard_normal((6, m)), rng.standard_normal(6))
    a, b = apply_explicit(system, explicit), apply_implicit(system, explicit.to_implicit())
    c = condition(system, explicit.to_implicit()) * (np.linalg.cond(explicit.G) if m else 1)
    size = np.linalg.norm(a.qdd) + np.linalg.norm(system.H @ a.qdd)
    assert_close(a.qdd, b.qdd, condition=c)
    assert_close(a.tau_c, b.tau_c, condition=c, scale=size)
    assert_close(explicit.G.T @ a.tau_c, np.zeros(m), condition=c, scale=size)


@pytest.mark.covers("RBDA 3.2", by=(explicit_equations, dual_equations, project))
def test_three_block_dual_and_projected_equations_agree(rng):
    n, m = 6, 2
    system = random_system(rng, n)
    constraint = Explicit(rng.standard_normal((n, m)), rng.standard_normal(n))
    s = apply_explicit(system, constraint)
    A, b = explicit_equations(system, constraint)
    assert_close(A, A.T)
    c = np.linalg.cond(A)
    assert_close(np.linalg.solve(A, b), np.concatenate([s.qdd, s.tau_c, s.ydd]), condition=c)
    A, b = dual_equations(system, constraint)
    assert_close(np.linalg.solve(A, b), np.concatenate([-s.tau_c, s.ydd]), condition=c)
    assert_close(project(system, constraint).acceleration(), s.ydd, condition=c)


@pytest.mark.covers("RBDA 3.2", by=project)
def test_projection_keeps_kinetic_energy_power_and_positive_definiteness(rng):
    system = random_system(rng, 5)
    constraint = Explicit(rng.standard_normal((5, 2)), rng.standard_normal(5))
    projected = project(system, constraint)
    yd = rng.standard_normal(2)
    qd = constraint.G @ yd
    assert_close(yd @ projected.H @ yd, qd @ system.H @ qd)
    assert_close(projected.tau @ yd, system.tau @ qd)
    assert_close(projected.H, projected.H.T)
    assert np.all(np.linalg.eigvalsh(projected.H) > 0)


def test_inertia_is_needed_only_where_the_constraint_lets_things_move(rng):
    system = SubsystemEquation(np.diag([0.0, 1.0, 2.0]), np.zeros(3), np.ones(3))
    s = apply_implicit(system, Implicit(np.array([[1.0, -1.0, 0.0]])))
    assert_close(s.qdd, [2, 2, 0.5])
    with pytest.raises(SingularError, match=r"moves no inertia \(3 degrees of freedom.*rank 2\)"):
        apply_implicit(system, Implicit(np.zeros((0, 3))))


def test_units_of_the_variables_do_not_make_a_system_singular(rng):
    system, units = random_system(rng, 4), np.array([1e-9, 1e-3, 1.0, 1e6])
    scaled = SubsystemEquation(
        units[:, None] * system.H * units, units * system.C, units * system.tau
    )
    assert_close(
        units * scaled.acceleration(), system.acceleration(), condition=np.linalg.cond(system.H)
    )


def test_sizes_must_agree(rng):
    with pytest.raises(ShapeError, match=r"is on 5 variables, the system has H \(4, 4\)"):
        apply_implicit(random_system(rng, 4), random_constraint(rng, 2, 5))
    with pytest.raises(ShapeError, match=r"constraint is on 3 variables"):
        project(random_system(rng, 4), Explicit(np.eye(3)))

"""Joining articulated bodies with several handles — RBDA §7.5."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms.closed.divide_and_conquer import (
    HandleSets,
    as_handle_sets,
    generalised_inverse,
    join,
)
from kinetree.errors import ShapeError


def random_response(rng, handles, freedoms=None):
    """``Phi`` and ``b`` of an articulated body with that many handles and freedoms."""
    J = rng.standard_normal((6 * handles, 6 * handles if freedoms is None else freedoms))
    return J @ J.T, rng.standard_normal(6 * handles)


def block_diagonal(blocks):
    T = np.zeros((6 * len(blocks), sum(b.shape[1] for b in blocks)))
    column = 0
    for n, b in enumerate(blocks):
        T[6 * n : 6 * n + 6, column : column + b.shape[1]] = b
        column += b.shape[1]
    return T


def coupled_solution(A12, A34, T, c, f_1, f_4):
    """All of (7.57), (7.58), (7.60) and (7.61) at once, by least squares."""
    Phi_1, Phi_12, Phi_2, b_1, b_2 = A12
    Phi_4, Phi_43, Phi_3, b_4, b_3 = A34
    Y = T.T @ (Phi_2 + Phi_3) @ T
    k = T.T @ (c + Phi_12.T @ f_1 + b_2 - Phi_43.T @ f_4 - b_3)
    lam = np.linalg.lstsq(Y, k, rcond=None)[0]
    return Phi_1 @ f_1 - Phi_12 @ (T @ lam) + b_1, Phi_4 @ f_4 + Phi_43 @ (T @ lam) + b_4, T @ lam


@pytest.mark.covers("RBDA 7.5", by=join)
@pytest.mark.parametrize("kept", [(1, 1), (2, 1), (0, 3), (2, 0), (0, 0)])
@pytest.mark.parametrize("joints", [1, 2])
def test_assembly_solves_the_coupled_equations(kept, joints, rng):
    sets = []
    for k in kept:
        Phi, b = random_response(rng, k + joints)
        sets.append(as_handle_sets(Phi, b, range(k), range(k, k + joints)))
    T = block_diagonal([rng.standard_normal((6, n)) for n in rng.integers(0, 7, joints)])
    c = rng.standard_normal(6 * joints)
    f_1, f_4 = (rng.standard_normal(6 * k) for k in kept)
    joined = join(*sets, T, c)
    a_1, a_4, f_3 = coupled_solution(*sets, T, c, f_1, f_4)
    f = np.concatenate([f_1, f_4])
    Y = T.T @ (sets[0].Phi_c + sets[1].Phi_c) @ T
    cond = np.linalg.cond(Y) if Y.size else 1.0
    size = 1 + sum(np.abs(A).max(initial=0) for A in (*sets[0], *sets[1])) * (1 + np.abs(f).sum())
    assert_close(joined.Phi @ f + joined.b, np.concatenate([a_1, a_4]), condition=cond, scale=size)
    assert_close(T @ joined.constraint_forces(f), f_3, condition=cond, scale=size)
    assert_close(joined.Phi, joined.Phi.T, condition=cond)
    assert (joined.rank, joined.redundancy) == (T.shape[1], 0)


@pytest.mark.covers("RBDA 7.5", by=join)
def test_two_handle_formulae_as_printed(rng):
    (Phi12, b12), (Phi34, b34) = random_response(rng, 2), random_response(rng, 2)
    one, two = slice(0, 6), slice(6, 12)
    Phi_1, Phi_12, Phi_21, Phi_2 = (Phi12[r, k] for r in (one, two) for k in (one, two))
    Phi_3, Phi_34, Phi_43, Phi_4 = (Phi34[r, k] for r in (one, two) for k in (one, two))
    T, c = rng.standard_normal((6, 5)), rng.standard_normal(6)
    W = T @ np.linalg.inv(T.T @ (Phi_2 + Phi_3) @ T) @ T.T
    beta = c - b34[one] + b12[two]
    joined = join(as_handle_sets(Phi12, b12, [0], [1]), as_handle_sets(Phi34, b34, [1], [0]), T, c)
    cond = np.linalg.cond(T.T @ (Phi_2 + Phi_3) @ T)
    Phi_14 = Phi_12 @ W @ Phi_34
    expected = np.block(
        [[Phi_1 - Phi_12 @ W @ Phi_21, Phi_14], [Phi_14.T, Phi_4 - Phi_43 @ W @ Phi_34]]
    )
    assert_close(joined.Phi, expected, condition=cond)
    b = np.concatenate([b12[one] - Phi_12 @ W @ beta, b34[two] + Phi_43 @ W @ beta])
    assert_close(joined.b, b, condition=cond)


@pytest.mark.covers("RBDA 7.5", by=join)
def test_repeated_constraints_change_no_acceleration_and_are_counted(rng):
    (Phi, b), (Psi, d) = random_response(rng, 2), random_response(rng, 2)
    A12, A34 = as_handle_sets(Phi, b, [0], [1]), as_handle_sets(Psi, d, [1], [0])
    T, c = rng.standard_normal((6, 3)), rng.standard_normal(6)
    once, twice = join(A12, A34, T, c), join(A12, A34, np.hstack([T, T @ [[1], [2], [-1]]]), c)
    assert (twice.rank, twice.redundancy) == (3, 1)
    cond = np.linalg.cond(T.T @ (A12.Phi_c + A34.Phi_c) @ T)
    assert_close(twice.Phi, once.Phi, condition=cond)
    assert_close(twice.b, once.b, condition=cond)
    assert twice.contradiction < 1e-12 * np.abs(c).max() * cond
    torn = join(A12, A34, np.hstack([T, T[:, :1]]), c, stabilization=np.array([0, 0, 0, 1.0]))
    assert torn.contradiction > 0.5  # requires two different accelerations along one direction


@pytest.mark.covers("RBDA 7.5", by=join)
def test_handles_without_six_freedoms_are_joined_where_they_can_move(rng):
    """Both handles grounded with three freedoms each: a hinge between them is redundant in part."""
    A12 = as_handle_sets(*random_response(rng, 1, 3), [], [0])
    A34 = as_handle_sets(*random_response(rng, 1, 2), [], [0])
    joined = join(A12, A34, np.eye(6), rng.standard_normal(6))
    assert (joined.rank, joined.redundancy) == (5, 1)
    fixed = HandleSets(*(np.zeros(s) for s in ((0, 0), (0, 6), (6, 6), 0, 6)))
    immovable = join(fixed, fixed, np.eye(6), np.zeros(6))
    assert (immovable.rank, immovable.redundancy) == (0, 6)
    assert np.all(immovable.constraint_forces(np.zeros(0)) == 0)


@pytest.mark.covers("RBDA 7.5", by=join)
def test_stabilisation_adds_to_the_constrained_acceleration(rng):
    (Phi, b), (Psi, d) = random_response(rng, 2), random_response(rng, 2)
    A12, A34 = as_handle_sets(Phi, b, [0], [1]), as_handle_sets(Psi, d, [1], [0])
    T, c, pull = rng.standard_normal((6, 4)), rng.standard_normal(6), rng.standard_normal(4)
    joined = join(A12, A34, T, c, stabilization=pull)
    f_3 = T @ joined.constraint_forces(np.zeros(12))
    a_2, a_3 = A12.b_c - A12.Phi_c @ f_3, A34.b_c + A34.Phi_c @ f_3
    cond = np.linalg.cond(T.T @ (A12.Phi_c + A34.Phi_c) @ T)
    size = np.abs(A12.Phi_c).max() * np.abs(f_3).max() + 10
    assert_close(T.T @ (a_3 - a_2 - c), pull, condition=cond, scale=size)


def test_sets_that_do_not_fit_are_rejected(rng):
    Phi, b = random_response(rng, 3)
    with pytest.raises(
        ShapeError, match=r"handles \[0, 1\] and \[1\] must be 0 ... 2, each in one"
    ):
        as_handle_sets(Phi, b, [0, 1], [1])
    A12, A34 = as_handle_sets(Phi, b, [0], [1, 2]), as_handle_sets(Phi, b, [0, 1], [2])
    with pytest.raises(ShapeError, match="got 2 and 1 handles for 1 joints"):
        join(A12, A34, np.zeros((6, 5)), np.zeros(6))


def test_a_remainder_is_measured_by_what_it_is_a_remainder_of():
    Y = np.diag([1.0, 1e-15])
    assert generalised_inverse(1e-15 * np.eye(2))[1] == 2
    inverse, rank = generalised_inverse(Y, np.ones(2))
    assert rank == 1
    assert np.allclose(inverse, np.diag([1.0, 0.0]))

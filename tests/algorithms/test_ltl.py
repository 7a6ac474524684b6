"""Sparse factorisation, products and solves, against dense linear algebra."""

from fractions import Fraction

import numpy as np
import pytest
from support.closeness import EPS, assert_close
from support.textbook import random_state

from kinetree import samples
from kinetree.algorithms import crba, ltl, sparsity
from kinetree.errors import SingularError
from kinetree.joints import Fixed, Revolute
from kinetree.model import ModelBuilder
from kinetree.model.tree import expanded_parent
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Inertia


def sample(rng):
    """A joint-space inertia matrix of a random branched tree, with its parent array."""
    m, q, *_ = random_state(rng, bodies=8, branching=0.7)
    return crba.joint_space_inertia(m, q), m.expanded_parent


@pytest.mark.covers("RBDA Table 6.3", "RBDA 6.5", by=ltl.ltl)
@pytest.mark.parametrize("n", range(3))
def test_ltl_factor_reproduces_the_matrix_without_fill_in(n, rng):
    H, lam = sample(rng)
    L = ltl.ltl(H, lam)
    assert_close(L.T @ L, H)
    assert np.all(L[~np.tril(sparsity.pattern(lam))] == 0)


@pytest.mark.covers("RBDA Table 6.3", "RBDA 6.5", by=ltl.ltdl)
@pytest.mark.parametrize("n", range(3))
def test_ltdl_factor_reproduces_the_matrix_without_fill_in(n, rng):
    H, lam = sample(rng)
    LD = ltl.ltdl(H, lam)
    D, L = np.diag(np.diagonal(LD)), np.tril(LD, -1) + np.eye(len(lam))
    assert_close(L.T @ D @ L, H)
    assert np.all(np.diagonal(LD) > 0)
    assert np.all(LD[~np.tril(sparsity.pattern(lam))] == 0)


@pytest.mark.covers("RBDA 6.5", by=ltl.ltl)
def test_ltl_is_cholesky_of_the_reversed_order(rng):
    H, lam = sample(rng)
    reversed_cholesky = np.linalg.cholesky(H[::-1, ::-1])[::-1, ::-1].T
    assert_close(ltl.ltl(H, lam), reversed_cholesky, condition=np.linalg.cond(H) ** 0.5)
    assert_close(ltl.ltl(H, ltl.dense(len(H))), reversed_cholesky, condition=np.linalg.cond(H))


@pytest.mark.covers("RBDA 6.5", by=(ltl.ltl, ltl.ltdl))
def test_only_the_lower_triangle_is_read_and_nothing_is_overwritten(rng):
    H, lam = sample(rng)
    marked = np.tril(H) + np.triu(np.full_like(H, np.nan), 1)
    for factorize in (ltl.ltl, ltl.ltdl):
        assert np.array_equal(factorize(marked, lam), factorize(H, lam))
    assert np.array_equal(np.tril(marked), np.tril(H))
    x = rng.standard_normal(len(H))
    assert np.array_equal(ltl.multiply(marked, lam, x), ltl.multiply(H, lam, x))


@pytest.mark.covers(
    "RBDA Table 6.5",
    by=(
        ltl.multiply_l,
        ltl.multiply_lt,
        ltl.multiply,
        ltl.solve_l,
        ltl.solve_lt,
    ),
)
@pytest.mark.parametrize("unit", [False, True])
def test_products_and_solves_equal_dense_ones(unit, rng):
    H, lam = sample(rng)
    factor = (ltl.ltdl if unit else ltl.ltl)(H, lam)
    L = np.tril(factor, -1) + np.eye(len(lam)) if unit else factor
    x, condition = rng.standard_normal(len(lam)), np.linalg.cond(L)
    kept = x.copy()
    assert_close(ltl.multiply_l(factor, lam, x, unit), L @ x)
    assert_close(ltl.multiply_lt(factor, lam, x, unit), L.T @ x)
    assert_close(ltl.multiply(H, lam, x), H @ x)
    assert_close(ltl.solve_l(factor, lam, x, unit), np.linalg.solve(L, x), condition=condition)
    assert_close(ltl.solve_lt(factor, lam, x, unit), np.linalg.solve(L.T, x), condition=condition)
    assert np.array_equal(x, kept)


@pytest.mark.covers("RBDA 6.5", by=(ltl.solve_ltl, ltl.solve_ltdl, ltl.inverse, ltl.inverse_ltdl))
def test_back_substitution_solves_the_equation_of_motion(rng):
    H, lam = sample(rng)
    b, condition = rng.standard_normal(len(lam)), np.linalg.cond(H)
    expected = np.linalg.solve(H, b)
    assert_close(ltl.solve_ltl(ltl.ltl(H, lam), lam, b), expected, condition=condition)
    assert_close(ltl.solve_ltdl(ltl.ltdl(H, lam), lam, b), expected, condition=condition)
    H_inv = ltl.inverse(H, lam)
    assert_close(H_inv, np.linalg.inv(H), condition=condition)
    assert np.array_equal(H_inv, H_inv.T)


@pytest.mark.covers("RBDA 6.4", "RBDA 6.5", by=(ltl.ltl, ltl.ltdl))
def test_backward_error_on_ill_conditioned_matrices_is_that_of_cholesky(rng):
    """Masses over eleven orders of magnitude; the bound of Cholesky, n(n+1) eps, holds."""
    builder, on = ModelBuilder("whip"), None
    for i in range(12):
        joint, inertia = Revolute("xyz"[i % 3]), random_inertia(rng) * 10.0**-i
        builder.body(f"b{i}", on=on, joint=joint, at=random_placement(rng), inertia=inertia)
        on = f"b{i}" if i % 4 else on
    m = builder.build()
    H, lam = crba.joint_space_inertia(m, m.random_configuration(rng)), m.expanded_parent
    assert np.linalg.cond(H) > 1e8
    bound = len(H) * (len(H) + 1) * EPS
    L, LD = ltl.ltl(H, lam), ltl.ltdl(H, lam)
    unit = np.tril(LD, -1) + np.eye(len(H))
    for product in (L.T @ L, unit.T @ np.diag(np.diagonal(LD)) @ unit):
        d = np.sqrt(np.diagonal(H))
        assert np.max(np.abs(product - H) / np.outer(d, d)) <= bound
    b = rng.standard_normal(len(H))
    for x in (ltl.solve_ltl(L, lam, b), ltl.solve_ltdl(LD, lam, b)):
        residual = np.linalg.norm(H @ x - b)
        assert residual <= bound * np.linalg.norm(H) * np.linalg.norm(x)


@pytest.mark.covers("RBDA Table 6.4", "RBDA 6.5", by=expanded_parent)
def test_expanded_parent_array_of_the_book():
    """Counted from 0 here, from 1 in the book."""
    book = (0, 1, 2, 3, 1, 4, 4, 5)
    lam = expanded_parent((-1, 0, 1, 1, 2, 2, 3), (0, 1, 3, 1, 1, 1, 1))
    assert lam == tuple(k - 1 for k in book)


@pytest.mark.covers("RBDA Table 6.4", by=expanded_parent)
def test_joints_without_freedom_are_looked_through(rng):
    """The printed loop would hang variable 3 on 2 and miss a nonzero of H."""
    assert expanded_parent((-1, 0, 0, 1, 3), (0, 1, 1, 0, 1)) == (-1, -1, 0)
    builder = ModelBuilder("weld")
    for name, on, joint in (
        ("a", None, Revolute("z")),
        ("b", None, Revolute("y")),
        ("c", "a", Fixed()),
        ("d", "c", Revolute("x")),
    ):
        builder.body(
            name, on=on, joint=joint, at=random_placement(rng), inertia=random_inertia(rng)
        )
    m = builder.build()
    H = crba.joint_space_inertia(m, rng.standard_normal(3))
    assert H[2, 0] != 0
    L = ltl.ltl(H, m.expanded_parent)
    assert_close(L.T @ L, H)


def test_fractions_stay_exact():
    H = np.array([[Fraction(4), Fraction(2)], [Fraction(2), Fraction(3)]])
    L = ltl.ltdl(H, (-1, 0))
    assert ltl.solve_ltdl(L, (-1, 0), [Fraction(1), Fraction(0)]).tolist() == [
        Fraction(3, 8),
        Fraction(-1, 4),
    ]


@pytest.mark.parametrize("factorize", [ltl.ltl, ltl.ltdl])
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_pivot_that_is_not_positive_is_named(factorize, value):
    H = np.diag([1.0, value, 2.0])
    with pytest.raises(SingularError, match=r"not positive definite: pivot 1 .*parent array"):
        factorize(H, (-1, -1, -1))


@pytest.mark.parametrize("factorize", [ltl.ltl, ltl.ltdl])
def test_a_pivot_lost_in_rounding_is_named(factorize):
    """Two coincident axes: the second pivot is rounding noise of either sign."""
    inertia = Inertia.from_mass_center(1.0, (0.3, 0.1, 0.0), np.eye(3))
    m = (
        ModelBuilder("twice")
        .body("a", joint=Revolute("z"))
        .body("b", on="a", joint=Revolute("z"), inertia=inertia)
        .build()
    )
    H = crba.joint_space_inertia(m, np.array([0.3, 0.4]))
    with pytest.raises(SingularError, match="pivot 0"):
        factorize(H, m.expanded_parent)


def test_no_variables_at_all():
    nothing = np.zeros((0, 0))
    assert ltl.ltl(nothing, ()).shape == (0, 0)
    assert ltl.inverse(nothing, ()).shape == (0, 0)
    assert ltl.solve_ltl(nothing, (), np.zeros(0)).shape == (0,)
    assert samples.chain(2).expanded_parent == ltl.dense(2)

"""Branch-induced sparsity and the costs it predicts."""

from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree import samples
from kinetree.algorithms import crba, ltl
from kinetree.algorithms.sparsity import Sparsity, depths, pattern, sparsity
from kinetree.errors import ModelError, UnknownNameError
from kinetree.expr.counting import count
from kinetree.joints import Free, Revolute
from kinetree.model import Model, ModelBuilder
from kinetree.samples import random_inertia
from kinetree.textbook.factor_costs import Cost, predicted_cost, renumber_parents

BOOK = (-1, 0, 1, 2, 0, 3, 3, 4)  # Table 6.4, counted from 0
BINARY = (-1, 0, 0, 1, 1, 2, 2)


@pytest.mark.covers("RBDA 6.4", "RBDA 6.5", by=sparsity)
@pytest.mark.parametrize(
    ("lam", "expected"),
    [
        (BOOK, Sparsity(8, 5, 17, 34)),
        (BINARY, Sparsity(7, 3, 10, 14)),
        (ltl.dense(6), Sparsity(6, 6, 15, 35)),
        ((-1,) * 5, Sparsity(5, 1, 0, 0)),
        ((), Sparsity(0, 0, 0, 0)),
    ],
    ids=["book", "binary", "chain", "star", "nothing"],
)
def test_sizes_of_known_trees(lam, expected):
    assert sparsity(lam) == expected
    assert expected.nonzeros == np.count_nonzero(pattern(lam))
    assert expected.n * max(expected.d - 1, 0) >= expected.D1
    assert expected.n * expected.d * (expected.d - 1) / 2 >= expected.D2


@pytest.mark.covers("RBDA 6.5", by=depths)
def test_depths_of_the_book_tree():
    assert depths(BOOK) == (1, 2, 3, 4, 2, 5, 5, 3)


@pytest.mark.covers("RBDA 6.5", by=sparsity)
@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_dense_limits(n):
    s = sparsity(ltl.dense(n))
    assert ((n**2 - n) // 2, (n**3 - n) // 6) == (s.D1, s.D2)
    assert s.density == 1


@pytest.mark.covers("RBDA 6.4", by=sparsity)
def test_binary_tree_fills_about_half():
    s = sparsity(BINARY)
    assert s.nonzeros == 27
    assert s.density == 27 / 49


@pytest.mark.covers("RBDA 6.4", by=pattern)
def test_pattern_is_structural(rng):
    """A floating body has accidental zeros in its block; the pattern keeps the places."""
    I = random_inertia(rng)
    m = ModelBuilder("body").body("b", joint=Free(), inertia=I).build()
    H = crba.joint_space_inertia(m, m.neutral())
    assert H[3, 4] == 0
    assert np.all(pattern(m.expanded_parent))


@pytest.mark.covers("RBDA 6.4", by=pattern)
def test_several_trees_on_the_base_give_a_block_diagonal_matrix(rng):
    m = samples.random_tree(10, rng, joints=[Revolute("x")], branching=0.8)
    H = crba.joint_space_inertia(m, m.random_configuration(rng))
    roots = [i for i in range(1, 11) if m.parent[i] == 0]
    order = [k - 1 for root in roots for k in m.subtree[root]]
    for matrix in (H, pattern(m.expanded_parent)):
        blocks = matrix[np.ix_(order, order)]
        start = 0
        for root in roots:
            stop = start + len(m.subtree[root])
            assert np.all(blocks[start:stop, :start] == 0)
            assert np.all(blocks[start:stop, stop:] == 0)
            start = stop


@pytest.mark.covers("RBDA 6.4", by=renumber_parents)
def test_renumbering_the_tree_permutes_the_matrix(rng):
    m = samples.random_tree(7, rng, joints=[Revolute("x"), Revolute("z")])
    lam = m.expanded_parent
    order = _other_regular_numbering(lam)
    moved = _reordered(m, order)
    assert moved.expanded_parent == renumber_parents(lam, order)
    q = m.random_configuration(rng)
    H = crba.joint_space_inertia(m, q)
    assert_close(crba.joint_space_inertia(moved, q[order]), H[np.ix_(order, order)])
    assert np.array_equal(pattern(moved.expanded_parent), pattern(lam)[np.ix_(order, order)])
    assert sparsity(moved.expanded_parent) == sparsity(lam)


def _other_regular_numbering(lam):
    """Depth first instead of as built."""
    order = []
    for k in reversed(range(len(lam))):
        path = [k, *ltl.ancestors(lam, k)]
        order += [i for i in reversed(path) if i not in order]
    return order


def _reordered(m, order):
    old = [m.bodies[k] for k in order]
    position = {0: 0, **{k + 1: n for n, k in enumerate(order, start=1)}}
    return Model(tuple(replace(b, parent=position[b.parent]) for b in old))


def test_irregular_numberings_are_rejected():
    with pytest.raises(ModelError, match="lists variable 1 before variable 0, which it hangs on"):
        renumber_parents((-1, 0), [1, 0])
    with pytest.raises(ModelError, match=r"permutation of 0 to 1, got \[0, 0\]"):
        renumber_parents((-1, 0), [0, 0])


@pytest.mark.covers("RBDA Table 6.6", "RBDA 6.5", by=predicted_cost)
def test_predicted_costs_of_a_chain_are_those_of_dense_cholesky():
    n = 6
    lam = ltl.dense(n)
    assert predicted_cost(lam, "factorize", "ltl") == Cost(35, 35, 15, 6)
    assert predicted_cost(lam, "factorize") == Cost(35, 35, 15)
    assert predicted_cost(lam, "solve", "ltl") == Cost(n * n - n, n * n - n, 2 * n)
    assert predicted_cost(lam, "solve") == Cost(n * n - n, n * n - n, n)
    assert predicted_cost(lam, "multiply_l", "ltl") == Cost(21, 15)
    assert predicted_cost(lam, "solve_l", "ltdl") == Cost(15, 15)
    for factors in ("ltl", "ltdl"):
        assert predicted_cost(lam, "multiply", factors) == Cost(n * n, n * n - n)


@pytest.mark.covers("RBDA Table 6.6", by=predicted_cost)
@pytest.mark.parametrize("factors", ["ltl", "ltdl"])
def test_predicted_costs_are_the_counted_ones(factors, rng):
    A = np.where(np.tril(pattern(BOOK)), rng.uniform(0.1, 0.2, (8, 8)), 0) + np.eye(8)
    H, x = A.T @ A, rng.standard_normal(8)
    factorize, solve = getattr(ltl, factors), getattr(ltl, f"solve_{factors}")
    L, unit = factorize(H, BOOK), factors == "ltdl"
    tasks = {
        "factorize": (lambda H: factorize(H, BOOK), H),
        "solve": (lambda L, x: solve(L, BOOK, x), L, x),
        "multiply_l": (lambda L, x: ltl.multiply_l(L, BOOK, x, unit), L, x),
        "solve_l": (lambda L, x: ltl.solve_l(L, BOOK, x, unit), L, x),
        "multiply": (lambda H, x: ltl.multiply(H, BOOK, x), H, x),
    }
    for task, call in tasks.items():
        t = count(*call)
        counted = Cost(t.multiplications, t.additions, t.divisions, t.square_roots)
        assert counted == predicted_cost(BOOK, task, factors), task


@pytest.mark.covers("RBDA 6.5", by=predicted_cost)
def test_example_with_two_divisions_and_three_updates_per_row():
    """Fig. 6.4: rows at depth 3 cost two area-2 and three area-3 operations each."""
    leaf, inner = predicted_cost(BINARY, "factorize"), predicted_cost(BINARY[:3], "factorize")
    assert leaf.divisions - inner.divisions == 4 * 2
    assert leaf.multiplications - inner.multiplications == 4 * 3


def test_unknown_tasks_are_named():
    with pytest.raises(UnknownNameError, match="no cost is known for invert/ltl; known: fact"):
        predicted_cost(BOOK, "invert", "ltl")


@pytest.mark.covers("RBDA 6.5", by=predicted_cost)
def test_costs_of_the_book():
    """Table 6.6 for the tree of Table 6.4, which has n = 8, D1 = 17 and D2 = 34."""
    table = {
        ("factorize", "ltl"): (34, 34, 17, 8),
        ("factorize", "ltdl"): (34, 34, 17, 0),
        ("solve", "ltl"): (34, 34, 16, 0),
        ("solve", "ltdl"): (34, 34, 8, 0),
        ("multiply_l", "ltl"): (25, 17, 0, 0),
        ("multiply_l", "ltdl"): (17, 17, 0, 0),
        ("solve_l", "ltl"): (17, 17, 8, 0),
        ("solve_l", "ltdl"): (17, 17, 0, 0),
        ("multiply", "ltl"): (42, 34, 0, 0),
        ("multiply", "ltdl"): (42, 34, 0, 0),
    }
    for (task, factors), expected in table.items():
        assert predicted_cost(BOOK, task, factors) == expected

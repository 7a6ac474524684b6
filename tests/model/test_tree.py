"""λ, μ, κ, ν and the arrays made from them."""

import numpy as np
import pytest

from kinetree.errors import ModelError
from kinetree.model import tree
from kinetree.samples import random_tree
from kinetree.textbook import tree_matrices

# RBDA Fig. 4.6. The figure does not survive in the text: λ(7) is 4 or 6; 4 is taken.
FIG_4_6 = (-1, 0, 1, 1, 0, 3, 4, 4, 4)
# The left tree of 6-D guide 2, Fig. 2, with λ(4) = 1.
GUIDE = (-1, 0, 1, 2, 1, 2, 4)


@pytest.mark.covers("RBDA 4.1", by=(tree.supports, tree.children, tree.subtrees))
def test_support_child_and_subtree_sets_of_the_eight_body_tree():
    kappa, mu, nu = tree.supports(FIG_4_6), tree.children(FIG_4_6), tree.subtrees(FIG_4_6)
    assert (kappa[1], kappa[2], kappa[3], kappa[8]) == ((1,), (1, 2), (1, 3), (4, 8))
    assert (mu[0], mu[1], mu[2], mu[8]) == ((1, 4), (2, 3), (), ())
    assert nu[0] == tuple(range(9))
    assert (nu[1], nu[2], nu[8]) == ((1, 2, 3, 5), (2,), (8,))


@pytest.mark.covers("6-D Guide 2: Connectivity", by=(tree.supports, tree.children, tree.subtrees))
def test_sets_of_the_tree_in_the_guide():
    assert tree.children(GUIDE)[2] == (3, 5)
    assert tree.children(GUIDE)[5] == ()
    assert tree.supports(GUIDE)[3] == (1, 2, 3)
    assert tree.subtrees(GUIDE)[4] == (4, 6)


@pytest.mark.covers("RBDA 4.1", by=(tree.supports, tree.subtrees))
def test_summing_over_supports_is_summing_over_subtrees(rng):
    parent = random_tree(20, rng).parent
    x = rng.standard_normal((21, 21))
    kappa, nu = tree.supports(parent), tree.subtrees(parent)
    pairs = {(i, j) for i in range(1, 21) for j in kappa[i]}
    assert pairs == {(i, j) for j in range(1, 21) for i in nu[j]}
    assert sum(x[i, j] for i, j in sorted(pairs)) == sum(
        x[i, j] for i, j in sorted((i, j) for j in range(1, 21) for i in nu[j])
    )


@pytest.mark.covers("Tutorial 5", by=tree_matrices.connectivity_matrix)
def test_connectivity_matrix_is_the_inverse_of_the_support_matrix(rng):
    parent = random_tree(12, rng).parent
    D, epsilon = tree_matrices.connectivity_matrix(parent), tree_matrices.support_matrix(parent)
    np.testing.assert_array_equal(D @ epsilon, np.eye(12, dtype=int))
    np.testing.assert_array_equal(epsilon.sum(axis=1), tree.depths(parent)[1:])


@pytest.mark.covers("Tutorial 5", by=(tree.supports, tree_matrices.connectivity_matrix))
def test_figure_1_of_the_tutorial():
    parent = (-1, 0, 1, 1, 2)  # a universal joint, a ball joint and two hinges
    assert parent[4] == 2
    assert tree.supports(parent)[4] == (1, 2, 4)
    np.testing.assert_array_equal(
        tree_matrices.connectivity_matrix(parent),
        [[1, 0, 0, 0], [-1, 1, 0, 0], [-1, 0, 1, 0], [0, -1, 0, 1]],
    )
    assert len(tree.expanded_parent(parent, (0, 2, 3, 1, 1))) == 7


@pytest.mark.covers("RBDA Table 6.4", "RBDA 6.5", by=tree.expanded_parent)
def test_expanded_parents_of_the_printed_example():
    parent, nv = (-1, 0, 1, 1, 2, 2, 3), (0, 1, 3, 1, 1, 1, 1)
    expanded = [k + 1 for k in tree.expanded_parent(parent, nv)]
    assert expanded == [0, 1, 2, 3, 1, 4, 4, 5]


@pytest.mark.covers("RBDA Table 6.4", by=tree.expanded_parent)
def test_expanded_parents_look_through_joints_without_freedom():
    expanded = [k + 1 for k in tree.expanded_parent((-1, 0, 0, 1, 3), (0, 1, 1, 0, 1))]
    assert expanded == [0, 0, 1]  # Table 6.4 as printed would give 2 for the last
    assert tree.expanded_parent((-1, 0, 1), (0, 0, 0)) == ()
    assert tree.expanded_parent((-1, 0, 1), (0, 1, 0)) == (-1,)


def test_most_expanded_parents_are_the_variable_before(rng):
    model = random_tree(15, rng)
    consecutive = [k for k, p in enumerate(model.expanded_parent) if p == k - 1]
    moving = sum(joint.nv > 0 for joint in model.joint[1:])
    assert len(consecutive) >= model.nv - moving


def test_regular_order_puts_parents_first_and_keeps_what_is_regular(rng):
    assert tree.regular_order(FIG_4_6) == tuple(range(9))
    shuffled = [0, *(1 + rng.permutation(8))]
    place = {int(old): new for new, old in enumerate(shuffled)}
    parent = [-1] + [place[FIG_4_6[old]] for old in shuffled[1:]]
    order = tree.regular_order(parent)
    assert sorted(order) == list(range(9))
    for position, old in enumerate(order[1:], start=1):
        assert order.index(parent[old]) < position


@pytest.mark.parametrize(
    ("parent", "message"),
    [
        ((-1, 0, 3, 1), r"parent of body 2 is 3, but a regular numbering needs 0 <= parent < 2"),
        ((-1, 0, 5), r"parent of body 2 is 5; the model has bodies 0 to 2"),
        ((-1, 0, -1), r"parent of body 2 is -1; the model has bodies 0 to 2"),
        ((-1, 1), r"in a circle, not on the base: 1 -> 1"),
        ((-1, 0, 3, 4, 2), r"in a circle, not on the base: 2 -> 3 -> 4 -> 2"),
        ((-1, "base"), r"parent of body 1 must be a body number, got 'base'"),
    ],
)
@pytest.mark.covers("RBDA 4.1", "6-D Guide 2: Connectivity", by=tree.check_parents)
def test_irregular_parents_are_rejected(parent, message):
    with pytest.raises(ModelError, match=message):
        tree.check_parents(parent)


def test_irregular_parents_are_named():
    with pytest.raises(ModelError, match=r"1 \('a'\) -> 2 \('b'\) -> 1 \('a'\).*add it as a loop"):
        tree.check_parents((-1, 2, 1), ("base", "a", "b"))

"""Costs and crossovers — RBDA §10.3."""

import pytest

import kinetree as kt
from kinetree.diagnosis.costs import operation_counts
from kinetree.diagnosis.published import (
    OperationTotal,
    best,
    cost_curves,
    crossover,
    factorization_cost,
    forward_dynamics_cost,
    inertia_matrix_cost,
)
from kinetree.samples import chain, random_tree


def binary(n):
    return [None, *(i // 2 for i in range(1, n + 1))]


@pytest.mark.covers("RBDA 10.3", by=(forward_dynamics_cost, crossover))
def test_the_inertia_matrix_is_cheaper_up_to_eight_joints():
    matrix, articulated = forward_dynamics_cost, lambda n: best("ABA", n)
    assert crossover(matrix, articulated) == 9
    assert matrix(8).total == 2921
    assert articulated(8).total == 2925
    ratios = {n: matrix(n).total / articulated(n).total for n in (18, 30, 45)}
    assert ratios == pytest.approx({18: 1.638, 30: 2.613, 45: 4.147}, abs=5e-4)


FIG_10_4 = {  # RNEA, CRBA, factorize and solve, their sum, ABA: m + a
    2: (140, 107, 9, 256, 351), 8: (1184, 1421, 316, 2921, 2925),
    18: (2924, 6171, 2721, 11816, 7215), 45: (7622, 34980, 35355, 77957, 18798),
}  # fmt: skip


@pytest.mark.covers("RBDA 10.3", by=cost_curves)
def test_curves_of_the_figure_with_equal_weights():
    assert list(zip(*cost_curves(FIG_10_4).values(), strict=True)) == list(FIG_10_4.values())


@pytest.mark.covers("RBDA 10.3", by=cost_curves)
@pytest.mark.parametrize(
    ("addition", "wins_up_to", "ratio_at_8", "ratio_at_18", "solve_above"),
    [(1.0, 8, 0.9986, 1.6377, 45), (0.5, 7, 1.0132, 1.6775, 48), (0.25, 7, 1.0246, 1.7084, 50)],
)
def test_cheaper_additions_hardly_change_the_curves(
    addition, wins_up_to, ratio_at_8, ratio_at_18, solve_above
):
    sizes = range(2, 60)
    curves = cost_curves(sizes, addition)
    parts = [curves[k] for k in ("RNEA", "CRBA", "factorize and solve")]
    assert curves["inertia matrix"] == pytest.approx([sum(p) for p in zip(*parts, strict=True)])
    ratio = {
        n: a / b for n, a, b in zip(sizes, curves["inertia matrix"], curves["ABA"], strict=True)
    }
    assert max(n for n in sizes if ratio[n] < 1) == wins_up_to
    assert (ratio[8], ratio[18]) == pytest.approx((ratio_at_8, ratio_at_18), abs=5e-5)
    solve, matrix = (dict(zip(sizes, p, strict=True)) for p in parts[:0:-1])
    assert min(n for n in sizes if solve[n] > matrix[n]) == solve_above
    found = crossover(
        lambda n: best("factorize and solve", n),
        lambda n: inertia_matrix_cost(range(-1, n)),
        addition=addition,
    )
    assert found == solve_above
    one = cost_curves(sizes)["inertia matrix"]
    shape = [a / b * one[-1] / curves["inertia matrix"][-1] for a, b in
             zip(curves["inertia matrix"], one, strict=True)]  # fmt: skip
    assert max(abs(s - 1) for s in shape) < 0.06


def test_factorizing_meets_the_inertia_matrix_at_forty_five_joints():
    solve = lambda n: best("factorize and solve", n)  # noqa: E731
    assert crossover(solve, lambda n: best("CRBA", n)) == 45
    assert crossover(solve, lambda n: best("RNEA", n)) == 19


@pytest.mark.covers("RBDA 10.3", by=(inertia_matrix_cost, factorization_cost))
@pytest.mark.parametrize(
    ("n", "matrix", "solve", "total"),
    [(3, (123, 131), (11, 6), 585), (7, (457, 453), (51, 34), 2005),
     (30, (3198, 2855), (524, 400), 11989), (63, (8125, 7001), (1539, 1218), 28637)],
)  # fmt: skip
def test_branches_make_it_cheaper(n, matrix, solve, total):
    H, F = inertia_matrix_cost(binary(n)), factorization_cost(binary(n))
    assert (H.m, H.a) == matrix
    assert (F.m, F.a) == solve
    assert (H + F + best("RNEA", n)).total == total


def test_bodies_that_all_stand_on_the_base_cost_nothing():
    star = [None, 0, 0, 0, 0]
    assert inertia_matrix_cost(star).total == 0


def test_counts_of_a_model_are_those_of_its_code():
    found = operation_counts(chain(6))
    assert found.bodies == found.depth == 6
    assert (found.D1, found.D2) == (15, 35)
    solve = "factorize and solve (LTDL)"
    # generated code divides once by each pivot, and multiplies by the reciprocal from then on
    assert found.texts[solve] == found.published[solve] + OperationTotal(6, 0)
    for name, cost in found.generated.items():
        assert cost.total <= found.texts.get(name, cost).total
    assert found.cheapest_forward_dynamics in ("aba", "crba")
    text = str(found)
    assert "chain(6): 6 bodies, 6 in line" in text
    assert "as written" in text
    assert "forward dynamics (leanest)" in text


def test_deep_trees_prefer_articulated_bodies_and_shallow_ones_the_matrix():
    deep = random_tree(14, 1, joints=[kt.Revolute("z")], branching=0)
    shallow = random_tree(4, 1, joints=[kt.Revolute("z")], branching=0)
    assert operation_counts(deep).cheapest_forward_dynamics == "aba"
    assert operation_counts(shallow).cheapest_forward_dynamics == "crba"


@pytest.mark.covers("RBDA 10.3", by=operation_counts)
def test_loops_are_counted_with_what_solves_them():
    found = operation_counts(kt.samples.ladder())
    tree = operation_counts(kt.samples.ladder().spanning_tree)
    for name in ("inverse dynamics (RNEA)", "inertia matrix (CRBA)", "factorize and solve (LTDL)"):
        assert found.texts[name] == tree.texts[name]
    assert found.texts["loop constraints (K, k)"].total > 0
    assert found.cheapest_forward_dynamics == "null_space"
    assert "forward dynamics (ABA)" not in found.texts
    assert "null space (cluster by cluster)" in str(found)
    leanest = found.generated["forward dynamics (leanest)"].total
    parts = ("inverse dynamics (RNEA)", "inertia matrix (CRBA)", "loop constraints (K, k)",
             "null space (cluster by cluster)")  # fmt: skip
    assert leanest < 2 * sum(found.texts[part].total for part in parts)

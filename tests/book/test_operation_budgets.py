"""Operation counts of generated code against budgets and against RBDA Table 10.1 and §10.3."""

from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba, crba, rnea
from kinetree.codegen.program import Argument, cheapest, trace
from kinetree.diagnosis.published import (
    TABLE_10_1,
    OperationTotal,
    best,
    factorization_cost,
    inertia_matrix_cost,
)
from kinetree.expr.counting import cost, count_operations, counting, variables
from kinetree.joints import Revolute
from kinetree.model import ModelBuilder, from_dh
from kinetree.samples import chain, random_inertia, random_placement, tree
from kinetree.spatial import Force, Inertia
from kinetree.spatial.axial_screw import dh_step
from kinetree.spatial.vector3 import symmetric
from kinetree.textbook import crba_variants


def program(algorithm, model):
    names = ("q",) if algorithm is crba.joint_space_inertia else ("q", "qd", "u")
    inputs = [Argument(name, (model.nv,)) for name in names]
    return trace(lambda *state: algorithm(model, *state), inputs)


def operations(algorithm, model):
    traced = program(algorithm, model)
    return count_operations(traced.graph, traced.roots)


# --- budgets --------------------------------------------------------------------------------------

# Multiplications, additions and divisions of what is generated for chain(6), the book's GU(6).
# A change that needs more must say why; one that needs fewer should lower the budget.
BUDGETS = [
    (rnea.inverse_dynamics, 671, 535, 0),
    (crba.joint_space_inertia, 482, 449, 0),
    (aba.forward_dynamics, 1340, 1178, 5),
    (crba.forward_dynamics, 1203, 1035, 5),
]


@pytest.mark.covers("RBDA 10.3", "RBDA Table 10.1", by=count_operations)
@pytest.mark.parametrize(("algorithm", "m", "a", "d"), BUDGETS)
def test_generated_code_keeps_to_its_budget(algorithm, m, a, d):
    count = operations(algorithm, chain(6))
    assert count.multiplications <= m
    assert count.additions <= a
    assert count.divisions <= d
    assert count.sign_changes == 0


@pytest.mark.covers("RBDA Table 10.1", by="diagnosis.published.TABLE_10_1")
@pytest.mark.parametrize(
    ("algorithm", "name"), [(rnea.inverse_dynamics, "RNEA"), (aba.forward_dynamics, "ABA")]
)
def test_recursions_take_less_than_when_the_book_was_young(algorithm, name):
    (then,) = (r for r in TABLE_10_1 if r.algorithm == name and r.source == "Featherstone 1987")
    for n in (2, 4, 6):
        assert operations(algorithm, chain(n)).total < then(n).total


def test_each_further_joint_costs_the_same():
    """Growth is exactly linear for the recursions, quadratic for the inertia matrix."""
    for algorithm in (rnea.inverse_dynamics, aba.forward_dynamics):
        totals = [operations(algorithm, chain(n)).total for n in range(4, 8)]
        assert len(set(np.diff(totals))) == 1
    totals = [operations(crba.joint_space_inertia, chain(n)).total for n in range(4, 9)]
    assert len(set(np.diff(totals, 2))) == 1


@pytest.mark.covers("RBDA 10.3", by=cheapest)
def test_the_cheaper_method_is_chosen():
    """The inertia-matrix method for short chains and bushy trees, ABA for long chains."""
    for model, expected in [(chain(2), 1), (chain(6), 1), (chain(14), 0), (tree(14, 3), 1)]:
        ways = [program(f, model) for f in (aba.forward_dynamics, crba.forward_dynamics)]
        assert cheapest(ways) is ways[expected]
        assert cost(ways[expected].graph, ways[expected].roots) <= min(
            cost(w.graph, w.roots) for w in ways
        )


# --- the book's own figures -----------------------------------------------------------------------


# (m, a) at n = 6, 7, 10, 20, evaluated by hand.
EVALUATED = [
    ("RNEA", [(450, 386), (543, 467), (822, 710), (1752, 1520)]),
    ("RNEA", [(489, 420), (582, 501), (861, 744), (1791, 1554)]),
    ("RNEA", [(712, 550), (842, 651), (1232, 954), (2532, 1964)]),
    ("RNEA", [(852, 738), (1002, 869), (1452, 1262), (2952, 2572)]),
    ("CRBA", [(460, 395), (612, 510), (1188, 927), (4408, 3097)]),
    ("CRBA", [(505, 410), (666, 528), (1269, 954), (4579, 3154)]),
    ("CRBA", [(555, 470), (726, 600), (1359, 1062), (4769, 3382)]),
    ("CRBA", [(420, 339), (574, 443), (1168, 821), (4578, 2796)]),
    ("CRBA", [(741, 601), (953, 759), (1733, 1317), (5893, 4087)]),
    ("factorize and solve", [(86, 65), (126, 98), (310, 255), (1920, 1710)]),
    ("ABA", [(1085, 982), (1309, 1187), (1981, 1802), (4221, 3852)]),
    ("ABA", [(1278, 1122), (1528, 1342), (2278, 2002), (4778, 4202)]),
    ("ABA", [(1533, 1415), (1833, 1694), (2733, 2531), (5733, 5321)]),
]


@pytest.mark.covers("RBDA Table 10.1", by="diagnosis.published.TABLE_10_1")
def test_published_costs_evaluate_as_in_the_table():
    assert len(TABLE_10_1) == 13
    for row, (algorithm, values) in zip(TABLE_10_1, EVALUATED, strict=True):
        assert row.algorithm == algorithm
        assert [row(n) for n in (6, 7, 10, 20)] == [OperationTotal(*value) for value in values]


def total(n, a=1.0):
    """Cost of the inertia-matrix method and of ABA, an addition weighing ``a``."""
    parts = [best("RNEA", n), best("CRBA", n), best("factorize and solve", n)]
    return sum(p.m + a * p.a for p in parts), best("ABA", n).m + a * best("ABA", n).a


@pytest.mark.covers("RBDA 10.3", by=best)
def test_statements_about_the_cost_curves():
    assert all(total(n)[0] < total(n)[1] for n in range(2, 9))
    assert total(9)[0] > total(9)[1]
    assert total(18)[0] / total(18)[1] == pytest.approx(1.62, abs=0.01)
    for a in (0.5, 0.25):  # the weight of an addition hardly matters
        assert total(18, a)[0] / total(18, a)[1] == pytest.approx(1.62, abs=0.1)
    solve = {n: best("factorize and solve", n).total for n in range(2, 50)}
    assert all(solve[n] < best("RNEA", n).total for n in range(2, 19))
    assert solve[19] > best("RNEA", 19).total
    assert next(n for n in solve if solve[n] > best("CRBA", n).total) == 45


@pytest.mark.covers("RBDA 10.3", "RBDA Table 10.2", by=inertia_matrix_cost)
@pytest.mark.parametrize("n", range(1, 13))
def test_unbranched_tree_costs_what_the_table_says(n):
    parent = range(-1, n)
    (row,) = (r for r in TABLE_10_1 if r.source == "Featherstone 2005")
    assert inertia_matrix_cost(parent) == row(n)
    (row,) = (r for r in TABLE_10_1 if r.algorithm == "factorize and solve")
    assert factorization_cost(parent) == row(n)


@pytest.mark.covers("RBDA 10.3", by=(inertia_matrix_cost, factorization_cost))
@pytest.mark.parametrize(
    ("n", "matrix", "solve"),
    [
        (3, (123, 131), (11, 6)), (7, (457, 453), (51, 34)), (15, (1301, 1217), (179, 130)),
        (30, (3198, 2855), (524, 400)), (31, (3341, 2985), (547, 418)),
        (63, (8125, 7001), (1539, 1218)),
    ],
)  # fmt: skip
def test_binary_trees(n, matrix, solve):
    parent = [0, *(i // 2 for i in range(1, n + 1))]
    assert inertia_matrix_cost(parent) == OperationTotal(*matrix)
    assert factorization_cost(parent) == OperationTotal(*solve)


def test_bodies_on_the_base_cost_nothing(rng):
    """Their inertia matrix is diagonal and constant, and so it is in generated code."""
    assert inertia_matrix_cost([0] * 8) == OperationTotal(0, 0)
    builder = ModelBuilder("star")
    for k in range(4):
        inertia = random_inertia(rng)
        builder.body(f"body{k}", joint=Revolute("z"), at=random_placement(rng), inertia=inertia)
    assert operations(crba.joint_space_inertia, builder.build()).total == 0


def test_costs_of_random_trees_follow_from_the_subtrees(rng):
    """D0 bodies not on the base, D1 the sum of their subtree sizes — RBDA (10.4)–(10.9)."""
    for _ in range(20):
        n = int(rng.integers(2, 12))
        parent = [0, *(int(rng.integers(0, i)) for i in range(1, n + 1))]
        support = [{i} for i in range(n + 1)]
        for i in range(1, n + 1):
            support[i] |= support[parent[i]] - {0}
        D0 = sum(p != 0 for p in parent[1:])
        D1 = sum(len(support[i] - {0}) - 1 for i in range(1, n + 1))
        depth = max(len(support[i] - {0}) for i in range(1, n + 1))
        assert n * (depth - 1) >= D1
        found = inertia_matrix_cost(parent)
        assert D0 * 32 + D1 * 20 <= found.m <= D0 * 47 + D1 * 24
        assert D0 * 43 + D1 * 12 <= found.a <= D0 * 58 + D1 * 18


def gu(n, rng, masses=True):
    """The book's GU(n): numbers of the steps, counted angles and inertias; masses as numbers."""
    rows = rng.uniform(-1.5, 1.5, (n, 3))  # a, alpha, d
    inertias = [random_inertia(rng) for _ in range(n)]
    known = [
        Inertia(I.mass if masses else variables(I.mass), variables(I.first_moment),
                symmetric(*variables(I.rotational[np.tril_indices(3)])))
        for I in inertias
    ]  # fmt: skip
    return rows, inertias, known


@pytest.mark.covers("RBDA 10.3", by=(dh_step, Inertia))
def test_steps_along_denavit_hartenberg_axes_cost_what_the_formula_counts(rng):
    """C-05: ra = 10a, vx = 20m + 12a, rx = 32m + 33a, with 2m + 3a (here 1a) once for the angle."""
    theta = variables(0.7)
    _, _, (I, J) = gu(2, rng, masses=False)
    with counting() as ra:
        I + J
    assert str(ra) == "10a"
    _, plain, (I, _) = gu(2, rng)
    with counting() as once:
        X = dh_step(0.3, 0.4, 0.5, theta)
    assert str(once) == "1a"
    with counting() as vx:
        moved = X.inv_apply(Force(variables(rng.uniform(size=3)), variables(rng.uniform(size=3))))
    assert str(vx) == "20m + 12a"
    assert moved.linear.shape == (3,)
    with counting() as rx:
        moved = X.inv_apply(I)
    assert str(rx) == "30m + 30a"
    with counting() as general:  # a mass that is not known beforehand: 1m more for each screw
        X.inv_apply(Inertia(variables(2.5), I.first_moment, I.rotational))
    assert str(general) == "32m + 30a"
    expected = dh_step(0.3, 0.4, 0.5, 0.7).to_plucker().inv_apply(plain[0])
    assert_close(np.array(moved.parameters(), float), expected.parameters(), condition=10)


class Anew:
    """A transform that takes every force vector for a general one, as the formula does.

    Otherwise the zero with which it starts, and what it has in common with the inertia, save some.
    """

    def __init__(self, X):
        self.X = X

    def inv_apply(self, x):
        if isinstance(x, Force):
            x = Force(*(variables([float(e) for e in part]) for part in (x.angular, x.linear)))
        return self.X.inv_apply(x)


@pytest.mark.covers("RBDA 10.3", "RBDA Table 10.2", by=crba_variants.along_screws)
@pytest.mark.parametrize("n", range(1, 13))
def test_the_inertia_matrix_of_a_chain_takes_what_the_formula_says(n, rng):
    """C-06: (10n² + 22n - 32)m + (6n² + 37n - 43)a on GU(n), and H itself is right."""
    (row,) = (r for r in TABLE_10_1 if r.source == "Featherstone 2005")
    assert row(n) == OperationTotal(10 * n**2 + 22 * n - 32, 6 * n**2 + 37 * n - 43)

    def counted(masses, anew):
        rows, inertias, links = gu(n, rng, masses)
        angles = rng.uniform(-1, 1, n)
        with counting() as tally:
            turns = [0.0, *(variables(q) for q in angles[1:])]
            steps = [dh_step(*x, q) for x, q in zip(rows, turns, strict=True)]
            H = crba_variants.along_screws([Anew(X) for X in steps] if anew else steps, links)
        model = from_dh([(*x, 0.0) for x in rows])
        bodies = [replace(b, inertia=I) for b, I in zip(model.bodies, inertias, strict=True)]
        expected = crba.joint_space_inertia(model.replace(bodies=bodies), angles)
        values = np.array([float(x) for x in H.ravel()]).reshape(n, n)
        assert_close(values, expected, condition=100)
        saved = OperationTotal(
            2 * (n - 1), 2 * (n - 1)
        )  # an angle takes 1a beforehand in place of 2m + 3a
        return OperationTotal(tally.multiplications, tally.additions) + saved

    # The formula adds masses but does not multiply them by distances. Known beforehand, they are
    # not added either; as variables, they are multiplied for each of the two screws.
    assert counted(masses=True, anew=True) + OperationTotal(0, n - 1) == row(n)
    assert counted(masses=False, anew=True) == row(n) + OperationTotal(2 * (n - 1), 0)
    if n > 1:
        assert counted(masses=True, anew=False).total < row(n).total

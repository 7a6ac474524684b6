"""Operation counts of the library against the figures of the book: Tables A.3–A.5, 6.6, §A.5."""

import numpy as np
import pytest
from support.products import compose, rotation_product

from kinetree.algorithms import ltl
from kinetree.algorithms.propagation import clear_rows
from kinetree.expr.counting import count, counting, variables
from kinetree.model.tree import expanded_parent
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import ArticulatedInertia, Force, Inertia, Motion, Plucker, crf, crm, cross
from kinetree.spatial.arithmetic import (
    AxialRotation,
    rotate_general,
    rotate_symmetric,
)
from kinetree.spatial.axial_screw import AxialScrew, scrx, scry, scrz
from kinetree.spatial.planar_inertia import PlanarArticulatedInertia, PlanarInertia


def draw(kind, rng):
    """A general quantity of a kind; no two of its numbers are equal."""
    if kind in (Motion, Force):
        return kind.from_array(rng.standard_normal(6))
    if kind is Plucker:
        return random_placement(rng)
    if kind is Inertia:
        return random_inertia(rng)
    if kind is ArticulatedInertia:
        A = rng.standard_normal((6, 6))
        return ArticulatedInertia.from_matrix(A + A.T)
    return float(rng.standard_normal())


V, F, I, IA, X, K = Motion, Force, Inertia, ArticulatedInertia, Plucker, float

TABLE_A4 = [
    ("k v", lambda k, v: k * v, (K, V), "6m"),
    ("k f", lambda k, f: k * f, (K, F), "6m"),
    ("k I", lambda k, I: k * I, (K, I), "10m"),
    ("k IA", lambda k, IA: k * IA, (K, IA), "21m"),
    ("v + v", lambda a, b: a + b, (V, V), "6a"),
    ("f + f", lambda a, b: a + b, (F, F), "6a"),
    ("I + I", lambda a, b: a + b, (I, I), "10a"),
    ("IA + IA", lambda a, b: a + b, (IA, IA), "21a"),
    ("IA + I", lambda a, b: a + b, (IA, I), "15a"),
    ("I + IA", lambda a, b: a + b, (I, IA), "15a"),
    ("v . f", lambda v, f: v.dot(f), (V, F), "6m + 5a"),
    ("v x v", crm, (V, V), "18m + 12a"),
    ("v x* f", crf, (V, F), "18m + 12a"),
    ("I v", lambda I, v: I @ v, (I, V), "24m + 18a"),
    ("IA v", lambda IA, v: IA @ v, (IA, V), "36m + 30a"),
    ("X1 X2", compose, (X, X), "33m + 24a"),
    ("X inverse", lambda X: X.inverse(), (X,), "9m + 6a"),
    ("X v", lambda X, v: X @ v, (X, V), "24m + 18a"),
    ("X inverse v", lambda X, v: X.inv_apply(v), (X, V), "24m + 18a"),
    ("X* f", lambda X, f: X.star @ f, (X, F), "24m + 18a"),
    ("XT f", lambda X, f: X.T @ f, (X, F), "24m + 18a"),
    ("X* I X inverse", lambda X, I: X.apply(I), (X, I), "52m + 56a"),
    ("XT I X", lambda X, I: X.T @ I @ X, (X, I), "52m + 56a"),
    ("X* IA X inverse", lambda X, IA: X.apply(IA), (X, IA), "137m + 137a"),
    ("XT IA X", lambda X, IA: X.T @ IA @ X, (X, IA), "137m + 137a"),
]


@pytest.mark.covers(
    "RBDA Table A.4",
    "RBDA A.3",
    "6-D Guide 2: Arithmetic",
    by=(Motion, Force, Plucker, Inertia),
)
@pytest.mark.parametrize(
    ("operation", "kinds", "cost"), [row[1:] for row in TABLE_A4], ids=[row[0] for row in TABLE_A4]
)
def test_table_a4(operation, kinds, cost, rng):
    assert str(count(operation, *(draw(kind, rng) for kind in kinds))) == cost


@pytest.mark.covers("RBDA Table A.4", by=Plucker)
def test_the_operator_takes_the_plain_rotation_product(rng):
    X1, X2 = draw(Plucker, rng), draw(Plucker, rng)
    assert str(count(lambda a, b: a @ b, X1, X2)) == "36m + 27a"
    # With one rotation about a coordinate axis the plain product is the cheaper one.
    E, r = variables(X2.E), variables(X2.r)
    turn = scrz(*variables((0.3, 0.4))).to_plucker()
    with counting() as plain:
        _ = turn @ Plucker(E, r)
    with counting() as by_columns:
        _ = compose(turn, Plucker(E, r))
    assert plain.total < by_columns.total


@pytest.mark.covers("RBDA A.3", by=Inertia.transformed)
def test_congruence_of_general_matrices_costs_much_more(rng):
    A, B = rng.standard_normal((2, 6, 6))
    assert str(count(lambda A, B: A.T @ B @ A, A, B)) == "432m + 360a"
    compact = count(Inertia.transformed, draw(Inertia, rng), draw(Plucker, rng))
    assert 7 * compact.total < 432 + 360


@pytest.mark.covers("RBDA A.3", by=cross)
def test_cross_product_with_a_symmetric_matrix(rng):
    A, r = rng.standard_normal((3, 3)), rng.standard_normal(3)
    assert str(count(cross, r, A + A.T)) == "15m + 9a"


@pytest.mark.covers("RBDA Table A.3", by=(Motion, Force, Plucker, Inertia, ArticulatedInertia))
def test_compact_sizes(rng):
    # Scaling takes one multiplication for every number stored.
    sizes = {Motion: 6, Force: 6, Inertia: 10, ArticulatedInertia: 21}
    for kind, size in sizes.items():
        assert count(lambda x: 2.5 * x, draw(kind, rng)).multiplications == size
    assert draw(Plucker, rng).E.size + draw(Plucker, rng).r.size == 12
    assert draw(Inertia, rng).parameters().size == 10


@pytest.mark.covers("RBDA 2.16", "RBDA 7.1", by=(PlanarInertia, PlanarArticulatedInertia))
def test_planar_sizes(rng):
    rigid = PlanarInertia(1.5, rng.standard_normal(2), 2.0)
    A = rng.standard_normal((3, 3))
    articulated = PlanarArticulatedInertia.from_matrix(A + A.T)
    assert count(lambda x: 2.5 * x, rigid).multiplications == 4
    assert count(lambda x: 2.5 * x, articulated).multiplications == 6
    assert rigid.parameters().size == 4


@pytest.mark.covers("RBDA Table A.5", "RBDA A.4", by=AxialScrew)
@pytest.mark.parametrize("screw", [scrx, scry, scrz])
@pytest.mark.parametrize(
    ("kind", "cost"),
    [(V, "10m + 6a"), (F, "10m + 6a"), (I, "16m + 15a"), (IA, "38m + 40a")],
    ids=["motion", "force", "rigid", "articulated"],
)
def test_table_a5(screw, kind, cost, rng):
    S, x = screw(*variables((0.7, 0.4))), draw(kind, rng)  # the screw is made beforehand
    assert str(count(lambda x: S.apply(x), x)) == cost
    assert str(count(lambda x: S.inv_apply(x), x)) == cost
    if kind in (I, IA):
        assert str(count(lambda x: S.T @ x @ S, x)) == cost


@pytest.mark.covers("RBDA Table A.5", "RBDA 7.2", by=(AxialScrew, clear_rows))
@pytest.mark.parametrize(
    ("screw", "cost"), [(scrx, "33m + 28a"), (scry, "33m + 28a"), (scrz, "28m + 34a")]
)
def test_table_a5_with_zero_row_and_column(screw, cost, rng):
    # The book has 32m about x and y, after 2m + 3a in place of 1a for the angle.
    S, Ia = screw(*variables((0.7, 0.4))), revolute_handle(rng)
    for operation in (S.apply, S.inv_apply):
        with counting() as tally:
            result = operation(Ia)
        assert str(tally) == cost
        keeps_zeros = all(isinstance(x, int) for x in (*result.I[2], *result.I[:, 2], *result.H[2]))
        assert keeps_zeros == (screw is scrz)


def revolute_handle(rng):
    """An ``Iᵃ`` whose row and column 3 are structural zeros."""
    about_z = Motion.from_array(np.eye(6, dtype=int)[:, [2]])
    return clear_rows(variables(draw(IA, rng)), about_z)


@pytest.mark.covers("RBDA A.4", by=AxialScrew)
def test_screw_is_made_once_for_one_addition():
    tally = count(scrz, 0.7, 0.4)
    assert str(tally) == "1a"
    assert tally.trigonometric == 2


@pytest.mark.covers("RBDA A.4", by=AxialScrew)
def test_denavit_hartenberg_step_of_a_revolute_handle(rng):
    Ia, about_x = revolute_handle(rng), scrx(*variables((0.7, 0.4)))
    angle, d = variables((0.3, 0.2))
    with counting() as tally:  # the angle about z varies, the one about x does not
        about_z = scrz(angle, d)
        X = about_z @ about_x
        _ = X.T @ Ia @ X
    assert str(tally) == "61m + 63a"
    assert tally.total < 274 / 2


@pytest.mark.covers("RBDA A.4", by=AxialScrew)
def test_screws_against_general_transforms(rng):
    S, general = scrz(*variables((0.7, 0.4))), draw(Plucker, rng)

    def ratio(kind):
        x = draw(kind, rng)
        screw, full = count(S.apply, x), count(lambda X, x: X.apply(x), general, x)
        return screw.total / full.total

    assert ratio(Motion) == 16 / 42
    assert ratio(Inertia) == 31 / 108 < 1 / 3
    assert ratio(ArticulatedInertia) == 78 / 274 < 1 / 3


@pytest.mark.covers("RBDA A.5", by=Plucker)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_rotation_products(n, rng):
    factors = [random_placement(rng).E for _ in range(n + 1)]
    tally = count(rotation_product, *factors)
    assert (tally.multiplications, tally.additions) == (18 * n + 6, 12 * n + 3)


@pytest.mark.covers("RBDA A.5", by=(rotate_general, rotate_symmetric))
def test_matrix_rotations(rng):
    E, A = random_placement(rng).E, rng.standard_normal((3, 3))
    assert str(count(lambda E, A: E @ A @ E.T, E, A)) == "54m + 36a"
    assert str(count(lambda E, A: rotate_general(E, A, by_trace=True), E, A)) == "40m + 39a"
    assert str(count(rotate_general, E, A)) == "42m + 37a"
    assert str(count(rotate_symmetric, E, A + A.T)) == "28m + 29a"


@pytest.mark.covers("RBDA A.5", by=AxialRotation)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_matrix_rotations_about_a_coordinate_axis(axis, rng):
    A = rng.standard_normal((3, 3))
    angle = variables(0.7)
    with counting() as one_time:
        turn = AxialRotation.from_angle(axis, angle)
    assert str(one_time) == "1a"
    assert str(count(turn.vectors, A[0])) == "4m + 2a"
    assert str(count(turn.general, A)) == "12m + 12a"
    assert str(count(turn.symmetric, A + A.T)) == "8m + 7a"
    assert count(turn.inverse).total == 0


TREES = {
    "chain": (range(6), [0] + [1] * 6),
    "star": ([0] * 5, [0] + [1] * 5),
    "binary": ([0, 1, 1, 2, 2, 3, 3], [0] + [1] * 7),
    "Table 6.4": ([0, 1, 1, 2, 2, 3], [0, 1, 3, 1, 1, 1, 1]),
}


@pytest.mark.covers("RBDA Table 6.6", "RBDA 6.5", by=(ltl.ltl, ltl.ltdl, ltl.solve_ltl))
@pytest.mark.parametrize("tree", TREES)
def test_table_6_6(tree, rng):
    parent, nv = TREES[tree]
    lam = expanded_parent((-1, *parent), nv)
    n = len(lam)
    depth = [1 + len(list(ltl.ancestors(lam, k))) for k in range(n)]
    D1, D2 = sum(d - 1 for d in depth), sum(d * (d - 1) // 2 for d in depth)
    if tree == "chain":
        assert (n**2 - n) // 2 == D1
        assert (n**3 - n) // 6 == D2

    H = variables(rng.standard_normal((n, n)) + 10 * np.eye(n))
    L, b = variables(rng.standard_normal((n, n))), variables(rng.standard_normal(n))

    def cost(function, *args):
        with counting() as t:
            function(*args)
        return t.square_roots, t.divisions, t.multiplications, t.additions

    assert cost(ltl.ltl, H, lam) == (n, D1, D2, D2)
    assert cost(ltl.ltdl, H, lam) == (0, D1, D2, D2)
    assert cost(ltl.solve_ltl, L, lam, b) == (0, 2 * n, 2 * D1, 2 * D1)
    assert cost(ltl.solve_ltdl, L, lam, b) == (0, n, 2 * D1, 2 * D1)
    for product in (ltl.multiply_l, ltl.multiply_lt):
        assert cost(product, L, lam, b) == (0, 0, n + D1, D1)
        assert cost(product, L, lam, b, True) == (0, 0, D1, D1)
    for solve in (ltl.solve_l, ltl.solve_lt):
        assert cost(solve, L, lam, b) == (0, n, D1, D1)
        assert cost(solve, L, lam, b, True) == (0, 0, D1, D1)
    assert cost(ltl.multiply, H, lam, b) == (0, 0, n + 2 * D1, 2 * D1)


@pytest.mark.covers("RBDA 6.4", by=ltl.ltdl)
def test_sparse_factorisation_pays_in_proportion_to_density(rng):
    parent, nv = TREES["binary"]
    lam = expanded_parent((-1, *parent), nv)
    H = variables(rng.standard_normal((7, 7)) + 10 * np.eye(7))
    with counting() as sparse:
        ltl.ltdl(H, lam)
    with counting() as dense:
        ltl.ltdl(H, ltl.dense(7))
    assert (sparse.divisions, sparse.multiplications) == (10, 14)
    assert (dense.divisions, dense.multiplications) == (21, 56)
    density = (7 + 2 * 10) / 49
    assert abs(sparse.total / dense.total - density**2) < 0.05

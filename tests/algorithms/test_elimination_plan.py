"""Orders of elimination for loops: pivots, what is left out, and how far a result is trusted."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support import linkages
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import crba
from kinetree.algorithms.closed import forward_dynamics as dynamics
from kinetree.algorithms.closed.constraints import LoopConstraints
from kinetree.algorithms.closed.plan import (
    AXES,
    EliminationPlan,
    _eliminate,
    make_plan,
    stacked_rows,
)
from kinetree.algorithms.closed.rank import closed_configurations, scaling
from kinetree.joints import Cylindrical, Revolute

# --- pivots --------------------------------------------------------------------------------------


def follow(A, pivots, independent=()):
    """Assert that each pivot is large, and of those the one with the least work, by counting."""
    A = A.copy()
    rows = [set(np.flatnonzero(row)) for row in A]
    columns = set(range(A.shape[1])) - set(independent)
    open_rows = set(range(len(A)))
    for i, j in pivots:
        assert i in open_rows
        assert j in columns
        size = {(r, c): abs(A[r, c]) for r in open_rows for c in columns}
        worthy = {at for at, x in size.items() if x >= 0.1 * max(size.values())}
        assert (i, j) in worthy

        def work(at):
            others = sum(at[1] in rows[r] for r in open_rows) - 1
            return (len(rows[at[0]] & columns) - 1) * others

        least = min(map(work, worthy))
        assert work((i, j)) == least
        assert size[i, j] == max(size[at] for at in worthy if work(at) == least)
        open_rows.remove(i)
        columns.remove(j)
        for r in open_rows:
            if j in rows[r]:
                A[r] -= A[r, j] / A[i, j] * A[i]
                A[r, j] = 0
                rows[r] = (rows[r] | rows[i]) - {j}


@pytest.mark.parametrize("seed", range(12))
def test_every_pivot_is_worthy_and_causes_the_least_work(seed):
    rng = np.random.default_rng(seed)
    A = rng.uniform(1, 3, (9, 11)) * rng.choice([-1, 1], (9, 11)) * (rng.random((9, 11)) < 0.35)
    A[np.arange(9), rng.permutation(9)] = 2.0
    independent = () if seed % 2 else (3, 9)
    rank = np.linalg.matrix_rank(np.delete(A, independent, axis=1))
    pivots = _eliminate(A[None], rank, independent)
    assert len(pivots) == rank
    follow(A, pivots, independent)


def test_an_arrow_is_eliminated_from_its_tip_without_filling_in():
    n = 6
    A = np.eye(n) * -3.0
    A[0], A[:, 0] = 1.0, 1.0
    A[0, 0] = 3.0
    pivots = _eliminate(A[None], n)
    assert set(pivots[: n - 2]) < {(k, k) for k in range(1, n)}


def test_a_pivot_suits_all_configurations_or_else_most():
    always, sometimes = np.array([[0.5, 1.0]]), np.array([[0.5, 0.0]])
    assert _eliminate(np.array([always, sometimes, always]), 1) == ((0, 0),)
    rarely = np.array([[0.0, 0.7]])
    assert _eliminate(np.array([always, *[sometimes] * 3, rarely]), 1) == ((0, 0),)
    # samples without the first pivot do not count any more
    both, first, neither = ([[a, 0, 0], [0, 9e-4, b]] for a, b in ((1.0, 1.0), (1.0, 0), (0, 0)))
    assert _eliminate(np.array([both, both, first, neither, neither]), 2) == ((0, 0), (1, 2))


def test_a_row_that_follows_from_others_gives_no_pivot():
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.2], [2.0, 2.0, 0.2]])
    pivots = _eliminate(A[None], 2)
    assert {2} < {j for _, j in pivots}
    assert np.linalg.det(A[np.ix_(*zip(*pivots, strict=True))]) != 0


def test_independent_columns_that_do_not_determine_the_others_end_it():
    A = np.array([[[1.0, 2, 0], [0, 0, 3]]])
    assert _eliminate(A, 2, (0, 1)) == ((1, 2),)
    assert len(_eliminate(A, 2, (0,))) == 2


# --- plans of mechanisms -------------------------------------------------------------------------


def tilted():
    """A planar linkage with an axis that leaves its plane a little."""
    model = linkages.four_bar()
    crank, coupler, rocker = model.bodies
    coupler = replace(coupler, placement=kt.rotx(1e-4) @ coupler.placement)
    return model.replace(bodies=[crank, coupler, rocker])


def anywhere():
    """A planar linkage whose redundant rows are rounding errors, and count by their size alone."""
    return kt.loops.with_misalignment(linkages.four_bar(np.random.default_rng(3)), 0)


@pytest.mark.filterwarnings("ignore::kinetree.errors.MisalignmentWarning")
@pytest.mark.parametrize(
    "make", [kt.samples.four_bar, kt.samples.excavator, kt.samples.bennett, tilted, anywhere]
)
def test_sizes_of_what_is_left_out_are_those_of_its_rows(make):
    model = make()
    q = closed_configurations(model)
    plan = make_plan(model, None, q)
    H = np.array([np.diag(crba.joint_space_inertia(model, x)) for x in q])
    assert_close(plan.column_size, 1 / np.sqrt(H.mean(axis=0)), ulps=1e3)
    K = np.array([stacked_rows(model, x, model.zero_velocity, None).K for x in q]).astype(float)
    units = scaling(model)
    size = np.max(np.linalg.norm(K * plan.column_size, axis=2), axis=0) * units.rows
    pure = np.max(np.linalg.norm(units.apply(K), axis=2), axis=0)
    counts = (pure > units.alignment_tolerance) & (size > 1e-6 * size.max())
    size = np.where(counts, size, size.max())
    assert_close(plan.row_size, (size / units.rows)[list(plan.redundant)], ulps=1e6)
    assert sorted((*plan.rows, *plan.redundant)) == list(range(K.shape[1]))
    rank = np.linalg.matrix_rank(units.apply(K), tol=1e-3).max()
    assert len(plan.pivots) == rank
    rows, columns = (list(part) for part in zip(*plan.pivots, strict=True))
    best = np.abs(np.linalg.det(units.apply(K)[:, rows][:, :, columns]))
    assert np.median(best) > 1e-6


def test_the_first_way_has_the_fewest_operations():
    model = kt.samples.four_bar()
    samples = closed_configurations(model)
    for way in dynamics.ways(model):
        others = [
            dynamics._way(model, way.method, make_plan(model, axes, samples))
            for axes in (None, *AXES)
        ]
        assert way.cost == min(other.cost for other in others)
        assert len({other.cost for other in others}) > 1


def test_a_pivot_that_is_zero_everywhere_is_not_used():
    """Two functions that say the same, and pivots in both."""
    model = kt.samples.double_pendulum()
    same = [
        kt.ConstraintFunction(name, position=lambda q: [np.sin(q[0]) + q[0] * q[1]])
        for name in "ab"
    ]
    model = model.replace(constraints=same)
    q = np.array([[0.0, 0.4], [0.0, -0.7]])
    plan = make_plan(model, None, q)
    assert len(plan.pivots) == 1
    assert dynamics._way(model, "null space", plan).is_safe
    both = plan._replace(pivots=((0, 0), (1, 1)))
    assert dynamics._way(model, "null space", both) is None


def test_which_axes_are_tried():
    point, line = SimpleNamespace(joint=Revolute("z")), SimpleNamespace(joint=Cylindrical("z"))

    def tried(nv, *loops):
        return dynamics.axes_to_try(SimpleNamespace(nv=nv, loops=loops))

    assert tried(6, point) == tried(6, point, line) == tried(7, point, line) == (None, *AXES)
    assert tried(7, point) == tried(20, point, point) == AXES
    assert tried(6, line) == tried(20, line, line) == (None,)


# --- trust ---------------------------------------------------------------------------------------


def left_out(row_size, column_size, misalignment=0.0):
    """A plan with one constraint that was left out."""
    return EliminationPlan(
        None, ((1, 0),), (0,), np.array([row_size]), column_size, misalignment, None
    )


@pytest.mark.parametrize("misalignment", [0.0, 3e-5])
def test_how_far_a_constraint_that_was_left_out_may_be_violated(misalignment):
    column_size, row_size = np.array([0.2, 5.0]), 30.0
    agreement = dynamics.AGREEMENT + 10 * misalignment
    plan = left_out(row_size, column_size, misalignment)
    K, qdd = np.array([[2.0, -3.0], [1.0, 1.0]]), np.array([7.0, 0.9])
    exact = K[0] @ qdd
    limit = agreement * np.hypot(row_size * np.hypot(7.0 / 0.2, 0.9 / 5.0), exact)
    for factor in (0.9, 0.99, 1.01, 1.1):
        for sign in (-1, 1):
            k = np.array([exact + sign * factor * limit, 1e9])
            (violated,) = dynamics.violations(plan, LoopConstraints(K, k, k, k), qdd)
            assert bool(violated) == (factor > 1)
    # at rest the right-hand side alone counts, and a row of zeros says nothing
    small = left_out(1e-9, column_size, misalignment)
    for factor, expected in ((0.9, False), (1.1, True)):
        k = np.array([exact * (1 + factor * agreement), 0.0])
        (violated,) = dynamics.violations(small, LoopConstraints(K, k, k, k), qdd)
        assert bool(violated) == expected
    nothing = np.array([0, 0]), np.array([[0, 0], [1, 1]])
    c = LoopConstraints(nothing[1], nothing[0], nothing[0], nothing[0])
    assert not list(dynamics.violations(plan, c, qdd))


def test_health_is_that_of_the_smallest_pivot():
    small = dynamics.SMALLEST_PIVOT
    plan = left_out(1.0, np.ones(2))
    usual = np.array([4.0, 10.0])
    c = LoopConstraints(np.array([[0, 0], [1, 1]]), *np.zeros((3, 2), dtype=int))

    def health(method, *sizes):
        way = dynamics.Way(method, plan, usual, True, 0)
        return dynamics.health_of(way, sizes, c, np.zeros(2))

    assert_close(health("null space", 4.0, 10.0), 1 / small)
    assert_close(health("null space", -0.04, 10.0), 0.01 / small)
    assert_close(health("null space", 4.0, 1e-5), 1e-6 / small**2)
    assert_close(health("range space", 4e-6, 10.0), 1e-6 / small**2)
    assert_close(health("range space", 4e-6, 1e-6), 1e-7 / small**2)
    open_row = c._replace(K=np.array([[1, 1], [1, 1]]), k=np.array([1.0, 0.0]))
    way = dynamics.Way("null space", plan, usual, True, 0)
    assert dynamics.health_of(way, (4.0, 10.0), open_row, np.zeros(2)) == 0

"""Newton's method in the velocities: sparse factors, laws of contact, islands, effort at rest."""

from itertools import pairwise

import numpy as np
import pytest
from support.islands import (
    WEIGHT,
    H,
    ancestors,
    begun,
    boxes,
    filled,
    missed,
    pile,
    pyramid,
    random_forest,
    random_groups,
    random_problem,
    run,
    stack,
)

from kinetree.contact.complementarity import cones
from kinetree.contact.newton.cholesky import factor, solve_factored
from kinetree.contact.newton.cones import OPEN, SLIDING, STICKING
from kinetree.contact.newton.convex import minimise
from kinetree.contact.newton.equations import evaluate, laws
from kinetree.contact.newton.interior import begin, follow
from kinetree.contact.newton.matrix import assemble
from kinetree.contact.newton.mixtures import sweep_rounds
from kinetree.contact.newton.newton import list_nodes, solve
from kinetree.contact.newton.pattern import analyse, place_pairs, split
from kinetree.contact.newton.polish import speed_error
from kinetree.contact.newton.problem import (
    BOUNDS,
    CONE,
    LARGEST_NODE,
    enlarge,
    problem_of,
    with_room,
    workspace,
)  # fmt: skip
from kinetree.contact.newton.steps import first_change
from kinetree.contact.newton.sticking import solve_more_exactly, solve_unloaded
from kinetree.contact.newton.sweeps import responses, sweep


def test_nodes_are_unbranched_runs():
    parent = [-1, *range(20), 20, 20, 22, -1]
    p = problem_of(parent)
    assert list(p.node_count) == [LARGEST_NODE, 5, 1, 2, 1]
    assert list(p.node_parent) == [-1, 0, 1, 1, -1]
    assert list(p.node_tree) == [0, 0, 0, 0, 1]
    assert p.trees == 2
    with pytest.raises(ValueError, match=r"dof_parent\[1\] must be from -1 to 0, got 1"):
        problem_of([-1, 1])


@pytest.mark.parametrize("kind", ["forest", "boxes"])
@pytest.mark.parametrize("seed", range(6))
def test_sparse_factors_solve_as_dense_ones(seed, kind):
    rng = np.random.default_rng(seed)
    if kind == "forest":
        parent, M = random_forest(rng, trees=5)
        rows = random_groups(rng, parent, 7)
        p = filled(parent, M, rows)
    else:
        p, M, rows = pyramid(3)
    work = workspace(p)
    for both in (0, 1):
        while True:
            islands = split(p, work)
            if analyse(p, work) == 0 and place_pairs(p, work) == 0:
                break
            enlarge(work, p)
        list_nodes(p, work, islands)
        x = b = rng.normal(size=p.nv)
        x, full = b.copy(), M.copy()
        for g, (_, J, *_) in enumerate(rows):
            work.state[g] = rng.choice([OPEN, STICKING, SLIDING])
            A = rng.normal(size=(len(J), len(J)))
            skew = both * 0.5 * (work.state[g] == SLIDING)
            A = (work.state[g] != OPEN) * (A @ A.T + skew * (A - A.T))
            at = 6 * p.row_first[g]
            work.A[at : at + A.size] = A.ravel()
            full += J.T @ A @ J
        for i in range(islands):
            assemble(p, work, i, both)
            assert factor(p, work, i, both) == 0
            solve_factored(p, work, i, x)
        touched = np.isin(np.arange(p.nv), work.island_dof[: work.island_dofs_first[islands]])
        part = full[np.ix_(touched, touched)]
        eps = 100 * np.finfo(float).eps * np.linalg.cond(part)
        expected = np.linalg.solve(part, b[touched])
        np.testing.assert_allclose(x[touched], expected, atol=eps * np.max(np.abs(expected)))
        assert np.array_equal(x[~touched], b[~touched])


def test_the_matrix_with_loops_is_kept_and_contacts_of_a_body_are_added_at_once():
    """Groups on the same nodes follow one another, some of another size; loops act in any state."""
    rng = np.random.default_rng(7)
    parent = np.array([-1, 0, 1, 2, 3, 4, 5, 6, 7, 5, 9, 10, 8, 12, 13, 8, 15, 16])
    M = np.zeros((18, 18))
    for i in range(18):
        for j in (set(ancestors(parent, i)) & set(range(18))) - {i}:
            M[i, j] = M[j, i] = 0.1 * rng.normal()
    M += 8 * np.eye(18)
    rows = []
    for d, kind, n in [(14, BOUNDS, 1)] * 3 + [(17, CONE, 3)] * 2 + [(17, CONE, 4), (17, CONE, 3)]:
        J = np.zeros((n, 18))
        J[:, list(ancestors(parent, d))] = rng.normal(size=(n, len(list(ancestors(parent, d)))))
        rows.append((kind, J, np.zeros(n), 0.5, -1e300, 1e300))
    p = filled(parent, M, rows)
    p.condenses = 1
    work = workspace(p)
    split(p, work)
    while (analyse(p, work) or place_pairs(p, work)) != 0:
        enlarge(work, p)
    list_nodes(p, work, 1)
    for k in range(4):
        full, both = M.copy(), k % 2
        for g, (kind, J, *_) in enumerate(rows):
            work.state[g] = rng.choice([OPEN, STICKING, SLIDING])
            A = rng.normal(size=(len(J), len(J)))
            A = A @ A.T + both * (work.state[g] == SLIDING) * (A - A.T) / 2
            A = g + 1.0 + 0 * A if kind == BOUNDS else A * (work.state[g] != OPEN)
            work.A[6 * p.row_first[g] : 6 * p.row_first[g] + A.size] = A.ravel()
            full += J.T @ A @ J
        assemble(p, work, 0, both)
        x = b = rng.normal(size=18)
        x = b.copy()
        assert factor(p, work, 0, both) == 0
        solve_factored(p, work, 0, x)
        np.testing.assert_allclose(full @ x, b, atol=1e-11)


def test_machine_code_has_the_meaning_of_the_source():
    rng = np.random.default_rng(3)
    velocity = 0.05 * rng.normal(size=6)
    found = []
    for f in (solve, solve.python):
        p, *_ = stack(1, velocity=velocity)
        work = workspace(p)
        while f(p, work) == -1:
            enlarge(work, p)
        found.append((p.velocity, p.impulse, p.newton, p.rounds, p.islands))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-7 * WEIGHT)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-3 * WEIGHT)
    assert found[0][4] == found[1][4] == 1


@pytest.mark.parametrize("tolerance", [1e-6, 1e-11])
@pytest.mark.parametrize("seed", range(8))
def test_laws_hold_on_random_mechanisms(seed, tolerance):
    rng = np.random.default_rng(seed)
    parent, M = random_forest(rng)
    rows = random_groups(rng, parent, 5)
    p = filled(parent, M, rows, tolerance=tolerance)
    p.free[:] = rng.normal(size=p.nv)
    status, _ = run(p)
    size = max(1.0, np.max(np.abs(p.impulse)))
    momentum, laws = missed(M, p.free, rows, p.velocity, p.impulse)
    assert status == 0
    assert p.error <= tolerance
    assert momentum <= 30 * tolerance * size * np.sqrt(np.max(np.diag(M)))
    assert laws <= 300 * tolerance * size**2


@pytest.mark.parametrize("seed", range(6))
def test_velocities_are_those_of_the_dense_solver(seed):
    """Without friction they are unique; with it, the dense solver certifies ours."""
    rng = np.random.default_rng(seed)
    parent, M = random_forest(rng)
    rows = [r for r in random_groups(rng, parent, 9) if len(r[1]) in (1, 3)]
    rows = [r for r in rows if r[0] == CONE] + [r for r in rows if r[0] == BOUNDS]
    J, target = np.vstack([r[1] for r in rows]), np.concatenate([r[2] for r in rows])
    A, free = J @ np.linalg.solve(M, J.T), rng.normal(size=len(parent))
    bounds = [r for r in rows if r[0] == BOUNDS]
    low, high = [r[4] for r in bounds], [r[5] for r in bounds]
    for scale in (0.0, 1.0):
        groups = [(*r[:3], scale * r[3], *r[4:]) for r in rows]
        mu = np.array([r[3] for r in groups if r[0] == CONE])
        p = filled(parent, M, groups, tolerance=1e-10)
        p.free[:] = free
        assert run(p)[0] == 0
        ours = p.impulse[: len(J)]
        dense = cones.solve(A, J @ free + target, mu, low=low, high=high, warm=ours, tolerance=1e-7)
        assert dense.converged
        assert dense.iterations <= 2
        if scale == 0.0:
            dense = cones.solve(A, J @ free + target, mu, low=low, high=high)
            expected = free + np.linalg.solve(M, J.T @ dense.lam)
            np.testing.assert_allclose(p.velocity, expected, atol=1e-7 * (1 + np.max(np.abs(free))))


@pytest.mark.parametrize("build", [lambda **k: stack(10, **k), lambda **k: pyramid(5, **k)])
def test_what_stands_rests_without_effort(build):
    p, M, rows = build()
    status, work = run(p)
    assert status == 0
    assert p.newton <= 15
    total = sum(p.impulse[3 * g] for g, r in enumerate(rows) if not np.any(r[1][0, 2::6] < 0))
    assert total == pytest.approx(WEIGHT * len(M) / 6, rel=1e-8)  # the ground bears the weight
    moved, steps = np.zeros(p.nv), 0
    for _ in range(300):
        p.free[:] = p.velocity
        p.free[2::6] -= WEIGHT
        status = solve(p, work)
        assert status == 0
        steps += p.newton
        moved += 2e-3 * p.velocity
    assert steps <= 5  # in the first ones
    assert p.newton == 0
    assert np.max(np.abs(moved)) < 1e-11


@pytest.mark.parametrize("mass", [np.geomspace(1, 1e4, 6), np.geomspace(1e4, 1, 6)])
def test_heavy_boxes_and_light_ones(mass):
    p, M, rows = stack(6, mass=mass)
    assert run(p)[0] == 0
    momentum, laws = missed(M, p.free, rows, p.velocity, p.impulse)
    load = WEIGHT * np.sum(mass)
    assert momentum <= 1e-6 * load
    assert laws <= 1e-6 * load**2 / np.min(mass)  # of the energy that it would be for the lightest


def test_boxes_that_slide_tumble_and_hit():
    rng = np.random.default_rng(1)
    for build in (lambda **k: stack(4, **k), lambda **k: pyramid(3, **k)):
        n = build()[0].nv
        p, M, rows = build(velocity=0.1 * rng.normal(size=n), mu=0.8)
        assert run(p)[0] == 0
        momentum, laws = missed(M, p.free, rows, p.velocity, p.impulse)
        assert max(momentum, laws) <= 1e-5 * np.max(np.abs(p.impulse))


def test_what_was_left_coarse_goes_on_where_it_was():
    p, *_ = pyramid(3, velocity=0.1 * np.random.default_rng(1).normal(size=36), mu=0.8)
    start, p.coarse = p.velocity.copy(), 1e-2
    _, work = run(p)
    assert (p.left, p.status) == (1, 0)
    assert p.tolerance < p.error <= p.coarse
    few, p.coarse, p.again, p.start = p.newton, 0.0, 1, p.velocity.copy()
    p.velocity[:] = start
    assert run(p, work)[0] == p.left == 0
    assert p.error <= p.tolerance
    assert few < p.newton + few < 20
    p.start[:] = p.velocity
    p.velocity[:] = start
    assert run(p, work)[0] == 0
    assert p.newton <= 1  # what is solved stays


def test_contacts_given_five_times_over_change_nothing_but_their_shares():
    once, *_ = stack(3)
    contacts = [(i - 1, i, (x, y, 2 * H * i)) for i in range(3) for x in (H, -H) for y in (H, -H)]
    places = [(0, 0, H + 2 * H * i) for i in range(3)]
    many, *_ = boxes(places, [c for c in contacts for _ in range(5)])
    for p in (once, many):
        assert run(p)[0] == 0
    np.testing.assert_allclose(many.velocity, once.velocity, atol=1e-9 * WEIGHT)


def test_a_bilateral_row_and_a_contact():
    """A box on the ground whose sideways velocity is prescribed, so that it slides."""
    _, M, rows = stack(1)
    pull = np.zeros((1, 6))
    pull[0, 0] = 1.0
    rows = [*rows, (BOUNDS, pull, np.array([-0.3]), 0.0, -np.inf, np.inf)]
    q = filled([-1, 0, 1, 2, 3, 4], M, rows)
    q.free[2] = -WEIGHT
    assert run(q)[0] == 0
    assert q.velocity[0] == pytest.approx(0.3, rel=1e-7)
    assert q.impulse[12] == pytest.approx(0.3 + 0.5 * np.sum(q.impulse[:12:3]), rel=1e-6)


def test_islands_are_solved_separately():
    """Two stacks and a box in the air: two islands; the patterns of one solve the other."""
    places = [(0, 0, H), (0, 0, 3 * H), (5, 0, H), (9, 0, 9)]
    contacts = [
        (below, k, (places[k][0] + x, y, places[k][2] - H))
        for below, k in ((-1, 0), (0, 1), (-1, 2)) for x in (H, -H) for y in (H, -H)
    ]  # fmt: skip
    p, *_ = boxes(places, contacts)
    status, work = run(p)
    assert (status, p.islands) == (0, 2)
    assert np.array_equal(p.velocity[18:], p.free[18:])
    np.testing.assert_allclose(p.velocity[:18], 0.0, atol=1e-9)
    joined, *_ = boxes(places, [*contacts, (1, 2, (2.5, 0, 2 * H))])
    joined.velocity[:] = 0.0
    assert run(joined, work)[0] == 0
    assert joined.islands == 1
    p.velocity[:] = 0.0
    p.impulse[:] = 0.0
    assert solve(p, work) == 0  # with the pattern of the larger problem
    np.testing.assert_allclose(p.velocity[:18], 0.0, atol=1e-9)


def test_what_has_no_solution_is_reported():
    """Two rows that ask for different velocities of one degree of freedom."""
    J = np.ones((1, 1))
    rows = [(BOUNDS, J, np.array([t]), 0.0, -np.inf, np.inf) for t in (1.0, -1.0)]
    p = filled([-1], np.eye(1), rows, most_newton=20)
    status, _ = run(p)
    assert status == p.status == 1
    assert p.error > p.tolerance
    assert p.velocity_error == pytest.approx(1.0, rel=0.1)


def test_multipliers_that_grow_for_ever_end():
    """Two stops that nothing can keep: a step of a robot within itself took 18 s."""
    J = np.ones((1, 1))
    rows = [(BOUNDS, x * J, np.array([-1.0]), 0.0, 0.0, np.inf) for x in (1.0, -1.0)]
    p = filled([-1], np.eye(1), rows)
    work, forces = begun(p)
    assert minimise(p, work, 0, forces, 1e-10, False) == OPEN
    np.testing.assert_allclose(work.v[:1], 0.0, atol=1e-9)  # as near to both as can be
    assert work.lam[:2].max() < 1e8


def test_responses_of_free_bodies_and_what_sweeps_approach():
    p, M, rows = pyramid(2, velocity=0.05 * np.random.default_rng(0).normal(size=18))
    run(p)  # the pattern
    work = workspace(p)
    while solve(p, work) == -1:
        enlarge(work, p)
    J = np.vstack([r[1] for r in rows])
    work.lam[: len(J)] = np.random.default_rng(1).uniform(size=len(J))
    assert responses(p, work, 0)
    A = J @ np.linalg.solve(M, J.T)
    for g in range(p.groups):
        at = slice(3 * g, 3 * g + 3)
        np.testing.assert_allclose(work.A[18 * g : 18 * g + 9].reshape(3, 3), A[at, at], atol=1e-12)
    np.testing.assert_allclose(work.v, p.free + np.linalg.solve(M, J.T @ work.lam[: len(J)]))
    for _ in range(2000):
        sweep(p, work, 0)
    momentum, laws = missed(M, p.free, rows, work.v, work.lam[: len(J)])
    assert max(momentum, laws) <= 1e-7


def test_mixed_sweeps_need_fewer_and_keep_the_momentum():
    p, M, rows = pyramid(2, velocity=0.05 * np.random.default_rng(0).normal(size=18))
    start = p.impulse.copy()
    _, work = run(p)
    J = np.vstack([r[1] for r in rows])
    n = len(J)
    work.lam[:n] = start[:n]
    assert responses(p, work, 0)
    assert sweep_rounds(p, work, 0, 200, 1e-9) < 200  # plain ones need 2,000
    momentum, laws = missed(M, p.free, rows, work.v, work.lam[:n])
    assert momentum <= 1e-12
    assert laws <= 1e-7


def test_velocities_that_are_wrong_beside_large_impulses_are_solved_once_more():
    """As in jammed piles, where 1e-3 m/s are less than the tolerance of the largest impulse."""
    p, M, rows = pyramid(3, velocity=0.05 * np.random.default_rng(0).normal(size=36))
    _, work = run(p)
    work.v[:36] += 1e-3 * np.random.default_rng(1).normal(size=36)
    evaluate(p, work, 0)
    wrong, before, tolerance = work.v.copy(), speed_error(p, work, 0), p.tolerance
    assert before > 3e-4
    solve_more_exactly(p, work, 0, 1e3, 0.0)  # nothing is better than that
    assert np.array_equal(work.v, wrong)
    solve_more_exactly(p, work, 0, 1e3, before)
    assert speed_error(p, work, 0) <= 1e-6
    assert p.tolerance == tolerance
    momentum, laws = missed(M, p.free, rows, work.v[:36], work.lam[: 3 * p.groups])
    assert max(momentum, laws) <= 1e-6


def test_loads_of_jammed_bodies_that_leave_no_accuracy_are_let_go():
    """Impulses of 1e7 times the weights, as piles have after steps in which they grew by turns."""
    p, M, rows = pyramid(3, velocity=0.05 * np.random.default_rng(2).normal(size=36))
    _, work = run(p)
    load = np.abs(work.lam).max()
    work.v[:36] += 5e-3 * np.random.default_rng(3).normal(size=36)
    work.lam[: 3 * p.groups] += 1e7 * load
    evaluate(p, work, 0)
    wrong, before = work.v.copy(), speed_error(p, work, 0)
    assert before > 1e-3
    assert solve_unloaded(p, work, 0, 1e9, 0.0) == 1e9  # nothing is better than that
    assert np.array_equal(work.v, wrong)
    assert solve_unloaded(p, work, 0, 1e9, before) < 1e3
    assert speed_error(p, work, 0) <= 1e-6
    assert np.abs(work.lam).max() <= 10 * load
    momentum, laws = missed(M, p.free, rows, work.v[:36], work.lam[: 3 * p.groups])
    assert max(momentum, laws) <= 1e-6


def test_where_a_step_first_changes_a_state():
    """A cone that is left after a third of the step, and one that opens after half of it."""
    J = np.eye(3)
    rows = [(CONE, np.hstack([J, 0 * J]), np.zeros(3), 0.5, 0, 0),
            (CONE, np.hstack([0 * J, J]), np.zeros(3), 0.5, 0, 0)]  # fmt: skip
    for row in rows:  # so that both are in one island
        row[1][0] += 1e-3
    p = filled([-1, 0, 1, -1, 3, 4], np.eye(6), rows)
    _, work = run(p)
    work.stress = 1.0
    work.dw[:6] = 0.0
    work.state[:2] = 1
    work.y[:6] = work.lam[:6] = [1, 0, 0, 1, 0, 0]
    work.dlam[:6] = [0, 1.5, 0, -2, 0, 0]
    change, largest = first_change(p, work, 0)
    assert change == pytest.approx(1 / 3)
    assert largest == pytest.approx(np.sqrt(work.delassus[0] * (1 + 1.5**2)))
    work.dlam[1] = 0.4
    assert first_change(p, work, 0)[0] == pytest.approx(1 / 2)
    work.dlam[3] = 0.0
    assert first_change(p, work, 0)[0] == 1.0


def test_sweeps_are_not_for_trees_with_several_nodes():
    J = np.array([[1.0, 1.0, 1.0]])
    p = filled([-1, 0, 0], np.eye(3), [(BOUNDS, J, np.zeros(1), 0.0, 0.0, np.inf)])
    _, work = run(p)
    assert not responses(p, work, 0)


@pytest.mark.parametrize(("seed", "scale"), [(0, 0.003), (1, 0.003), (2, 0.03), (3, 0.03)])
def test_a_shaken_pyramid_is_solved_by_way_of_the_interior(seed, scale):
    """Nearly redundant contacts flip between states: few factorisations all the same."""
    velocity = scale * np.random.default_rng(seed).normal(size=6 * 36)
    p, M, rows = pyramid(8, velocity=velocity)
    status, _ = run(p)
    momentum, laws = missed(M, p.free, rows, p.velocity, p.impulse[: 3 * p.groups])
    assert status == 0
    assert p.factored <= 40
    assert momentum < 1e-14
    assert laws < 1e-6 * np.max(p.impulse)
    found = p.velocity.copy()
    p.velocity[:] = velocity
    p.impulse[:] = 0.0
    run(p)
    assert np.array_equal(p.velocity, found)  # same bits


def test_at_the_limit_of_rounding_nothing_becomes_nan():
    """A hand pushes a puck over the ground: interior points are followed as far as numbers go."""
    x, angle = 0.9039021949, 0.0208837  # of the normal from hand to puck, and of the hand
    y, c, s = -np.sqrt(1 - x * x), np.cos(angle), np.sin(angle)
    puck = np.array([[x, y, 0], [1 - x * x, -x * y, -x], [-x * y, 1 - y * y, -y]])
    turn = puck[:, :2] @ [-0.05 * y, 0.05 * x]
    hand = -np.column_stack([turn, puck[:, :2] @ [[c, -s], [s, c]]])
    ground = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])
    rows = [
        (CONE, np.hstack([hand, puck]), np.array([2.0206e-5, 2.25e-8, 6.39e-8]), 0.2, 0.0, np.inf),
        (CONE, np.hstack([0 * hand, ground]), np.zeros(3), 0.2, 0.0, np.inf),
    ]
    M = np.diag([1e-3, 1, 1, 0.5, 0.5, 0.5])
    p = filled([-1, 0, 1, -1, 3, 4], M, rows, tolerance=1e-9)
    impulse = np.array([0.05825, -0.01107, -0.00364, 0.04062, -0.00703, 0.00407])
    free = np.array([0, 0.98616, -0.57857, 0.839903, -0.48663, -0.0981])
    p.free[:] = free
    work, rng = run(p)[1], np.random.default_rng(1)
    for _ in range(200):
        p.free[1:3] = free[1:3] + 1e-3 * rng.normal(size=2)
        p.velocity[:] = [0.4019, 0.8206, -0.5221, 0.839903, -0.48663, 0]
        p.impulse[:6] = impulse * (1 + 1e-2 * rng.normal(size=6))
        assert solve(p, work) == 0
        momentum, laws = missed(M, p.free, rows, p.velocity, p.impulse[:6])
        assert max(momentum, laws) < 1e-9


def test_numbers_that_are_not_finite_are_not_taken_for_a_solution():
    p, *_ = stack(2)
    p.free[3] = np.nan
    assert run(p)[0] == 1
    assert p.error > 1


@pytest.mark.parametrize("seed", range(3))
def test_numbers_of_a_step_that_failed_are_not_used_again(seed):
    """Whatever is left in the workspace: stops are solved by the interior points as before."""
    rng = np.random.default_rng(seed)
    parent, M = random_forest(rng)
    rows = random_groups(rng, parent, 40)
    free, found, work = rng.normal(size=len(parent)), [], None
    for _ in range(2):
        p = filled(parent, M, rows)
        p.free[:] = free
        status, work = run(p, work)
        found.append((status, p.rounds, *p.velocity))
        for name in ("dlam", "dw", "dv", "inner", "changes", "impulses", "velocities"):
            getattr(work, name)[:] = np.nan
    assert found[0] == found[1]
    assert found[0][1] > 0  # rounds of the interior-point method


@pytest.mark.parametrize("impulse", [0.0, 1e-9])
def test_a_stop_that_is_at_its_bound_but_for_the_tolerance_is_there(impulse):
    """It opens, so nothing is left of its impulse, and its velocity is no error."""
    rows = [(BOUNDS, np.eye(2)[[k]], np.zeros(1), 0.0, 0.0, np.inf) for k in (0, 1)]
    p = filled([-1, 0], np.eye(2), rows, most_newton=0)
    p.velocity[:], p.free[:] = (0.3, 0.0), (0.3, -1.0)
    p.impulse[:2] = impulse, 1.0
    run(p)
    assert p.impulse[0] == 0.0
    assert p.velocity_error == 0.0


def follow_inside(problem, arcs):
    """Steps of the interior-point method from what sweeps leave, and the relative error."""
    work, forces = begun(problem)
    responses(problem, work, 0)
    sweep_rounds(problem, work, 0, 15, 0.0)
    evaluate(problem, work, 0)
    size = max(laws(problem, work, 0)[1], forces)
    begin(problem, work, 0, 0.03 * size)
    return follow(problem, work, 0, forces, 1e-6, 120, arcs)


def test_effort_for_random_mechanisms():
    """Directions that are not quite right lead to the solution as well, in more steps."""
    found = []
    for seed in range(100, 160):
        p = random_problem(seed, 3, tolerance=1e-6)
        status, _ = run(p)
        found.append((status, p.newton, p.factored))
    status, newton, factored = np.array(found).T
    assert np.sum(status) <= 2
    assert np.all(np.percentile(newton, (25, 50, 75)) <= (29, 36, 41))
    assert np.all(np.percentile(factored, (25, 50, 75)) <= (25, 33, 39))


@pytest.mark.parametrize("arcs", [False, True])
@pytest.mark.parametrize(
    ("dim", "solved", "steps"), [(1, 30, 5.3), (3, 28, 10.0), (4, 27, 9.2), (6, 27, 10.7)]
)
def test_effort_of_the_interior_point_method(dim, solved, steps, arcs):
    """Alone, from what sweeps leave: rows with bounds, contacts, those with moments as well."""
    found = []
    for seed in range(200, 230):
        rng = np.random.default_rng(seed)
        parent, M = random_forest(rng, 1)
        rows = [r for r in random_groups(rng, parent, 40) if len(r[1]) == dim][:3]
        p = filled(parent, M, [(*r[:3], 0.3 * r[3], *r[4:]) for r in rows], tolerance=1e-6)
        p.free[:] = rng.normal(size=p.nv)
        found.append(follow_inside(p, arcs))
    taken = [n for n, error in found if error <= 1e-6]
    assert len(taken) >= solved
    assert np.mean(taken) <= steps


def test_the_central_path_is_followed_where_it_turns_back():
    """In a pile of 82 balls the path folds: with steps of falling sigma alone it ends there."""
    assert follow_inside(pile(0, mu=0.8)[0], False)[1] > 1e-4
    steps, error = follow_inside(pile(0, mu=0.8)[0], True)
    assert error <= 1e-6
    assert steps < 60


@pytest.mark.parametrize(("seed", "mu"), [(0, 0.5), (2, 0.5), (4, 0.5), (0, 0.8)])
def test_a_pile_of_balls_is_solved(seed, mu):
    problem, M, rows = pile(seed, mu=mu)
    free = problem.free.copy()
    assert run(problem)[0] == 0
    momentum, laws_missed = missed(M, free, rows, problem.velocity, problem.impulse)
    assert max(momentum, laws_missed) < 1e-6


def test_arrays_of_a_problem_lie_apart():
    """Machine code relies on it; large ones begin at different lines of pages."""
    p = problem_of([-1 if d % 6 == 0 else d - 1 for d in range(3000)])
    with_room(p, 3000, 9000, 6000, 108000)
    work = workspace(p)
    with_room(p, 3001, 9001, 6001, 108001)
    enlarge(work, p)
    ends = []
    for owner in (p, work):
        for name in owner.types:
            x = getattr(owner, name)
            if isinstance(x, np.ndarray) and x.size:
                ends.append((x.ctypes.data, x.ctypes.data + x.nbytes, name))
    ends.sort()
    assert all(a[1] <= b[0] for a, b in pairwise(ends))
    assert len(work.changes) >= 4 * work.rows_room
    assert len(work.velocities) == 4 * p.nv
    rows = ("w", "y", "p", "dw", "lam", "dlam", "scale", "changes", "impulses")
    lines = {getattr(work, name).ctypes.data % 4096 // 64 for name in rows}
    assert len(lines) == len(rows)
    assert 8 * work.rows_room % 4096 > 256  # from place to place

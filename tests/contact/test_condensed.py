"""Matrices with loops that are condensed to rows of contacts: against dense ones."""

import numpy as np
import pytest
from support.islands import ancestors, filled

from kinetree.contact.newton import condensed
from kinetree.contact.newton.cones import OPEN, SLIDING, STICKING
from kinetree.contact.newton.newton import list_nodes
from kinetree.contact.newton.pattern import analyse, place_pairs, split
from kinetree.contact.newton.problem import BOUNDS, CONE, enlarge, workspace

N = condensed.LEAST + 12


def linkage(rng):
    """One tree with rows of loops, and a few contacts and limits."""
    parent = np.array([-1, *(int(rng.integers(max(0, k - 4), k)) for k in range(1, N))])
    M = 8.0 * np.eye(N)
    for i in range(N):
        for j in set(ancestors(parent, i)) - {i}:
            M[i, j] = M[j, i] = 0.1 * rng.normal()
    rows = []
    kinds = [(BOUNDS, 1, -1e300, 1e300)] * 5 + [(CONE, 3, 0, 0), (CONE, 4, 0, 0), (CONE, 3, 0, 0)]
    for kind, dim, low, high in [*kinds, (BOUNDS, 1, 0.0, 1e300)]:
        J = np.zeros((dim, N))
        for d in rng.integers(0, N, size=2):
            chain = list(ancestors(parent, int(d)))
            J[:, chain] += rng.normal(size=(dim, len(chain)))
        rows.append((kind, J, np.zeros(dim), 0.5, low, high))
    problem = filled(parent, M, rows)
    problem.condenses = 1
    return problem, M, rows


@pytest.mark.parametrize("seed", range(4))
def test_condensed_matrices_solve_as_dense_ones(seed):
    """Contacts come and go: responses that are kept belong to the contact that they were for."""
    rng = np.random.default_rng(seed)
    problem, M, rows = linkage(rng)
    work = workspace(problem)
    assert split(problem, work) == 1
    while (analyse(problem, work) or place_pairs(problem, work)) != 0:
        enlarge(work, problem)
    list_nodes(problem, work, 1)
    M = M + sum(2.0 * J.T @ J for _, J, _, _, low, _ in rows if low < -1e299)
    responses, signs = set(), set()
    for k in range(8):
        full = M.copy()
        for g, (_, J, _, _, low, _) in enumerate(rows):
            work.state[g] = rng.choice([OPEN, STICKING, SLIDING])
            A = rng.normal(size=(len(J), len(J)))
            A = A @ A.T * (1.0 if k < 4 else -1.0)  # pivots are interchanged, of both signs
            if low < -1e299:
                work.state[g], A = STICKING, np.array([[2.0]])
            elif work.state[g] != OPEN:
                full += J.T @ A @ J
            work.A[6 * problem.row_first[g] :][: A.size] = A.ravel()
        assert condensed.condense(problem, work, 0)
        x = b = rng.normal(size=N)
        x = b.copy()
        condensed.solve_condensed(problem, work, 0, x)
        size = np.linalg.cond(full) * np.max(np.abs(x))
        np.testing.assert_allclose(x, np.linalg.solve(full, b), rtol=0, atol=1e-13 * size)
        responses.add(work.responded)
        signs.add(work.sign)
        assert work.sign == np.sign(np.linalg.det(full))
    assert len(responses) > 1


def test_few_velocities_many_contacts_and_no_loops_are_not_condensed():
    rng = np.random.default_rng(0)
    problem, _, rows = linkage(rng)
    work = workspace(problem)
    split(problem, work)
    while (analyse(problem, work) or place_pairs(problem, work)) != 0:
        enlarge(work, problem)
    list_nodes(problem, work, 1)
    work.state[: len(rows)] = OPEN
    assert condensed.condense(problem, work, 0)
    assert work.condensed == 0
    problem.condenses = 0
    assert not condensed.condense(problem, work, 0)
    assert work.condensed == -1

"""Problems of islands from dense matrices, and the errors of their solutions by other code."""

import numpy as np

from kinetree.contact.newton.newton import list_nodes, solve
from kinetree.contact.newton.pattern import analyse, place_pairs, split
from kinetree.contact.newton.problem import BOUNDS, enlarge, problem_of, with_room, workspace
from kinetree.contact.newton.start import prepare


def filled(parent, M, rows, **options):
    """A problem from a dense matrix and groups: (kind, J, target, mu, low, high)."""
    problem = problem_of(parent, **options)
    for a in range(problem.nodes):
        for k in range(problem.node_blocks_first[a], problem.node_blocks_first[a + 1]):
            b, at = problem.block_ancestor[k], problem.block_at[k]
            i, n = problem.node_first[a], problem.node_count[a]
            j, m = problem.node_first[b], problem.node_count[b]
            problem.M[at : at + n * m] = M[i : i + n, j : j + m].ravel()
    total = sum(len(J) for _, J, *_ in rows)
    with_room(problem, len(rows), total, len(rows) * problem.nodes, total * problem.nv)
    row = entry = at = 0
    for g, (kind, J, target, mu, low, high) in enumerate(rows):
        problem.kind[g], problem.dim[g], problem.row_first[g] = kind, len(J), row
        problem.mu[g], problem.low[g], problem.high[g] = mu, low, high
        problem.target[row : row + len(J)] = target
        problem.entry_first[g] = entry
        for a in range(problem.nodes):
            i, n = problem.node_first[a], problem.node_count[a]
            if np.any(J[:, i : i + n]):
                problem.entry_node[entry], problem.entry_at[entry] = a, at
                problem.J[at : at + len(J) * n] = J[:, i : i + n].ravel()
                entry, at = entry + 1, at + len(J) * n
        row += len(J)
    problem.groups = len(rows)
    problem.row_first[len(rows)], problem.entry_first[len(rows)] = row, entry
    return problem


def run(problem, work=None):
    work = work or workspace(problem)
    while (status := solve(problem, work)) == -1:
        enlarge(work, problem)
    return status, work


def begun(problem):
    """Workspace where the first island is prepared, and the size of its forces."""
    work = workspace(problem)
    while True:
        islands = split(problem, work)
        if analyse(problem, work) == 0 and place_pairs(problem, work) == 0:
            break
        enlarge(work, problem)
    list_nodes(problem, work, islands)
    return work, prepare(problem, work, 0)


def missed(M, free, rows, v, lam):
    """Error of momentum and of the laws, by other code: Coulomb's law case by case."""
    momentum, laws, at = M @ (v - free), 0.0, 0
    for kind, J, target, mu, low, high in rows:
        x, w = lam[at : at + len(J)], J @ v + target
        at += len(J)
        momentum = momentum - J.T @ x
        if kind == BOUNDS:
            inside = low + 1e-9 < x[0] < high - 1e-9
            wrong = [low - x[0], x[0] - high, abs(w[0]) if inside else 0.0]
            wrong += [-w[0]] if x[0] <= low + 1e-9 else []
            wrong += [w[0]] if x[0] >= high - 1e-9 else []
        else:
            wrong = [-x[0], -w[0], abs(x[0] * w[0])]
            for disc in (slice(1, 3), slice(3, 4), slice(4, 6)):  # sliding, spinning, rolling
                t, speed = np.linalg.norm(x[disc]), np.linalg.norm(w[disc])
                # each dissipates as much as it can
                wrong += [t - mu * x[0], abs(x[disc] @ w[disc] + mu * x[0] * speed)]
        laws = max(laws, *wrong)
    return np.max(np.abs(momentum)), laws

"""Problems of islands from dense matrices, and the errors of their solutions by other code."""

import numpy as np

from kinetree.contact.newton.newton import list_nodes, solve
from kinetree.contact.newton.pattern import analyse, place_pairs, split
from kinetree.contact.newton.problem import BOUNDS, CONE, enlarge, problem_of, with_room, workspace
from kinetree.contact.newton.start import prepare

H, WEIGHT = 0.1, 9.81 * 2e-3  # half edge of boxes; what gravity adds to a velocity in a step


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


# --- Bodies in contact, and random mechanisms -----------------------------------------------------


def ancestors(parent, d):
    while d >= 0:
        yield d
        d = parent[d]


def boxes(places, contacts, mass=1.0, mu=0.5, velocity=None, **options):
    """Free cubes under gravity; contacts: (below or -1, above, point), normals upward."""
    n = len(places)
    mass = np.broadcast_to(mass, n)
    M = np.zeros((6 * n, 6 * n))
    for i in range(n):
        M[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = mass[i] * np.diag([1, 1, 1, *[2 * H * H / 3] * 3])
    axes, rows = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]), []
    for a, b, point in contacts:
        J = np.zeros((3, 6 * n))
        for i, sign in ((a, -1), (b, 1)):
            if i >= 0:
                arm = np.subtract(point, places[i])
                J[:, 6 * i : 6 * i + 6] = sign * np.hstack([axes, np.cross(arm, axes)])
        rows.append((CONE, J, np.zeros(3), mu, 0.0, 0.0))
    parent = np.concatenate([[-1, *range(6 * i, 6 * i + 5)] for i in range(n)])
    problem = filled(parent, M, rows, **options)
    problem.velocity[:] = 0.0 if velocity is None else velocity
    problem.free[:] = problem.velocity
    problem.free[2::6] -= WEIGHT
    return problem, M, rows


def stack(n, **options):
    contacts = [(i - 1, i, (x, y, 2 * H * i)) for i in range(n) for x in (H, -H) for y in (H, -H)]
    return boxes([(0, 0, H + 2 * H * i) for i in range(n)], contacts, **options)


def pyramid(n, **options):
    at = {
        (r, i): ((i - (n - r - 1) / 2) * 0.22, 0, H + 2 * H * r)
        for r in range(n)
        for i in range(n - r)
    }
    number, contacts = {key: k for k, key in enumerate(at)}, []
    for (r, i), k in number.items():
        for below in [-1] if r == 0 else [number[r - 1, i], number[r - 1, i + 1]]:
            x = at[r, i][0]
            other = x if below < 0 else list(at.values())[below][0]
            ends = max(x, other) - H, min(x, other) + H
            contacts += [(below, k, (e, y, 2 * H * r)) for e in ends for y in (H, -H)]
    return boxes(list(at.values()), contacts, **options)


def random_forest(rng, trees=3):
    """Parents of degrees of freedom, a mass matrix with their sparsity."""
    parent = []
    for _ in range(trees):
        root = len(parent)
        parent += [-1, *range(root, root + int(rng.integers(0, 6)))]
        for _ in range(int(rng.integers(0, 8))):
            parent.append(int(rng.integers(root, len(parent))))
    M = 0.01 * np.eye(len(parent))
    for d in range(len(parent)):
        J = np.zeros((3, len(parent)))
        J[:, list(ancestors(parent, d))] = rng.normal(size=(3, len(list(ancestors(parent, d)))))
        M += J.T @ J
    return parent, M


def random_groups(rng, parent, count):
    rows = []
    for _ in range(count):
        dim = int(rng.choice([1, 3, 3, 3, 4, 6]))
        J = np.zeros((dim, len(parent)))
        for d in rng.integers(0, len(parent), size=2):
            chain = list(ancestors(parent, int(d)))
            J[:, chain] += rng.normal(size=(dim, len(chain)))
        if dim == 1:
            low, high = [(0, np.inf), (-0.1, 0.1), (-np.inf, np.inf)][rng.integers(3)]
            rows.append((BOUNDS, J, 0.1 * rng.normal(size=1), 0.0, low, high))
        else:
            target = np.concatenate([rng.normal(size=1), np.zeros(dim - 1)])
            rows.append((CONE, J, target, rng.uniform(0, 0.7), 0.0, 0.0))
    return rows


def random_problem(seed, trees, **options):
    rng = np.random.default_rng(seed)
    parent, M = random_forest(rng, trees)
    p = filled(parent, M, random_groups(rng, parent, 6), **options)
    p.free[:] = rng.normal(size=p.nv)
    return p


def pile(seed, layers=4, side=5, r=0.05, mu=0.5):
    """Balls in layers that lie in the hollows of those below, shaken, between four walls."""
    rng = np.random.default_rng(seed)
    at = [
        (2 * r * (i + 0.5 * (k % 2)), 2 * r * (j + 0.5 * (k % 2)), r * (1 + np.sqrt(2) * k))
        for k in range(layers) for i in range(side - k % 2) for j in range(side - k % 2)
    ]  # fmt: skip
    at = np.array(at) + rng.normal(scale=0.02 * r, size=(len(at), 3))
    n, wide = len(at), 2 * r * (side - 1)
    M = np.diag(np.tile([1, 1, 1, *[0.4 * r * r] * 3], n))
    rows = []
    for b in range(n):
        sides = [(-1, np.array(axis)) for axis, close in (
            ((0, 0, 1.0), at[b][2] < 1.3 * r),
            ((1.0, 0, 0), at[b][0] < 0.3 * r), ((-1.0, 0, 0), at[b][0] > wide - 0.3 * r),
            ((0, 1.0, 0), at[b][1] < 0.3 * r), ((0, -1.0, 0), at[b][1] > wide - 0.3 * r),
        ) if close]  # fmt: skip
        for a in range(b):
            away = at[b] - at[a]
            if np.linalg.norm(away) < 2.15 * r:
                sides.append((a, away / np.linalg.norm(away)))
        for a, normal in sides:
            tangent = np.cross(normal, [0.3, 0.5, 0.8])
            tangent /= np.linalg.norm(tangent)
            axes = np.array([normal, tangent, np.cross(normal, tangent)])
            J = np.zeros((3, 6 * n))
            J[:, 6 * b : 6 * b + 6] = np.hstack([axes, np.cross(-r * normal, axes)])
            if a >= 0:
                J[:, 6 * a : 6 * a + 6] = -np.hstack([axes, np.cross(r * normal, axes)])
            rows.append((CONE, J, np.zeros(3), mu, 0.0, 0.0))
    parent = np.concatenate([[-1, *range(6 * i, 6 * i + 5)] for i in range(n)])
    problem = filled(parent, M, rows)
    problem.velocity[:] = rng.normal(scale=0.3 * WEIGHT, size=6 * n) / np.sqrt(np.diag(M))
    problem.free[:] = problem.velocity
    problem.free[2::6] -= WEIGHT
    return problem, M, rows


def dense(p, numbers):
    """The matrix whose blocks are ``numbers``, with NaN where it has none."""
    M = np.full((p.nv, p.nv), np.nan)
    for a in range(p.nodes):
        for n in range(p.node_blocks_first[a], p.node_blocks_first[a + 1]):
            b = p.block_ancestor[n]
            i, j = (slice(p.node_first[x], p.node_first[x] + p.node_count[x]) for x in (a, b))
            size = p.node_count[a] * p.node_count[b]
            M[i, j] = numbers[p.block_at[n] : p.block_at[n] + size].reshape(M[i, j].shape)
    return M


def random_parents(rng, trees, most, near=0.0):
    """Parents of degrees of freedom: of those of a tree any, or with a probability the last one."""
    parent = []
    for _ in range(trees):
        root = len(parent)
        parent.append(-1)
        for _ in range(int(rng.integers(0, most))):
            last = len(parent) - 1
            chained = near and rng.random() < near
            parent.append(last if chained else int(rng.integers(root, len(parent))))
    return parent

"""Memory of an island while other methods are tried, and the last of these methods."""

from kinetree.codegen.procedures import local, procedure, view
from kinetree.contact.newton.cholesky import factor, solve_factored
from kinetree.contact.newton.cones import STICKING, project, slip
from kinetree.contact.newton.equations import momentum
from kinetree.contact.newton.freedoms import add_multiple, copy_numbers
from kinetree.contact.newton.matrix import assemble_anew
from kinetree.contact.newton.problem import CONE, Problem, Work, noted_give, noted_velocity

__all__ = ["BEST", "INNER", "alternate", "restore", "store"]

INNER = 0
"""Place where ``store`` keeps what the interior-point method found."""

BEST = 1
"""Place of the least error so far."""


@procedure
def store(
    problem: Problem, work: Work, island: int, place: int, v: "float[:]", lam: "float[:]"
) -> None:
    """Store an island's velocities and impulses, or a step, in one of four places."""
    copy_numbers(problem, work, island, v, view(work.velocities, place * problem.nv))
    for n in range(work.run_first[island], work.run_first[island + 1]):
        for r in range(work.run[n, 0], work.run[n, 1]):
            work.impulses[place * work.rows_room + r] = lam[r]


@procedure
def restore(problem: Problem, work: Work, island: int, place: int) -> None:
    """Restore an island's velocities and impulses from one of the four places of ``store``."""
    copy_numbers(problem, work, island, view(work.velocities, place * problem.nv), work.v)
    for n in range(work.run_first[island], work.run_first[island + 1]):
        for r in range(work.run[n, 0], work.run[n, 1]):
            work.lam[r] = work.impulses[place * work.rows_room + r]


@procedure
def alternate(problem: Problem, work: Work, island: int, iterations: int, penalty: float) -> None:
    """Run iterations of the alternating direction method of multipliers (ADMM) on an island."""
    y = local("float", 6)
    p = local("float", 6)
    first_group = work.island_groups_first[island]
    last_group = work.island_groups_first[island + 1]
    for k in range(first_group, last_group):
        g = work.island_group[k]
        dim = problem.dim[g]
        A = view(work.A, 6 * problem.row_first[g])
        A[: dim * dim] = 0.0
        for r in range(dim):
            A[r * dim + r] = penalty / work.delassus[g]
        work.state[g] = STICKING
        work.responds[g] = 0
    assemble_anew(problem, work, island)
    problem.factored += 1
    if factor(problem, work, island, 0) != 0:
        return
    for _ in range(iterations):
        momentum(problem, work, island, work.v)
        for k in range(first_group, last_group):
            g = work.island_group[k]
            dim = problem.dim[g]
            first = problem.row_first[g]
            rho = penalty / work.delassus[g]
            w = view(work.w, first)
            lam = view(work.lam, first)
            noted_velocity(problem, work, g, work.v, w)
            for r in range(dim):
                w[r] += problem.target[first + r]
                y[r] = lam[r] - rho * w[r]
            if problem.kind[g] == CONE:
                y[0] -= rho * problem.mu[g] * slip(w, dim)
            project(problem, g, y, p)
            for r in range(dim):
                change = p[r] - lam[r]
                lam[r] = p[r]
                p[r] += change
            noted_give(problem, work, problem.J, g, p, work.g)
        copy_numbers(problem, work, island, work.g, work.dv)
        solve_factored(problem, work, island, work.dv)
        add_multiple(problem, work, island, -1.0, work.dv, work.v)

"""Newton's method in the velocities for contacts with friction, island by island.

Velocities ``v`` and impulses ``lam`` are sought together, such that

    M (v - free) = J' lam    and    lam = P(lam - r (J v + target))

with Coulomb's laws ``P`` of ``cones``; ``r`` is about 1 / d, ``d`` a diagonal of ``J M^-1 J'``. The
second equation, made linear and solved for the change of ``lam``, leaves a matrix for the change of
the velocities, ``M + J' A J``, which has the sparsity of trees and contacts; it is symmetric unless
contacts slide. Contacts that stick get a stiff penalty, so redundant ones do no harm, and what it
leaves of their velocities falls by orders of magnitude in every step.

``start`` has where an island starts, ``steps`` one step, ``island`` what comes after another.

Errors are those of ``equations``, relative to the largest ``|lam| sqrt(d)`` of the island, or to
``sqrt(M_ii)`` times the change of velocity by the forces of the step, or a small part of the
velocity where nothing presses.
"""

from kinetree.codegen.procedures import procedure, sqrt, view
from kinetree.contact.newton.cones import held_slip, most_used, slip
from kinetree.contact.newton.keeping import (
    clear_errors,
    find_kept,
    keep_answers,
    note_errors,
    take_kept,
)
from kinetree.contact.newton.last_impulses import begin_from, follow_labels
from kinetree.contact.newton.pattern import analyse, has_couplings, place_pairs, split
from kinetree.contact.newton.polish import law_error
from kinetree.contact.newton.problem import CONE, Problem, Work
from kinetree.contact.newton.sticking import solve_island

__all__ = ["begin_islands", "end_islands", "solve", "solve_and_note"]


@procedure
def finish(problem: Problem, work: Work, island: int, size: float) -> None:
    """Write the velocities, impulses and residuals of an island to the problem.

    Impulses that are at a bound but for the tolerance count as being there.
    """
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        problem.velocity[i] = work.v[i]
        problem.momentum_error = max(problem.momentum_error, abs(work.g[i]))
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        w = view(work.w, first)
        p = view(work.lam, first)
        least = problem.tolerance * size / sqrt(work.delassus[g])
        if problem.kind[g] == CONE:
            mu = problem.mu[g]
            bad = -w[0]
            if p[0] > least:
                bad = max(bad, min(w[0], work.delassus[g] * p[0]))
            speed = 0.0
            if dim > 1 and mu > 0.0:
                speed = slip(w, dim)
                problem.cone_error = max(problem.cone_error, most_used(p, dim) - mu * p[0])
                if held_slip(dim, mu, p, w, least) > 0.0:
                    bad = max(bad, law_error(problem, work, g))
            product = p[0] * (w[0] + mu * speed)
            for r in range(1, dim):
                product += p[r] * w[r]
            problem.complementarity = max(problem.complementarity, abs(product))
            problem.velocity_error = max(problem.velocity_error, bad)
        else:
            bad = abs(w[0])
            if p[0] <= problem.low[g] + (least if w[0] > 0.0 else 0.0):
                p[0] = problem.low[g]
                bad = max(0.0, -w[0])
            if p[0] >= problem.high[g] - (least if w[0] < 0.0 else 0.0):
                p[0] = problem.high[g]
                bad = max(0.0, w[0])
            problem.velocity_error = max(problem.velocity_error, bad)
        problem.impulse[first : first + dim] = p[:dim]


@procedure
def list_nodes(problem: Problem, work: Work, islands: int) -> None:
    """List the nodes and velocities of all islands in the order of elimination."""
    first = work.island_nodes_first
    first[: islands + 1] = 0
    for k in range(work.ordered):
        i = work.tree_island[problem.node_tree[work.order[k]]]
        if i >= 0:
            first[i] += 1
    total = 0
    for i in range(islands):
        total += first[i]
        first[i] = total
    first[islands] = total
    for m in range(work.ordered):
        k = work.ordered - 1 - m
        i = work.tree_island[problem.node_tree[work.order[k]]]
        if i >= 0:
            first[i] -= 1
            work.island_node[first[i]] = k
    dofs = 0
    for i in range(islands):
        work.island_dofs_first[i] = dofs
        for n in range(first[i], first[i + 1]):
            node = work.order[work.island_node[n]]
            for k in range(problem.node_count[node]):
                work.island_dof[dofs] = problem.node_first[node] + k
                dofs += 1
    work.island_dofs_first[islands] = dofs


@procedure
def fits(problem: Problem, work: Work) -> bool:
    """Whether the workspace has room for all groups, rows and Jacobian numbers of a problem."""
    if problem.groups > work.groups_room:
        return False
    if problem.row_first[problem.groups] > work.rows_room:
        return False
    most = 0
    for g in range(problem.groups):
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            size = problem.dim[g] * problem.node_count[problem.entry_node[e]]
            most = max(most, problem.entry_at[e] + size)
    return most <= work.numbers_room


@procedure
def divide_into_islands(problem: Problem, work: Work) -> int:
    """Split a problem into islands, with matrix pattern and lists; their number, -1: no room."""
    if not fits(problem, work):
        return -1
    islands = split(problem, work)
    placed = 1
    if work.ordered > 0 and (problem.begins == 0 or has_couplings(problem, work)):
        placed = place_pairs(problem, work)
    problem.begins = 0
    if placed == 1:
        placed = analyse(problem, work)
        if placed == 0:
            placed = place_pairs(problem, work)
    if placed != 0:
        return -1
    list_nodes(problem, work, islands)
    return islands


@procedure
def begin_islands(problem: Problem, work: Work) -> int:
    """Prepare all islands of a problem to be solved; returns their number, or -1: no room."""
    problem.status = -1
    islands = problem.islands
    if problem.again == 0 or problem.begins == 1:
        work.kept = 0
    if problem.same == 0 and (problem.changed > 0 or problem.condenses == 0):
        islands = divide_into_islands(problem, work)
        if islands < 0:
            return -1
    if problem.again == 0 or work.started < 0:
        begin_from(problem, work)
    else:
        follow_labels(problem, work)
    problem.islands = islands
    problem.left = 0
    problem.rounds = 0
    problem.newton = 0
    problem.factored = 0
    for g in range(problem.lasting, problem.groups):
        work.responds[g] = 0
    find_kept(problem, work, islands)
    for n in range(problem.nodes):
        if work.tree_island[problem.node_tree[n]] < 0:
            for i in range(problem.node_first[n], problem.node_first[n] + problem.node_count[n]):
                problem.velocity[i] = problem.free[i]
    return islands


@procedure
def solve_and_note(problem: Problem, work: Work, island: int) -> bool:
    """Solve one island of a problem and store its residuals; whether it is within tolerance.

    Islands may be solved at once, each with its own numbers of the records (errors, efforts,
    ``Work.course``) and its own ``Work.temp``: other arrays have a place for each.
    """
    clear_errors(problem)
    left = problem.left
    reached, size = solve_island(problem, work, island)
    finish(problem, work, island, size)
    note_errors(problem, work, island, reached and problem.left == left)
    return reached


@procedure
def end_islands(problem: Problem, work: Work, islands: int, failed: int) -> int:
    """Keep the answers of all islands of a problem; returns its status, how many ``failed``."""
    keep_answers(problem, work, islands)
    problem.status = failed
    return failed


@procedure
def solve(problem: Problem, work: Work) -> int:
    """Solve a contact problem; returns its status, or -1 if the workspace must be enlarged."""
    islands = begin_islands(problem, work)
    if islands < 0:
        return -1
    failed = 0
    for i in range(islands):
        if work.same[i] >= 0:
            take_kept(problem, work, i)
        elif not solve_and_note(problem, work, i):
            failed += 1
    return end_islands(problem, work, islands, failed)

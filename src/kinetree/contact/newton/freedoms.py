"""Numbers of all degrees of freedom of an island, node by node: those of a free body at once.

Runs of rows are theirs for impulses and velocities of rows, see ``pattern.list_runs``.
"""

from kinetree.codegen.procedures import procedure, view
from kinetree.contact.newton.problem import Problem, Work

__all__ = ["add_multiple", "add_rows", "clear_numbers", "copy_numbers", "largest_scaled", "negate",
           "sum_of_squares"]  # fmt: skip


@procedure
def copy_numbers(problem: Problem, work: Work, island: int, x: "float[:]", to: "float[:]") -> None:
    """Copy one number per degree of freedom of an island, ``to = x``."""
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        i = problem.node_first[a]
        if problem.node_count[a] == 6:
            six = view(to, i, 6)
            six[:6] = view(x, i, 6)
            continue
        for k in range(i, i + problem.node_count[a]):
            to[k] = x[k]


@procedure
def clear_numbers(problem: Problem, work: Work, island: int, x: "float[:]") -> None:
    """Set one number per degree of freedom of an island to zero, ``x = 0``."""
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        i = problem.node_first[a]
        if problem.node_count[a] == 6:
            six = view(x, i, 6)
            six[:6] = 0.0
            continue
        for k in range(i, i + problem.node_count[a]):
            x[k] = 0.0


@procedure
def negate(problem: Problem, work: Work, island: int, x: "float[:]") -> float:
    """Negate an island's vector ``x`` in place; returns the sum, finite only if all numbers are."""
    total = 0.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        i = problem.node_first[a]
        if problem.node_count[a] == 6:
            six = view(x, i, 6)
            three = view(x, i, 3) + view(x, i + 3, 3)
            total += three[0] + (three[1] + three[2])
            six[:6] = -six
            continue
        for k in range(i, i + problem.node_count[a]):
            total += x[k]
            x[k] = -x[k]
    return total


@procedure
def add_multiple(
    problem: Problem, work: Work, island: int, t: float, x: "float[:]", to: "float[:]"
) -> None:
    """Add a multiple of an island's vector over degrees of freedom, ``to += t x``."""
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        i = problem.node_first[a]
        if problem.node_count[a] == 6:
            six = view(to, i, 6)
            six += t * view(x, i, 6)
            continue
        for k in range(i, i + problem.node_count[a]):
            to[k] += t * x[k]


@procedure
def add_rows(work: Work, island: int, t: float, x: "float[:]", to: "float[:]") -> None:
    """Add a multiple of an island's vector over constraint rows, ``to += t x``."""
    for n in range(work.run_first[island], work.run_first[island + 1]):
        i = work.run[n, 0]
        end = work.run[n, 1]
        while i + 4 <= end:
            four = view(to, i, 4)
            four += t * view(x, i, 4)
            i += 4
        while i < end:
            to[i] += t * x[i]
            i += 1


@procedure
def sum_of_squares(
    problem: Problem, work: Work, island: int, x: "float[:]", weight: "float[:]"
) -> float:
    """Weighted sum of squares of an island's vector ``x`` over degrees of freedom."""
    total = 0.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        i = problem.node_first[a]
        if problem.node_count[a] == 6:
            six = view(x, i, 6) * view(x, i, 6) * view(weight, i, 6)
            total += (six[0] + six[1]) + (six[2] + six[3]) + (six[4] + six[5])
            continue
        for k in range(i, i + problem.node_count[a]):
            total += x[k] * x[k] * weight[k]
    return total


@procedure
def largest_scaled(
    problem: Problem, work: Work, island: int, x: "float[:]", scale: "float[:]"
) -> "(float, float)":
    """Largest ``|x| scale`` over an island's degrees of freedom, and the sum of ``x``."""
    most = total = 0.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        i = problem.node_first[a]
        if problem.node_count[a] == 6:
            six = abs(view(x, i, 6)) * view(scale, i, 6)
            three = view(x, i, 3) + view(x, i + 3, 3)
            total += three[0] + (three[1] + three[2])
            most = max(most, max(six[0], six[3]), max(six[1], six[4]), max(six[2], six[5]))
            continue
        for k in range(i, i + problem.node_count[a]):
            most = max(most, abs(x[k]) * scale[k])
            total += x[k]
    return most, total

"""Answers of islands that a step solves again though nothing has changed in them.

A step is solved several times: with contacts that turn out to act, with what has arrived inside
another body, more exactly. Most islands are the same in all of them: the same groups with the same
targets, and the same velocities without contact. Their answer is the one that was found.
"""

from kinetree.codegen.procedures import procedure, vector
from kinetree.contact.newton.problem import Problem, Work

__all__ = ["clear_errors", "find_kept", "keep_answers", "note_errors", "take_kept"]


@procedure
def same_rows(problem: Problem, work: Work, island: int, old: int) -> bool:
    """Whether an island has the same groups and target velocities as a stored island."""
    begin = work.island_groups_first[island]
    count = work.island_groups_first[island + 1] - begin
    first = work.kept_first[old]
    if work.kept_first[old + 1] - first != count:
        return False
    for k in range(count):
        if work.kept_label[first + k] != problem.label[work.island_group[begin + k]]:
            return False
    at = work.kept_row[old]
    for k in range(begin, begin + count):
        g = work.island_group[k]
        row = problem.row_first[g]
        for r in range(problem.dim[g]):
            if work.kept_target[at + r] != problem.target[row + r]:
                return False
        at += problem.dim[g]
    return True


@procedure
def number_before(problem: Problem, work: Work, island: int) -> int:
    """Number of the stored solved island that equals this island; -1 if there is none."""
    g = work.island_group[work.island_groups_first[island]]
    old = work.kept_island[problem.node_tree[problem.entry_node[problem.entry_first[g]]]]
    if old < 0 or work.kept_errors[old, 5] == 0.0 or not same_rows(problem, work, island, old):
        return -1
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        if work.kept_free[i] != problem.free[i]:
            return -1
    return old


@procedure
def find_kept(problem: Problem, work: Work, islands: int) -> None:
    """Match every island with an identical solved one of the previous call, or -1."""
    for i in range(islands):
        work.same[i] = number_before(problem, work, i) if work.kept > 0 else -1


@procedure
def take_kept(problem: Problem, work: Work, island: int) -> None:
    """Copy velocities, impulses and errors of an island from the previous call's solution."""
    old = work.same[island]
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        problem.velocity[i] = work.kept_velocity[i]
    at = work.kept_row[old]
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        row = problem.row_first[g]
        for r in range(problem.dim[g]):
            problem.impulse[row + r] = work.kept_impulse[at + r]
        at += problem.dim[g]
    work.errors[island] = work.kept_errors[old]


@procedure
def clear_errors(problem: Problem) -> None:
    """Reset all residuals of a problem to zero."""
    problem.error = 0.0
    problem.momentum_error = 0.0
    problem.velocity_error = 0.0
    problem.cone_error = 0.0
    problem.complementarity = 0.0


@procedure
def note_errors(problem: Problem, work: Work, island: int, solved: bool) -> None:
    """Copy a problem's residuals to those of one island, with whether the island was solved."""
    x = work.errors[island]
    x[:2] = vector(problem.error, problem.momentum_error)
    x[2:4] = vector(problem.velocity_error, problem.cone_error)
    x[4:] = vector(problem.complementarity, 1.0 if solved else 0.0)


@procedure
def keep_answers(problem: Problem, work: Work, islands: int) -> None:
    """Store all islands with their solutions, and set the problem's residuals to the largest."""
    clear_errors(problem)
    for i in range(islands):
        x = work.errors[i]
        problem.error = max(problem.error, x[0])
        problem.momentum_error = max(problem.momentum_error, x[1])
        problem.velocity_error = max(problem.velocity_error, x[2])
        problem.cone_error = max(problem.cone_error, x[3])
        problem.complementarity = max(problem.complementarity, x[4])
    work.kept = islands if islands > 1 else 0
    if work.kept == 0:  # one island is solved again because something has changed
        return
    work.kept_island[: problem.trees] = work.tree_island[: problem.trees]
    work.kept_free[: problem.nv] = problem.free[: problem.nv]
    work.kept_velocity[: problem.nv] = problem.velocity[: problem.nv]
    work.kept_errors[:islands] = work.errors[:islands]
    at = 0
    for i in range(islands):
        work.kept_first[i] = work.island_groups_first[i]
        work.kept_row[i] = at
        for k in range(work.island_groups_first[i], work.island_groups_first[i + 1]):
            g = work.island_group[k]
            row = problem.row_first[g]
            work.kept_label[k] = problem.label[g]
            for r in range(problem.dim[g]):
                work.kept_target[at + r] = problem.target[row + r]
                work.kept_impulse[at + r] = problem.impulse[row + r]
            at += problem.dim[g]
    work.kept_first[islands] = work.island_groups_first[islands]

"""Impulses of the last step, for as long as this one is solved.

They say which contacts slid before. Within a step groups join, and others get other places, while
``impulse`` becomes what was found so far: labels tell which group is which.
"""

from kinetree.codegen.procedures import procedure
from kinetree.contact.newton.problem import Problem, Work

__all__ = ["begin_from", "follow_labels"]

SPREAD, LOW = 2654435761, (1 << 32) - 1
"""Factor that spreads labels over words of 32 bits (Knuth), and such a word."""


@procedure
def list_groups(problem: Problem, work: Work) -> None:
    """Record labels and rows of the groups that the stored impulses ``lam_last`` belong to."""
    work.started = problem.groups
    work.last_label[: problem.groups] = problem.label[: problem.groups]
    work.last_row[: problem.groups + 1] = problem.row_first[: problem.groups + 1]


@procedure
def begin_from(problem: Problem, work: Work) -> None:
    """Store the current impulses as those of the last step, for the next warm start."""
    rows = problem.row_first[problem.groups]
    work.lam_last[:rows] = problem.impulse[:rows]
    list_groups(problem, work)


@procedure
def has_same_groups(problem: Problem, work: Work) -> bool:
    """Whether the groups are those of the stored impulses, in the same order."""
    if work.started != problem.groups:
        return False
    for g in range(problem.groups):
        if work.last_label[g] != problem.label[g] or work.last_row[g] != problem.row_first[g]:
            return False
    return work.last_row[problem.groups] == problem.row_first[problem.groups]


@procedure
def slot_of(work: Work, label: int, slots: int) -> int:
    """Hash-table slot of a group's label, or the free slot where it can be inserted."""
    s = ((abs(label) * SPREAD + (1 if label < 0 else 0)) & LOW) * slots >> 32
    while work.label_slot[s] > 0 and work.last_label[work.label_slot[s] - 1] != label:
        s += 1
        if s == slots:
            s = 0
    return s


@procedure
def follow_labels(problem: Problem, work: Work) -> None:
    """Reorder the stored impulses to the present groups by label; zero for new groups."""
    if has_same_groups(problem, work):
        return
    slots = 2 * work.started + 2
    work.label_slot[:slots] = 0
    for k in range(work.started):
        work.label_slot[slot_of(work, work.last_label[k], slots)] = k + 1
    rows = work.last_row[work.started]
    work.y[:rows] = work.lam_last[:rows]
    for g in range(problem.groups):
        row = problem.row_first[g]
        k = work.label_slot[slot_of(work, problem.label[g], slots)] - 1
        known = work.last_row[k + 1] - work.last_row[k] if k >= 0 else 0
        for r in range(problem.dim[g]):
            work.lam_last[row + r] = work.y[work.last_row[k] + r] if r < known else 0.0
    list_groups(problem, work)

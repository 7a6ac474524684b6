"""Islands of one step on several threads, the largest first, with the bits of one thread.

An island reads and writes its own places of all lists. Numbers of ``Problem`` and ``Work``, in
which ``solve_and_note`` counts and notes, ``Work.temp`` and arrays of fixed lengths are a helper's.
Large islands with loops stay with the thread of the step: there is one condensed matrix.
"""

from typing import Any

import numpy as np

from kinetree.codegen.crew import ITEMS, LIMIT, can_help, is_of_crew, shared_code, the_crew
from kinetree.codegen.procedures import procedure, record
from kinetree.codegen.procedures.language import ArrayType
from kinetree.codegen.tied import Code, run, tied_code
from kinetree.contact.newton.condensed import LEAST as CONDENSED
from kinetree.contact.newton.condensed import forget
from kinetree.contact.newton.course import Course
from kinetree.contact.newton.keeping import take_kept
from kinetree.contact.newton.matrix import is_loop
from kinetree.contact.newton.newton import (
    begin_islands,
    end_islands,
    solve,
    solve_and_note,
)
from kinetree.contact.newton.problem import Problem, Work

SIZES = 256
"""Numbers of groups that islands are sorted by; larger ones come first, in their order."""

LEAST = 48
"""Groups of all islands but the largest from which on islands are shared: less is done before
another thread has begun."""

NEWTON, FACTORED, ROUNDS, LEFT, FAILED = range(5)


@record
class Sharing:
    """Islands of a problem that are to be solved, and what each of them took.

    Attributes:
        threads: that may solve them: 1 shares nothing;  code: that lets them do so;  helpers: how
            many it has.
        job: counts the problems that were shared.
        size: of islands, see ``size_of_island``;  order: those for all threads, the largest first;
            first: of each size, where they begin.
        effort: of islands: steps, factorisations and rounds, and 1 where they are left to another
            call, and where they failed.
    """

    threads: int
    code: Code
    helpers: int
    job: int
    size: "int[:]"
    order: "int[:]"
    first: "int[:]"
    effort: "int[:, 5]"


@record
class Helper:
    """Records with which a thread solves islands: shared arrays, and separate numbers.

    Attributes:
        problem, work: of this thread.
        whole: problem that is solved.
        sharing: what is to be solved.
        job: last one that it took part in.
    """

    problem: Problem
    work: Work
    whole: Problem
    sharing: Sharing
    job: int


@procedure
def begin_job(t: Helper) -> None:
    """Copy numbers of the problem to solve (sizes, tolerance, step limits) to a thread's record."""
    p, whole = t.problem, t.whole
    p.groups = whole.groups
    p.lasting = whole.lasting
    p.again = whole.again
    p.coarse = whole.coarse
    p.tolerance = whole.tolerance
    p.most_rounds = whole.most_rounds
    p.most_newton = whole.most_newton
    t.job = t.sharing.job


@procedure
def solve_shared(t: Helper, item: int) -> None:
    """Solve the ``item``-th sorted island on this thread; stores its step counts in ``effort``."""
    if t.job != t.sharing.job:
        begin_job(t)
    p = t.problem
    p.newton = p.factored = p.rounds = p.left = 0
    island = t.sharing.order[item]
    reached = solve_and_note(p, t.work, island)
    found = t.sharing.effort[island]
    found[NEWTON] = p.newton
    found[FACTORED] = p.factored
    found[ROUNDS] = p.rounds
    found[LEFT] = p.left
    found[FAILED] = 0 if reached else 1


@procedure
def may_condense(p: Problem, work: Work, island: int) -> bool:
    """Whether an island is large and has loops, so that it may need the only condensed matrix."""
    if p.condenses == 0:
        return False
    if work.island_dofs_first[island + 1] - work.island_dofs_first[island] < CONDENSED:
        return False
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        if is_loop(p, work.island_group[k]):
            return True
    return False


@procedure
def size_of_island(p: Problem, work: Work, island: int) -> int:
    """Groups of an island; 0 if its solution is stored, -1 if only the step's thread may solve."""
    if work.same[island] >= 0:
        return 0
    if may_condense(p, work, island):
        return -1
    return work.island_groups_first[island + 1] - work.island_groups_first[island]


@procedure
def sort_islands(x: Sharing, p: Problem, work: Work, islands: int) -> int:
    """Sort the islands for several threads by decreasing size; how many, 0 if it does not pay."""
    first = x.first
    first[: SIZES + 1] = 0
    groups = most = 0
    for i in range(islands):
        size = size_of_island(p, work, i)
        x.size[i] = size
        if size > 0:
            groups += size
            most = max(most, size)
            first[SIZES - min(size, SIZES - 1)] += 1
    if groups - most < LEAST:
        return 0
    for k in range(SIZES):
        first[k + 1] += first[k]
    count = first[SIZES]
    for m in range(islands):
        i = islands - 1 - m
        if x.size[i] > 0:
            k = SIZES - min(x.size[i], SIZES - 1)
            first[k] -= 1
            x.order[first[k]] = i
    return count


@procedure
def add_efforts(x: Sharing, p: Problem, count: int) -> int:
    """Add the step counts of the first ``count`` sorted islands to the problem; how many failed."""
    failed = 0
    for n in range(count):
        found = x.effort[x.order[n]]
        p.newton += found[NEWTON]
        p.factored += found[FACTORED]
        p.rounds = max(p.rounds, found[ROUNDS])
        p.left += found[LEFT]
        failed += found[FAILED]
    return failed


@procedure
def solve_islands(x: Sharing, p: Problem, work: Work) -> int:
    """Solve a contact problem by islands, on several threads if that pays; status, -1: no room."""
    if x.threads < 2:
        return solve(p, work)
    islands = begin_islands(p, work)
    if islands < 0:
        return -1
    count = sort_islands(x, p, work, islands)
    failed = 0
    if count > 0:
        if p.condenses == 1 and p.changed > 0:
            forget(p, work)
        x.job += 1
        x.code.frame[ITEMS] = count
        run(x.code)
        failed = add_efforts(x, p, count)
    for i in range(islands):
        if x.size[i] == 0:
            take_kept(p, work, i)
        elif (count == 0 or x.size[i] < 0) and not solve_and_note(p, work, i):
            failed += 1
    return end_islands(p, work, islands, failed)


def sharing_of(problem: Problem) -> Sharing:
    """``Sharing`` record for all islands that a problem may have, with one thread."""
    n = problem.trees + 1
    return Sharing(
        threads=1,
        code=tied_code(None),
        size=np.zeros(n, dtype=np.int64),
        order=np.zeros(n, dtype=np.int64),
        first=np.zeros(SIZES + 1, dtype=np.int64),
        effort=np.zeros((n, 5), dtype=np.int64),
    )


def share(sharing: Sharing, problem: Problem, work: Work, threads: int) -> bool:
    """Set how many threads solve islands from the next call on; whether helpers had to be made.

    Lists that grow set ``Sharing.helpers`` to 0, which have the old ones.
    """
    threads = the_crew().have(threads) if threads > 1 and can_help() else 1
    made = threads > 1 and (sharing.helpers < threads or not is_of_crew(sharing.code))
    if made:
        helpers = [_helper(sharing, problem, work) for _ in range(threads)]
        sharing.code, sharing.helpers = shared_code(solve_shared, helpers), threads
    sharing.threads = threads
    if threads > 1:
        sharing.code.frame[LIMIT] = threads
    return made


def _helper(sharing, problem, work) -> Helper:
    """``Helper`` of one thread: the arrays of a problem and workspace, with separate counts."""
    return Helper(
        problem=_copy(problem, changed=0),
        work=_copy(work, course=Course(), temp=np.zeros_like(work.temp)),
        whole=problem,
        sharing=sharing,
        job=sharing.job,
    )


def _copy(record, **own) -> Any:
    """Copy of a record that shares its lists, with the fields ``own`` replaced.

    Arrays of fixed lengths are not lists of what islands have places in, but scratch.
    """
    for name, kind in record.types.items():
        if isinstance(kind, ArrayType) and None not in kind.dims:
            own.setdefault(name, np.zeros(kind.dims, kind.dtype))
    return type(record)(**{name: getattr(record, name) for name in record.types} | own)

"""Newton's iterations of many samples at once on a device: what is launched, one after the other.

The procedures are those of ``advance``, which a core runs from one to the next. Here a stage is one
of them for all samples, or one of the kernels that they call: for parts of the knots, where knots
are independent, so that all of a device has work, else a team for each sample. The kernels of a
motion that rolls on are called step by step.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kinetree.codegen.procedures import Procedure, procedure
from kinetree.control.newton import advance
from kinetree.control.newton.advance import (
    begin_last_step,
    begin_slacks,
    choose_way,
    end_last_step,
    end_motion,
    examine,
    finish,
    judge,
    load,
    measure,
)
from kinetree.control.newton.columns import (
    MOST,
    derivatives_by_columns,
    find_contact_rows_by_columns,
    find_contacts_by_columns,
    impacts_by_columns,
    stop_by_columns,
    take_steps_by_columns,
)
from kinetree.control.newton.contact_derivatives import (
    add_feet_derivatives,
    derivatives_of_impacts,
    derivatives_of_steps,
    find_contact_rows,
    find_impact_rows,
    gather_impacts,
)
from kinetree.control.newton.derivatives import (
    add_curves,
    bend,
    clear_costs,
    simple_steps,
    take_and_choose,
    weigh_curves,
)
from kinetree.control.newton.direction import (
    find_knot_steps,
    find_knot_steps_in_team,
    follow_knots,
    prepare_knots,
    prepare_knots_in_team,
)
from kinetree.control.newton.making import has_teams
from kinetree.control.newton.records import Batch, WorkerArrays
from kinetree.control.newton.search import (
    begin_motion,
    begin_rolled_step,
    begin_trial,
    end_rolled_step,
)
from kinetree.control.newton.stance import (
    find_cones_of_steps,
    find_contacts,
    find_rows_of_landing,
    stop_landing,
    take_steps_of_contacts,
)
from kinetree.control.newton.values import (
    begin_steps,
    copy,
    find_ends,
    restore,
    step_simply,
    sum_up,
)

FEW, SOME, MANY = 2, 8, 32
"""Knots of a team whose lanes share what each takes, or each at which something touches down, and
whose lanes have one each."""
AGAIN = 8
"""What comes next: the steps of the present knots, and then derivatives."""


@dataclass(frozen=True)
class Launch:
    """A procedure or a kernel for all samples.

    Args:
        what: ``Procedure``, ``InnerLoop``, or several of these that do not wait for each other.
        each: knots of a team; 0 for a team that has a whole sample.
        first, end: knots.
    """

    what: Any
    each: int = 0
    first: int = 0
    end: int = 0


Launches = Iterator[Launch]


# --- procedures of a whole sample ----------------------------------------------------------------


@procedure
def load_sample(b: Batch, w: WorkerArrays):
    """Load the only sample of a worker."""
    load(b, w, 0)
    begin_steps(b, w, 0, b.steps)


@procedure
def begin_sample(b: Batch, w: WorkerArrays):
    """Initialise slacks and multipliers at the first iterate, whose values are known."""
    sum_up(b, w)
    begin_slacks(b, w)


@procedure
def examine_sample(b: Batch, w: WorkerArrays):
    """Decide whether derivatives are needed, and reset contact memory."""
    examine(b, w)
    if w.search.wanted == advance.DERIVE and b.contacts.count > 0 and w.search.fresh == 0:
        restore(b, w)
        begin_steps(b, w, 0, b.steps)
        w.search.wanted = AGAIN


@procedure
def resume(b: Batch, w: WorkerArrays):
    """Request derivatives next."""
    copy(w.now.qdd, w.tried.qdd, b.steps * b.nv)
    w.search.wanted = advance.DERIVE


@procedure
def gather(b: Batch, w: WorkerArrays):
    """Gather the impacts at which derivatives are needed."""
    gather_impacts(b, w)


@procedure
def judge_sample(b: Batch, w: WorkerArrays):
    """Accept an evaluated line-search trial, or request a shorter one."""
    sum_up(b, w)
    judge(b, w)


@procedure
def finish_sample(b: Batch, w: WorkerArrays):
    """Store the results of the evaluated final rollout."""
    sum_up(b, w)
    finish(b, w)
    w.search.at_sample = 1


# --- sequences -----------------------------------------------------------------------------------


def steps(b: Batch, w: WorkerArrays, first: int, end: int) -> Launches:
    """Launches that take the integration steps of the trial knots."""
    s, x = w.steps, w.stance.tried
    own = first, end
    if b.contacts.count:
        yield Launch((x.terms, x.mass, x.bias), 1, *own)
        if landings(b)[first:end].any():
            yield Launch(find_rows_of_landing, MANY, *own)
            yield Launch(stop_by_columns if has_columns(b) else stop_landing, SOME, *own)
            yield Launch(x.bias, 1, *own)
        if x.forced:
            yield Launch(x.force, 1, *own)
        yield Launch(find_contacts_by_columns if has_columns(b) else find_contacts, SOME, *own)
        take = take_steps_by_columns if has_columns(b) else take_steps_of_contacts
        yield Launch(take, FEW, *own)
        if not b.flat:
            yield Launch(x.move, 1, *own)
    elif s.simple:
        if s.forced:
            yield Launch(s.force, 1, *own)
        yield Launch(s.accelerate, 1, *own)
        yield Launch(step_simply, MANY, *own)
    else:
        yield Launch(s.step, 1, *own)


def has_columns(b: Batch) -> bool:
    """Whether a team has a lane for each column of the contact systems."""
    return b.nv + b.contacts.rows < min(b.lanes, MOST + 1)


def landings(b: Batch) -> Any:
    """For each step, whether a contact touches down at its beginning."""
    return b.contacts.landing.reshape(b.steps, -1).any(axis=1)


def evaluation(b: Batch, w: WorkerArrays) -> Launches:
    """Launches that evaluate costs, constraints and gaps of the trial knots."""
    s, T = w.steps, b.steps
    if b.contacts.count:
        yield Launch(find_cones_of_steps, MANY, 0, T)
    yield Launch(find_ends, MANY, 0, T)
    if not b.flat:
        yield Launch(s.difference, 1, 0, T)
    if s.costly:
        yield Launch(s.running, 1, 0, T)
    if s.ending:
        yield Launch(s.final, 1, 0, 1)
    if b.contacts.count:
        yield Launch(w.stance.tried.terms, 1, T, T + 1)


def loading(b: Batch, w: WorkerArrays) -> Launches:
    """Launches that load the first knots."""
    yield Launch(load_sample)


def examination(b: Batch, w: WorkerArrays) -> Launches:
    """Launches that decide whether derivatives are needed."""
    yield Launch(examine_sample)


def beginning(b: Batch, w: WorkerArrays) -> Launches:
    """Launches that initialise slacks and multipliers."""
    yield from steps(b, w, 0, b.steps)
    yield from evaluation(b, w)
    yield Launch(begin_sample)


def again(b: Batch, w: WorkerArrays) -> Launches:
    """Launches that repeat the current knots' steps, whose terms derivatives need."""
    yield from steps(b, w, 0, b.steps)
    yield Launch(w.stance.tried.terms, 1, b.steps, b.steps + 1)
    yield Launch(resume)


def derivatives(b: Batch, w: WorkerArrays) -> Launches:
    """Launches that compute derivatives at the current knots, and errors."""
    s, T = w.derivatives, b.steps
    if b.contacts.count:
        yield Launch(clear_costs)
    if s.costly:
        yield Launch(s.knots, 1, 0, T)
    if s.ending:
        yield Launch(s.end, 1, 0, 1)
    if s.curved or s.end_curved:
        yield Launch(add_curves, MANY, 0, T + 1)
    if b.contacts.count:
        yield Launch(add_feet_derivatives, MANY, 0, T + 1)
        yield from contact_derivatives(b, w)
    elif s.simple:
        if s.forced:
            yield Launch(s.force, 1, 0, T)
        yield Launch(s.accelerate, 1, 0, T)
        yield Launch(simple_steps, MANY, 0, T)
    elif s.by_rows:
        if not b.flat:
            yield Launch(s.back, 1, 0, T)
        for row in range(b.n):
            yield Launch(take_and_choose, 1, row, row + 1)
            yield Launch(s.rows, 1, 0, T)
        yield Launch(take_and_choose, 1, b.n, b.n + 1)
    yield Launch(measure)


def contact_derivatives(b: Batch, w: WorkerArrays) -> Launches:
    """Launches that compute derivatives of contact steps."""
    x, T = w.stance.now, b.steps
    yield Launch(x.derivatives, 1, 0, T)
    if x.forced:
        yield Launch(x.force_derivatives, 1, 0, T)
    hits = int(landings(b).sum())
    if hits:
        yield Launch(gather)
        yield Launch(x.impact, 1, 0, 2 * hits)
        yield Launch(find_impact_rows, MANY, 0, T)
        yield Launch(impacts_by_columns if has_columns(b) else derivatives_of_impacts, SOME, 0, T)
    rows = find_contact_rows_by_columns if has_columns(b) else find_contact_rows
    yield Launch(rows, SOME, 0, T)
    yield Launch(derivatives_by_columns if has_columns(b) else derivatives_of_steps, FEW, 0, T)


def direction(b: Batch, w: WorkerArrays) -> Launches:
    """Launches that compute the search direction."""
    s, T = w.derivatives, b.steps
    if b.exact:
        if not b.flat:
            yield Launch(s.back, 1, 0, T)
        yield Launch(weigh_curves, MANY, 0, T)
        yield Launch(s.curve, 1, 0, T)
        if not b.flat:
            yield Launch(s.bending, 1, 0, T)
            yield Launch(bend, MANY, 0, T)
        if s.ending:
            yield Launch(s.end_curve, 1, 0, 1)
    teams = has_teams(b, w.horizon.h)
    yield Launch(prepare_knots_in_team if teams else prepare_knots, FEW, 0, T + 1)
    yield Launch(find_knot_steps_in_team if teams else find_knot_steps)
    yield Launch(follow_knots, FEW, 0, T + 1)
    yield Launch(choose_way)


def trial(b: Batch, w: WorkerArrays) -> Launches:
    """Launches that evaluate a line-search trial, and accept it or not."""
    T = b.steps
    if b.touching:
        yield Launch(begin_motion)
        for k in range(T):
            yield from rolled_step(b, w, k, begin_rolled_step, end_rolled_step)
            if not b.flat:
                yield Launch(w.shift, 1, k + 1, k + 2)
    else:
        yield Launch(begin_trial, MANY, 0, T + 1)
        if not b.flat:
            yield Launch(w.move, 1, 0, T + 1)
        yield from steps(b, w, 0, T)
    yield from evaluation(b, w)
    yield Launch(judge_sample)


def rolled_step(b: Batch, w: WorkerArrays, k: int, begin: Any, end: Any) -> Launches:
    """Launches of one rollout step, whose controls depend on the step before."""
    if not b.flat:
        yield Launch(w.deviate, 1, k, k + 1)
    yield Launch(begin, FEW, k, k + 1)
    yield from steps(b, w, k, k + 1)
    yield Launch(end, FEW, k, k + 1)


def last_motion(b: Batch, w: WorkerArrays) -> Launches:
    """Launches of the final rollout under feedback."""
    yield Launch(begin_motion)
    for k in range(b.steps):
        yield from rolled_step(b, w, k, begin_last_step, end_last_step)
    yield Launch(end_motion)


def ending(b: Batch, w: WorkerArrays) -> Launches:
    """Launches that store results."""
    if b.memory:
        yield from steps(b, w, 0, b.steps)
    yield from evaluation(b, w)
    yield Launch(finish_sample)


def all_stages(b: Batch, w: WorkerArrays) -> Launches:
    """All launches that may occur, whatever the schedule."""
    for sequence in (
        loading,
        examination,
        beginning,
        derivatives,
        direction,
        trial,
        last_motion,
        ending,
    ):
        yield from sequence(b, w)
    if b.contacts.count:
        yield from again(b, w)
        yield Launch(w.stance.tried.bias, 1)
        yield Launch(gather)
        yield Launch(w.stance.now.impact, 1)
        by_columns, by_tiles = (
            (impacts_by_columns, stop_by_columns),
            (derivatives_of_impacts, stop_landing),
        )
        for what in by_columns if has_columns(b) else by_tiles:
            yield Launch(what, FEW)
        for what in (find_impact_rows, find_rows_of_landing):
            yield Launch(what, MANY)


def is_kernel(stage: Launch) -> bool:
    """Whether a launch calls kernels, not a procedure."""
    return not isinstance(stage.what, Procedure)

"""Newton's method for problems on a GPU: stages for all problems, all of it on the device."""

from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from kinetree.codegen.device.copies import LANE, TEAM, Copies
from kinetree.codegen.device.running import Gpu
from kinetree.codegen.device.teams import ALWAYS, CallProgram, TeamProgram, Waits, launchers, record
from kinetree.codegen.device.units import specialised_code
from kinetree.codegen.procedures.language import INT
from kinetree.codegen.program import calls_of, trace
from kinetree.codegen.progress import working
from kinetree.control.iterations import Iterations
from kinetree.control.newton import advance, stages
from kinetree.control.newton.calls import InnerLoop
from kinetree.control.newton.columns import derivatives_by_columns
from kinetree.control.newton.contacts import ContactTables, Stance, StanceKernels
from kinetree.control.newton.making import batch_of_problem, given_rows, renew_schedule, work_of
from kinetree.control.newton.records import Batch, Derivatives, Search, Steps, WorkerArrays
from kinetree.control.riccati import Horizon
from kinetree.control.shooting import Shooting
from kinetree.control.starts import FirstIterate
from kinetree.errors import ModelError
from kinetree.expr.calls import calls
from kinetree.model import Model
from kinetree.model.memo import remember

OF_LANE = ((WorkerArrays, "scratch"), *((Stance, name) for name in ("vel", "acc", "R", "room")))
OF_TEAM = (
    (WorkerArrays, "acting"),
    *((Stance, name) for name in ("P", "Q", "Y", "bench", "L", "right", "df")),
)
"""Working memory of one knot, which every lane has for itself, or a team."""
SHARED = 200_000
"""Bytes that a team may have for itself."""
SAMPLE, KNOTS = (64, 8), (32, 16)
"""Threads of a team that has a sample, or knots, and how many teams registers must allow."""
TEAMS = {derivatives_by_columns: 12}
"""How many of these where a procedure needs more registers."""
SIZES = {
    Batch: "nq nv m n size nf ng nb nc ni ne flat touching memory rows exact outside",
    ContactTables: "count rows cones before bodies turns",
    Horizon: "n m wide turns",
    StanceKernels: "forced",
    Steps: "simple forced costly ending",
    Derivatives: "simple forced by_rows costly ending curved end_curved weights_of_knot",
}
"""Numbers of a problem that its code has: other horizons have the same code."""
_OF_SCHEDULE = "active", "landing", "goal", "weight"


class IterationsOnDevice(Iterations):
    """``Iterations`` whose arrays are on a device; starts and guesses are of its library.

    Args:
        problem: with bounds, a goal and settings.
        shooting: its steps, costs and constraints, with other starts of the same shapes.
        most: iterations.
        on: ``Gpu``, or ``Processor`` to check what a GPU does.
    """

    def __init__(self, problem: Any, shooting: Shooting, most: int, on: Any):
        self.problem, self.shooting, self.on, self.xp = problem, shooting, on, on.xp
        self.batch = b = batch_of_problem(problem, shooting, most, 1)
        b.lanes, b.team = KNOTS[0], SAMPLE[0]
        if not isinstance(on, Gpu):
            b.lanes = b.team = getattr(on, "lanes", 1)
        self._work = w = work_of(shooting, b)
        self._copies = c = _copies(b, w)
        self._is_shared = c.of_team != frozenset()
        with working("code of optimize for a GPU", 0, ""):
            self._starts_of = _launchers(shooting.model, b, w, c, on)
        size = 8 * (len(c.arrays) + len(c.records) + len(c.kept))
        on.have_room(size * shooting.samples, f"{shooting.samples} motions of {b.steps} steps")
        self._words = c.words_on(on.xp, shooting.samples)
        self._places = len(c.arrays), (on.xp.asarray(c.where), on.xp.asarray(c.target))
        self._tables: dict[tuple[int, ...], Any] = {}
        self._recorded: dict[Any, Any] = {}
        self._numbers = self._words.view("float64")
        self._waits = c.word_of(w.search, "wanted")
        self.put("given", given_rows(shooting))

    # --- words of all problems -------------------------------------------------------------------

    def array(self, name: str) -> Any:
        """Array of the batch by name on the device, one row per sample."""
        b = self.batch
        words = self._words if b.types[name].element == INT else self._numbers
        return words[:, self._copies.slice_of(b, name)]

    def put(self, name: str, x: Any, record: Any = None) -> None:
        """Write an array of all samples by name; its first rows if ``x`` is shorter."""
        record = self.batch if record is None else record
        words = self._words if record.types[name].element == INT else self._numbers
        words[:, self._copies.slice_of(record, name)] = self.xp.asarray(x)

    def _number(self, record, name):
        """Integer field of a record, for all samples."""
        return self._words[:, self._copies.word_of(record, name)]

    # --- iterations ------------------------------------------------------------------------------

    def start_from(self, q0, qd0, begins):
        """Replace the initial states and the start time of the schedule, shapes being equal."""
        f, model, xp = self.shooting, self.problem.model, self.xp
        batch, size = f.run.arrays.batch, f.run.arrays.size
        qd0 = xp.zeros((1, model.nv)) if qd0 is None else qd0
        q, qd = (
            xp.broadcast_to(x, (*batch, x.shape[-1])).reshape(size, x.shape[-1]) for x in (q0, qd0)
        )
        self._starts = SimpleNamespace(q0=q, qd0=qd, size=size, batch=batch)
        f.begin_at(begins)
        renew_schedule(self.batch, f)
        self.put("mask", self.batch.mask)
        self.put("soft", self.batch.soft)
        for name in _OF_SCHEDULE:
            self.put(name, getattr(self.batch.contacts, name), self.batch.contacts)

    def begin(self, guess, barrier):
        """Set all variables from a guess, and the barrier parameter, for new iterations."""
        guess = self._complete(guess, lambda: self.on_host(self._starts))
        b, start = self.batch, FirstIterate(self.problem, self._starts, guess, self.xp)
        found = *start.knots(), *start.multipliers(b.ni, b.ne)
        for name, x in zip(("q", "qd", "u", "z", "y"), found, strict=True):
            self.put(name, x.reshape(len(self._words), -1))
        self.put("mu", 0.0 if barrier is None else barrier)
        self._number(b, "warm")[:] = int(start.is_warm)
        self._number(self._work.search, "halted")[:] = 0

    def on_host(self, starts):
        """Initial positions of the problems as a NumPy array."""
        return self.xp.asnumpy(starts.q0) if hasattr(self.xp, "asnumpy") else starts.q0

    def run(self, budget: float | None = None):
        """Run Newton iterations until all samples are done, or for ``budget`` seconds."""
        b, begun = self.batch, perf_counter()
        self._take(stages.loading, ALWAYS)
        self._take(stages.beginning, advance.BEGIN)
        with working("optimizing motions", b.most, "iterations") as work:
            while True:
                self._take(stages.examination, advance.DERIVATIVES)
                if self._some_want(stages.AGAIN):
                    self._take(stages.again, stages.AGAIN)
                if not self._some_want(advance.DERIVE):
                    break
                self._take(stages.derivatives, advance.DERIVE)
                self._take(stages.direction, advance.CURVES)
                while self._some_want(advance.TRIAL):
                    self._take(stages.trial, advance.TRIAL)
                work.advance(1)
                if budget is not None and perf_counter() - begun > budget:
                    self._number(self._work.search, "halted")[:] = 1
        self._take(stages.last_motion, advance.STEP)
        self._take(stages.ending, advance.END)

    def _take(self, sequence, wanted):
        """Run a sequence of stages, recorded as a CUDA graph, for samples that request them.

        It is launched as a whole, and recorded anew where something else touches down.
        """
        key = sequence.__name__, wanted, self.batch.contacts.landing.tobytes()
        if key not in self._recorded:
            found = list(sequence(self.batch, self._work))
            for stage in filter(stages.is_kernel, found):
                self._table(stage)
            self._recorded[key] = record(self.on, lambda: self._launch(found, wanted))
        self._recorded[key]()

    def _launch(self, sequence, wanted):
        """Launch stages one after the other."""
        count, words, waits = len(self._words), self._words, Waits(self._waits, wanted)
        for stage in sequence:
            start = self._starts_of[_key(stage)]
            if stages.is_kernel(stage):
                table = self._table(stage)
                start(count, words, table, waits, stage.first, stage.end - stage.first)
            elif stage.each:
                each = stage.each if self._is_shared else max(stage.end, 1)
                start(count, words, *self._places, waits, stage.first, each, stage.end)
            else:
                start(count, words, *self._places, waits)

    def _table(self, stage):
        """Table of a stage's kernel arguments: offsets in an item's words and knot strides."""
        loops = _loops_of(stage)
        key = tuple(x.address for x in loops)
        if key not in self._tables:
            found = [_table(self._copies, x) for x in loops]
            self._tables[key] = self.xp.asarray(np.concatenate(found))
        return self._tables[key]

    def _some_want(self, wanted) -> bool:
        """Whether some samples request a stage; waits for the device."""
        return bool((self._number(self._work.search, "wanted") == wanted).any())


def _copies(b, w):
    """Memory layout of an item on the device; factors are in shared memory if they fit."""
    arrays = [array for loop in w.loops for array in loop.keeps]
    whose = dict.fromkeys(OF_LANE, LANE)
    for more in (dict.fromkeys(OF_TEAM, TEAM), {}):
        found = Copies((b, w), whose | more, (Search,), (InnerLoop,), arrays)
        if 8 * found.team <= SHARED:
            break
    return found


def _table(copies, loop):
    """Offsets of a kernel's arrays in the words of an item, and bytes from knot to knot."""
    places = [copies.word_of_array(x) for x in loop.keeps]
    return np.array([*zip(places, loop.steps[: loop.arrays], strict=True)], np.int64).reshape(-1)


def _are_aligned(copies, loop):
    """Whether each array of a kernel begins at multiples of 16 bytes at all knots."""
    table = _table(copies, loop).reshape(-1, 2)
    return (table[:, 0] % 2 == 0) & (table[:, 1] % 16 == 0)


def _loops_of(stage):
    """Tied kernels of a stage, as a tuple."""
    return stage.what if isinstance(stage.what, tuple) else (stage.what,)


def _key(stage):
    """Key of a launch's code: its procedure, or its kernels."""
    if stages.is_kernel(stage):
        return tuple(x.kernel for x in _loops_of(stage))
    return stage.what


def _launchers(model, b, w, copies, on):
    """Launchers of all stages by procedure or kernels, kept with the model."""
    found: dict[Any, Any] = {}
    aligned: dict[Any, Any] = {}
    for stage in stages.all_stages(b, w):
        key = _key(stage)
        found[key] = stage
        if stages.is_kernel(stage):
            own = [_are_aligned(copies, x) for x in _loops_of(stage)]
            aligned[key] = np.concatenate(own) & aligned.get(key, True)
    constants, programs = _sizes_of(b, w), []
    for key, stage in found.items():
        if stages.is_kernel(stage):
            programs.append(CallProgram(tuple(map(_code_of, key)), tuple(aligned[key].tolist())))
        else:
            lanes, teams = KNOTS if stage.each else SAMPLE
            teams = TEAMS.get(key, teams)
            programs.append(TeamProgram(key, (b, w), copies, lanes, teams, constants))
    sizes = len(copies.records), len(copies.kept), copies.lane, copies.team
    what = tuple(x if stages.is_kernel(found[x]) else x.symbol for x in found)
    code = tuple(x.tobytes() for x in aligned.values())
    key = "stages", type(on), getattr(on, "device", 0), *sizes, *constants.items(), what, code
    starts = remember(model, key, lambda: launchers(programs, on))
    return dict(zip(found, starts, strict=True))


def _sizes_of(b, w):
    """Constant sizes in records, which device code may inline, by class and field."""
    records = b, b.contacts, w.horizon, w.stance.tried, w.steps, w.derivatives
    return {
        (type(x).__name__, name): getattr(x, name)
        for x in records
        for name in SIZES[type(x)].split()
    }


def require_tree(model: Model) -> None:
    """Raise ModelError for a robot whose steps have no compiled code."""
    if model.is_constrained or model.couplings:
        raise ModelError(
            f"optimize on a GPU takes trees, with or without phases: model {model.name!r} has "
            "loops, constraints or couplings; give NumPy arrays"
        )


def _code_of(kernel):
    """Device code of a kernel for its robot."""
    program = _program_of(kernel)
    if calls_of(program):
        raise ModelError(
            f"optimize on a GPU takes code that calls no other: {kernel.name} calls "
            f"procedures; give NumPy arrays"
        )
    return specialised_code(program)


def _program_of(kernel):
    """Program of a kernel for its robot; for general code a hash of its text."""
    if kernel.make_program is not None:
        return kernel.program
    with calls(None):
        return trace(lambda *given: kernel.reference(given), kernel.inputs, kernel.name)

"""Newton's method for problems on a GPU: a team of threads for each, all of it on the device."""

from time import perf_counter
from types import SimpleNamespace
from typing import Any

from kinetree.codegen.device.copies import Copies
from kinetree.codegen.device.teams import TeamProgram, team_launcher
from kinetree.codegen.device.units import specialised_code
from kinetree.codegen.procedures.language import INT
from kinetree.codegen.program import calls_of, trace
from kinetree.codegen.progress import working
from kinetree.control.iterations import Iterations
from kinetree.control.newton.advance import advance
from kinetree.control.newton.calls import InnerLoop, call
from kinetree.control.newton.contacts import Stance
from kinetree.control.newton.making import batch_of_problem, given_rows, renew_schedule, work_of
from kinetree.control.newton.records import Search, WorkerArrays
from kinetree.control.shooting import Shooting
from kinetree.control.starts import FirstIterate
from kinetree.errors import ModelError
from kinetree.expr.calls import calls
from kinetree.model import Model
from kinetree.model.memo import remember

SCRATCH = (
    (WorkerArrays, "rows"),
    (WorkerArrays, "scratch"),
    *((Stance, name) for name in ("vel", "acc", "R", "room")),
)
"""Working memory of one knot, which every lane has for itself."""
TURN = 20
"""Iterations of a launch, so that Ctrl-C is heard in time."""
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
        self._work = w = work_of(shooting, b)
        kernels, numbers = _kernels_of(w.loops)
        self._copies = Copies((b, w), SCRATCH, (Search,), w.loops, numbers)
        c, xp = self._copies, on.xp
        program, sizes = (
            TeamProgram(advance, call, InnerLoop, kernels, c),
            (len(c.records), len(c.kept), c.lane),
        )
        symbols = tuple(k.symbol for k in kernels)
        key = "teams", type(on), getattr(on, "device", 0), symbols, sizes
        with working("code of optimize for a GPU", 0, ""):
            self._start = remember(shooting.model, key, lambda: team_launcher(program, on))
        size = 8 * (len(c.arrays) + len(c.records) + len(c.kept))
        on.have_room(size * shooting.samples, f"{shooting.samples} motions of {b.steps} steps")
        self._words = c.words_on(xp, shooting.samples, on.address)
        self._addresses = xp.asarray(c.where), xp.asarray(c.target)
        self._numbers = self._words.view("float64")
        self.put("given", given_rows(shooting))

    # --- words of all problems -------------------------------------------------------------------

    def array(self, name: str) -> Any:
        """Numbers of all samples, a row for each."""
        b = self.batch
        words = self._words if b.types[name].element == INT else self._numbers
        return words[:, self._copies.slice_of(b, name)]

    def put(self, name: str, x: Any, record: Any = None) -> None:
        """Let an array of all samples be ``x``, or rows of it."""
        record = self.batch if record is None else record
        words = self._words if record.types[name].element == INT else self._numbers
        words[:, self._copies.slice_of(record, name)] = self.xp.asarray(x)

    def _number(self, record, name):
        """An integer of a record, of all samples."""
        return self._words[:, self._copies.word_of(record, name)]

    # --- iterations ------------------------------------------------------------------------------

    def start_from(self, q0, qd0, begins):
        """Have other starts, of the same shapes, and another beginning of the schedule."""
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
        """Set all variables."""
        guess = self._complete(guess, lambda: self.on_host(self._starts))
        b, start = self.batch, FirstIterate(self.problem, self._starts, guess, self.xp)
        found = *start.knots(), *start.multipliers(b.ni, b.ne)
        for name, x in zip(("q", "qd", "u", "z", "y"), found, strict=True):
            self.put(name, x.reshape(len(self._words), -1))
        self.put("mu", 0.0 if barrier is None else barrier)
        self._number(b, "warm")[:] = int(start.is_warm)
        for name, value in (("sample", -1), ("wanted", 0), ("at_sample", 0), ("halted", 0)):
            self._number(self._work.search, name)[:] = value

    def on_host(self, starts):
        """Positions that the problems start from, as a NumPy array."""
        return self.xp.asnumpy(starts.q0) if hasattr(self.xp, "asnumpy") else starts.q0

    def run(self, budget: float | None = None):
        """Iterate until all samples are done, or for ``budget`` seconds."""
        b, c, begun = self.batch, self._copies, perf_counter()
        each = 1 if budget is not None else TURN
        places = c.team_word(b), c.team_word(self._work)
        layout = self._words.shape[1], len(c.arrays), *self._addresses
        with working("optimizing motions", b.most, "iterations") as work:
            while True:
                self._start(len(self._words), self._words, *layout, *places, 1, each)
                if self._number(self._work.search, "at_sample").all():
                    return
                work.advance(each)
                if budget is not None and perf_counter() - begun > budget:
                    self._number(self._work.search, "halted")[:] = 1


def require_tree(model: Model) -> None:
    """Raise ModelError for a robot whose steps are not compiled as a whole."""
    if model.is_constrained or model.couplings:
        raise ModelError(
            f"optimize on a GPU takes trees, with or without phases: model {model.name!r} has "
            "loops, constraints or couplings; give NumPy arrays"
        )


def _kernels_of(loops):
    """Code of the kernels of loops, and the number of each in order of loops, from one on."""
    found: dict[int, int] = {}
    kernels, numbers = [], []
    for loop in loops:
        kernel = loop.kernel
        if id(kernel) not in found:
            program = _program_of(kernel)
            if calls_of(program):
                raise ModelError(
                    f"optimize on a GPU takes code that calls no other: {kernel.name} calls "
                    f"procedures; give NumPy arrays"
                )
            kernels.append(specialised_code(program))
            found[id(kernel)] = len(kernels)
        numbers.append(found[id(kernel)])
    return kernels, numbers


def _program_of(kernel):
    """The program of a kernel for its robot; of general code that of its text."""
    if kernel.make_program is not None:
        return kernel.program
    with calls(None):
        return trace(lambda *given: kernel.reference(given), kernel.inputs, kernel.name)

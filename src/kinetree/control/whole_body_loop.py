# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Whole-body control that loops of compiled code call: no step of a motion returns to Python."""

from functools import cached_property
from math import isnan
from typing import Any
from weakref import ref

import numpy as np

from kinetree.codegen.procedures import procedure, record, view
from kinetree.codegen.tied import Code, tied_record
from kinetree.control.active_set import FOUND, LOST
from kinetree.control.levels import Levels
from kinetree.control.stance import RELAXED
from kinetree.control.whole_body_quantities import Codes, forget_failures
from kinetree.control.whole_body_step import NOT_COMPUTED, StanceInstant, control, control_with
from kinetree.errors import SimulationWarning, warn

_FEW = 8  # states that Python computes


@record
class WholeBodyLoop:
    """State of a motion, tables of a controller for all that may give way, and its forces.

    Attributes:
        t, q, qd: state of the motion.  out: forces of the motors.
        codes: of the quantities.
        first, second, third: instants, with nothing, limits of joints, and contacts given way;
            likewise the problems ``whole``, ``looser`` and ``loosest``.
        status: how many calls found no answer, (1,).
        strict: whether Python is asked where something has to give way.
        stage: of what gave way, the last there was;  since: the time of the first [s].
        times, log: times at which forces are noted, increasing, and these, one after another;  row,
            rows: of the next of them, and how many there are.
    """

    t: "float[:]"
    q: "float[:]"
    qd: "float[:]"
    out: "float[:]"
    codes: Codes
    first: StanceInstant
    second: StanceInstant
    third: StanceInstant
    whole: Levels
    looser: Levels
    loosest: Levels
    nq: int
    nv: int
    strict: bool
    stage: int
    since: float
    status: "int[1]"
    row: int
    rows: int
    times: "float[:]"
    log: "float[:]"


@procedure
def act(s: WholeBodyLoop) -> None:
    """Compute motor forces for the current state; failures count in ``status``."""
    for i in range(s.nq):
        s.first.q[i] = s.q[i]
    for i in range(s.nv):
        s.first.qd[i] = s.qd[i]
    result = control(s.codes, s.first, s.whole)
    if result != FOUND and result != LOST and result != NOT_COMPUTED and not s.strict:
        if s.stage == 0:
            s.since = s.t[0]
        s.stage = max(s.stage, 1)
        result = control_with(s.second, s.looser)
        if result != FOUND and result != LOST:
            s.stage = 2
            result = control_with(s.third, s.loosest)
    if result != FOUND:
        forget_failures(s.codes)
        s.status[0] += 1
        return
    for i in range(s.nv):
        s.out[i] = s.first.tau[i]
    _note(s)


@procedure
def _note(s: WholeBodyLoop) -> None:
    """Store the forces at a requested time; repeated times are overwritten."""
    while s.row < s.rows and s.times[s.row] < s.t[0]:
        s.row += 1
    if s.row < s.rows and s.times[s.row] == s.t[0]:
        for i in range(s.nv):
            s.log[s.row * s.nv + i] = s.out[i]


@procedure
def act_along(
    s: WholeBodyLoop,
    first: int,
    rows: int,
    t: "float[:]",
    q: "float[:]",
    qd: "float[:]",
    tau: "float[:]",
) -> int:
    """Compute forces in rows where they are NaN; number of the first row that fails."""
    for k in range(first, rows):
        if isnan(tau[k * s.nv]):
            s.t[0] = t[k]
            s.q[: s.nq] = view(q, k * s.nq)[: s.nq]
            s.qd[: s.nv] = view(qd, k * s.nv)[: s.nv]
            s.status[0] = 0
            act(s)
            if s.status[0] != 0:
                return k
            view(tau, k * s.nv)[: s.nv] = s.out[: s.nv]
    return rows


class CompiledWholeBody:
    """A whole-body controller whose goals do not depend on time, for loops of compiled code.

    Args:
        original: the ``WholeBody``, which answers where compiled code cannot.
        again: makes another one, with separate tables.
    """

    def __init__(self, original: Any, again: Any):
        self.original, self._again, self._loops = original, again, []
        self._times = np.zeros(0)

    def tie(self, t, q, qd, out) -> Code:
        """Machine code that reads a state and writes forces, tied to arrays."""
        loop = self._free_loop(t, q, qd, out)
        loop.times, loop.rows = self._times, self._times.size
        loop.log = np.full(self._times.size * loop.nv, np.nan)
        loop.row = loop.stage = 0
        loop.status = np.zeros(1, dtype=np.int64)
        self._loops.append(loop)
        code = tied_record(act, loop)
        loop.used = ref(code)
        return code

    def _free_loop(self, *arrays) -> Any:
        """Tables of an unused loop tied to other arrays, or new ones."""
        loops = self.original.loops
        for loop in loops:
            if loop.used() is None:
                loop.t, loop.q, loop.qd, loop.out = arrays
                return loop
        loop = self._again().loop(*arrays)
        loops.append(loop)
        return loop

    def expect(self, times: np.ndarray) -> None:
        """Set the times of the coming motion at which forces are recorded for ``call``."""
        self._times = np.array(times, dtype=float)

    def _notes(self, times, size):
        """Recorded forces at times, NaN where there are none."""
        if len(self._loops) == 1 and np.array_equal(times, self._times):
            return self._loops[0].log.copy()
        return np.full(size, np.nan)

    def call(self, t, q, qd) -> np.ndarray:
        """Forces in states, (..., nv), computed one by one; warns of relaxed constraints."""
        lead, rows = q.shape[:-1], int(np.prod(q.shape[:-1]))
        times = np.reshape(t, np.shape(t) + (1,) * (len(lead) - np.ndim(t)))
        times = np.broadcast_to(times, lead).astype(float).reshape(-1)
        states = [np.ascontiguousarray(x, dtype=float).reshape(-1) for x in (q, qd)]
        tau, k = self._notes(times, states[1].size), 0
        missing = np.flatnonzero(np.isnan(tau[:: self.original.model.nv]))
        if len(missing) <= _FEW:  # for which tables are not worth while
            for at in missing:
                self._answer(at, times, states, tau)
            self.tell()
            return tau.reshape(qd.shape)
        loop = self._along
        while k < rows:
            k = act_along(loop, k, rows, times, *states, tau)
            if k < rows:  # Python has better means, or says what is wrong
                self._answer(k, times, states, tau)
                k += 1
        self.tell()
        return tau.reshape(qd.shape)

    def _answer(self, k, times, states, tau):
        """Compute the forces of one state by Python; NaN where the state is not finite."""
        model = self.original.model
        q = states[0][k * model.nq : (k + 1) * model.nq]
        qd = states[1][k * model.nv : (k + 1) * model.nv]
        if np.all(np.isfinite(q)) and np.all(np.isfinite(qd)):
            tau[k * model.nv : (k + 1) * model.nv] = self.original(times[k], q, qd)

    @cached_property
    def _along(self) -> WholeBodyLoop:
        """Controller tables tied to arrays of a single state."""
        model = self.original.model
        t, q, qd, out = (np.zeros(n) for n in (1, model.nq, model.nv, model.nv))
        return self._again().loop(t, q, qd, out)

    def tell(self) -> None:
        """Warn once of the constraints that were relaxed in compiled steps."""
        for loop in (*self._loops, *filter(None, [self.__dict__.get("_along")])):
            if loop.stage:
                self.original.warn_of(loop.stage, loop.since)
                loop.stage = 0


def tables(at: Any, live: tuple[bool, ...]) -> dict[str, Any]:
    """Tables of a stance: instants and problems by their names in ``WholeBodyLoop``."""
    stages = [at.stage(k, live) for k in range(len(RELAXED))]
    names = ("first", "whole"), ("second", "looser"), ("third", "loosest")
    found: dict[str, Any] = {}
    for (instant, problem), (one, other) in zip(stages, names, strict=True):
        found[one], found[other] = instant, problem
    return found


def warn_once(model, stage: int, t: float) -> None:
    """Warn once per model that whole-body control relaxes some constraints."""
    warn(
        f"whole-body control of model {model.name!r} cannot meet all constraints at t = {t:g} s, "
        f"and gives up {' and '.join(RELAXED[stage])}, then and from now on where it must; "
        f"WholeBody(..., strict=True) raises an error instead",
        SimulationWarning,
    )

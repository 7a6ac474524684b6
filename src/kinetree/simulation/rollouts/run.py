"""A rollout: its result, and its steps in chunks of the batch, with what goes wrong."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from kinetree.codegen import tiers
from kinetree.codegen.progress import working
from kinetree.codegen.runtime.threads import MINIMUM_PER_THREAD, empty, threads
from kinetree.contact.history import ContactHistory
from kinetree.errors import (
    ShapeError,
    SimulationError,
    SimulationWarning,
    SingularError,
    warn,
)
from kinetree.integration.breakdown import NamingTime, check_finite_state
from kinetree.integration.step import DEFECT
from kinetree.joints import Prescribed
from kinetree.loops.stepping.projected import DOUBTFUL
from kinetree.model.arrays import whole_number
from kinetree.model.define import kernel_of
from kinetree.simulation.rollouts.on_arrays import steps_of
from kinetree.simulation.rollouts.result import Rollout


def contact_notes(transition, memory, is_finite, numbers=np.asarray):
    """Contact forces, residuals and failure flags from step memories (T, ..., n).

    ``numbers`` makes arrays of that kind.
    """
    step, last = transition.contact, memory[-1]
    force = step.contact_forces(memory, numbers)
    failed = (last[..., -1] != 0) | ~is_finite(last[..., -1])
    return force, last[..., step.rows : -1], failed


class Run:
    """A rollout that is about to be taken.

    Attributes:
        transition: one step of it.
        arrays: what goes in, with one batch axis.
        steps, dt, t0: times.
        whole: the run that this one is a part of, or None.
        memory: states of forces at the stored times, (times, samples, n), or None.
        tier: of the code that took the steps.
        halted: not empty once it was interrupted.
        work: what is shown of it while it runs, or None.
    """

    tier = "specialised"

    def __init__(self, transition, arrays, steps, dt, t0, whole=None):
        self.transition, self.arrays, self.whole = transition, arrays, whole
        self.steps, self.dt, self.t0 = steps, dt, t0
        self.memory: Any = None
        self.warned: list = [] if whole is None else whole.warned
        self.halted: list = [] if whole is None else whole.halted
        self.work: Any = None if whole is None else whole.work

    @property
    def model(self):
        """``Model`` of the mechanism."""
        return self.transition.model

    @property
    def contact(self) -> str | None:
        """Kind of derivative through rigid contact: "relaxed", "active set", or None."""
        step = self.transition.contact
        return None if step is None else "relaxed" if step.is_relaxed else "active set"

    @property
    def scene(self):
        """``Scene`` of the rollout's rigid contact."""
        return self.transition.contact.constraints.scene

    def notes(self, shaped):
        """Contact forces, residuals and failure flags; ``shaped`` restores batch axes."""
        if self.transition.contact is None:
            return None, None, None
        return contact_notes(self.transition, shaped(self.memory), np.isfinite)

    def history(self, shaped) -> ContactHistory | None:
        """``ContactHistory`` of contact and joint forces, and residuals; None without contact."""
        step = self.transition.contact
        if step is None:
            return None
        memory, known = shaped(self.memory), self.scene.candidates
        force, residuals, _ = contact_notes(self.transition, memory, np.isfinite)
        each = np.zeros((*memory.shape[:-1], residuals.shape[-1]))
        each[-1] = residuals  # of all steps
        return ContactHistory(known.names, force, memory[..., 3 * known.size : step.rows], each)

    def part(self, part):
        """``Run`` of a part of the batch."""
        arrays = self.arrays.part(part)
        return Run(self.transition, arrays, self.steps, self.dt, self.t0, whole=self)

    def task(self):
        """Context of the whole computation, within which the choice of code tier is fixed."""
        return tiers.task(self.steps * self.arrays.size)

    @contextmanager
    def watched_task(self):
        """Context of the rollout that also reports its progress."""
        with self.task(), working("rollout", self.steps * self.arrays.size) as self.work:
            yield

    def marks(self, store_every):
        """Numbers of the steps whose initial states are stored, and the final one."""
        marks = list(range(0, self.steps, whole_number(store_every, "store_every", least=1)))
        return np.array([*marks, self.steps])

    def time(self, step):
        """Time at which a step begins [s]."""
        return self.t0 + self.dt * step

    def fill(self, marks, q, qd, work, *, threaded=True):
        """Write states and work at the marked steps: (marks, samples, ...)."""
        q[0], qd[0], work[0] = self.arrays.q0, self.arrays.qd0, 0
        if not self.arrays.size or len(marks) < 2:
            return
        self._remember(len(marks))
        kernel = steps_of(self)
        if kernel.is_empty:  # nothing moves
            q[1:], qd[1:], work[1:] = q[0], qd[0], 0
            return
        samples, total = self.steps * self.arrays.size, self.arrays.total
        variant = kernel.variant(self.arrays.dtype, wide=total > 1, samples=samples)
        self.tier = kernel.tier
        before = variant.status.value

        def piece(part):
            self._advance(variant.ufunc, marks, q, qd, work, part)

        if threaded:
            over_chunks(piece, self.arrays.size, kernel.numbers, self.steps, self.halted)
        else:
            piece(slice(None))
        if variant.status.value != before:
            if self.transition.contact is not None:  # what a check has marked has NaN, others go on
                require_inertia(self.model)
                return
            self._rerun_for_error(marks, q, qd, work)

    def _remember(self, count):
        """Allocate the forces' internal states at ``count`` times, the first initialised."""
        stateful, n = self.transition.stateful, self.transition.memory
        if n:
            q0 = np.asarray(self.arrays.q0, dtype=float)
            start = np.zeros((len(q0), n)) if stateful is None else stateful.start(self.model, q0)
            self.memory = np.empty((count, *start.shape), self.arrays.dtype)
            self.memory[0] = start

    def _advance(self, call, marks, q, qd, work, part, *, one_by_one=False):
        """Take all steps of a part of the batch with the compiled function ``call``."""
        one_by_one = one_by_one or self.arrays.timed
        state = q[0, part], qd[0, part], work[0, part]
        if self.memory is not None:
            state += (self.memory[0, part],)
        h, given = _number(self.dt, q.dtype), self.arrays.given
        doubts = self.transition.doubts
        most = 1 if one_by_one else max(_SLICE // max(len(self.arrays.q0[0]), 1), 1)
        for m, (first, end) in enumerate(pairwise(marks), start=1):
            if self.halted:
                return
            stored = q[m, part], qd[m, part], work[m, part]
            if self.memory is not None:
                stored += (self.memory[m, part],)
            k = int(first)
            while k < end and not self.halted:
                count = min(most, int(end) - k)
                last = k + count == end
                after = stored if last else tuple(map(np.empty_like, stored))
                t, n = _number(self.time(k), q.dtype), _number(count, q.dtype)
                held = [g.at(k, part) for g in given]
                if doubts:
                    *_, doubt = call(t, h, n, *state, *held, out=(*after, None))
                    self._check_defect(k, doubt)
                else:
                    call(t, h, n, *state, *held, out=after)
                state, k = after, k + count
                if self.work is not None:
                    self.work.advance(count * len(state[0]))

    def _rerun_for_error(self, marks, q, qd, work):
        """Repeat the steps one by one to raise an error that says what failed, when and where."""
        if self.whole is not None:  # whose samples have the numbers that the caller knows
            ends = np.array([0, self.steps])
            self.whole._remember(len(ends))
            self.whole._rerun_for_error(ends, *_states(self.whole, ends))
        require_inertia(self.model)
        kernel, model = steps_of(self), self.model

        def reshape(array, argument):
            n = array.ndim - len(argument.shape)
            return array.reshape((*(self.arrays.batch if n else ()), *argument.shape))

        def call(*arrays, out):
            given = [reshape(a, i) for a, i in zip(arrays, kernel.inputs, strict=True)]
            t, h, qd = float(given[0]), float(given[1]), given[4]
            method = self.transition.method.name
            with NamingTime(model, t, qd, h, method), np.errstate(all="ignore"):
                results = kernel.full(*given)
            check_finite_state(model, t + h, results[0], results[1], h, method)
            for place, result in zip(out, results, strict=True):
                if place is not None:
                    place[...] = np.reshape(result, place.shape)
            return results

        self._advance(call, marks, q, qd, work, slice(None), one_by_one=True)

    def _check_defect(self, step, doubt):
        """Raise SimulationError if a step's implicit equations were not solved."""
        worst, method = np.max(doubt), self.transition.method
        if method.closes:
            self._warn_of_singular_loops(step, doubt)
        elif not worst <= DEFECT:
            raise SimulationError(
                f"integrator {method.name!r} did not find the state at the end of "
                f"a step of {self.dt:.3g} s after t = {self.time(step):.6g} s: its last correction "
                f"was {worst:.2g} of the speed, at most {DEFECT:g} will do; take a smaller dt"
            )

    def _warn_of_singular_loops(self, step, doubt):
        """Warn once of motions whose loops come close to a singular configuration."""
        count = int(np.sum(~(np.asarray(doubt) <= DOUBTFUL)))
        if count and not self.warned:
            self.warned.append(step)
            warn(
                f"{count} of {self.arrays.total} motions of {self.model.name!r} came so close to a "
                f"singular configuration, after t = {self.time(step):.6g} s, that steps of "
                f"{self.dt:.3g} s do not hold their loops or velocities; kinetree.simulate takes "
                f"such steps in parts",
                SimulationWarning,
            )


def require_inertia(model):
    """Raise SingularError for joints that move no inertia in any configuration."""
    if model.is_constrained or any(isinstance(joint, Prescribed) for joint in model.joint[1:]):
        return
    q, zero = model.random_configuration(np.random.default_rng(0)), np.zeros(model.nv)
    try:
        kernel_of(model, "forward_dynamics").reference([q, zero, zero])
    except SingularError as error:
        raise SingularError(f"rollout: forward_dynamics: {error}") from error


def _states(run, marks):
    """State arrays at the marked steps, with the initial state filled in."""
    q, qd, work = new_arrays(run, len(marks), None)
    q[0], qd[0], work[0] = run.arrays.q0, run.arrays.qd0, 0
    return q, qd, work


def new_arrays(run, count, out):
    """Arrays for ``count`` states: new, or those of an earlier rollout."""
    size, dtype, model = run.arrays.size, run.arrays.dtype, run.model
    shapes = [(count, size, model.nq), (count, size, model.nv), (count, size)]
    if out is None:
        return tuple(empty(shape, dtype) for shape in shapes)
    if not isinstance(out, Rollout):
        raise TypeError(f"out must be what an earlier rollout returned, got {type(out).__name__}")
    old = out.flat()
    found = [(a.shape, str(a.dtype)) for a in old]
    if found != [(shape, dtype) for shape in shapes]:
        raise ShapeError(
            f"out has {len(out.t)} states of a batch of shape {out.batch} in {old[0].dtype}; this "
            f"rollout stores {count} of one of shape {run.arrays.batch} in {dtype}"
        )
    given = (run.arrays.q0, run.arrays.qd0, *(g.array for g in run.arrays.given))
    if any(np.may_share_memory(a, o) for a in given for o in old):
        raise ShapeError("out holds an array that this rollout starts from or reads; copy that")
    return old


def _number(x, dtype):
    """Scalar array of a number in a float type."""
    return np.array(x, dtype=dtype)


# --- A batch in pieces that stay in the cache, on several threads --------------------------------
# Every sample goes through the same compiled code whatever piece it is in and whatever thread takes
# it, so that results depend on neither.

_CACHE = 2**18  # bytes that one step of a piece reads and writes
_SLICE = 2**12  # steps of one call, times variables: so few that Ctrl-C is heard in time


def over_chunks(function, size, numbers, steps, halted):
    """Call ``function`` on slices of the batch, in parallel threads if it pays.

    Args:
        function: takes a slice.
        size: samples in the batch.
        numbers: that one step of one sample reads and writes.
        steps: of every sample.
        halted: a list that gets an entry when this ends early: other threads have to end, too.
    """
    fitting = max(_CACHE // (8 * max(numbers, 1)), 16)
    pieces = -(-size // fitting)
    workers = min(threads(), size * steps * numbers // MINIMUM_PER_THREAD, size)
    if workers > 1:
        pieces = -(-max(pieces, workers) // workers) * workers  # the same number for each
    cuts = np.linspace(0, size, pieces + 1).astype(int)
    slices = [slice(a, b) for a, b in pairwise(cuts) if b > a]

    def quietly(part):
        with np.errstate(all="ignore"):  # checks in the code see what matters, and name the sample
            function(part)

    if workers <= 1 or len(slices) == 1:
        for part in slices:
            quietly(part)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="kinetree-rollout") as pool:
        try:
            for job in [pool.submit(quietly, part) for part in slices]:
                job.result()
        except BaseException:
            halted.append(True)
            pool.shutdown(wait=False, cancel_futures=True)
            raise

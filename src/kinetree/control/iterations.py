"""Newton's method on all samples of a problem, and what it found.

The iterations are machine code (``kinetree.control.newton``). Steps that are taken on arrays come
from Python: then several samples go on together, from one stage to the next.
"""

from contextlib import ExitStack
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from kinetree.codegen.progress import working
from kinetree.codegen.runtime.threads import on_threads, threads
from kinetree.control.newton.advance import advance
from kinetree.control.newton.making import batch_of_problem, renew_schedule, worker
from kinetree.control.newton.records import Batch
from kinetree.control.newton.stances import contact_forces, standing_controls
from kinetree.control.outside import Outside
from kinetree.control.shooting import Shooting
from kinetree.control.starts import FirstIterate
from kinetree.model.arrays import as_joint_vector, as_position_vector

CALL = 2e7  # operations of one call, roughly, so that Ctrl-C is heard in time
CONTROLS = frozenset(("tau", "controls", "u"))  # of which guesses have one
ALONE = 1e6  # operations that repay another thread


class Iterations:
    """Newton's method on all samples of a problem.

    Args:
        problem: with bounds, a goal and settings.
        shooting: its steps, costs and constraints.
        most: iterations.

    Attributes:
        xp: the library of its arrays.
    """

    xp: Any = np

    def __init__(self, problem: Any, shooting: Shooting, most: int):
        self.problem, self.shooting = problem, shooting
        self.batch: Batch = batch_of_problem(problem, shooting, most, shooting.samples)

    def start_from(self, q0, qd0, begins):
        """Replace the initial states and the start time of the schedule, shapes being equal."""
        f, model = self.shooting, self.problem.model
        arrays = f.run.arrays
        q = as_position_vector(model, q0, "q0")
        qd = as_joint_vector(model, np.zeros(model.nv) if qd0 is None else qd0, "qd0")
        found = [
            np.broadcast_to(np.asarray(x, float), (*arrays.batch, x.shape[-1])).reshape(own.shape)
            for x, own in ((q, arrays.q0), (qd, arrays.qd0))
        ]
        f.run.arrays = replace(arrays, q0=found[0], qd0=found[1])
        f.begin_at(begins)
        renew_schedule(self.batch, f)

    def begin(self, guess, barrier):
        """Set all variables from a guess, and the barrier parameter, for new iterations."""
        guess = self._complete(guess, lambda: self.shooting.run.arrays.q0)
        b, start = self.batch, FirstIterate(self.problem, self.shooting.run.arrays, guess)
        found = *start.knots(), *start.multipliers(b.ni, b.ne)
        for name, x in zip(("q", "qd", "u", "z", "y"), found, strict=True):
            getattr(b, name)[:] = x.reshape(-1)
        b.warm = int(start.is_warm)
        b.mu[:] = 0.0 if barrier is None else barrier

    def _complete(self, guess, q0):
        """Guess completed by controls that hold the start on its contacts, if none are given."""
        if self.shooting.schedule is None or CONTROLS.intersection(guess):
            return guess
        return {**guess, "u": self.xp.asarray(standing_controls(self.shooting, q0()))}

    def run(self, budget: float | None = None):
        """Run Newton iterations until all samples are done, or for ``budget`` seconds."""
        b = self.batch
        with working("optimizing a motion", b.samples * b.most, "iterations") as work:
            if b.outside:
                Outside(self.shooting, b).run(work, budget)
                return
            operations = b.steps * b.size**3
            count = max(1, min(threads(), b.samples, int(b.samples * operations / ALONE)))
            cuts = [b.samples * k // count for k in range(count + 1)]
            each = max(1, int(CALL / operations)) if budget is None else 1
            with ExitStack() as stack:
                workers = [stack.enter_context(worker(self.shooting, b)) for _ in range(count)]

                def piece(k):
                    own, first, end, done = workers[k], cuts[k], cuts[k + 1], 0
                    start, own.search.at_sample = perf_counter(), first
                    while own.search.at_sample < end:
                        at = own.search.at_sample
                        advance(b, own, end, each)
                        if budget is not None and at == own.search.at_sample:
                            share = (at + 1 - first) / (end - first)
                            own.search.halted = int(perf_counter() - start > share * budget)
                        if not k:
                            done, before = int(b.count.sum()), done
                            work.advance(done - before)

                on_threads(piece, count)

    def result(self) -> dict[str, Any]:
        """Result arrays by name in the shapes of the caller: time first, then the batch."""
        b, shape, T = self.batch, self.shooting.run.arrays.batch, self.batch.steps

        def time_first(name, *sizes):
            x = self.array(name)
            x = x.reshape(len(x), *sizes).swapaxes(0, 1)
            return x.copy(order="C").reshape(sizes[0], *shape, *sizes[1:])  # others come here

        found: dict[str, Any] = {
            name: self.array(name).reshape(shape).copy()
            for name in ("cost", "optimality", "gap", "violation")
        }
        found["converged"] = self.array("converged").astype(bool).reshape(shape)
        found["iterations"] = self.array("count").reshape(shape).copy()
        found["history"] = self._history().reshape(-1, *shape)
        y = self.array("y").reshape(*shape, b.ne).copy()
        found["multipliers"] = time_first("z", T + 1, b.ni), y
        found |= {"q": time_first("q", T + 1, b.nq), "qd": time_first("qd", T + 1, b.nv)}
        found["gains"] = time_first("K", T, b.m, b.n)
        found["u"] = time_first("u", T + 1, b.m)[:-1]
        if b.contacts.count:
            found |= contact_forces(self.shooting, b, found["q"], time_first, self.xp)
        return found

    def array(self, name: str) -> Any:
        """Array of the optimisation variables or results by name, one row per sample."""
        return getattr(self.batch, name).reshape(self.shooting.samples, -1)

    def _history(self):
        """Costs after each iteration, (iterations + 1, samples), padded with the last."""
        count = self.array("count")
        last = int(count.max()) if count.size else 0
        costs = self.array("history")[:, : last + 1]
        if len(costs) == 1:
            return costs.T.copy()
        at = self.xp.minimum(self.xp.arange(last + 1), count)
        return self.xp.take_along_axis(costs, at, axis=1).T.copy()

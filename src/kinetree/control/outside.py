"""Iterations of problems whose steps are taken on arrays, see ``steps_on_arrays``.

Several samples go on together, each in a worker: what they need next is computed for all of them at
once.
"""

from time import perf_counter
from typing import Any

import numpy as np

from kinetree.control.newton import advance as stages
from kinetree.control.newton.making import work_of
from kinetree.control.newton.records import Batch
from kinetree.control.shooting import Shooting

TOGETHER = 16  # samples
VALUES = stages.BEGIN, stages.TRIAL, stages.END


class Outside:
    """Solves the samples of a problem, with steps and their derivatives on arrays.

    Args:
        shooting: with ``on_arrays``.
        b: the problem.
    """

    def __init__(self, shooting: Shooting, b: Batch):
        self.shooting, self.b = shooting, b
        self.steps: Any = shooting.on_arrays
        self.workers = [work_of(shooting, b) for _ in range(min(TOGETHER, b.samples))]

    def run(self, work, budget: float | None = None):
        """Iterate all samples, or for ``budget`` seconds, with steps computed by Python."""
        start = perf_counter()
        b, waiting, active, done = self.b, list(range(self.b.samples)), list(self.workers), 0
        while active:
            for own in active:
                if own.search.wanted == stages.NOTHING and waiting:
                    stages.load(b, own, waiting.pop(0))
            active = [own for own in active if own.search.wanted != stages.NOTHING]
            with np.errstate(all="ignore"):  # samples that fail are given up
                for wanted in sorted({own.search.wanted for own in active}):
                    self.supply(wanted, [own for own in active if own.search.wanted == wanted])
            late = budget is not None and perf_counter() - start > budget
            for own in self.workers:
                own.search.halted = int(late)
            done, before = int(b.count.sum()), done
            work.advance(done - before)

    def supply(self, wanted, workers):
        """Compute the steps or derivatives that workers request, and run their next stage."""
        if wanted in VALUES:
            self.values(workers)
        elif wanted == stages.STEP:
            self.step(workers)
        elif wanted == stages.DERIVATIVES:
            self.derivatives(workers)
        elif wanted == stages.CURVES and self.b.exact:
            self.curves(workers)
        for own in workers:
            stages.go_on(self.b, own)

    def state(self, workers, which):
        """Times, positions, velocities and joint forces of workers' knots ``now`` or ``tried``."""
        b, T = self.b, self.b.steps
        for own in workers:
            hold_all(b, getattr(own, which))

        def stack_rows(name, rows, size):
            found = [getattr(getattr(own, which), name).reshape(rows, size)[:T] for own in workers]
            return np.array(found)

        q, qd = stack_rows("q", T + 1, b.nq), stack_rows("qd", T + 1, b.nv)
        return self.shooting.times[:-1], q, qd, stack_rows("held", T, b.nf)

    def values(self, workers):
        """Write the ends of all steps of the workers' trial knots."""
        q, qd = self.steps.after(*self.state(workers, "tried"))
        for own, x, v in zip(workers, q, qd, strict=True):
            own.tried.q_after[:], own.tried.v_after[:] = x.ravel(), v.ravel()

    def step(self, workers):
        """Integrate each worker's current step, and write the state at its end."""
        t, *state = self.state(workers, "tried")
        at = [own.search.at for own in workers]
        one = [np.array([x[k] for x, k in zip(each, at, strict=True)]) for each in state]
        q, qd = self.steps.after(t[at], *one)
        for own, k, x, v in zip(workers, at, q, qd, strict=True):
            own.tried.q_after.reshape(self.b.steps, -1)[k] = x
            own.tried.v_after.reshape(self.b.steps, -1)[k] = v

    def derivatives(self, workers):
        """Write the derivatives of all steps."""
        for own, F in zip(workers, self.steps.rows(*self.state(workers, "now")), strict=True):
            own.F[:] = F.ravel()

    def curves(self, workers):
        """Write second derivatives of steps together with those of their costs."""
        b, T, size = self.b, self.b.steps, self.b.size
        costates = np.array([own.costates.reshape(T, b.n) for own in workers])
        path = np.array([own.z.reshape(T + 1, b.ni)[:T, b.nb :] for own in workers])
        F = np.array([own.F.reshape(T, b.n, size) for own in workers])
        after = np.array([own.now.q_after.reshape(T, b.nq) for own in workers])
        v_after = np.array([own.now.v_after.reshape(T, b.nv) for own in workers])
        which = np.array([own.search.sample for own in workers])
        state, ends = self.state(workers, "now"), (after, v_after)
        found = self.shooting.curvature_of_steps(which, state, ends, F, (costates, path))
        for own, H in zip(workers, found, strict=True):
            own.exact.reshape(T + 1, size, size)[:T] = H


def hold_all(b: Batch, k) -> None:
    """Write the held joint forces of all knots from their controls."""
    held, u = k.held.reshape(b.steps, b.nf), k.u.reshape(b.steps + 1, b.m)
    held[:, b.columns] = u[:-1]

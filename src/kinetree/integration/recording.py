"""Steps of one motion that compiled code takes and stores, every n-th of them.

The machine code of a step, and that of a controller which is a kernel, are called in one loop.
"""

# pyright: reportInvalidTypeForm=false, reportInvalidTypeArguments=false, reportIndexIssue=false
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.procedures import isfinite, procedure, record
from kinetree.codegen.tied import Code, run, tied_code, tied_control


@record
class StepWalk:
    """The state of a motion, its code, and what is stored.

    Attributes:
        nq, nv: sizes of the state.
        step, last: steps taken, and how many a call is to reach;  base: one of them, and start: the
            time at which it begins [s].
        every: steps between stored states;  since: steps since the last stored one;  rows: stored.
        time, h, q, v, held: what a step reads;  q_e, v_e, work, defect: what it writes.
        code: of a step;  control: of a controller, which writes ``held``;  controlled: 1 where
            there is one.
        done: work since the start [J];  worst: the largest defect.
        stored_q, stored_v, stored_work: one state after another.
    """

    nq: int
    nv: int
    step: int
    last: int
    base: int
    start: float
    every: int
    since: int
    rows: int
    time: "float[:]"
    h: "float[:]"
    q: "float[:]"
    v: "float[:]"
    held: "float[:]"
    q_e: "float[:]"
    v_e: "float[:]"
    work: "float[:]"
    defect: "float[:]"
    code: Code
    control: Code
    controlled: int
    done: float
    worst: float
    stored_q: "float[:]"
    stored_v: "float[:]"
    stored_work: "float[:]"


@procedure
def end_step(w: StepWalk):
    """Move the walk's state to the end of a step, and store it if it is due."""
    w.q[: w.nq] = w.q_e[: w.nq]
    w.v[: w.nv] = w.v_e[: w.nv]
    w.done += w.work[0]
    w.step += 1
    w.since += 1
    if w.since == w.every:
        w.since = 0
        store_state(w)


@procedure
def store_state(w: StepWalk):
    """Append the present state and work to a recorded motion's arrays."""
    for i in range(w.nq):
        w.stored_q[w.rows * w.nq + i] = w.q[i]
    for i in range(w.nv):
        w.stored_v[w.rows * w.nv + i] = w.v[i]
    w.stored_work[w.rows] = w.done
    w.rows += 1


@procedure
def take_kernel_steps(w: StepWalk) -> bool:
    """Take and store steps up to ``last``; False if code fails or the state is not finite.

    Then the state is that before the step.
    """
    failed = w.code.status[0]
    while w.step < w.last:
        w.time[0] = w.start + (w.step - w.base) * w.h[0]
        if w.controlled == 1:
            run(w.control)
            if w.control.status[0] != 0:
                return False
        run(w.code)
        none = 0.0
        for i in range(w.nq):
            none += 0.0 * w.q_e[i]
        for i in range(w.nv):
            none += 0.0 * w.v_e[i]
        if w.code.status[0] != failed or not isfinite(none):
            return False
        w.worst = max(w.worst, w.defect[0])
        end_step(w)
    return True


class KernelRecorder:
    """Takes and stores steps of one motion by the kernel of a step.

    Args:
        step: kernel ``(t, h, q, qd, inputs)`` to state, work and, if it solves, its defect.
        model: the mechanism.
        inputs: zeros in the shape of what is held.
    """

    def __init__(self, step: Any, model: Any, inputs: Array):
        one = np.zeros((4, 1))
        zeros = {name: np.zeros(model.nq) for name in ("q", "q_e")}
        zeros |= {name: np.zeros(model.nv) for name in ("v", "v_e")}
        walk = self.walk = StepWalk(
            nq=model.nq,
            nv=model.nv,
            held=np.array(inputs, dtype=float),
            time=one[0],
            h=one[1],
            work=one[2],
            defect=one[3],
            code=tied_code(None),
            control=tied_code(None),
            **zeros,
        )
        given = walk.time, walk.h, walk.q, walk.v, walk.held
        found = (walk.q_e, walk.v_e, walk.work, walk.defect)[: len(step.outputs)]
        walk.code = tied_code(step, *given, *found)

    def control(self, kernel: Any) -> None:
        """Set a kernel ``(t, q, qd)`` as controller of the recorded steps.

        Or another controller in compiled code, see ``codegen.tied``.
        """
        w, self._control = self.walk, kernel
        w.control, w.controlled = tied_control(kernel, w.time, w.q, w.v, w.held), 1

    def answer(self) -> None:
        """Compute held inputs in Python where the compiled controller has failed."""
        w = self.walk
        if w.control.status[0] != 0:
            w.control.status[0] = 0
            with np.errstate(all="ignore"):  # what is no number is an error of the step
                w.held[:] = self._control.call(float(w.time[0]), w.q.copy(), w.v.copy())

    def begin(self, q: Array, qd: Array, every: int, rows: int, origin: tuple[float, int]) -> None:
        """Start recording a motion from its initial state, which is stored.

        Args:
            q: positions, (nq,).
            qd: velocities, (nv,).
            every: steps between stored states.
            rows: how many there will be.
            origin: a time [s], and the number of the step that begins then.
        """
        w = self.walk
        w.q[:], w.v[:], w.every, (w.start, w.base) = q, qd, every, origin
        w.stored_q, w.stored_v, w.stored_work = (np.empty(rows * n) for n in (w.nq, w.nv, 1))
        store_state(w)

    def take(self, held: Array, h: float, start: float, last: int) -> bool:
        """Take steps of ``h`` seconds until ``last`` steps are done; False on failure."""
        w = self.walk
        if w.step and h != w.h[0]:
            w.base, w.start = w.step, start
        w.h[0], w.last = h, last
        w.held[:] = held
        return take_kernel_steps(w)

    def add(self, q: Array, qd: Array, work: float) -> None:
        """Continue the recording from the end state of a step that other code has taken."""
        w = self.walk
        w.q_e[:], w.v_e[:], w.work[0] = q, qd, work
        end_step(w)

    def finish(self) -> dict[str, Array]:
        """Stored arrays by name, after storing the final state."""
        w = self.walk
        if w.since:
            w.since = 0
            store_state(w)
        q, qd = w.stored_q[: w.rows * w.nq], w.stored_v[: w.rows * w.nv]
        found = {"q": q.reshape(w.rows, w.nq), "qd": qd.reshape(w.rows, w.nv)}
        return found | {"work": w.stored_work[: w.rows]}

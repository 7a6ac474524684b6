"""``rollout``: many simulations at the speed of compiled code.

    motion = kt.rollout(m, q0, qd0, tau, steps=1000, dt=1e-3, store_every=10)
    motion.q  # (101, ..., nq)

The whole step, forces and policy included, is one compiled function, which runs again and again
without coming back to Python until a state is to be stored. Events, hooks, and steps that adapt,
also to singular configurations, are the business of ``kinetree.simulate``.
"""

import operator
import warnings
from itertools import pairwise
from typing import Any

import numpy as np

from kinetree.codegen.runtime.memory import empty
from kinetree.errors import (
    ShapeError,
    SimulationError,
    SimulationWarning,
    TraceError,
    UnknownNameError,
)
from kinetree.model.arrays import as_model
from kinetree.simulation.acting import acting_on
from kinetree.simulation.breakdown import NamingTime, check_finite_state
from kinetree.simulation.constrained.making import projected
from kinetree.simulation.constrained.projected import DOUBTFUL
from kinetree.simulation.contact.attached import forces_of
from kinetree.simulation.field import Field, is_traceable
from kinetree.simulation.integrators.registry import integrator_named
from kinetree.simulation.prescribed.field import DrivenField
from kinetree.simulation.prescribed.method import driven
from kinetree.simulation.prescribed.told import told_of
from kinetree.simulation.rollouts.arrays import collect, require_kernel, told_arrays
from kinetree.simulation.rollouts.chunks import over_chunks
from kinetree.simulation.rollouts.other_arrays import ArrayRollout, foreign_arrays, rollout_of
from kinetree.simulation.rollouts.result import Rollout
from kinetree.simulation.rollouts.transition import Transition
from kinetree.simulation.step import DEFECT

__all__ = ["Run", "rollout", "run_of"]


def rollout(
    model, q0, qd0=None, tau=None, *, steps, dt=1e-3, integrator="auto", forces=(), policy=None,
    friction="smooth", limits="stiff", inputs=None, arguments=None, parameters=None,
    store_every=1, t0=0.0, prescribed=None, contact=None, out=None,
) -> Rollout | ArrayRollout:  # fmt: skip
    """Simulate a batch of motions, each with a fixed number of equal steps.

    Start, forces, arrays and parameters may have batch axes, which broadcast. Samples run side by
    side in SIMD registers and on several threads (``kinetree.set_threads``); each is the same
    whatever the number of threads and whatever else is in the batch.

    Args:
        model: the mechanism. Every step ends on its loops and couplings, as in ``simulate``, but
            none is taken in parts close to a singular configuration.
        q0: joint positions at the start [m, rad], (..., nq).
        qd0: joint velocities at the start, (..., nv); at rest by default.
        tau: joint forces [N, N·m] held during each step, time first: (steps, ..., nv), or
            (1, ..., nv) for the same during all steps, or (nv,).
        steps: how many.
        dt: length of a step [s].
        integrator: name of an integrator, see ``kinetree.simulation.INTEGRATORS``, or an instance;
            by default ``"rk4"``, and ``"rk6"`` for mechanisms with loops or couplings.
        forces: kernels ``(model, t, q, qd)`` that return joint forces and act all the time.
        policy: kernel ``(model, t, q, qd, ...)`` of joint forces, computed at the start of a step,
            held during it, and added to ``tau``. It takes what it needs of ``t``, ``q``, ``qd``,
            and of ``inputs`` and ``arguments``, by name.
        friction: of joints that have some: ``"smooth"``, a ``kt.Friction``, or None, for none.
        limits: of joints that have some: ``"stiff"``, springs that push back, which take short
            steps; ``kt.StiffLimits``; or None, for none.
        inputs: arrays by name with a value for every step: (steps or 1, ..., shape of one sample).
        arguments: arrays by name that stay the same: (..., shape of one sample).
        parameters: parameters of the model by name, such as ``{"mass:link7": array}``; each with
            any batch axes. See ``kinetree.functional.parameters``.
        store_every: store every so many steps, and the last.
        t0: time at the start [s].
        prescribed: motions of joints that move as told, see ``simulate``; all are kernels.
        contact: soft contact, ``kinetree.contact.SoftContact`` with laws that need no memory.
            Rigid contact of batches is ``simulate(..., contact=TimeStepping(scene))``.
        out: a ``Rollout`` of the same shape whose arrays are used again.

    Returns:
        A ``Rollout``: arrays ``t``, ``q``, ``qd``, ``work``, time first. For arrays of other
        libraries an ``ArrayRollout`` with arrays of theirs, which derivatives go through.
    """
    foreign = foreign_arrays(q0, qd0, tau, (inputs, arguments, parameters))
    if foreign:
        return rollout_of(
            rollout, run_of, model, q0, qd0, tau, foreign=foreign, store_every=store_every,
            steps=steps, dt=dt, integrator=integrator, forces=forces, policy=policy, inputs=inputs,
            friction=friction, limits=limits, arguments=arguments, parameters=parameters, t0=t0,
            prescribed=prescribed, contact=contact,
        )  # fmt: skip
    run = run_of(
        model, q0, qd0, tau, steps=steps, dt=dt, integrator=integrator, forces=forces,
        policy=policy, friction=friction, limits=limits, inputs=inputs, arguments=arguments,
        parameters=parameters, t0=t0, prescribed=prescribed, contact=contact,
    )  # fmt: skip
    marks = run.marks(store_every)
    q, qd, work = _arrays(run, len(marks), out)
    run.fill(marks, q, qd, work)
    return Rollout(run, marks, q, qd, work)


def run_of(
    model, q0, qd0=None, tau=None, *, steps, dt=1e-3, integrator="auto", forces=(), policy=None,
    friction="smooth", limits="stiff", inputs=None, arguments=None, parameters=None, t0=0.0,
    costs=(), prescribed=None, contact=None,
):  # fmt: skip
    """The ``Run`` of a call of ``rollout``; ``costs`` are kernels that ask for arrays, too."""
    forces = (*forces_of(contact, model), *forces)
    for force in forces:
        if not is_traceable(force):
            raise TraceError(
                f"forces of a rollout become part of a compiled loop: write @kinetree.kernel above "
                f"{force!r}, or use kinetree.simulate, which takes any function"
            )
    constrained = bool(as_model(model).loops)
    steps, dt = _whole(steps, "steps"), _positive(dt)
    policy = require_kernel(policy, "policy")
    kernels = [k for k in (policy, *costs) if k is not None]
    arrays = collect(model, q0, qd0, tau, inputs, arguments, parameters, steps, kernels)
    own = [g.argument for g in arrays.given if g.kind != "parameters"]
    names = tuple(g.name for g in arrays.given if g.kind == "parameters")
    method = integrator_named(integrator, constrained=constrained)
    field: Any = Field(tuple(forces), passive=_passive(model, friction, limits))
    told = told_of(model, prescribed)
    if told is not None:
        arrays = told_arrays(told, model, arrays, float(t0), dt, steps, at_rest=qd0 is None)
        method, field = driven(method, told), DrivenField(field.forces, field.passive, None, told)
    if constrained:
        method, field = projected(model, method, field, arrays.q0, arrays.qd0)
    transition = Transition(model, method, field, policy, tuple(own), names)
    return Run(transition, arrays, steps, dt, float(t0))


def _passive(model, friction, limits):
    acting = acting_on(model, friction=friction, limits=limits)
    for given, beyond in ((friction, acting.friction), (limits, acting.limits)):
        if beyond is not None:
            raise UnknownNameError(
                f"{given!r} joints come to rest at times of their own, and steps of a rollout are "
                f"equal: use 'smooth' friction and 'stiff' limits, or kinetree.simulate"
            )
    return acting.passive


class Run:
    """A rollout that is about to be taken.

    Attributes:
        transition: one step of it.
        arrays: what goes in, with one batch axis.
        steps, dt, t0: times.
        whole: the run that this one is a part of, or None.
    """

    def __init__(self, transition, arrays, steps, dt, t0, whole=None):
        self.transition, self.arrays, self.whole = transition, arrays, whole
        self.steps, self.dt, self.t0 = steps, dt, t0
        self.warned: list = [] if whole is None else whole.warned

    @property
    def model(self):
        """The mechanism."""
        return self.transition.model

    def part(self, part):
        """The same for a part of the batch."""
        arrays = self.arrays.part(part)
        return Run(self.transition, arrays, self.steps, self.dt, self.t0, whole=self)

    def marks(self, store_every):
        """Numbers of the steps before which the state is stored; and that after the last."""
        marks = list(range(0, self.steps, _whole(store_every, "store_every", least=1)))
        return np.array([*marks, self.steps])

    def time(self, step):
        """Time at which a step begins [s]."""
        return self.t0 + self.dt * step

    def fill(self, marks, q, qd, work, *, threaded=True):
        """Write the states at ``marks``: (marks, samples, ...)."""
        q[0], qd[0], work[0] = self.arrays.q0, self.arrays.qd0, 0
        if not self.arrays.size or len(marks) < 2:
            return
        kernel = self.transition.steps()
        if kernel.is_empty:  # nothing moves
            q[1:], qd[1:], work[1:] = q[0], qd[0], 0
            return
        variant = kernel.variant(self.arrays.dtype, wide=self.arrays.total > 1)
        before = variant.status.value

        def piece(part):
            self._advance(variant.ufunc, marks, q, qd, work, part)

        if threaded:
            over_chunks(piece, self.arrays.size, kernel.numbers, self.steps)
        else:
            piece(slice(None))
        if variant.status.value != before:
            self._carefully(marks, q, qd, work)

    def _advance(self, call, marks, q, qd, work, part, *, one_by_one=False):
        """All steps of a piece of the batch; ``call`` is the compiled function."""
        one_by_one = one_by_one or self.arrays.timed
        state = q[0, part], qd[0, part], work[0, part]
        h, given = _number(self.dt, q.dtype), self.arrays.given
        doubts = self.transition.doubts
        for m, (first, end) in enumerate(pairwise(marks), start=1):
            stored = q[m, part], qd[m, part], work[m, part]
            k = int(first)
            while k < end:
                count = 1 if one_by_one else int(end) - k
                last = k + count == end
                after = stored if last else tuple(map(np.empty_like, stored))
                t, n = _number(self.time(k), q.dtype), _number(count, q.dtype)
                held = [g.at(k, part) for g in given]
                if doubts:
                    *_, doubt = call(t, h, n, *state, *held, out=(*after, None))
                    self._look(k, doubt)
                else:
                    call(t, h, n, *state, *held, out=after)
                state, k = after, k + count

    def _carefully(self, marks, q, qd, work):
        """Once more after a check has failed, for the error to say what, when and where."""
        if self.whole is not None:  # whose samples have the numbers that the caller knows
            ends = np.array([0, self.steps])
            self.whole._carefully(ends, *_states(self.whole, ends))
        kernel, model = self.transition.steps(), self.model

        def shaped(array, argument):
            n = array.ndim - len(argument.shape)
            return array.reshape((*(self.arrays.batch if n else ()), *argument.shape))

        def call(*arrays, out):
            given = [shaped(a, i) for a, i in zip(arrays, kernel.inputs, strict=True)]
            t, h, qd = float(given[0]), float(given[1]), given[4]
            with NamingTime(model, t, qd), np.errstate(all="ignore"):
                results = kernel.general(*given)
            check_finite_state(model, t + h, *results[:2])
            for place, result in zip(out, results, strict=True):
                if place is not None:
                    place[...] = np.reshape(result, place.shape)
            return results

        self._advance(call, marks, q, qd, work, slice(None), one_by_one=True)

    def _look(self, step, doubt):
        worst, method = np.max(doubt), self.transition.method
        if method.closes:
            self._look_at_loops(step, doubt)
        elif not worst <= DEFECT:
            raise SimulationError(
                f"integrator {method.name!r} did not find the state at the end of "
                f"a step of {self.dt:.3g} s after t = {self.time(step):.6g} s: its last correction "
                f"was {worst:.2g} of the speed, at most {DEFECT:g} will do; take a smaller dt"
            )

    def _look_at_loops(self, step, doubt):
        count = int(np.sum(~(np.asarray(doubt) <= DOUBTFUL)))
        if count and not self.warned:
            self.warned.append(step)
            warnings.warn(
                f"{count} of {self.arrays.total} motions of {self.model.name!r} came so close to a "
                f"singular configuration, after t = {self.time(step):.6g} s, that steps of "
                f"{self.dt:.3g} s do not hold their loops or velocities; kinetree.simulate takes "
                f"such steps in parts",
                SimulationWarning,
                stacklevel=2,
            )


def _states(run, marks):
    """Arrays for states, the start already there."""
    q, qd, work = _arrays(run, len(marks), None)
    q[0], qd[0], work[0] = run.arrays.q0, run.arrays.qd0, 0
    return q, qd, work


def _arrays(run, count, out):
    """Arrays for ``count`` states: new ones, or those of an earlier rollout."""
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
    return np.array(x, dtype=dtype)


def _whole(n, name, least=0):
    try:
        n = operator.index(n)
    except TypeError:
        raise ShapeError(f"{name} must be a whole number, got {n!r}") from None
    if n < least:
        raise ShapeError(f"{name} must be at least {least}, got {n}")
    return n


def _positive(dt):
    if not (np.ndim(dt) == 0 and np.isfinite(dt) and dt > 0):
        raise ShapeError(f"dt must be a positive number of seconds, got {dt!r}")
    return float(dt)

"""Rollouts of arrays of other libraries: on their device, and differentiable where they are.

On the CPU, and without derivatives, the rollout of NumPy arrays does the work, on the same memory;
so it does for prescribed joints, wherever the arrays are. Elsewhere states stay on their device: a
launch takes all steps up to the next state that is stored, or one step where
joint forces or inputs change from step to step. Where derivatives may be needed, every step is
its own call, for autograd and JAX to go back. With loops, the numbers at the start are looked
at on the CPU: they must close the loops, and they decide which variables are solved for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from kinetree.arrays.batch import common_shape
from kinetree.arrays.kinds import common, good_samples, is_foreign, module_of, namespace
from kinetree.codegen.program import Argument
from kinetree.errors import UnknownNameError
from kinetree.functional.parameters import parameter
from kinetree.integration.refusals import (
    OTHERS_ACTIVATIONS,
    OTHERS_OWN,
    OTHERS_PRESCRIBED,
    OTHERS_TRANSFORMED,
)
from kinetree.integration.step import DEFECT
from kinetree.simulation.rollouts.inputs import contact_arguments, sample_shape
from kinetree.simulation.rollouts.run import contact_notes
from kinetree.simulation.setup import laws_of


@dataclass(frozen=True)
class ArrayRollout:
    """Motions of a batch of mechanisms, in arrays of another library.

    Attributes:
        model: the mechanism.
        batch: shape of the batch.
        t: times [s], a NumPy array (T,).
        q: joint positions, (T, ..., nq).
        qd: joint velocities, (T, ..., nv).
        work: of all joint forces since the start [J], (T, ...).
        contact_force, residuals, failed: with rigid contact, as in ``Rollout``.
    """

    model: Any
    batch: tuple
    t: np.ndarray
    q: Any
    qd: Any
    work: Any
    contact_force: Any = None
    residuals: Any = None
    failed: Any = None

    def __len__(self):
        return len(self.t)

    def __repr__(self):
        return (
            f"<ArrayRollout of {self.model.name!r}: {len(self)} states of a batch of shape "
            f"{self.batch}, t = {self.t[0]:g} to {self.t[-1]:g} s, in {type(self.q).__name__}>"
        )


def foreign_arrays(q0, qd0, tau, controls, groups):
    """Torch or JAX arrays among the inputs of a call, by name."""
    named = {"q0": q0, "qd0": qd0, "tau": tau, "controls": controls}
    for kind, group in zip(("inputs", "arguments", "parameters"), groups, strict=True):
        if group is not None and not isinstance(group, Mapping):
            raise UnknownNameError(
                f"{kind} must be arrays by name, {{'name': array}}, got a {type(group).__name__}"
            )
        named.update(group or {})
    return {name: x for name, x in named.items() if is_foreign(x)}


def rollout_of(rollout, run_of, model, given, options, *, foreign, store_every, own_numbers=False):
    """``Rollout`` of arrays of another library (torch, JAX), differentiable there.

    Args:
        rollout: the function for NumPy arrays.
        run_of: what makes its ``Run``.
        model: the mechanism.
        given: ``q0``, ``qd0`` and ``tau`` as for ``rollout``.
        options: other options of ``rollout``, which change here.
        foreign: arrays of other libraries among all of them, by name.
        store_every: as for ``rollout``.
        own_numbers: whether samples are worlds with their own numbers.
    """
    every = [Argument(n, x.shape) for n, x in foreign.items()]  # one kind, whatever their shapes
    kind = module_of(common("rollout", every, list(foreign.values())))
    like = next(iter(foreign.values()))
    arrays: dict[str, Any] = dict(zip(("q0", "qd0", "tau"), given, strict=True))
    if is_foreign(options["controls"]):
        arrays["controls"] = options["controls"]
    followed = any(map(kind.is_followed, foreign.values()))
    if options["prescribed"] and followed:
        raise OTHERS_PRESCRIBED.of(
            "arrays of other libraries with derivatives",
            f"a rollout of model {model.name!r} with prescribed joints",
        )
    if options["prescribed"] or (kind.is_on_host(like) and not followed):
        start = [_map(kind.to_numpy, x) for x in given]
        for group in ("controls", *_GROUPS):
            options[group] = _map(kind.to_numpy, options[group])
        found = rollout(model, *start, store_every=store_every, **options)
        names = ("q", "qd", "work", "contact_force", "residuals", "failed")
        each = ((name, getattr(found, name)) for name in names)
        parts = {name: kind.convert(x, like) for name, x in each if x is not None}
        return ArrayRollout(model, found.batch, found.t, **parts)
    if own_numbers:
        raise OTHERS_OWN.of(
            "arrays of other libraries", f"worlds {model.name!r} with their own numbers"
        )
    if any(a.activation or a.integral for a in model.actuators) and options["controls"] is not None:
        raise OTHERS_ACTIVATIONS.of(
            "arrays of other libraries", f"activations of actuators of model {model.name!r}"
        )
    groups = [options[group] for group in _GROUPS]
    kernels = [options["controller"]] if options["controller"] is not None else []
    kernels += contact_arguments(options["contact"], options["arguments"])
    options["dtype"] = str(np.dtype(kind.dtype_of(like)))
    options["on_device"] = not followed and not kind.is_on_host(like)
    if not kind.is_on_host(like):  # rows of steps on a GPU are for contacts
        laws = laws_of(model, options["friction"], options["limits"], rigid=False)
        options["friction"], options["limits"] = laws
    run = run_of(model, *_stand_ins(model, arrays, options, kernels, kind), **options)
    elsewhere = _ForeignRun(run, kind, like, arrays, groups)
    return elsewhere.states(run.marks(store_every), followed=followed)


_GROUPS = ("inputs", "arguments", "parameters")


def _map(f, x):
    """``x`` with ``f`` applied to all foreign arrays in it, dicts included."""
    if isinstance(x, dict):
        return {name: _map(f, value) for name, value in x.items()}
    return f(x) if is_foreign(x) else x


def _stand_ins(model, arrays, options, kernels, kind):
    """NumPy samples of all inputs, harmless values, from which a ``Run`` is built.

    With loops they are the numbers of the caller, where the mechanism starts.
    """
    velocity = np.zeros(model.nv)
    start = np.asarray(model.neutral(), float), velocity
    if model.is_constrained:
        start = [_start(model, arrays[name], kind) for name in ("q0", "qd0")]
    tau, controls = arrays["tau"], arrays.get("controls")
    if tau is not None:
        tau = velocity if len(tau.shape) == 1 else np.zeros((tau.shape[0], model.nv))
    if controls is not None:
        time = () if len(controls.shape) == 1 else controls.shape[:1]
        options["controls"] = np.zeros((*time, len(model.actuators)))
    for group in ("inputs", "arguments"):
        timed = group == "inputs"
        options[group] = {
            name: np.zeros((*x.shape[:timed], *sample_shape(model, name, x, kernels, timed=timed)))
            for name, x in (options[group] or {}).items()
        }
    options["parameters"] = {
        name: np.asarray(parameter(model, name).value(model), float)
        for name in options["parameters"] or {}
    }
    return *start, tau


def _start(model, x, kind):
    """Initial value on the CPU as NumPy array, needed to close loops."""
    if not is_foreign(x):
        return x
    if not kind.has_numbers(x):
        raise OTHERS_TRANSFORMED.of(
            "a transformation such as jit and vmap",
            f"a rollout of model {model.name!r}, which has loops",
        )
    return np.asarray(kind.to_numpy(x), float)


class _ForeignRun:
    """A rollout of arrays that stay where they are."""

    def __init__(self, run, kind, like, arrays, groups):
        self.run, self.kind, self.xp = run, kind, namespace(like)
        everything = {**arrays, **{n: x for g in groups for n, x in (g or {}).items()}}
        given = {n: self._convert(x, like) for n, x in everything.items() if x is not None}
        first = next(iter(given.values()))
        self.numbers = lambda x: kind.convert(np.asarray(x, kind.dtype_of(first)), like)
        self.q: Any = given["q0"]
        self.qd: Any = given.get("qd0")
        if self.qd is None:
            self.qd = self.numbers(np.zeros(run.model.nv))
        self.given = [(g, _without_time(g, given[g.name])) for g in run.arrays.given]
        self.batch = self._batch()

    def _convert(self, x, like):
        """Array of the other library on the device of ``like``."""
        return x if is_foreign(x) else self.kind.convert(np.asarray(x, float), like)

    def _batch(self):
        """Common batch shape of all torch or JAX input arrays of a rollout."""
        leads = [self.q.shape[:-1], self.qd.shape[:-1]]
        leads += [x.shape[g.timed : len(x.shape) - len(g.shape)] for g, x in self.given]
        names = ["q0", "qd0", *(g.name for g, _ in self.given)]
        return common_shape(names, leads, "batch axes of a rollout")

    def states(self, marks, *, followed):
        """States at the marked steps, as arrays of the other library."""
        run, xp = self.run, self.xp
        full, n = (self.q, self.qd, self.numbers(0.0)), run.transition.memory
        cores = ((run.model.nq,), (run.model.nv,), ())
        if n:
            full, cores = (*full, self.numbers(np.zeros(n))), (*cores, (n,))
        start = [xp.broadcast_to(x, (*self.batch, *s)) for x, s in zip(full, cores, strict=True)]
        walk = self.kind.differentiable_walk if followed else self._launches
        q, qd, work, *memory = walk(self, start, [int(m) for m in marks])
        if n:
            memory = contact_notes(run.transition, memory[0], self.xp.isfinite, self.numbers)
        return ArrayRollout(run.model, self.batch, run.time(marks), q, qd, work, *memory)

    def held_inputs(self, k):
        """Input arrays of step ``k``, as a list."""
        return [x[k] if g.timed else x for g, x in self.given]

    def differentiable_step(self, t, h, state, held):
        """State after one step through which derivatives flow.

        With rigid contact it is taken twice: for the numbers, and with its forces for derivatives.
        """
        transition, constant = self.run.transition, self.kind.constant
        if transition.contact is None:
            return transition.one_step().call(t, h, *state, *held)
        fixed = [constant(x) for x in (*state, *held)]
        *after, found = transition.steps().call(t, h, self.numbers(1.0), *fixed)
        moved = transition.one_step().call(t, h, *state, found, *held)
        return *(x + (y - constant(y)) for x, y in zip(after, moved, strict=True)), found

    def _launches(self, _, state, marks):
        """States at the marked steps by as few kernel launches as possible."""
        run, kernel = self.run, self.run.transition.steps()
        times, h, one = (self.numbers(x) for x in (run.time(np.arange(run.steps)), run.dt, 1.0))
        stored = [state]
        for first, end in pairwise(marks):
            at = range(first, end) if run.arrays.timed else (first,)
            count = one if run.arrays.timed else self.numbers(float(end - first))
            for k in at:
                state = self._mask_unsolved(
                    kernel.call(times[k], h, count, *state, *self.held_inputs(k))
                )
            stored.append(state)
        return [self.xp.stack(x, 0) for x in zip(*stored, strict=True)]

    def _mask_unsolved(self, results):
        """State after steps, NaN in samples whose implicit equations were not solved."""
        *state, doubt = results if self.run.transition.doubts else (*results, None)
        if doubt is None or self.run.transition.method.closes:
            return state
        return [good_samples(x, doubt <= DEFECT) for x in state]


def _without_time(given, array):
    """Input array for a step, without a time axis of length 1."""
    has_time = given.kind == "inputs" or (given.is_held and not given.squeeze)
    return array[0] if has_time and not given.timed else array

"""Few steps of large robots: rollouts and their gradients on arrays.

What ``Transition.steps`` and ``Transition.pullback`` compile for one robot runs in Python on arrays
where that takes less time, see ``kinetree.integration.on_arrays``: the same functions of the same
arrays, so that nothing else has to know.
"""

from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import Any

import numpy as np

from kinetree.arrays.batch import of_sample
from kinetree.codegen.program import Argument
from kinetree.errors import KinetreeError, ShapeError, SingularError
from kinetree.functional.parameters import parameter
from kinetree.integration.adjoints import has_adjoint, pulled_back
from kinetree.integration.manifold import is_flat, settle
from kinetree.integration.on_arrays import choose_arrays, field_on_arrays
from kinetree.simulation.rollouts.inputs import names_of
from kinetree.simulation.rollouts.own_models import have_gradients, models_of

MOST_MODELS = 16
"""Samples with parameters, of which each has a model on arrays."""
WITH_PARAMETERS = 2
"""How many times as long it takes to compile steps with parameters."""


def steps_of(run) -> Any:
    """Function that takes several steps of a run: vectorised on arrays, or compiled."""
    return StepsOnArrays(run) if suits(run) else run.transition.steps()


def pullback_of(run, running) -> Any:
    """Reverse-mode function of one step of a run: vectorised on arrays, or compiled."""
    transition = run.transition
    held = transition.controller is None and any(g.kind == "tau" for g in run.arrays.given)
    known = running is None or held or "tau" not in names_of(running)
    known = known and has_adjoint(run.model, transition.method, transition.field)
    known = known and (not transition.parameters or have_gradients(transition))
    if known and suits(run, back=True):
        return PullbackOnArrays(run, running)
    return transition.pullback(running)


def suits(run, *, back: bool = False, costs: bool = False, times: int = 1, longer: int = 1) -> bool:
    """Whether a run is faster and possible with vectorised array steps.

    ``back``: or going back through them. ``costs``: whether other arrays may be given to costs.
    ``times``: how often each step is taken. ``longer``: how many times as long as others it takes
    to compile.
    """
    transition, arrays = run.transition, run.arrays
    controlled = transition.controller is not None
    plain = transition.contact is None and not transition.stateful
    plain = plain and not (controlled and (costs or transition.field.actuators is not None))
    kinds = ("tau", "inputs", "arguments") if costs or controlled else ("tau",)
    kinds = (*kinds, *["parameters"] * (not costs))
    plain = plain and all(g.kind in kinds for g in arrays.given) and arrays.dtype == "float64"
    if not plain or not arrays.size:
        return False
    if transition.parameters and (run.model.is_constrained or arrays.total > MOST_MODELS):
        return False
    samples = times * run.steps * arrays.size
    given = transition.model, transition.method, transition.field
    longer = WITH_PARAMETERS if transition.parameters else longer
    return choose_arrays(*given, samples, back=back, longer=longer)


class _OnArrays(ABC):
    """Stand-in for the ``Kernel`` of a run, and for its variant.

    Attributes:
        status: with ``value``, how many calls failed.
    """

    is_empty, tier = False, "general"

    def __init__(self, run):
        self.transition, self.model = run.transition, run.model
        self.field = field_on_arrays(run.model, run.transition.field)
        self.status = SimpleNamespace(value=0)

    def variant(self, dtype, wide, samples=0) -> "_OnArrays":
        """The object itself, which serves all precisions and numbers of samples."""
        return self

    def ufunc(self, *arrays, out) -> tuple:
        """Compute results into the arrays ``out``; failures give NaN and are counted."""
        try:
            found = self.full(*arrays)
        except (KinetreeError, np.linalg.LinAlgError):
            found = tuple(np.nan if o is None else np.full_like(o, np.nan) for o in out)
        if not all(np.all(np.isfinite(x)) for x in found):
            self.status.value += 1
        for place, x in zip(out, found, strict=True):
            if place is not None:
                place[...] = x
        return found

    @abstractmethod
    def full(self, *arrays: Any) -> tuple:
        """Results for arrays; raises an error if a sample fails."""

    def held_inputs(self, t, q, qd, rest) -> Any:
        """Joint forces (..., nv) held in a step, given or from the controller."""
        if self.transition.controller is not None:
            return self.transition.holding().full(np.asarray(t), q, qd, *rest)
        names = [g.name for g in self.transition.given]
        tau = rest[names.index("tau")] if "tau" in names else 0.0
        return np.broadcast_to(tau, qd.shape)

    def mechanisms(self, rest) -> Any:
        """Parts of the batch with equal parameters: slice, model and field of each."""
        values = rest[len(self.transition.given) :]
        if not values:
            return [(slice(None), self.model, self.field)]
        return models_of(self.transition, values)


class StepsOnArrays(_OnArrays):
    """Steps of arrays: takes t, h, the number of steps, q, qd, work, and what is given."""

    def __init__(self, run):
        super().__init__(run)
        self.inputs = tuple(self.transition.step_arguments())
        self.numbers = 2 * (self.model.nq + self.model.nv)

    def full(self, t, h, count, q, qd, work, *rest):
        """State and work after ``count`` steps, and the largest defect."""
        if not self.transition.parameters:
            return self._steps(self.model, self.field, (t, h, count), (q, qd, work), rest)
        lead = np.shape(q)[:-1]
        state = [np.reshape(x, (-1, *np.shape(x)[len(lead) :])) for x in (q, qd, work, *rest)]
        found = []
        for k, (_, model, field) in enumerate(self.mechanisms(state[3:])):
            *start, own = *(x[k] for x in state[:3]), [x[k] for x in state[3:]]
            try:
                found.append(self._steps(model, field, (t, h, count), start, own))
            except (ShapeError, SingularError) as error:
                raise of_sample(error, np.unravel_index(k, lead)) from error
        parts = (np.stack(x) for x in zip(*found, strict=True))
        return tuple(x.reshape(*lead, *x.shape[1:]) for x in parts)

    def _steps(self, model, field, times, state, rest):
        """State and work after several steps of one model, and the largest defect."""
        (t, h, count), (q, qd, work) = map(float, times), state
        method, worst = self.transition.method, 0 * work
        for k in range(int(count)):
            now = t + k * h
            tau = self.held_inputs(now, q, qd, rest)
            after = method.advance(field, model, now, h, q, qd, tau)
            q, qd, work = after.q, after.qd, work + after.work
            if self.transition.doubts:
                worst = np.maximum(worst, method.doubt(after))
        return (q, qd, work, worst) if self.transition.doubts else (q, qd, work)


class PullbackOnArrays(_OnArrays):
    """Gradients through one step of arrays, as ``Transition.pullback`` computes them."""

    def __init__(self, run, running):
        super().__init__(run)
        model, transition = self.model, self.transition
        self.cost = None if running is None else transition.terminal(running)
        self.rest = transition.step_arguments()[6:]
        tangents = [parameter(model, name).tangent for name in transition.parameters]
        given = [g.shape for g in transition.given]
        shapes = [(), (model.nq,), (model.nv,), *given, *tangents]
        self.outputs = tuple(Argument(f"out{k}", shape) for k, shape in enumerate(shapes))
        self.numbers = 3 * (model.nq + model.nv)

    def full(self, t, h, q, qd, *rest):
        """Running cost, and gradients by the state at the step's start and by inputs."""
        *rest, p_q, p_v = rest
        cost, costs = np.zeros(qd.shape[:-1]), None
        if self.cost is not None:
            cost, *costs = self.cost.full(t, h, q, qd, *rest)
        found, at = [], p_v.ndim - 2
        for part, model, field in self.mechanisms(rest):
            own = [x[part] for x in rest]
            state, gradient = (q[part], qd[part]), (p_q[..., part, :], p_v[..., part, :])
            found.append(self._back(model, field, (t, h), state, own, gradient))
        results = [np.concatenate(x, axis=at) for x in zip(*found, strict=True)]
        if costs is not None:
            results = [x + y for x, y in zip(results, costs, strict=True)]
        return cost, *results

    def _back(self, model, field, times, state, rest, gradients):
        """Gradients of some samples by ``q``, ``qd``, inputs and parameters over one step."""
        (t, h), (p_q, p_v), (q, qd) = times, gradients, settle(model, *state)
        tau, h, method = self.held_inputs(t, q, qd, rest), float(h), self.transition.method
        state = float(t), h, q, qd, tau
        if not is_flat(model):
            p_q = _along(model, method.step(field, model, *state).q, p_q)
        found = pulled_back(method, field, model, state, p_q, p_v)
        by_q = found.q if is_flat(model) else _against(model, q, found.q)
        own = [g.name for g in self.transition.given]
        pairs = zip(own, rest, strict=False)
        by_given = [
            found.tau if n == "tau" else np.zeros(_gradient_shape(p_v, x)) for n, x in pairs
        ]
        by_parameters = field.gradients() if self.transition.parameters else []
        results = [by_q, found.qd, *by_given, *by_parameters]
        if self.transition.controller is None:
            return results
        back = self.transition.holding_gradient().full(np.asarray(t), h, q, qd, *rest, found.tau)
        results[2 : 2 + len(own)] = [0 * x for x in by_given]
        return [x + y for x, y in zip(results, back[1:], strict=True)]


def _gradient_shape(p, array):
    """Shape of gradients by an array: the leading axes of ``p``, then the array's."""
    return *p.shape[:-1], *array.shape[1:]


def _along(model, q, gradient):
    """Gradients along tangents, (..., nv), from those by coordinates, (..., nq)."""
    found = np.empty((*gradient.shape[:-1], model.nv))
    for R, at, to in _rate_matrices(model, q):
        found[..., at] = np.einsum("...ij,...i->...j", R, gradient[..., to])
    return found


def _against(model, q, gradient):
    """Gradients by coordinates, (..., nq), that have given values along tangents."""
    found = np.empty((*gradient.shape[:-1], model.nq))
    for R, at, to in _rate_matrices(model, q):
        inverse = np.linalg.pinv(R)
        found[..., to] = np.einsum("...ij,...i->...j", inverse, gradient[..., at])
    return found


def _rate_matrices(model, q):
    """Matrices (..., nq, nv) of each joint from velocities to coordinate rates, with slices."""
    flat = q.reshape(-1, model.nq)
    for i, joint in enumerate(model.joint[1:], start=1):
        at, to = model.v_slice[i], model.q_slice[i]
        if joint.nv:
            R = np.array([np.asarray(joint.rate_matrix(x[to]), dtype=float) for x in flat])
            yield R.reshape(*q.shape[:-1], *R.shape[1:]), at, to

"""Few steps of large robots: rollouts and their gradients on arrays.

What ``Transition.steps`` and ``Transition.pullback`` compile for one robot runs in Python on arrays
where that takes less time, see ``kinetree.integration.on_arrays``: the same functions of the same
arrays, so that nothing else has to know.
"""

from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import Any

import numpy as np

from kinetree.codegen.program import Argument
from kinetree.errors import KinetreeError
from kinetree.integration.adjoints import has_adjoint, pulled_back
from kinetree.integration.manifold import is_flat, settled
from kinetree.integration.on_arrays import chosen, field_on_arrays
from kinetree.simulation.rollouts.inputs import names_of


def steps_of(run) -> Any:
    """Steps of a run: on arrays, or compiled."""
    return StepsOnArrays(run) if suits(run) else run.transition.steps()


def pullback_of(run, running) -> Any:
    """Way back through the steps of a run: on arrays, or compiled."""
    transition = run.transition
    known = running is None or "tau" not in names_of(running)
    known = known or any(g.kind == "tau" for g in run.arrays.given)
    known = known and has_adjoint(run.model, transition.method, transition.field)
    if known and suits(run, back=True):
        return PullbackOnArrays(run, running)
    return transition.pullback(running)


def suits(run, *, back: bool = False, costs: bool = False, times: int = 1) -> bool:
    """Whether steps take nothing but joint forces, and are worth taking on arrays.

    ``back``: or going back through them. ``costs``: whether other arrays may be given to costs.
    ``times``: how often each step is taken.
    """
    transition, arrays = run.transition, run.arrays
    plain = transition.controller is None and transition.contact is None
    plain = plain and not (transition.parameters or transition.stateful)
    kinds = ("tau", "inputs", "arguments") if costs else ("tau",)
    plain = plain and all(g.kind in kinds for g in arrays.given) and arrays.dtype == "float64"
    if not plain or not arrays.size:
        return False
    samples = times * run.steps * arrays.size
    given = transition.model, transition.method, transition.field
    return chosen(*given, samples, back=back)


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
        """Itself, for every precision and number of samples."""
        return self

    def ufunc(self, *arrays, out) -> tuple:
        """Results in the arrays ``out``; failures are counted, and left to ``full``."""
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
        """Results for arrays; raises where there are none."""

    def _tau(self, qd, given):
        return np.broadcast_to(given[0], qd.shape) if given else np.zeros(qd.shape)


class StepsOnArrays(_OnArrays):
    """As ``Transition.steps``: takes t, h, the number of steps, q, qd, work, and tau if given."""

    def __init__(self, run):
        super().__init__(run)
        names = ("t", "h", "count", "q", "qd", "work")
        shapes = {"q": (self.model.nq,), "qd": (self.model.nv,)}
        own = [Argument(name, shapes.get(name, ())) for name in names]
        self.inputs = (*own, *self.transition.given)
        self.numbers = 2 * (self.model.nq + self.model.nv)

    def full(self, t, h, count, q, qd, work, *given):
        """``q, qd, work`` after some steps, and the largest defect, if there is one."""
        method, t, h = self.transition.method, float(t), float(h)
        worst, tau = 0.0, self._tau(qd, given)
        for k in range(int(count)):
            after = method.advance(self.field, self.model, t + k * h, h, q, qd, tau)
            q, qd, work = after.q, after.qd, work + after.work
            if self.transition.doubts:
                worst = np.maximum(worst, method.doubt(after))
        return (q, qd, work, worst) if self.transition.doubts else (q, qd, work)


class PullbackOnArrays(_OnArrays):
    """As ``Transition.pullback``."""

    def __init__(self, run, running):
        super().__init__(run)
        model, given = self.model, self.transition.given
        self.cost = None if running is None else self.transition.terminal(running)
        shapes = [(), (model.nq,), (model.nv,), *(g.shape for g in given)]
        self.outputs = tuple(Argument(f"out{k}", shape) for k, shape in enumerate(shapes))
        self.numbers = 3 * (model.nq + model.nv)

    def full(self, t, h, q, qd, *rest):
        """The running cost, and gradients by the state at the start and by what is given."""
        *given, p_q, p_v = rest
        cost, costs = np.zeros(qd.shape[:-1]), None
        if self.cost is not None:
            cost, *costs = self.cost.full(t, h, q, qd, *given)
        t, h, model, tau = float(t), float(h), self.model, self._tau(qd, given)
        q, qd = settled(model, q, qd)
        if not is_flat(model):
            end = self.transition.method.step(self.field, model, t, h, q, qd, tau).q
            p_q = _along(model, end, p_q)
        state = t, h, q, qd, tau
        found = pulled_back(self.transition.method, self.field, model, state, p_q, p_v)
        by_q = found.q if is_flat(model) else _against(model, q, found.q)
        results = [by_q, found.qd, *([found.tau] if given else [])]
        if costs is not None:
            results = [x + y for x, y in zip(results, costs, strict=True)]
        return cost, *results


def _along(model, q, gradient):
    """Gradients along tangents, (..., nv), of those by the coordinates of ``q``, (..., nq)."""
    found = np.empty((*gradient.shape[:-1], model.nv))
    for R, at, to in _rate_matrices(model, q):
        found[..., at] = np.einsum("...ij,...i->...j", R, gradient[..., to])
    return found


def _against(model, q, gradient):
    """Gradients by coordinates that have given ones along tangents."""
    found = np.empty((*gradient.shape[:-1], model.nq))
    for R, at, to in _rate_matrices(model, q):
        inverse = np.linalg.pinv(R)
        found[..., to] = np.einsum("...ij,...i->...j", inverse, gradient[..., at])
    return found


def _rate_matrices(model, q):
    """Of each joint: ``R`` from velocities to rates of ``q``, (..., nq, nv), and its places."""
    flat = q.reshape(-1, model.nq)
    for i, joint in enumerate(model.joint[1:], start=1):
        at, to = model.v_slice[i], model.q_slice[i]
        if joint.nv:
            R = np.array([np.asarray(joint.rate_matrix(x[to]), dtype=float) for x in flat])
            yield R.reshape(*q.shape[:-1], *R.shape[1:]), at, to

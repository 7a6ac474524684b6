"""Steps, costs and constraints of all knots of a trajectory optimization, with derivatives.

All knots of all samples are evaluated at once, by kernels that are kept with the model. A knot has
the variables ``z = (u, dq, dqd)``, ``dq`` in the tangent space.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.codegen.inline import compact, evaluate
from kinetree.codegen.program import Argument, Traced, trace
from kinetree.codegen.runtime.threads import run_threaded
from kinetree.control.steps_on_arrays import StepsOnArrays
from kinetree.errors import ModelError, ShapeError
from kinetree.expr.calls import calls
from kinetree.expr.diff import jacobian
from kinetree.model import Model
from kinetree.model.memo import kept
from kinetree.simulation.rollouts.gradient import inverse_rates
from kinetree.simulation.rollouts.inputs import apply
from kinetree.simulation.rollouts.transition import Transition

LARGE = 12  # velocity variables from which on derivatives of steps are computed by rows
_BOTH = "memory", "memory after"


@dataclass(frozen=True)
class Terms:
    """Terms of a problem: costs and constraints, all of them kernels."""

    running: tuple
    terminal: tuple
    path: tuple
    """Constraints of every step, numbers that are at most zero."""
    final: tuple
    """Constraints of the final state, numbers that are zero."""


class Knots(NamedTuple):
    """States and controls of some samples at all knots, (samples, steps + 1, ...) each.

    Controls of the last knot are zero: there is no step after it.
    """

    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray

    def some(self, which) -> "Knots":
        """Copy of the knots of some samples."""
        return Knots(self.q[which], self.qd[which], self.u[which])


class Derivatives(NamedTuple):
    """Derivatives of steps, costs and constraints with respect to ``z = (u, dq, dqd)``.

    Attributes:
        F: of next states, (samples, steps, n, m + n).
        g: gradients of the cost, (samples, steps + 1, m + n).
        H: matrices of second derivatives of the cost, convex, (samples, steps + 1, m + n, m + n).
        path: of path constraints, (samples, steps, nc, m + n).
        final: of final constraints, (samples, ne, m + n).
    """

    F: np.ndarray
    g: np.ndarray
    H: np.ndarray
    path: np.ndarray
    final: np.ndarray


class Multipliers(NamedTuple):
    """Multipliers of some samples.

    Attributes:
        costates: of steps, (samples, steps, n).
        path: of path constraints, (samples, steps, nc).
        final: of final constraints, (samples, ne).
    """

    costates: np.ndarray
    path: np.ndarray
    final: np.ndarray


class Values:
    """Next states, costs and constraints of all knots of some samples.

    Attributes:
        q, qd: states after every step, (samples, steps, ...).
        memory: what contact found in every step, or None.
        cost: of all samples, (samples,).
        path, final: constraints, (samples, steps, nc) and (samples, ne).
        gap: from the next knot to the state after a step, (samples, steps, n).
    """

    gap: Any = None

    def __init__(self, q, qd, memory, cost, path, final):
        self.q, self.qd, self.memory = q, qd, memory
        self.cost, self.path, self.final = cost, path, final


class Shooting:
    """Steps, costs and constraints of a problem, with their derivatives.

    Attributes:
        model: the mechanism.
        run: a ``Run`` of all samples, which holds arrays and times.
        columns: numbers of the joint forces, or controls, that are sought.
        held: ``"tau"`` or ``"controls"``.
        samples, steps: sizes.
        n, m: numbers of variables of a state and of the controls of a step.
    """

    def __init__(self, model: Model, terms: Terms, columns, held, run):
        self.model, self.terms, self.columns, self.held = model, terms, tuple(columns), held
        self.run, self.transition = run, run.transition
        self.steps, self.samples = run.steps, run.arrays.size
        self.n, self.m = 2 * model.nv, len(self.columns)
        self.flat = all(joint.rates_are_velocities for joint in model.joint[1:])
        t: Transition = self.transition
        if t.stateful or any(g.kind == "activation" for g in run.arrays.given):
            raise ModelError(
                "optimize takes forces and actuators without internal states: use soft contact "
                "without a memory (law='hunt_crossley' with Regularized friction) and actuators "
                "without activation"
            )
        self.times = run.t0 + run.dt * np.arange(self.steps + 1)
        self.force_rows = 0 if t.contact is None else t.contact.rows
        self._kernels: dict[str, Any] = {}
        on_arrays = held == "tau" and StepsOnArrays.serve(run)
        self.on_arrays = StepsOnArrays(run, self.columns) if on_arrays else None
        self.by_rows = on_arrays or self.force_rows > 0 or model.nv > LARGE

    # --- compiled ----------------------------------------------------------------------------

    def _pulled(self, t, h, q, qd, *rest):
        """Gradients of next states times ``weights`` with respect to ``(u, dq, dqd)``."""
        *rest, weights = rest
        model, now = self._now(t, q, qd, rest[2 if self.force_rows else 0 :])
        after, *_ = self.transition._after(t, h, q, qd, rest)
        total = weights @ np.concatenate([after.q, after.qd])
        return (self._by_z(model, now)(np.array([total]))[0],)

    def _rows(self, which, q, qd, u, memories, after):
        """Derivatives of steps by one reverse pass for each row: far less code to compile."""
        if self.on_arrays is not None:
            tau = self._forces(which, u)
            return self.on_arrays.rows(self.times[:-1], q[:, :-1], qd[:, :-1], tau)
        nv, nq, batch = self.model.nv, self.model.nq, (len(which), self.steps, self.n)
        weights = np.zeros((*batch[:2], self.n, nq + nv))
        weights[..., nv:, nq:] = np.eye(nv)
        back: Any = np.eye(nv) if self.flat else inverse_rates(self.model, after)
        weights[..., :nv, :nq] = back
        arrays = [self.times[:-1], q[:, :-1], qd[:, :-1], *memories, *self._given(which, u)]
        kernel = self._kernel("rows", _BOTH if memories else (), self._pulled, nq + nv)
        t, *rest = (x[..., None] if x.ndim == 1 else x[:, :, None] for x in arrays)
        return self._call(kernel, [t, np.array(self.run.dt), *rest, weights], batch)[0]

    def _kernel(self, what, memories, function, weights=None):
        """Compiled ``function``; of the state and ``weights`` alone where ``memories`` is None."""
        if what in self._kernels:
            return self._kernels[what]
        t, model = self.transition, self.model
        if memories is None:
            inputs = [Argument("q", (model.nq,)), Argument("qd", (model.nv,))]
        else:
            inputs = t._arguments("t", "h", "q", "qd", memories=memories)
        inputs += [] if weights is None else [Argument("weights", (weights,))]

        def traced(*symbols):
            t._require(inputs, symbols)
            return function(*(a if a.shape else a[()] for a in symbols))

        def make():
            with calls(None):
                return compact(trace(traced, inputs, what))

        def built():
            kernel = t._kernel(
                what, inputs, Traced(make), lambda arrays: evaluate(kernel.program, arrays)
            )
            return kernel

        found = self._kernels[what] = kept(model, (t, what, self.terms, self.columns), built)
        return found

    def _now(self, t, q, qd, rest):
        """The model, and what costs and constraints take, by name."""
        model, arrays = self.transition.changed(rest)
        return model, {**arrays, "t": t, "q": q, "qd": qd}

    @staticmethod
    def _both(kernels, model, now):
        """Deviations whose half squares are costs, and other costs."""
        vectors, total = [np.zeros(0, dtype=object)], 0
        for k in kernels:
            value = np.asarray(apply(k, model, now), dtype=object)
            if value.ndim > 1:
                raise ShapeError(
                    f"cost {k.__name__!r} must return a number, or a vector whose half square is "
                    f"the cost, got shape {value.shape}"
                )
            if value.ndim:
                vectors.append(value)
            else:
                total = total + value[()]
        return np.concatenate(vectors), total

    @staticmethod
    def _constraints(kernels, model, now):
        values = [np.atleast_1d(np.asarray(apply(k, model, now), dtype=object)) for k in kernels]
        return np.concatenate([np.zeros(0, dtype=object), *values])

    def _values(self, costs, constraints):
        def function(t, h, q, qd, *rest):
            model, now = self._now(t, q, qd, rest)
            r, total = self._both(costs, model, now)
            c = self._constraints(constraints, model, now)
            return np.asarray(0.5 * (r @ r) + total + 0 * t), *([c] if constraints else [])

        return function

    def _by_z(self, model, now):
        """Function that differentiates traced numbers with respect to ``(u, dq, dqd)``."""
        held, q, qd = now[self.held], now["q"], now["qd"]
        along = [{held[c].i: 1} for c in self.columns]
        along += _along(q, _rates(model, q))
        along += [{x.i: 1} for x in qd]
        return lambda values: jacobian(held[0].graph, values, along)

    def _curvature(self, costs, constraints, *, stepped):
        """Second derivatives of costs, and of constraints and next states times ``weights``."""

        def function(t, h, q, qd, *rest):
            *rest, weights = rest
            model, now = self._now(t, q, qd, rest)
            by_z = self._by_z(model, now)
            r, total = self._both(costs, model, now)
            c = self._constraints(constraints, model, now)
            if stepped:
                after, *_ = self.transition._after(t, h, q, qd, rest)
                c = np.concatenate([after.q, after.qd, c])
            total = 0.5 * (r @ r) + total + (weights @ c if c.size else 0 * weights[0])
            H = by_z(by_z(np.array([total]))[0])
            return (0.5 * (H + H.T),)

        return function

    def _derivatives(self, costs, constraints, *, stepped):
        """Derivatives of the step, costs and constraints with respect to ``(u, dq, dqd)``."""

        def function(t, h, q, qd, *rest):
            model, now = self._now(t, q, qd, rest)
            by_z = self._by_z(model, now)
            found = []
            if stepped:
                after, *_ = self.transition._after(t, h, q, qd, rest)
                rows = by_z(np.concatenate([after.q, after.qd]))
                if not self.flat:
                    back = inverse_rates.function(model, after.q)
                    rows = np.concatenate([back @ rows[: model.nq], rows[model.nq :]])
                found.append(rows)
            r, total = self._both(costs, model, now)
            slope, J = by_z(np.array([total]))[0], by_z(r)
            found += [r @ J + slope, J.T @ J]
            found += [by_z(slope)] if hasattr(total, "graph") else []
            c = self._constraints(constraints, model, now)
            return (*found, by_z(c)) if constraints else tuple(found)

        return function

    def _bending(self, q, qd, weights):
        """Second derivatives of coordinates of ``q`` along straight lines of the tangent space.

        Times ``weights``, (nv, nv). They are not zero where such a line is a screw motion.
        """
        rates = _rates(self.model, q)
        found = jacobian(q[0].graph, weights @ rates, _along(q, rates))
        return (0.5 * (found + found.T),)

    def _call(self, kernel, arrays, batch) -> tuple[Any, ...]:
        variant = kernel.variant("float64", wide=True, samples=int(np.prod(batch)))
        found: Any = run_threaded(variant.ufunc, arrays, kernel, batch, "float64")
        return found if isinstance(found, tuple) else (found,)

    # --- arrays ------------------------------------------------------------------------------

    def _given(self, which, u, k=None):
        """The arrays that go into the steps of some samples; ``k`` for one step or the end."""
        found = []
        for g in self.run.arrays.given:
            if g.kind == self.held and self.columns == tuple(range(*g.shape)):
                found.append(u)
            elif g.kind == self.held:
                held = np.zeros((*u.shape[:-1], *g.shape))
                held[..., list(self.columns)] = u
                found.append(held)
            elif g.timed:
                own = np.moveaxis(g.array, 0, 1)[which]
                found.append(own if k is None else own[:, k])
            else:
                own = g.array[which]
                found.append(own[:, None] if k is None else own)
        return found

    def _forces(self, which, u, k=None):
        """Joint forces of the steps of some samples."""
        given = zip(self.run.arrays.given, self._given(which, u, k), strict=True)
        return next(array for g, array in given if g.kind == "tau")

    def step(self, which, k, q, qd, u, memory=None):
        """One step of some samples: the states after it, and what contact found."""
        if self.on_arrays is not None:
            tau = self._forces(which, u, k)
            return *self.on_arrays.after(self.times[k], q, qd, tau), None
        t, h, n = self.times[k], np.array(self.run.dt), len(which)
        given = self._given(which, u, k)
        start = [] if memory is None else [self._fresh(memory)]
        count, work = np.array(1.0), np.zeros(n)
        arrays = [np.array(t), h, count, q, qd, work, *start, *given]
        after = self._call(self.transition.steps(), arrays, (n,))
        return after[0], after[1], after[3] if self.force_rows else None

    def _fresh(self, memory):
        """Memory that contact starts from: forces, without notes of other steps."""
        start = np.zeros_like(memory)
        start[..., : self.force_rows] = memory[..., : self.force_rows]
        return np.where(np.isfinite(start), start, 0.0)

    def evaluate(self, which, knots: Knots, memory=None) -> Values:
        """Values of all knots but their gaps."""
        T, h, (q, qd, u) = self.steps, np.array(self.run.dt), knots
        batch, given = (len(which), T), self._given(which, u[:, :-1])
        if self.on_arrays is not None:
            state = q[:, :-1], qd[:, :-1], self._forces(which, u[:, :-1])
            after: tuple[Any, ...] = self.on_arrays.after(self.times[:-1], *state)
        else:
            before = [self.times[:-1], h, np.array(1.0), q[:, :-1], qd[:, :-1], np.zeros(batch)]
            start = [self._fresh(memory)] if self.force_rows else []
            after = self._call(self.transition.steps(), [*before, *start, *given], batch)
        cost, path = np.zeros(len(which)), np.zeros((*batch, 0))
        if self.terms.running or self.terms.path:
            kernel = self._kernel("values", (), self._values(self.terms.running, self.terms.path))
            found = self._call(kernel, [self.times[:-1], h, q[:, :-1], qd[:, :-1], *given], batch)
            cost, path = found[0].sum(axis=1), found[1] if len(found) > 1 else path
        final = np.zeros((len(which), 0))
        if self.terms.terminal or self.terms.final:
            kernel = self._kernel(
                "final values", (), self._values(self.terms.terminal, self.terms.final)
            )
            found = self._call(kernel, self._end(which, knots), (len(which),))
            cost, final = cost + found[0], found[1] if len(found) > 1 else final
        return Values(after[0], after[1], after[3] if self.force_rows else None, cost, path, final)

    def _end(self, which, knots):
        """Inputs of kernels of the final state; its controls are those of the last step."""
        q, qd, u = knots
        given = self._given(which, u[:, -2], -1)
        return [np.array(self.times[-1]), np.array(self.run.dt), q[:, -1], qd[:, -1], *given]

    def derivatives(self, which, knots: Knots, after, memories=None) -> Derivatives:
        """Derivatives at knots from which steps lead to positions ``after``."""
        T, h, terms, size = self.steps, np.array(self.run.dt), self.terms, self.n + self.m
        q, qd, u = knots.q, knots.qd, knots.u[:, :-1]
        batch, given = (len(which), T), self._given(which, u)
        start = [] if memories is None else [self._fresh(memories[0]), memories[1]]
        text = self._derivatives(terms.running, terms.path, stepped=not self.by_rows)
        kernel = self._kernel("costs" if self.by_rows else "knots", (), text)
        found = self._call(kernel, [self.times[:-1], h, q[:, :-1], qd[:, :-1], *given], batch)
        rows = [self._rows(which, q, qd, u, start, after)] if self.by_rows else []
        F, *rest = (*rows, *found)
        g, H = np.zeros((len(which), T + 1, size)), np.zeros((len(which), T + 1, size, size))
        path = self._collected(rest, g[:, :-1], H[:, :-1], bool(terms.path))
        final = np.zeros((len(which), 0, size))
        if terms.terminal or terms.final:
            kernel = self._kernel(
                "end", (), self._derivatives(terms.terminal, terms.final, stepped=False)
            )
            rest = list(self._call(kernel, self._end(which, knots), (len(which),)))
            found = self._collected(rest, g[:, -1], H[:, -1], bool(terms.final))
            final = final if found is None else found
        path = np.zeros((*batch, 0, size)) if path is None else path
        return Derivatives(F, g, H, path, final)

    def curvature(self, which, knots: Knots, values, F, multipliers: Multipliers) -> np.ndarray:
        """Second derivatives of the Lagrangian, (samples, steps + 1, m + n, m + n).

        ``F`` are derivatives of the steps.
        """
        terms, size, final = self.terms, self.n + self.m, multipliers.final
        H = np.zeros((len(which), self.steps + 1, size, size))
        H[:, :-1] = self._curvature_of_steps(which, knots, values, F, multipliers)
        if terms.terminal or terms.final:
            text = self._curvature(terms.terminal, terms.final, stepped=False)
            kernel = self._kernel("final curvature", (), text, max(final.shape[-1], 1))
            final = final if final.shape[-1] else np.zeros((len(which), 1))
            H[:, -1] = self._call(kernel, [*self._end(which, knots), final], (len(which),))[0]
        return H

    def _curvature_of_steps(self, which, knots, values, F, multipliers):
        """Curvature of all steps with their costs: on arrays and costs alone, or compiled."""
        (q, qd, u), (costates, path, _) = knots, multipliers
        u, terms, nv, batch = u[:, :-1], self.terms, self.model.nv, costates.shape[:-1]
        on_arrays, bent = self.on_arrays, None
        if on_arrays is not None:
            state = q[:, :-1], qd[:, :-1], self._forces(which, u)
            bent = on_arrays.curvature(self.times[:-1], *state, costates)
        if bent is not None:
            weights, name = path if path.shape[-1] else np.zeros((*batch, 1)), "curvature of costs"
        else:
            by_q, bent = self._bent(values, F, costates[..., :nv])
            weights, name = np.concatenate([by_q, costates[..., nv:], path], axis=-1), "curvature"
        text = self._curvature(terms.running, terms.path, stepped=name == "curvature")
        kernel, h = self._kernel(name, (), text, weights.shape[-1]), np.array(self.run.dt)
        arrays = [self.times[:-1], h, q[:, :-1], qd[:, :-1], *self._given(which, u), weights]
        return self._call(kernel, arrays, batch)[0] + bent

    def _bent(self, values, F, by_q) -> tuple[Any, Any]:
        """Costates of the coordinates of ``q``, and what these add to second derivatives."""
        if self.flat:
            return by_q, 0.0
        back: Any = inverse_rates(self.model, values.q)
        by_q = np.einsum("...vq,...v->...q", back, by_q)
        kernel = self._kernel("bending", None, self._bending, self.model.nq)
        arrays = [values.q, values.qd, np.ascontiguousarray(by_q)]
        turned = F[..., : self.model.nv, :]
        bending = self._call(kernel, arrays, by_q.shape[:-1])[0]
        return by_q, -np.swapaxes(turned, -1, -2) @ (bending @ turned)

    @staticmethod
    def _collected(found, g, H, constrained):
        """Set gradients and matrices; return the derivatives of constraints, or None."""
        c = found.pop() if constrained else None
        g[:], H[:], *curve = found
        for each in curve:  # of costs that are no half squares
            H += _convex(each)
        return c


def _convex(H):
    """Symmetric matrices without their negative eigenvalues."""
    H = 0.5 * (H + np.swapaxes(H, -1, -2))
    values, vectors = np.linalg.eigh(np.where(np.isfinite(H), H, 0.0))
    if np.all(values >= 0):
        return H
    return (vectors * np.maximum(values, 0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _rates(model, q):
    """The matrix from velocities to rates of ``q``, (nq, nv)."""
    found = np.zeros((model.nq, model.nv), dtype=object)
    for i in range(1, model.body_count + 1):
        at = model.q_slice[i]
        found[at, model.v_slice[i]] = np.asarray(model.joint[i].rate_matrix(q[at]))
    return found


def _along(q, rates):
    """Directions of the tangent space, by the traced coordinates of ``q``."""
    return [{x.i: r for x, r in zip(q, column, strict=True)} for column in rates.T]

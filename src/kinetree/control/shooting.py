"""Steps, costs and constraints of the knots of a trajectory optimization, with derivatives.

What ``kinetree.control.newton`` calls are kernels that are kept with the model. A knot has the
variables ``z = (u, dq, dqd)``, ``dq`` in the tangent space.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.codegen.inline import compact, evaluate
from kinetree.codegen.program import Argument, Traced, trace
from kinetree.codegen.runtime.threads import run_threaded
from kinetree.control.phases import Timetable, timetable
from kinetree.control.steps_on_arrays import JointForceSteps
from kinetree.errors import ModelError, ShapeError
from kinetree.expr.calls import calls
from kinetree.expr.diff import jacobian
from kinetree.functional.differentiate import differentiate
from kinetree.integration.explicit import SemiImplicitEuler
from kinetree.integration.field import Field
from kinetree.integration.manifold import turns_over
from kinetree.model import Model
from kinetree.model.define import kernel_of
from kinetree.model.limits import has_passive_forces
from kinetree.model.memo import remember
from kinetree.quantities import forward_dynamics
from kinetree.simulation.rollouts.gradient import inverse_rates
from kinetree.simulation.rollouts.inputs import apply
from kinetree.simulation.rollouts.transition import Transition

LARGE = 12  # velocity variables from which on derivatives of steps are computed by rows
_BOTH = "memory", "memory after"
ACCELERATION_DERIVATIVES = differentiate(forward_dynamics, ("q", "qd", "tau"))


@dataclass(frozen=True)
class Terms:
    """Terms of a problem: costs and constraints, all of them kernels."""

    running: tuple
    terminal: tuple
    path: tuple
    """Constraints of every step, numbers that are at most zero."""
    final: tuple
    """Constraints of the final state, numbers that are zero."""


class Shooting:
    """Steps, costs and constraints of a problem, with their derivatives.

    Attributes:
        model: the mechanism.
        run: a ``Run`` of all samples, which holds arrays and times.
        columns: numbers of the joint forces, or controls, that are sought.
        held: ``"tau"`` or ``"controls"``.
        samples, steps: sizes.
        n, m: numbers of variables of a state and of the controls of a step.
        idle: workers that may solve it; None before it is solved.
    """

    def __init__(
        self,
        model: Model,
        terms: Terms,
        columns,
        held,
        run,
        schedule=None,
        begins=None,
        takes_arrays=True,
    ):
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
        self.schedule, self.idle = schedule, None
        self.begin_at(begins)
        phased = schedule is not None
        on_arrays = takes_arrays and held == "tau" and not phased and JointForceSteps.serve(run)
        self.on_arrays = JointForceSteps(run, self.columns) if on_arrays else None
        self.simple = not on_arrays and not phased and self._is_simple()
        large = self.force_rows > 0 or model.nv > LARGE
        self.by_rows = large and not self.simple and not on_arrays and not phased

    def begin_at(self, begins: float | None):
        """Set the schedule time at which the motion begins [s]."""
        self.begins = self.run.t0 if begins is None else begins
        self.__dict__.pop("timetable", None)

    def _is_simple(self):
        """Whether steps are semi-implicit Euler's, with accelerations of a tree."""
        t, model = self.transition, self.model
        plain = t.contact is None and t.controller is None and not t.parameters
        plain = plain and type(t.method) is SemiImplicitEuler and type(t.field) is Field
        return plain and self.flat and not turns_over(model) and not model.is_constrained

    @cached_property
    def forced(self) -> bool:
        """Whether other joint forces act than those held in steps."""
        f = self.transition.field
        none = f.passive is None and f.drive is None and f.actuators is None and not f.forces
        return not none or has_passive_forces(self.model)

    @cached_property
    def timetable(self) -> Timetable | None:
        """Contacts, touch-downs and goals at the knots, by the schedule."""
        if self.schedule is None:
            return None
        return timetable(self.schedule, self.begins + self.run.dt * np.arange(self.steps + 1))

    # --- compiled ----------------------------------------------------------------------------

    def _pull_back(self, t, h, q, qd, *rest):
        """Gradients of weighted next states with respect to ``(u, dq, dqd)``, traced."""
        *rest, weights = rest
        model, now = self._now(t, q, qd, rest[2 if self.force_rows else 0 :])
        after, *_ = self.transition._after(t, h, q, qd, rest)
        total = weights @ np.concatenate([after.q, after.qd])
        return (self._by_z(model, now)(np.array([total]))[0],)

    def _kernel(self, what, memories, function, weights=None):
        """Compiled kernel of a traced function of step arguments, or of state and weights alone."""
        t, model = self.transition, self.model
        if memories is None:
            inputs = [Argument("q", (model.nq,)), Argument("qd", (model.nv,))]
        else:
            inputs = t._arguments("t", "h", "q", "qd", memories=memories)
        inputs += [] if weights is None else [Argument("weights", (weights,))]

        def apply_function(*symbols):
            t._require(inputs, symbols)
            return function(*(a if a.shape else a[()] for a in symbols))

        def make():
            with calls(None):
                return compact(trace(apply_function, inputs, what))

        def build():
            kernel = t._kernel(
                what, inputs, Traced(make), lambda arrays: evaluate(kernel.program, arrays)
            )
            return kernel

        return remember(model, (t, what, self.terms, self.columns), build)

    def _now(self, t, q, qd, rest):
        """Model with parameters, and named arguments of costs and constraints."""
        model, arrays = self.transition.with_parameters(rest)
        return model, {**arrays, "t": t, "q": q, "qd": qd}

    @staticmethod
    def _both(kernels, model, now):
        """Residuals whose half squares are costs, and the sum of other costs."""
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
        """Values of all constraints at a knot, concatenated."""
        values = [np.atleast_1d(np.asarray(apply(k, model, now), dtype=object)) for k in kernels]
        return np.concatenate([np.zeros(0, dtype=object), *values])

    def _values(self, costs, constraints):
        """Traceable function from a knot to its costs and constraints."""

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
        """Traceable second derivatives of costs and weighted constraints and steps."""

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
        """Traceable derivatives of step, costs and constraints with respect to ``(u, dq, dqd)``."""

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
        """Weighted second derivatives of ``q`` along lines of the tangent space, (nv, nv).

        Times ``weights``, (nv, nv). They are not zero where such a line is a screw motion.
        """
        rates = _rates(self.model, q)
        found = jacobian(q[0].graph, weights @ rates, _along(q, rates))
        return (0.5 * (found + found.T),)

    # --- kernels -----------------------------------------------------------------------------

    def curvature_of_steps(self, which, state, ends, F, multipliers) -> np.ndarray:
        """Second derivatives of steps on arrays, with those of costs and path constraints.

        Args:
            which: numbers of the samples.
            state: times, positions, velocities and joint forces of all steps.
            ends: positions and velocities at their ends.
            F: derivatives of the steps.
            multipliers: costates, and those of path constraints.
        """
        (t, q, qd, tau), (costates, path) = state, multipliers
        on_arrays: Any = self.on_arrays
        nv, bent = self.model.nv, on_arrays.curvature(t, q, qd, tau, costates)
        batch, count, stepped = costates.shape[:-1], path.shape[-1], bent is None
        if not stepped:
            weights = path if count else np.zeros((*batch, 1))
        else:
            by_q, bent = self._bend(ends, F, costates[..., :nv])
            weights = np.concatenate([by_q, costates[..., nv:], path], axis=-1)
        kernel = self.curvature_kernel(count, stepped=stepped)
        given = []
        for g in self.run.arrays.given:
            own = np.moveaxis(g.array, 0, 1)[which] if g.timed else g.array[which][:, None]
            given.append(tau if g.kind == self.held else own)
        arrays = [t, np.array(self.run.dt), q, qd, *given, weights]
        return self._call(kernel, arrays, batch) + bent

    def _bend(self, ends, F, by_q) -> tuple[Any, Any]:
        """Costates of the coordinates of ``q``, and their curvature terms on the manifold."""
        if self.flat:
            return by_q, 0.0
        back: Any = inverse_rates(self.model, ends[0])
        by_q = np.einsum("...vq,...v->...q", back, by_q)
        arrays = [*ends, np.ascontiguousarray(by_q)]
        turned = F[..., : self.model.nv, :]
        bending = self._call(self.bending_kernel(), arrays, by_q.shape[:-1])
        return by_q, -np.swapaxes(turned, -1, -2) @ (bending @ turned)

    def _call(self, kernel, arrays, batch) -> Any:
        """Results of a kernel for all knots."""
        variant = kernel.variant("float64", wide=True, samples=int(np.prod(batch)))
        return run_threaded(variant.ufunc, arrays, kernel, batch, "float64")

    def step_kernel(self) -> Any:
        """Kernel of an integration step: next state and contact memory."""
        return self.transition.steps()

    def force_kernel(self) -> Any:
        """Kernel of all joint forces at a knot."""

        def function(t, h, q, qd, *rest):
            model, arrays = self.transition.with_parameters(rest)
            tau = self.transition.held_inputs(model, arrays, t, q, qd)
            total = self.transition.acting(model).joint_force(model, t, q, qd, tau)
            return (np.asarray(total),)

        return self._kernel("forces of joints", (), function)

    def force_derivatives_kernel(self) -> Any:
        """Kernel of the joint forces' derivatives by ``(u, dq, dqd)``."""

        def function(t, h, q, qd, *rest):
            model, now = self._now(t, q, qd, rest)
            tau = self.transition.held_inputs(model, now, t, q, qd)
            total = self.transition.acting(model).joint_force(model, t, q, qd, tau)
            return (self._by_z(model, now)(np.asarray(total)),)

        return self._kernel("derivatives of forces", (), function)

    def acceleration_kernel(self) -> Any:
        """Kernel of accelerations under given joint forces."""
        return kernel_of(self.model, "forward_dynamics")

    def acceleration_derivatives_kernel(self) -> Any:
        """Kernel of the accelerations' derivatives by positions, velocities and forces."""
        zero = np.zeros(self.model.nv)
        call = ACCELERATION_DERIVATIVES.bind(self.model, self.model.neutral(), zero, zero)
        return ACCELERATION_DERIVATIVES.prepare_call(call).kernel

    def rows_kernel(self) -> Any:
        """Kernel of gradients of weighted next states, which compiles quickly."""
        names = _BOTH if self.force_rows else ()
        return self._kernel("rows", names, self._pull_back, self.model.nq + self.model.nv)

    def values_kernel(self) -> Any:
        """Kernel of costs and constraints at steps, or None."""
        terms = self.terms
        if not (terms.running or terms.path):
            return None
        return self._kernel("values", (), self._values(terms.running, terms.path))

    def final_values_kernel(self) -> Any:
        """Kernel of costs and constraints at the final state, or None."""
        terms = self.terms
        if not (terms.terminal or terms.final):
            return None
        return self._kernel("final values", (), self._values(terms.terminal, terms.final))

    @property
    def knots_have_steps(self) -> bool:
        """Whether derivatives of steps are computed together with those of costs."""
        return not (self.simple or self.by_rows or self.on_arrays or self.schedule)

    def knots_kernel(self) -> Any:
        """Kernel of derivatives of costs, constraints and steps at knots, or None."""
        terms, stepped = self.terms, self.knots_have_steps
        if not (terms.running or terms.path or stepped):
            return None
        text = self._derivatives(terms.running, terms.path, stepped=stepped)
        return self._kernel("knots" if stepped else "costs", (), text)

    def end_kernel(self) -> Any:
        """Kernel of derivatives of costs and constraints at the final state."""
        text = self._derivatives(self.terms.terminal, self.terms.final, stepped=False)
        return self._kernel("end", (), text)

    def back_kernel(self) -> Any:
        """Kernel of the matrix from rates of ``q`` to velocities."""

        def function(q, qd):
            return (inverse_rates.function(self.model, q),)

        return self._kernel("rates to velocities", None, function)

    def bending_kernel(self) -> Any:
        """Kernel of the second derivatives of ``q`` along lines of the tangent space."""
        return self._kernel("bending", None, self._bending, self.model.nq)

    def curvature_kernel(self, path_count, *, stepped=True) -> Any:
        """Kernel of second derivatives of costs, path constraints and optionally steps."""
        terms, states = self.terms, (self.model.nq + self.model.nv) * stepped
        name = "curvature" if stepped else "curvature of costs"
        text = self._curvature(terms.running, terms.path, stepped=stepped)
        return self._kernel(name, (), text, max(states + path_count, 1))

    def final_curvature_kernel(self, final_count) -> Any:
        """Kernel of second derivatives of costs and constraints at the final state."""
        text = self._curvature(self.terms.terminal, self.terms.final, stepped=False)
        return self._kernel("final curvature", (), text, max(final_count, 1))


def _rates(model, q):
    """Matrix from velocities to rates of ``q``, (nq, nv)."""
    found = np.zeros((model.nq, model.nv), dtype=object)
    for i in range(1, model.body_count + 1):
        at = model.q_slice[i]
        found[at, model.v_slice[i]] = np.asarray(model.joint[i].rate_matrix(q[at]))
    return found


def _along(q, rates):
    """Unit tangent directions as dicts from traced coordinates of ``q`` to rates."""
    return [{x.i: r for x, r in zip(q, column, strict=True)} for column in rates.T]

"""The steps of a rollout, and the adjoint of one, as compiled functions of arrays.

A ``Transition`` holds everything about a step but the numbers: the mechanism, the integrator, the
forces, the controller, and which arrays go in. Its kernels are kept with the model.
"""

from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from kinetree.codegen import tiers
from kinetree.codegen.inline import compact, evaluate
from kinetree.codegen.nvrtc import COMPACT, QUICKLY
from kinetree.codegen.program import Argument, Traced, calls_of, trace
from kinetree.codegen.render.cuda import LONG_LOOP, ROUTINES
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.contact.history import Residuals, accumulate
from kinetree.contact.soft.history import SoftTerms
from kinetree.contact.stepping.drives import StepStart
from kinetree.errors import ShapeError, SingularError, TraceError
from kinetree.expr.calls import calls, calls_to
from kinetree.expr.diff import jacobian
from kinetree.expr.repeat import repeat
from kinetree.functional.call import over_samples
from kinetree.functional.kernel import select
from kinetree.functional.parameters import parameter, with_parameters
from kinetree.integration.integrator import Integrator
from kinetree.integration.manifold import settle
from kinetree.integration.step import OneCopy
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, check_finite, require_unit_parts
from kinetree.model.kernels import kernel_for
from kinetree.model.memo import remember
from kinetree.simulation.forces.stateful import StagewiseForce, StatefulField, stateful_forces
from kinetree.simulation.rollouts.inputs import ACTIVATION, FRICTION, apply, number

FINITE = 1e30
"""Sum of the sizes of all numbers of a state beyond which it does not count as finite."""
BY_ROUTINES = ROUTINES, COMPACT
"""How programs that call routines are compiled for a GPU."""
_BOTH = ("memory", "memory after")  # of a step: at its start and at its end
_LARGE = 30  # velocity variables of a mechanism whose gradients take less time by calls


@dataclass(frozen=True)
class Transition:
    """One step as a function of arrays."""

    model: Model = field(compare=False)
    """The mechanism."""
    method: Integrator
    """The integrator."""
    field: Any
    """What moves the mechanism, the forces that act all the time among it."""
    controller: Any
    """Kernel of the joint forces, or of the controls where the field has actuators, that are held
    during a step, or None."""
    given: tuple[Argument, ...]
    """Arrays that go into a step: ``tau`` or controls, and what kernels take, by their names."""
    parameters: tuple[str, ...]
    """Names of parameters of the model that go into a step, too."""
    contact: Any = None
    """The ``ContactStep`` of rigid contact, which takes steps in place of the method."""

    @property
    def doubts(self) -> bool:
        """Whether steps return an estimated defect of their implicit equations."""
        return self.contact is None and (self.method.solves or self.method.closes)

    @cached_property
    def memory(self) -> int:
        """Number of values that steps pass on besides the state.

        States of forces; or, with rigid contact, the forces of the rows, the residuals of all
        steps, and 1 for motions that stopped being finite.
        """
        if self.contact is not None:
            return self.contact.rows + len(Residuals._fields) + 1
        return self.stateful.size if self.stateful else 0

    @property
    def advance(self):
        """Function of several steps to be compiled, with or without rigid contact."""
        return self.take_steps if self.contact is None else self.touching

    @cached_property
    def stateful(self) -> StatefulField | None:
        """``StatefulField`` of forces with internal states; None if there are none."""
        return StatefulField.of(self.field) if stateful_forces(self.field.forces) else None

    # --- texts, for numbers of any kind ------------------------------------------------------

    def with_parameters(self, rest) -> tuple[Model, dict]:
        """Model with its parameters set, and the other input arrays by name."""
        n = len(self.given)
        arrays = {a.name: x for a, x in zip(self.given, rest[:n], strict=True)}
        values = dict(zip(self.parameters, rest[n:], strict=True))
        return with_parameters(self.model, values) if values else self.model, arrays

    def acting(self, model) -> Any:
        """Field of forces for a model with other parameters.

        Outside of loops: what follows from parameters alone is computed once.
        """
        return self.field if model is self.model else self.field.of(model)

    def contact_step(self, model, arrays) -> Any:
        """Rigid-contact step for a model with other parameters."""
        passive, levels = getattr(self.acting(self.model), "passive", None), None
        if model is not self.model and passive is not None:
            levels = passive.exact_levels(model)
        return self.contact.of(model, arrays.get(FRICTION), levels)

    def held_inputs(self, model, arrays, t, q, qd):
        """Inputs held in a step: ``tau`` plus the controller's result, or controls."""
        found, servos = None, self.field.actuators
        if self.controller is not None:
            found = apply(self.controller, model, {**arrays, "t": t, "q": q, "qd": qd})
            what, name, size = (
                ("joint forces", "nv", model.nv)
                if servos is None
                else ("controls", "n", len(model.actuators))
            )
            if np.shape(found) != (size,):
                raise ShapeError(
                    f"controller {self.controller.__name__!r} must return {what} of shape ({name},)"
                    f" = ({size},) for model {model.name!r}, got {np.shape(found)}"
                )
        if servos is None:
            tau = arrays.get("tau", model.zero_velocity)
            return tau if found is None else tau + found
        controls = arrays["controls"] if found is None else found
        state = [arrays[ACTIVATION]] if ACTIVATION in arrays else []
        return np.concatenate([controls, *state])

    def take_steps(self, t, h, count, q, qd, work, *rest):
        """State and work after ``count`` contact-free steps, and the largest defect.

        States of forces, if there are any, come after ``work``, in and out.
        """
        memory, rest = (rest[0], rest[1:]) if self.stateful else (0 * t, rest)
        model, arrays = self.with_parameters(rest)
        own = self.acting(model)
        stateful = StatefulField.of(own) if self.stateful else None

        def body(state):
            t, q, qd, work, memory, worst = state
            q, qd = settle(model, q, qd)
            tau = self.held_inputs(model, arrays, t, q, qd)
            stages = None if stateful is None else StagewiseForce(stateful, self.method, h, memory)
            field = OneCopy(own) if stages is None else stages.field
            after = self.method.step(field, model, t, h, q, qd, tau)
            if self.doubts:
                doubt = self.method.doubt(after)
                worst = select(worst < doubt, doubt, worst)
            memory = memory if stages is None else stages.after(model, after.q)
            return t + h, after.q, after.qd, work + after.work, memory, worst

        _, *results, memory, worst = repeat(body, (t, q, qd, work, memory, 0 * t), count)
        results += [memory] * bool(self.stateful) + [worst] * self.doubts
        return tuple(results)

    def touching(self, t, h, count, q, qd, work, memory, *rest):
        """State, work and memory after ``count`` steps with rigid contact.

        Motions that stop being finite stay where they were, and are marked.
        """
        model, arrays = self.with_parameters(rest)
        step, rows, own = self.contact_step(model, arrays), self.contact.rows, self.acting(model)

        def body(state):
            t, q, qd, work, force, residuals, failed = state
            q, qd = settle(model, q, qd)
            tau = self.held_inputs(model, arrays, t, q, qd)
            after = step(None, own, model, StepStart(t, h, q, qd, tau), force)
            size = np.abs(after.q).sum() + np.abs(after.qd).sum() + np.abs(after.force).sum()
            fine = size < FINITE
            found = accumulate(residuals, after.residuals)
            ends = after.q, after.qd, work + after.work, after.force, found, failed
            before = q, qd, work, force, residuals, 1.0
            return t + h, *(select(fine, x, y) for x, y in zip(ends, before, strict=True))

        parts = memory[:rows], memory[rows:-1], memory[-1]
        _, *results = repeat(body, (t, q, qd, work, *parts), count)
        *results, force, residuals, failed = results
        return *results, np.concatenate([force, residuals, np.array([failed])])

    def take_step(self, t, h, q, qd, work, *rest):
        """State and work after one step, traceable for reverse mode.

        With rigid contact ``rest`` begins with the memories at its start and at its end.
        """
        after, *_ = self._after(t, h, q, qd, rest)
        return after.q, after.qd, work + after.work

    def _after(self, t, h, q, qd, rest):
        """End of one unrolled step, with the model, arrays and inputs at its start."""
        model, arrays = self.with_parameters(rest if self.contact is None else rest[2:])
        q, qd = settle(model, q, qd)
        tau, own = self.held_inputs(model, arrays, t, q, qd), self.acting(model)
        if self.contact is None:
            after = self.method.step(OneCopy(own), model, t, h, q, qd, tau)
        else:
            step, n = self.contact_step(model, arrays), self.contact.rows
            force, found = (memory[:n] for memory in rest[:2])
            after = step(None, own, model, StepStart(t, h, q, qd, tau), force, found=found)
        return after, model, arrays, q, qd, tau

    def applied_forces(self, t, q, qd, *rest):
        """Joint forces held in a step from this state, including prescribed drives."""
        model, arrays = self.with_parameters(rest[bool(self.memory) :])
        field = self.acting(model)
        if self.stateful:
            field = StatefulField.of(field).at(rest[0])
        held = self.held_inputs(model, arrays, t, q, qd)
        prescribed = field.prescription is not None
        return ((field.drive_force if prescribed else field.driving_force)(model, t, q, qd, held),)

    # --- compiled ----------------------------------------------------------------------------

    def _arguments(self, *names, memories=("memory",)):
        """``Argument`` list of a kernel of the transition, for these names."""
        shapes = {"q": (self.model.nq,), "qd": (self.model.nv,)}
        if self.memory:
            shapes |= dict.fromkeys(memories, (self.memory,))
            names = (*names, *memories)
        own = [parameter(self.model, name) for name in self.parameters]
        return [
            *(Argument(name, shapes.get(name, ())) for name in names),
            *self.given,
            *(Argument(p.name, p.shape) for p in own),
        ]

    def step_arguments(self) -> list:
        """``Argument`` list of the kernel ``steps``."""
        return self._arguments("t", "h", "count", "q", "qd", "work")

    def steps(self) -> Kernel:
        """Compiled kernel of ``advance``: several steps."""
        inputs = self.step_arguments()
        return self._keep("steps", lambda: self._compile("rollout", inputs, self.advance))

    def one_step(self) -> Kernel:
        """Compiled kernel of ``take_step``: one differentiable step."""
        inputs = self._arguments("t", "h", "q", "qd", "work", memories=_BOTH)
        return self._keep("one step", lambda: self._compile("step", inputs, self.take_step))

    def forces(self) -> Kernel:
        """Compiled kernel of ``applied_forces``."""
        inputs = self._arguments("t", "q", "qd")
        return self._keep(
            "forces", lambda: self._compile("joint forces", inputs, self.applied_forces)
        )

    def holding(self) -> Kernel:
        """Compiled kernel of ``held_inputs``."""

        def function(t, q, qd, *rest):
            return (self.held_inputs(*self.with_parameters(rest), t, q, qd),)

        inputs = self._arguments("t", "q", "qd")
        return self._keep("held", lambda: self._compile("controller", inputs, function))

    def holding_gradient(self) -> Kernel:
        """Compiled reverse mode of ``held_inputs``: gradients by state and arrays."""

        def function(t, h, q, qd, *rest):
            *rest, p = rest
            return 0 * t, p @ self.held_inputs(*self.with_parameters(rest), t, q, qd)

        inputs = [*self._arguments("t", "h", "q", "qd"), Argument("gradient", (self.model.nv,))]
        name = "gradient of the controller"
        return self._keep("back to held", lambda: self._gradients(name, inputs, function))

    def of_controls(self) -> Kernel:
        """Compiled kernel of the actuator controls in the step from a state."""
        inputs = self._arguments("t", "q", "qd")

        def function(t, q, qd, *rest):
            model, arrays = self.with_parameters(rest[bool(self.memory) :])
            held = self.held_inputs(model, arrays, t, q, qd)
            return (np.asarray(held)[: self.field.actuators.count],)

        return self._keep("controls", lambda: self._compile("controls", inputs, function))

    def of_soft_contacts(self, softs) -> Kernel:
        """Compiled kernel of gaps, points, normals and forces of soft contacts."""
        inputs, terms = self._arguments("t", "q", "qd"), SoftTerms(softs, self.stateful)

        def function(t, q, qd, *rest):
            model, _ = self.with_parameters(rest[bool(self.memory) :])
            return terms(model, q, qd, *rest[: bool(self.memory)])

        return self._keep("soft contacts", lambda: self._compile("contacts", inputs, function))

    def of_state(self, name, text) -> Kernel:
        """Compiled kernel of a function ``text(model, arrays, t, q, qd)`` of the state."""
        inputs = self._arguments("t", "q", "qd")

        def function(t, q, qd, *rest):
            return text(*self.with_parameters(rest[bool(self.memory) :]), t, q, qd)

        return self._keep((name, text), lambda: self._compile(name, inputs, function))

    def pullback(self, running) -> Kernel:
        """Compiled adjoint of one step, with the running cost if there is one.

        Takes the time, the step, the state at its start, the arrays, and the gradients of a cost
        with respect to ``q`` and ``qd`` at its end. Returns the running cost, and gradients by
        ``q`` and ``qd`` at the start, to every array, and to every parameter. Those of ``q`` are
        with respect to its coordinates, (nq,).
        """

        def function(t, h, q, qd, *rest):
            *rest, p_q, p_qd = rest
            after, model, arrays, q, qd, tau = self._after(t, h, q, qd, rest)
            now = {**arrays, "t": t, "q": q, "qd": qd, "tau": tau}
            if self.field.actuators is not None:
                now |= {"tau": self.field.driving_force(model, t, q, qd, tau)}
                now |= {"controls": tau[: len(model.actuators)]}
            cost = 0 * t if running is None else number(running, apply(running, model, now))
            return cost, p_q @ after.q + p_qd @ after.qd + cost

        more = [
            Argument("gradient by q", (self.model.nq,)),
            Argument("gradient by qd", (self.model.nv,)),
        ]
        inputs = [*self._arguments("t", "h", "q", "qd", memories=_BOTH), *more]
        return self._keep(("back", running), lambda: self._gradients("pullback", inputs, function))

    def terminal(self, cost) -> Kernel:
        """Compiled terminal cost and its gradients by state, arrays and parameters."""

        def function(t, h, q, qd, *rest):
            model, arrays = self.with_parameters(rest)
            total = number(cost, apply(cost, model, {**arrays, "t": t, "q": q, "qd": qd}))
            return total, total

        inputs = self._arguments("t", "h", "q", "qd", memories=())
        return self._keep(("end", cost), lambda: self._gradients("terminal cost", inputs, function))

    def _keep(self, what, make):
        """Compiled code from ``make``, made once per model and key."""
        return remember(self.model, (self, what), make)

    def _compile(self, name, inputs, function):
        """Kernel traced from a function of the transition's arguments."""

        def on_symbols(*symbols):
            self._require(inputs, symbols)
            return function(*(a if a.shape else a[()] for a in symbols))

        def reference(arrays):
            named = {i.name: a for i, a in zip(inputs, arrays, strict=True)}
            call = SimpleNamespace(arrays=named, shapes=_shapes(inputs), name=name)
            try:
                results = over_samples(function, call)
            except ShapeError as error:  # of numbers on the way; those that came in are validated
                raise SingularError(str(error)) from error
            return results[0] if len(results) == 1 else results

        rigid = self.contact is not None  # whose general code is the engine
        tier = "specialised" if rigid else tiers.first_calls()
        made = Traced(lambda: trace(on_symbols, inputs, name), tier)
        return self._kernel(name, inputs, made, reference, general=not rigid)

    def _gradients(self, name, inputs, function):
        """Kernel of a value, and of the gradients of a second value by all inputs."""
        n = len(self.given) + len(self.parameters)

        def on_symbols(*symbols):
            self._require(inputs, symbols)
            value, total = function(*(a if a.shape else a[()] for a in symbols))
            found = [a for i, a in zip(inputs, symbols, strict=True) if i.name not in _BOTH]
            q, qd, *rest = found[2 : 4 + n]
            plain = [np.eye(a.size, dtype=int).reshape(*a.shape, a.size) for a in (q, qd)]
            rates = [*plain, *(self._rates(k, a) for k, a in enumerate(rest))]
            return np.asarray(value), *gradients_along(total, (q, qd, *rest), rates)

        def make():
            # Copies share what both passes need, and gain a tenth by it, unless they are long.
            copied = calls_to() == "specialised" and self.model.nv < _LARGE
            with calls(None if copied else calls_to()):
                return compact(trace(on_symbols, inputs, name))

        try:
            made = Traced(make, tiers.first_calls())
        except TraceError:  # no derivative by loops
            made = Traced(make)
        kernel = self._kernel(
            name, inputs, made, lambda arrays: evaluate(kernel.program, arrays), general=True
        )
        return kernel

    def _rates(self, k, symbols):
        """Matrix of the directions in which an input array can change."""
        if k < len(self.given):
            return np.eye(symbols.size, dtype=int).reshape(*symbols.shape, symbols.size)
        return parameter(self.model, self.parameters[k - len(self.given)]).rates(symbols)

    def _require(self, inputs, symbols):
        """Add the conditions on inputs that compiled code must check."""
        for i, symbol in zip(inputs, symbols, strict=True):
            if i.name == "q":
                require_unit_parts(self.model, symbol)
            elif i.name in self.parameters:
                for condition in parameter(self.model, i.name).conditions(symbol):
                    condition.require()

    def _kernel(self, name, inputs, traced, reference, *, general=False):
        """Kernel that checks its arrays, by general code where the model allows it."""

        def validate(arrays):
            for i, array in zip(inputs, arrays, strict=True):
                check_finite(array, i.name, core=len(i.shape))
                if i.name == "q":
                    as_configuration(self.model, array)

        def general_code():
            return kernel.with_general_calls()

        kernel = kernel_for(
            self.model,
            name,
            inputs,
            traced.program.outputs,
            traced,
            reference=reference,
            validate=validate,
            general_code=general_code if general else None,
        )
        if self.contact is not None:
            kernel.on_gpu = BY_ROUTINES if calls_of(traced.program) else (LONG_LOOP, QUICKLY)
        return kernel


def _shapes(inputs):
    """Shapes of arrays by argument name, from a list of ``Argument``."""
    return {i.name: i.shape for i in inputs}


# --- Gradients of traced numbers along the directions in which arrays can change -----------------


def gradients_along(total, arrays, rates):
    """Gradients of a traced expression along the directions of each array."""
    if not hasattr(total, "graph"):  # a number that depends on nothing
        return [np.zeros(_tangent(a, r), dtype=object) for a, r in zip(arrays, rates, strict=True)]
    directions = [
        {x.i: rate for x, rate in zip(a.ravel(), column.ravel(), strict=True)}
        for a, r in zip(arrays, rates, strict=True)
        for column in np.moveaxis(r, -1, 0)
    ]
    gradients = jacobian(total.graph, np.array([total]), directions)[0]
    parts = np.split(gradients, np.cumsum([r.shape[-1] for r in rates])[:-1])
    return [p.reshape(_tangent(a, r)) for p, a, r in zip(parts, arrays, rates, strict=True)]


def _tangent(array, rates):
    """Shape of the directions in which an array can change: its own, or (nv,) for positions."""
    return array.shape if rates.shape[-1] == array.size else rates.shape[-1:]

"""Constraint methods of a simulation: the values of ``simulate(constraints=...)``."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.scaling import typical_length
from kinetree.errors import ShapeError, UnknownNameError, require_known
from kinetree.integration.field import Field
from kinetree.integration.integrator import Integrator
from kinetree.integration.prescription import with_loop
from kinetree.integration.step import Stepper
from kinetree.loops.state_space.charts.linear_chart import partition, tangent
from kinetree.loops.stepping import on_arrays
from kinetree.loops.stepping.charts import ChartStepper
from kinetree.loops.stepping.choice import (
    EquationChoice,
    check_start,
    choose,
    warn_of_singular_start,
)
from kinetree.loops.stepping.generalized_alpha import AlphaStepper, Coefficients
from kinetree.loops.stepping.motion import Regularization
from kinetree.loops.stepping.projected import Constrained, PostStabilized, Projected
from kinetree.loops.stepping.stepper import ProjectedStepper
from kinetree.model import Model


@dataclass(frozen=True)
class StepOptions:
    """Mechanism, method and field of which steps are taken."""

    model: Model
    """The mechanism."""
    method: Integrator
    """The integrator."""
    field: Field
    """Accelerations of the tree."""
    choice: EquationChoice
    """Independent constraints and coordinates at the start."""
    batch: tuple[int, ...]
    """Shape of the batch."""
    compiled: bool
    """Whether a step can be one kernel."""
    adaptive: bool
    """Whether steps are as long as their error allows."""

    def constrained_field(self, *options: Any) -> Constrained:
        """``Constrained`` field of accelerations under the chosen constraints."""
        return Constrained(self.field, self.choice.chosen, *options)


@dataclass(frozen=True)
class Projection:
    """Every step ends on the constraints: positions first, then velocities — Spencer §3.1.3.

    Args:
        energy: also scale velocities after every step so that the change of energy is the work of
            the joint forces. It hides the error of the integrator in the energy, not elsewhere.
        refine: halve steps close to singular configurations until they keep energy and velocity,
            as far as rounding errors allow.
    """

    energy: bool = False
    refine: bool = True

    @property
    def name(self) -> str:
        """Name of the method in reports: "projection" or "projection+energy"."""
        return "projection+energy" if self.energy else "projection"

    def stepper(self, given: StepOptions) -> Stepper:
        """``ProjectedStepper`` for the step options."""
        steps = Projected(given.method, given.choice.chosen, energy=self.energy)
        field, compiled = given.constrained_field(), given.compiled
        if compiled and not given.adaptive and on_arrays.are_few(given.model, steps, field):
            field, compiled = field.on_arrays(given.model), False
        return ProjectedStepper(
            given.model,
            steps,
            field,
            compiled=compiled,
            health=np.full(given.batch, given.choice.health),
            refine=self.refine and not given.adaptive,
        )


@dataclass(frozen=True)
class Baumgarte:
    """Baumgarte stabilisation: errors decay as with a spring and a damper — RBDA (8.22).

    Args:
        time_constant: with which errors decay [s]: a little less than the time scale of the motion
            — RBDA §8.3. Smaller is not better: it makes the equations
            stiff. By default a third of ``√(length / 9.81 m/s²)``, with the
            length of the mechanism, and no less than ten steps.
    """

    time_constant: float | None = None

    def __post_init__(self):
        if self.time_constant is not None and not 0 < self.time_constant < np.inf:
            raise ShapeError(
                f"the time constant of Baumgarte's method must be positive [s], got "
                f"{self.time_constant!r}"
            )

    name = "baumgarte"

    def of(self, model: Model, dt: float) -> "Baumgarte":
        """Copy with a time constant suited to the model and step length."""
        sensible = max(np.sqrt(typical_length(model) / 9.81) / 3, 10 * dt)
        return replace(self, time_constant=float(self.time_constant or sensible))

    def stepper(self, given: StepOptions) -> Stepper:
        """Stepper with Baumgarte-stabilised constraints."""
        constrained = given.constrained_field(self.time_constant)
        return Stepper(given.model, given.method, constrained, compiled=given.compiled)


@dataclass(frozen=True)
class AscherChin:
    """Stabilisation of the invariant manifold — Ascher and Chin; Spencer §1.1, [19, 20].

    After every step the state moves by ``-F(x) h(x)`` towards the constraints ``h = 0`` of
    positions and velocities. It makes a fixed number of corrections without checks: cheaper than
    ``Projection``, which iterates until constraints hold and handles singular configurations.

    Args:
        repeats: corrections after every step; two leave errors far below those of the step.
        rate: ``gamma`` of ``x' = f(x) - gamma F(x) h(x)`` [1/s], so that errors decay in the time
            ``1 / gamma``, not at once. Takes one correction.
    """

    repeats: int = 2
    rate: float | None = None
    name = "ascher_chin"

    def __post_init__(self):
        if self.repeats not in range(1, 100):
            raise ShapeError(f"AscherChin makes 1 to 99 corrections, got {self.repeats!r}")
        if self.rate is not None and not 0 < self.rate < np.inf:
            raise ShapeError(f"the rate of AscherChin must be positive [1/s], got {self.rate!r}")

    def stepper(self, given: StepOptions) -> Stepper:
        """Stepper with Ascher-Chin post-stabilisation after each step."""
        repeats = self.repeats if self.rate is None else 1
        steps = PostStabilized(given.method, given.choice.chosen, repeats, self.rate)
        return Stepper(given.model, steps, given.constrained_field(), compiled=given.compiled)


@dataclass(frozen=True)
class SequentialRegularization(Baumgarte):
    """Sequential regularisation: penalties corrected by forces — Ascher and Lin; Spencer §1.1.

    Equations of motion stay regular where constraints become dependent, at the price of loops that
    open a little there. Errors decay as in Baumgarte's method.

    Args:
        time_constant: as for ``Baumgarte`` [s].
        epsilon: factor by which a round reduces the error of constraint forces, about. Values below
            1e-8 lose digits.
        rounds: how often forces are improved.
    """

    epsilon: float = 1e-6
    rounds: int = 4
    name = "sequential_regularization"

    def __post_init__(self):
        super().__post_init__()
        if not (0 < self.epsilon < 1 and self.rounds in range(1, 100)):
            raise ShapeError(
                f"SequentialRegularization needs an epsilon between 0 and 1 and 1 to 99 rounds, "
                f"got epsilon = {self.epsilon!r} and rounds = {self.rounds!r}"
            )

    def stepper(self, given: StepOptions) -> Stepper:
        """Stepper with sequentially regularised constraints."""
        way = Regularization(self.epsilon, self.rounds)
        constrained = given.constrained_field(self.time_constant, way)
        return Stepper(given.model, given.method, constrained, compiled=given.compiled)


@dataclass(frozen=True)
class Uncorrected:
    """Constrained accelerations alone: errors grow, with the order of the integrator."""

    name = "none"

    def stepper(self, given: StepOptions) -> Stepper:
        """Stepper without any correction of constraint drift."""
        return Stepper(
            given.model, given.method, given.constrained_field(), compiled=given.compiled
        )


@dataclass(frozen=True)
class Charts:
    """Steps in independent coordinates: every stage satisfies the constraints — Spencer ch. 2.

    For explicit Runge–Kutta methods; in Python. A chart is replaced where it is poor. It
    ends where the mechanism is singular: ``Projection`` does not.

    Args:
        make: kind of chart: ``"tangent"``, coordinates along the tangent space;
            ``"partition"``, some of the joint positions; or a function, see ``kt.loops.charts``.
        growth: of the condition of a chart at which it is replaced.
    """

    make: Any = "tangent"
    growth: float = 3.0
    name = "charts"

    def stepper(self, given: StepOptions) -> Stepper:
        """``ChartStepper`` that integrates in local coordinates of the manifold."""
        kinds: dict = {"tangent": tangent, "partition": partition}
        make = self.make if callable(self.make) else kinds.get(self.make)
        if make is None:
            raise UnknownNameError(
                f"there is no chart called {self.make!r}; use one of {list(kinds)}, or a function"
            )
        constrained = given.constrained_field()
        return ChartStepper(given.model, given.method, constrained, make=make, growth=self.growth)


@dataclass(frozen=True)
class GeneralizedAlpha:
    """Implicit steps of the second order under position and velocity constraints.

    For stiff springs and dampers in mechanisms with loops; replaces the integrator.

    Args:
        spectral_radius: factor by which frequencies that the step does not resolve are damped in
            one step: from 0, at once, to 1, not at all.
    """

    spectral_radius: float = 0.9
    name = "generalized_alpha"

    def __post_init__(self):
        if not 0 <= self.spectral_radius <= 1:
            raise ShapeError(
                f"spectral_radius of generalized-alpha must be between 0 and 1, got "
                f"{self.spectral_radius!r}"
            )

    def stepper(self, given: StepOptions) -> Stepper:
        """``AlphaStepper``, which replaces the integrator."""
        return AlphaStepper(
            given.model, Coefficients(self.spectral_radius), given.constrained_field()
        )


CONSTRAINTS = {
    "projection": Projection(), "projection+energy": Projection(energy=True), "charts": Charts(),
    "generalized_alpha": GeneralizedAlpha(), "baumgarte": Baumgarte(), "ascher_chin": AscherChin(),
    "sequential_regularization": SequentialRegularization(), "none": Uncorrected(),
}  # fmt: skip
"""By name: what ``simulate(constraints=...)`` takes for an instance."""


# --- from an option to a stepper -----------------------------------------------------------------


def constraint_named(given):
    """Method to enforce constraints, by name or as given."""
    if isinstance(given, str):
        require_known(
            given, CONSTRAINTS, f"there is no method to keep constraints called {given!r}"
        )
        return CONSTRAINTS[given]
    if not hasattr(given, "stepper"):
        raise TypeError(
            f"constraints must be one of {', '.join(map(repr, CONSTRAINTS))}, or an instance such "
            f"as Projection or Baumgarte; got {type(given).__name__}"
        )
    return given


def projection_method(model, method, field, q, qd, t0):
    """Integrator and field whose steps end on the constraints, for starts (n, ...)."""
    now = model.at(t0)
    check_start(now, np.asarray(q, dtype=float), np.asarray(qd, dtype=float))
    prescribed = () if field.prescription is None else field.prescription.variables(model)
    choice = choose(now, np.asarray(q, dtype=float).reshape(-1, model.nq)[0], prescribed)
    return Projected(with_loop(method), choice.chosen), Constrained(field, choice.chosen)


class ConstrainedStart(NamedTuple):
    """Start of a motion with loops or couplings."""

    q: Any
    """Positions, (..., nq)."""
    qd: Any
    """Velocities, (..., nv)."""
    t0: float
    """Time [s]."""
    dt: float
    """Length of a step [s]."""


def constrained_stepper(constraint, model, method, field, start, *, compiled, adaptive) -> Stepper:
    """Stepper of a mechanism with loops or couplings from a start.

    Args:
        constraint: how loops and couplings are kept.
        model: the mechanism.
        method: the integrator.
        field: accelerations of the tree.
        start: a ``ConstrainedStart``.
        compiled: whether a step can be one kernel.
        adaptive: whether steps are as long as their error allows.
    """
    q, qd, t0, dt = start
    check_start(model.at(t0), q, qd)
    first = np.zeros(model.nq) if not q.size else q.reshape(-1, model.nq)[0]
    prescription = field.prescription
    prescribed = () if prescription is None else prescription.variables(model)
    choice = choose(model.at(t0), first, prescribed)
    if choice.singular:
        warn_of_singular_start(model)
    if isinstance(constraint, Baumgarte):
        constraint = constraint.of(model, dt)
    stepper = constraint.stepper(
        StepOptions(model, with_loop(method), field, choice, q.shape[:-1], compiled, adaptive)
    )
    stepper.constraints = constraint.name
    return stepper

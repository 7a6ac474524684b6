"""The problem of a trajectory optimization: terms, bounds, and the solution from any start."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from kinetree.algorithms.closed.independent import velocity_columns
from kinetree.arrays.kinds import ArrayLike, as_numpy
from kinetree.codegen.device.callers import OnGpu, gpu_of
from kinetree.control.costs import FINAL_STATE, QuadraticCost
from kinetree.control.inequalities import KnotBounds, VariableLimits
from kinetree.control.iterations import Iterations
from kinetree.control.newton.stances import require_stances
from kinetree.control.on_device import IterationsOnDevice, require_tree
from kinetree.control.optimized_motion import OptimizedMotion
from kinetree.control.phases import as_schedule
from kinetree.control.shooting import Shooting, Terms
from kinetree.control.starts import as_guess
from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.integration.explicit import SemiImplicitEuler
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model, whole_number
from kinetree.simulation.rollouts.inputs import require_kernel
from kinetree.simulation.rollouts.rollout import run_of
from kinetree.spelling import no_argument

SMALL = 4, 8  # velocity variables up to which second derivatives are used: trees, floating bodies
IDLE = 4  # solved problems whose memory is kept for others
VARIOUS = ("forces", "contact", "inputs", "parameters")  # options whose numbers may change
OPTIONS = ("forces", "friction", "contact", "inputs", "parameters", "t0", "limits")  # of rollouts


class Horizon(NamedTuple):
    """Steps of a motion; entries as the arguments of ``optimize``, and so in the records below."""

    steps: int | None
    dt: float
    integrator: Any = "semi_implicit_euler"
    phases: Any = None


class Objective(NamedTuple):
    """Costs, goal and constraints, with the arrays of their kernels."""

    running: Any = None
    terminal: Any = None
    goal: Any = None
    path_constraint: Any = None
    final_constraint: Any = None
    arguments: Mapping[str, ArrayLike] | None = None


class Drives(NamedTuple):
    """Controls of a motion: joint forces, or those of the model's actuators."""

    use: Literal["tau", "controls"] = "tau"
    actuated: Sequence[str] | None = None


class Search(NamedTuple):
    """Settings of Newton's method."""

    tolerance: float = 1e-6
    iterations: int = 200
    second_order: bool | None = None


RECORDS = (Horizon, Objective, Drives, VariableLimits, Search)


class TrajectoryProblem:
    """A problem of trajectory optimization, for any start.

    Args:
        model: the mechanism.
        horizon: steps of the motion.
        objective: costs, goal and constraints.
        drives: what the controls are.
        limits: of controls, positions and velocities.
        search: settings of the iterations.
        options: further arguments of rollouts.

    Attributes:
        lax: positive where the problem is solved again and again: memory is kept then, and motions
            that have used up their iterations are not examined again where violations are at most
            this. They count as not converged, with the optimality before the last iteration.
    """

    _idle: dict[Any, Iterations]  # memory of the last solutions, by what they are made for

    def __init__(
        self,
        model: Model,
        horizon: Horizon,
        objective: Objective,
        drives: Drives,
        limits: VariableLimits,
        search: Search,
        options: dict[str, Any],
    ):
        self.limit_penalty = limits.limit_penalty
        if self.limit_penalty is not None and not self.limit_penalty > 0:
            raise ShapeError(f"limit_penalty must be positive or None, got {self.limit_penalty!r}")
        self.model, self.held = as_model(model), drives.use
        self.dt, self.schedule = float(horizon.dt), as_schedule(horizon.phases)
        self.steps = whole_number(_steps(horizon, self.schedule), "steps", 1)
        self.tolerance = search.tolerance
        self.iterations = whole_number(search.iterations, "iterations")
        if not self.tolerance > 0:
            raise ShapeError(f"tolerance must be positive, got {self.tolerance!r}")
        _require_known(options)
        self.options = {"integrator": horizon.integrator, "limits": None, **options}
        self.columns = _driven_columns(self.model, drives)
        given = dict(objective.arguments or {})
        self.arguments = {name: as_numpy(x) for name, x in given.items()}
        self.goal = self._goal_configuration(objective.goal)
        self.terms = self._terms(objective)
        contact = options.get("contact")
        self.touching = contact is not None
        self.second_order = _uses_second_order(
            self.model, contact, search.second_order, self.schedule
        )
        if self.schedule is not None:
            self._require_phases(horizon.integrator)
        self.bounds = KnotBounds.of_limits(self.model, drives.use, self.columns, limits)
        self.lax, self._idle = 0.0, {}

    @classmethod
    def of_arguments(cls, model: Model, **given: Any) -> "TrajectoryProblem":
        """Trajectory problem from the arguments of ``optimize``, by name."""
        records: list[Any] = [
            record(**{name: given.pop(name) for name in record._fields if name in given})
            for record in RECORDS
        ]
        return cls(model, *records, options=given)

    def __getstate__(self):
        return {**vars(self), "_idle": {}}

    def _require_phases(self, integrator):
        """Raise ModelError for options that phases do not support."""
        schedule: Any = self.schedule
        require_stances(self.model, schedule.contacts)
        if not schedule.contacts:
            raise ModelError("phases without any contact: leave them out")
        if self.touching or self.held != "tau":
            other = "contact" if self.touching else "use='controls'"
            raise ModelError(
                f"phases say which contacts act, under joint forces: leave out {other}"
            )
        if integrator not in ("semi_implicit_euler", SemiImplicitEuler()):
            raise ModelError(f"phases take steps by semi_implicit_euler, not by {integrator!r}")
        if self.options.get("parameters"):
            raise ModelError("phases and parameters: make a model with these parameters instead")

    def _goal_configuration(self, goal):
        """Configuration of the goal state, or None."""
        if goal is None:
            return None
        q, qd = goal if isinstance(goal, tuple) else (goal, None)
        q = as_configuration(self.model, as_numpy(q).astype(float), "goal")
        qd = np.zeros(self.model.nv) if qd is None else as_numpy(qd).astype(float)
        qd = as_joint_vector(self.model, qd, "qd of goal")
        self.arguments |= {"goal_q": q, "goal_qd": qd}
        return q

    def _terms(self, objective) -> Terms:
        """Kernels of all costs and constraints."""
        running = self._costs(objective.running, "running")
        terminal = self._costs(objective.terminal, "terminal")
        if not (running or terminal):
            raise TypeError("optimize needs a cost: running=..., terminal=..., or both")
        path = _constraints(objective.path_constraint)
        final = _constraints(objective.final_constraint)
        if self.goal is not None:
            final = (*final, FINAL_STATE)
        return Terms(running, terminal, path, final)

    def _costs(self, costs, role):
        """Kernels of costs; arrays of quadratic costs become arguments."""
        n = self.model.nv if self.held == "tau" else len(self.columns)
        found = []
        for each in _as_sequence(costs):
            if isinstance(each, QuadraticCost):
                name = role if not found else f"{role} {len(found)}"
                made, arrays = each.parts(self.model, self.held, n, role, name)
                self.arguments |= arrays
                found.append(made)
            else:
                found.append(require_kernel(each, f"{role} cost"))
        return tuple(found)

    def solve(
        self,
        q0: ArrayLike,
        qd0: ArrayLike | None = None,
        *,
        guess: Any = None,
        barrier: float | None = None,
        iterations: int | None = None,
        budget: float | None = None,
        begins: float | None = None,
    ) -> OptimizedMotion:
        """Motions of least cost from the given starts; arguments as for ``optimize``.

        ``budget``: time after which the iterations end, wherever they are [s].  ``begins``: time
        of the schedule of contacts at which the motion begins [s], by default ``t0``.
        """
        most = self.iterations if iterations is None else iterations
        settings, gpu = (most, barrier, budget, begins), gpu_of(q0)
        if gpu is None:
            return self._solve(None, q0, qd0, as_guess(guess), settings)
        with OnGpu(gpu, q0, "optimize") as place:
            q0, qd0, guess = place.take_each((q0, qd0, as_guess(guess)))
            return place.give_each(self._solve(gpu, q0, qd0, guess, settings))

    def _solve(self, on, q0, qd0, guess, settings):
        """Motions by iterations on a device, or on the CPU for None."""
        most, barrier, budget, begins = settings
        given = (x for name, x in guess.items() if name != "multipliers" and x is not None)
        lead = np.broadcast_shapes(*(np.shape(x)[1:-1] for x in given))
        key = self._likeness(on, q0, qd0, lead, most)
        found = self._idle.pop(key, None)
        if found is None:
            found = self._iterations(on, q0, qd0, lead, most, begins)
        else:
            found.start_from(q0, qd0, begins)
        with found.shooting.run.task():
            found.begin(guess, barrier)
            found.run(budget)
            arrays = found.result()
        if key is not None and not found.batch.outside:  # and no error was raised
            self._idle = {key: found, **dict([*self._idle.items()][: IDLE - 1])}
        u, tau = arrays.pop("u"), None
        if self.held == "tau":
            tau = found.xp.zeros((*u.shape[:-1], self.model.nv))
            tau[..., found.xp.asarray(self.columns)] = u
        return OptimizedMotion(
            self.model,
            found.shooting.times,
            tau=tau,
            controls=u if tau is None else None,
            columns=tuple(map(int, self.columns)),
            bounds=(found.xp.asarray(self.bounds.lower), found.xp.asarray(self.bounds.upper)),
            options=self.options,
            schedule=self.schedule,
            **arrays,
        )

    def _iterations(self, on, q0, qd0, lead, most, begins):
        """Iterations prepared for the given starts, with arguments checked."""
        model, terms, starts = self.model, self.terms, (q0, qd0)
        if on is not None:
            require_tree(model)
            q0, qd0 = _alike_on_host(model, q0, qd0)
        n = model.nv if self.held == "tau" else len(self.columns)
        run = run_of(
            model,
            q0,
            qd0,
            costs=[*terms.running, *terms.terminal, *terms.path, *terms.final],
            steps=self.steps,
            dt=self.dt,
            arguments=self.arguments,
            function="rollout_gradient",
            **{self.held: np.zeros((self.steps, *lead, n))},
            **self.options,
        )
        schedule = self.schedule, begins, on is None
        shooting = Shooting(model, terms, self.columns, self.held, run, *schedule)
        with run.task():
            if on is None:
                return Iterations(self, shooting, most)
            found = IterationsOnDevice(self, shooting, most, on)
            found.start_from(*starts, begins)
            return found

    def _likeness(self, on, q0, qd0, lead, most):
        """Key of problems that differ only in the numbers of starts and guesses, or None.

        None where steps depend on more than on the arrays that it has.
        """
        options, model = self.options, self.model
        various = any(options.get(name) is not None for name in VARIOUS)
        if not self.lax or various or model.is_constrained:
            return None
        if not all(isinstance(x, np.ndarray) for x in self.arguments.values()):
            return None
        numbers = tuple((n, x.shape, x.dtype, x.tobytes()) for n, x in self.arguments.items())
        shapes = np.shape(q0), None if qd0 is None else np.shape(qd0), lead
        return getattr(on, "device", on), *shapes, most, numbers


def _alike_on_host(model, q0, qd0):
    """NumPy arrays with the shapes of starts that are on a device."""
    if q0.ndim < 1 or q0.shape[-1] != model.nq:
        raise ShapeError(f"q0 must have shape (..., {model.nq}), got {q0.shape}")
    if qd0 is not None and (qd0.ndim < 1 or qd0.shape[-1] != model.nv):
        raise ShapeError(f"qd0 must have shape (..., {model.nv}), got {qd0.shape}")
    q = np.broadcast_to(model.neutral(), q0.shape)
    return q, None if qd0 is None else np.zeros(qd0.shape)


def _require_known(options):
    """Raise TypeError for arguments unknown to ``optimize`` and rollouts."""
    own = (name for record in RECORDS for name in record._fields)
    known = ["model", "q0", "qd0", *own, "guess", "barrier", *OPTIONS]
    for name in options:
        if name not in OPTIONS:
            raise TypeError(no_argument("optimize", name, known))


def _driven_columns(model, drives):
    """Indices of the driven joint forces or controls."""
    if drives.use not in ("tau", "controls"):
        raise UnknownNameError(f"use must be 'tau' or 'controls', got {drives.use!r}")
    count = model.nv if drives.use == "tau" else len(model.actuators)
    if not count:
        what = "joint variable" if drives.use == "tau" else "actuator"
        raise ModelError(f"model {model.name!r} has no {what} that optimize could drive")
    if drives.use == "tau":
        return velocity_columns(model, drives.actuated, "actuated")
    if drives.actuated is not None:
        raise UnknownNameError("actuated names joints, for use='tau'; controls are all used")
    return np.arange(count)


def _uses_second_order(model, contact, wanted, schedule):
    """Whether second derivatives of steps are used; by default if they compile quickly."""
    rigid = hasattr(contact, "relaxation")
    if rigid and not contact.relaxation > 0:
        raise ModelError(
            "optimize takes rigid contact with a relaxation, which makes it differentiable: "
            "kinetree.contact.TimeStepping(scene, relaxation=0.05)"
        )
    if schedule is not None:
        if wanted:
            raise ModelError("second derivatives with phases: use second_order=False")
        return False
    if wanted is None:
        flat = all(joint.rates_are_velocities for joint in model.joint[1:])
        return model.nv <= SMALL[not flat] and not rigid
    if wanted and rigid:
        raise ModelError("second derivatives through rigid contact: use second_order=False")
    return wanted


def _steps(horizon, schedule):
    """Number of steps: given, or from the duration of the phases."""
    if horizon.steps is not None:
        return horizon.steps
    if schedule is None or schedule.repeat is not None:
        raise TypeError("optimize needs steps=..., or phases that do not repeat")
    return max(1, round(schedule.duration / float(horizon.dt)))


def _constraints(given):
    """Kernels of none, one or several constraints."""
    return tuple(require_kernel(each, "constraint") for each in _as_sequence(given))


def _as_sequence(given) -> tuple[Any, ...]:
    """Tuple of none, one or several objects."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, Sequence) else (given,)

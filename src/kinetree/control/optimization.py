"""Trajectory optimization: motions of least cost within limits, many at once, and control by them.

Multiple shooting: the states of all knots and the controls of all steps are variables, and steps
that do not end where the next begins (*gaps*) are closed while the cost is lowered. Each iteration
computes derivatives of all steps of all samples at once, solves the linear-quadratic problem that
they make by Riccati's recursion (``riccati``), and goes as far along its solution as a merit
function falls. Costs are convex to second order (Gauss–Newton). Limits have slacks and multipliers
(a primal-dual interior-point method), so controls never leave theirs; constraints of the final
state have multipliers with a proximal term.

Nocedal, Wright, 2006: Numerical Optimization, chapters 18 and 19. Wächter, Biegler, 2006: On the
implementation of an interior-point filter line-search algorithm.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Literal

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.control.costs import FINAL_STATE, QuadraticCost
from kinetree.control.newton import Iterations
from kinetree.control.optimized_motion import OptimizedMotion, Plan
from kinetree.control.shooting import Shooting, Terms
from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.loops.linear.coordinates import velocity_columns
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model, whole_number
from kinetree.model.limits import position_bounds, position_index
from kinetree.simulation.rollouts.inputs import require_kernel
from kinetree.simulation.rollouts.rollout import run_of
from kinetree.spelling import explains_itself, no_argument

SMALL = 4, 8  # velocity variables up to which second derivatives are used: trees, floating bodies
WRONG = 1e-2  # gap or violation of a plan that is not solved, which MPC then does not follow
OPTIONS = ("forces", "friction", "contact", "inputs", "parameters", "t0")  # of rollouts

Limits = Literal["model"] | tuple[ArrayLike, ArrayLike] | None


class Problem:
    """A problem of trajectory optimization, for any start; see ``optimize``."""

    def __init__(
        self,
        model: Model,
        *,
        steps: int,
        dt: float,
        running: Any = None,
        terminal: Any = None,
        goal: Any = None,
        path_constraint: Any = None,
        final_constraint: Any = None,
        actuated: Sequence[str] | None = None,
        use: Literal["tau", "controls"] = "tau",
        effort_limits: Limits = "model",
        position_limits: Limits = "model",
        velocity_limits: Limits = "model",
        arguments: Mapping[str, ArrayLike] | None = None,
        limit_penalty: float | None = None,
        tolerance: float = 1e-6,
        iterations: int = 200,
        second_order: bool | None = None,
        integrator: Any = "semi_implicit_euler",
        limits: Any = None,
        **options: Any,
    ):
        if limit_penalty is not None and not limit_penalty > 0:
            raise ShapeError(f"limit_penalty must be positive or None, got {limit_penalty!r}")
        self.limit_penalty = limit_penalty
        self.model, self.held = as_model(model), use
        self.steps, self.dt = whole_number(steps, "steps", 1), float(dt)
        self.tolerance, self.iterations = tolerance, whole_number(iterations, "iterations")
        if not tolerance > 0:
            raise ShapeError(f"tolerance must be positive, got {tolerance!r}")
        for name in options:
            if name not in OPTIONS:
                known = [n for n in signature(optimize).parameters if n != "problem"]
                raise TypeError(no_argument("optimize", name, [*known, *OPTIONS]))
        if use not in ("tau", "controls"):
            raise UnknownNameError(f"use must be 'tau' or 'controls', got {use!r}")
        n = self.model.nv if use == "tau" else len(self.model.actuators)
        if not n:
            what = "joint variable" if use == "tau" else "actuator"
            raise ModelError(f"model {self.model.name!r} has no {what} that optimize could drive")
        if use == "controls" and actuated is not None:
            raise UnknownNameError("actuated names joints, for use='tau'; controls are all used")
        self.columns = (
            velocity_columns(self.model, actuated, "actuated") if use == "tau" else np.arange(n)
        )
        self.arguments = dict(arguments or {})
        terms = [self._kernels(running, "running", n), self._kernels(terminal, "terminal", n)]
        terms += [self._several(path_constraint), self._several(final_constraint)]
        self.goal = None
        if goal is not None:
            q, qd = goal if isinstance(goal, tuple) else (goal, None)
            self.goal = as_configuration(self.model, np.asarray(q, float), "goal")
            qd = np.zeros(self.model.nv) if qd is None else np.asarray(qd, float)
            qd = as_joint_vector(self.model, qd, "qd of goal")
            self.arguments |= {"goal_q": self.goal, "goal_qd": qd}
            terms[3] = (*terms[3], FINAL_STATE)
        self.terms = Terms(*terms)
        if not (self.terms.running or self.terms.terminal):
            raise TypeError("optimize needs a cost: running=..., terminal=..., or both")
        contact = options.get("contact")
        rigid = hasattr(contact, "relaxation")
        if rigid and not getattr(contact, "relaxation", 0.0) > 0:
            raise ModelError(
                "optimize takes rigid contact with a relaxation, which makes it differentiable: "
                "kinetree.contact.TimeStepping(scene, relaxation=0.05)"
            )
        if second_order is None:
            flat = all(joint.rates_are_velocities for joint in self.model.joint[1:])
            second_order = self.model.nv <= SMALL[not flat] and not rigid
        elif second_order and rigid:
            raise ModelError("second derivatives through rigid contact: use second_order=False")
        self.second_order, self.touching = second_order, contact is not None
        self.options = {"integrator": integrator, "limits": limits, **options}
        self._set_bounds(effort_limits, position_limits, velocity_limits)

    def _kernels(self, costs, role, n):
        found = []
        for each in self._several(costs, kernels=False):
            if isinstance(each, QuadraticCost):
                name = role if not found else f"{role} {len(found)}"
                made, arrays = each.parts(self.model, self.held, n, role, name)
                self.arguments |= arrays
                found.append(made)
            else:
                found.append(require_kernel(each, f"{role} cost"))
        return tuple(found)

    @staticmethod
    def _several(given, kernels=True) -> tuple[Any, ...]:
        several: Any = () if given is None else given if isinstance(given, Sequence) else (given,)
        if kernels:
            for each in several:
                require_kernel(each, "constraint")
        return tuple(several)

    def _set_bounds(self, effort, position, velocity):
        """Bounds on ``(u, q, qd)`` as rows ``sign (z[index] - value) <= 0``."""
        model, m = self.model, len(self.columns)
        most = np.where(model.effort_limits > 0, model.effort_limits, np.inf)  # zero: unknown
        most = most[self.columns] if self.held == "tau" else np.full(m, np.inf)
        if self.held == "controls" and effort == "model":
            effort = tuple(np.array([a.control for a in model.actuators], float).T)
        fastest = np.where(model.velocity_limits > 0, model.velocity_limits, np.inf)
        pairs = [
            _pair(effort, (-most, most), m, "effort_limits"),
            _pair(position, position_bounds(model), model.nv, "position_limits"),
            _pair(velocity, (-fastest, fastest), model.nv, "velocity_limits"),
        ]
        lower, upper = (np.concatenate([p[k] for p in pairs]) for k in (0, 1))
        low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        self.index = np.concatenate([low, high])
        self.sign = np.concatenate([-np.ones(len(low)), np.ones(len(high))])
        self.value = np.concatenate([lower[low], upper[high]])
        self.select = np.zeros((len(self.index), len(lower)))
        self.select[np.arange(len(self.index)), self.index] = self.sign
        self.lower, self.upper = lower[:m], upper[:m]
        knots = np.arange(self.steps + 1)[:, None]
        bounds = np.where(self.index < m, knots < self.steps, knots > 0)
        self.bounded, self.position = bounds, position_index(model)

    # --- solving -----------------------------------------------------------------------------

    def solve(
        self,
        q0: ArrayLike,
        qd0: ArrayLike | None = None,
        *,
        guess: Any = None,
        barrier: float | None = None,
        iterations: int | None = None,
    ) -> OptimizedMotion:
        """The motions of least cost from these starts; arguments as for ``optimize``."""
        guess = _as_guess(guess)
        m, T, model = len(self.columns), self.steps, self.model
        n = model.nv if self.held == "tau" else m
        given = {k: x for k, x in guess.items() if k != "multipliers" and x is not None}
        lead = np.broadcast_shapes(*(np.shape(x)[1:-1] for x in given.values()))
        held = np.zeros((T, *lead, n)) if T > 1 else np.zeros((1, *lead, n))
        terms = self.terms
        groups = terms.running, terms.terminal, terms.path, terms.final
        costs = [kernel for group in groups for kernel in group]
        run = run_of(
            model,
            q0,
            qd0,
            costs=costs,
            steps=T,
            dt=self.dt,
            arguments=self.arguments,
            function="rollout_gradient",
            **{self.held: held},
            **self.options,
        )
        found = Iterations(self, Shooting(model, self.terms, self.columns, self.held, run))
        with run.task():
            found.begin(guess, barrier)
            found.run(self.iterations if iterations is None else iterations)
            arrays = found.result()
        u, tau = arrays.pop("u"), None
        if self.held == "tau":
            tau = np.zeros((*u.shape[:-1], model.nv))
            tau[..., self.columns] = u
        return OptimizedMotion(
            model,
            found.shooting.times,
            tau=tau,
            controls=u if tau is None else None,
            columns=tuple(map(int, self.columns)),
            bounds=(self.lower, self.upper),
            options=self.options,
            **arrays,
        )


def _pair(given, own, size, name):
    """Lower and upper bounds, (size,) each."""
    if given is None:
        return np.full(size, -np.inf), np.full(size, np.inf)
    if isinstance(given, str):
        if given != "model":
            raise UnknownNameError(
                f"{name} must be 'model', None or a pair (lower, upper), got {given!r}"
            )
        given = own
    lower, upper = (np.broadcast_to(np.asarray(x, float), (size,)) for x in given)
    if not np.all(lower < upper):
        raise ShapeError(f"{name}: lower must be below upper, got {lower} and {upper}")
    return lower, upper


def _as_guess(guess):
    if guess is None:
        return {}
    if isinstance(guess, OptimizedMotion):
        u = guess.tau[..., list(guess.columns)] if guess.tau is not None else guess.controls
        return {"q": guess.q, "qd": guess.qd, "u": u, "multipliers": guess.multipliers}
    unknown = set(guess) - {"q", "qd", "tau", "controls", "u", "multipliers"}
    if unknown:
        raise UnknownNameError(
            f"guess has q, qd, tau and controls, or is an earlier result; got {sorted(unknown)}"
        )
    return dict(guess)


@on_host
def optimize(
    model: Model,
    q0: ArrayLike,
    qd0: ArrayLike | None = None,
    *,
    steps: int,
    dt: float,
    running: Any = None,
    terminal: Any = None,
    goal: Any = None,
    path_constraint: Callable | Sequence[Callable] | None = None,
    final_constraint: Callable | Sequence[Callable] | None = None,
    actuated: Sequence[str] | None = None,
    use: Literal["tau", "controls"] = "tau",
    effort_limits: Limits = "model",
    position_limits: Limits = "model",
    velocity_limits: Limits = "model",
    limit_penalty: float | None = None,
    guess: Any = None,
    arguments: Mapping[str, ArrayLike] | None = None,
    tolerance: float = 1e-6,
    iterations: int = 200,
    barrier: float | None = None,
    second_order: bool | None = None,
    integrator: Any = "semi_implicit_euler",
    **options: Any,
) -> OptimizedMotion:
    """Trajectory optimization: motions of least cost from given states, within limits.

        found = kt.control.optimize(
            m, q0, steps=100, dt=0.02, goal=m.posture("upright").q, actuated=["rail"],
            running=kt.control.QuadraticCost(effort=0.01),
        )

    Starts, guesses, goals and arguments may have batch axes: all problems are solved at once,
    independently.

    Args:
        model: the mechanism.
        q0: joint positions at the start [m, rad], (..., nq).
        qd0: joint velocities at the start, (..., nv); at rest by default.
        steps: of the motion.
        dt: length of a step [s].
        running: cost of every step, the sum of which counts: a ``QuadraticCost``, a kernel
            ``(model, t, q, qd, tau, ...)`` as for ``kinetree.rollout_gradient``, or several. A
            kernel returns a number, or a vector of residuals, whose half squared norm is the
            cost, with second derivatives by Gauss–Newton.
        terminal: cost of the final state, likewise, without ``tau``.
        goal: the final state to reach exactly: ``q``, at rest, or a pair ``(q, qd)``.
        path_constraint: kernels like ``running`` whose values must never be positive.
        final_constraint: kernels like ``terminal`` whose values must be zero at the end.
        actuated: names of the driven joints; all by default.
        use: ``"tau"``, joint forces; ``"controls"``, those of the model's actuators.
        effort_limits: of forces or controls: ``"model"``, None, or a pair (lower, upper), (n,)
            each, for the driven joints.
        position_limits: likewise, (nv,) each, for joints whose velocities are the rates of their
            positions.
        velocity_limits: likewise, (nv,).
        limit_penalty: makes limits of positions and velocities and ``path_constraint`` soft: the
            cost of violating one by one unit in one step. Where it exceeds their multipliers, the
            limits hold if they can. None: they must hold, and no motion may be feasible.
        guess: where to start from: a dict of ``q`` and ``qd`` (steps + 1, ...), ``tau`` or
            ``controls`` (steps, ...), time first, of which any can be left out; or an earlier
            result, whose multipliers are used as well. By default a straight line to ``goal``, or
            the start, without forces.
        arguments: arrays for kernels, by name, (..., shape of one sample).
        tolerance: of optimality, gaps, limits and constraints.
        iterations: at most.
        barrier: of limits at the start; chosen from the cost by default.
        second_order: whether second derivatives of steps and constraints are used where they
            leave the problem convex. They are slower to compile, and take far fewer iterations
            where motors do not drive every joint, and for floating bodies. By default for models
            with up to four velocity variables, eight with a floating body, without rigid contact.
        integrator: of steps.
        **options: ``forces``, ``friction``, ``contact``, ``inputs``, ``parameters``, ``t0`` and
            ``limits`` (springs at joint limits, none by default), as for ``kinetree.rollout``.
            Contact is soft, or rigid and relaxed.
    """
    problem = Problem(
        model,
        steps=steps,
        dt=dt,
        running=running,
        terminal=terminal,
        goal=goal,
        path_constraint=path_constraint,
        final_constraint=final_constraint,
        actuated=actuated,
        use=use,
        effort_limits=effort_limits,
        position_limits=position_limits,
        velocity_limits=velocity_limits,
        limit_penalty=limit_penalty,
        arguments=arguments,
        tolerance=tolerance,
        iterations=iterations,
        second_order=second_order,
        integrator=integrator,
        **options,
    )
    return problem.solve(q0, qd0, guess=guess, barrier=barrier)


@explains_itself
class MPC:
    """Model-predictive control: replans from the current state at regular intervals.

        control = kt.control.MPC(m, steps=50, dt=0.02, running=..., terminal=...)
        motion = kt.simulate(m, q0, duration=3.0, dt=0.005, controller=control)

    Every ``replan`` steps of the plan, the problem of ``optimize`` is solved from the current
    state, starting from the last plan. In between, the joint forces are those of the plan, with
    its optimal feedback. Limits of states are soft: a mechanism that is pushed beyond them returns.

    Args:
        model: the mechanism.
        steps: of the plan.
        dt: length of a step of the plan [s].
        replan: steps after which there is a new plan.
        iterations: of every plan but the first.
        first_iterations: of the first plan, and of those that are far from solved after
            ``iterations``.
        tolerance: of plans.
        limit_penalty: as for ``optimize``; choose it well above the cost that violating a limit of
            states can save; None makes them hard.
        guess: for the first plan.
        **problem: as for ``optimize``.

    Attributes:
        plan: the last ``OptimizedMotion``.
        planned_at: time of its start [s].
    """

    plan: OptimizedMotion | None = None
    planned_at: float = 0.0

    def __init__(
        self,
        model: Model,
        *,
        steps: int,
        dt: float,
        replan: int = 1,
        iterations: int = 10,
        first_iterations: int = 200,
        tolerance: float = 1e-4,
        limit_penalty: float | None = 1e3,
        guess: Any = None,
        **problem: Any,
    ):
        if replan < 1 or replan >= steps:
            raise ShapeError(f"replan must be from 1 to steps - 1 = {steps - 1}, got {replan}")
        self.problem = Problem(
            model, steps=steps, dt=dt, tolerance=tolerance, limit_penalty=limit_penalty, **problem
        )
        if self.problem.held != "tau":
            raise ModelError("MPC returns joint forces: leave out use='controls'")
        self.replan, self.guess = replan, guess
        self.iterations, self.first_iterations = iterations, first_iterations

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Joint forces, (nv,)."""
        p, passed = self.problem, (t - self.planned_at) / self.problem.dt + 1e-9
        plan = self.plan
        if plan is None or passed < 0 or int(passed) >= self.replan:
            started = plan is not None and 0 <= passed < p.steps
            guess = _later(plan, int(passed)) if started else self.guess
            found = None
            if started:
                found = p.solve(q, qd, guess=guess, iterations=self.iterations)
            if found is None or (p.limit_penalty is not None and _is_wrong(found)):
                found = p.solve(q, qd, guess=guess, iterations=self.first_iterations)
            if plan is None or not started or not _is_wrong(found):
                plan = self.plan = found
                self.planned_at, passed = t, 0.0
        return Plan.of(plan, ...).forces(passed, q, qd)


def _is_wrong(plan):
    """Whether a plan is so far from solved that it is better to follow another."""
    return not plan.converged and max(plan.gap, plan.violation) > WRONG


def _later(plan, k):
    """A guess from a plan of which ``k`` steps have passed: its last knots are repeated."""
    found = _as_guess(plan)

    def moved(x):
        return np.concatenate([x[k:], np.repeat(x[-1:], k, axis=0)])

    z, y = found.pop("multipliers")
    shifted = {name: moved(x) for name, x in found.items()}
    inner = np.concatenate([moved(z[:-1]), z[-1:]])
    return shifted | {"multipliers": (inner, y)}

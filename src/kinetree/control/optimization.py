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
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal, NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.control.costs import FINAL_STATE, QuadraticCost
from kinetree.control.equilibria import equilibrium
from kinetree.control.linearization import linearize
from kinetree.control.lqr import LQR, discrete_gain
from kinetree.control.newton import Iterations
from kinetree.control.shooting import Shooting, Texts
from kinetree.errors import (
    EquilibriumError,
    LoopError,
    ModelError,
    ShapeError,
    SingularError,
    UnknownNameError,
)
from kinetree.loops.linear.coordinates import velocity_columns
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model, whole_number
from kinetree.model.limits import position_bounds, position_index
from kinetree.notebook import block, shown
from kinetree.quantities import mass_matrix
from kinetree.simulation.results.trajectory import Trajectory
from kinetree.simulation.rollouts.inputs import require_kernel
from kinetree.simulation.rollouts.rollout import rollout, run_of
from kinetree.spelling import explains_itself, no_argument

SMALL = 4, 8  # velocity variables up to which second derivatives are used: trees, floating bodies
NEAR = 1e-2  # how far from rest the end of a motion may be that is held by a regulator
HOLDING = 10.0  # how fast it returns [1/s]
FOLLOWING, PARTS = 3.0, 4  # the same for a regulator along a motion, and how many gains a step has
WRONG = 1e-2  # gap or violation of a plan that is not solved, which MPC then does not follow
OPTIONS = ("forces", "friction", "contact", "inputs", "parameters", "t0")  # of rollouts

Limits = Literal["model"] | tuple[ArrayLike, ArrayLike] | None


@dataclass(frozen=True)
class OptimizedMotion:
    """Motions that ``optimize`` found; time comes first, then the batch.

    Attributes:
        model: the mechanism.
        t: times [s], (steps + 1,).
        q: positions, (steps + 1, ..., nq), exactly those of a rollout of ``tau``.
        qd: velocities, (steps + 1, ..., nv).
        tau: joint forces [N, N·m] held during each step, (steps, ..., nv); None with ``controls``.
        controls: of the model's actuators, (steps, ..., n); None with joint forces.
        cost: of every motion, (...).
        converged: which motions satisfy all tolerances, (...).
        optimality: largest derivative of the Lagrangian with respect to a control, relative to
            the largest force of the costates (at least 1), (...).
        gap: largest difference between the end of a step and the next state before the gaps were
            closed at the end, (...).
        violation: largest violation of a limit or constraint, (...).
        iterations: of every motion, (...).
        history: costs, (iterations + 1, ...).
        gains: ``u = u_k + K (dq, dqd)`` of the best feedback near the motion,
            (steps, ..., m, 2 nv); a row for each driven variable.
        columns: numbers of the driven joint forces or controls.
        bounds: of the driven variables, lower and upper, (m,) each.
        options: of the rollout that is the motion.
        multipliers: of limits and constraints, for a warm start.
    """

    model: Model
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray | None
    controls: np.ndarray | None
    cost: np.ndarray
    converged: np.ndarray
    optimality: np.ndarray
    gap: np.ndarray
    violation: np.ndarray
    iterations: np.ndarray
    history: np.ndarray
    gains: np.ndarray
    columns: tuple[int, ...]
    bounds: tuple[np.ndarray, np.ndarray]
    options: dict[str, Any]
    multipliers: tuple[np.ndarray, ...]

    def __repr__(self):
        b, n = self.best, np.size(self.cost)
        many = f"{int(np.sum(self.converged))} of {n} converged; the best: " if n > 1 else ""
        state = "converged" if self.converged[b] else "not converged"
        return (
            f"<OptimizedMotion of {self.model.name!r}, {len(self.t) - 1} steps to "
            f"t = {self.t[-1]:g} s: {many}{state} after {int(self.iterations[b])} iterations, cost "
            f"{self.cost[b]:.6g}, optimality {self.optimality[b]:.1e}, violation "
            f"{self.violation[b]:.1e}>"
        )

    def _repr_html_(self):
        return block(repr(self)[1:-1], shown(self.motion()))

    @property
    def best(self) -> tuple[int, ...]:
        """Index of the motion of least cost, among those that converged, if any did."""
        cost = np.where(self.converged, self.cost, np.inf) if self.converged.any() else self.cost
        found = np.unravel_index(int(np.nanargmin(cost)), np.shape(cost))
        return tuple(int(i) for i in found)

    def motion(self, index: tuple[int, ...] | int | None = None) -> Trajectory:
        """One motion, by default the best, as a ``Trajectory``: plots, tables, the viewer."""
        held = {"tau": self.tau} if self.controls is None else {"controls": self.controls}
        options = {name: x for name, x in self.options.items() if name != "inputs"}
        found: Any = rollout(
            self.model, self.q[0], self.qd[0], steps=len(self.t) - 1, dt=self.dt, **held, **options
        )
        return found.motion(self.best if index is None else index)

    def controller(
        self, index: tuple[int, ...] | int | None = None
    ) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray]:
        """Joint forces that follow one motion, by default the best: a function of ``t, q, qd``.

        If the mechanism can rest at the end, without contact, other forces and parameters, a
        linear-quadratic regulator along the motion returns to it, and one at the end holds the
        final state. Otherwise the feedback is that of ``gains``, and that of the last step goes on.
        Forces stay within the limits; where these leave nothing for the feedback, plan again.
        """
        if self.tau is None:
            raise ModelError("controllers return joint forces: leave out use='controls'")
        index = self.best if index is None else index if isinstance(index, tuple) else (index,)
        at = (slice(None), *index)
        plan = _Plan.of(self, at)
        hold = self._holding(plan.q[-1], plan.qd[-1], HOLDING)
        tight = None
        if hold is not None and not hold.coordinates:
            tight = self._returning(plan.q, plan.qd, plan.tau)

        def follow(t, q, qd):
            passed = (t - self.t[0]) / self.dt + 1e-9
            if hold is not None and passed >= len(self.t) - 1:
                limits = np.full((2, self.model.nv), [[-np.inf], [np.inf]])
                limits[:, list(self.columns)] = self.bounds
                return np.clip(hold(t, q, qd), *limits)
            if tight is None:
                return plan.forces(passed, q, qd)
            k, q_plan, qd_plan = _between(self.model, plan.q, plan.qd, self.dt, passed)
            off = np.concatenate([self.model.difference(q_plan, q), qd - qd_plan])
            return plan.corrected(k, -(tight[max(int(passed * PARTS), 0)] @ off))

        return follow

    def _returning(self, q, qd, tau):
        """Gains of a linear-quadratic regulator along a motion, ``PARTS`` in each of its steps.

        Those of the problem lead to its goal, not back to the motion; if that must be reached
        exactly, they grow without bound.
        """
        end: Any = self._holding(q[-1], qd[-1], FOLLOWING)
        parts = [
            _between(self.model, q, qd, self.dt, (k + 0.5) / PARTS) for k in range(PARTS * len(tau))
        ]
        steps, at, rates = (np.array(x) for x in zip(*parts, strict=True))
        h, P, gains = self.dt / PARTS, end.P, []
        A, B, *_ = linearize(self.model, at, rates, tau[steps], dt=h)
        for a, b in zip(A[::-1], B[::-1][..., list(self.columns)], strict=True):
            K = discrete_gain(a, b, h * end.R, P)
            P = h * np.eye(len(P)) + a.T @ P @ (a - b @ K)
            P = (P + P.T) / 2
            gains.append(K)
        return gains[::-1]

    def _holding(self, q, qd, rate):
        """A regulator at the end of a motion, or None if that is not an equilibrium.

        Deviations return at a ``rate`` [1/s], whatever the inertia.
        """
        model, driven = self.model, list(self.columns)
        spans = zip(model.joint_names, model.v_slice[1:], strict=True)
        names = [n for n, at in spans if {*driven}.issuperset(range(at.start, at.stop))]
        others = ("contact", "forces", "parameters")  # which ``equilibrium`` does not know
        if any(map(self.options.get, others)) or np.abs(qd).max() > NEAR:
            return None
        try:
            rest = equilibrium(model, q, actuated=names)
            if np.abs(model.difference(q, rest.q)).max() > NEAR:
                return None
            H = np.linalg.inv(mass_matrix(model.spanning_tree, rest.q)[np.ix_(driven, driven)])
            return LQR(model, rest.q, Q=1.0, R=H.T @ H / rate**4, actuated=names)
        except (EquilibriumError, LoopError, SingularError, ModelError):
            return None

    @property
    def dt(self) -> float:
        """Length of a step [s]."""
        return float(self.t[1] - self.t[0])


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
        texts = [self._kernels(running, "running", n), self._kernels(terminal, "terminal", n)]
        texts += [self._several(path_constraint), self._several(final_constraint)]
        self.goal = None
        if goal is not None:
            q, qd = goal if isinstance(goal, tuple) else (goal, None)
            self.goal = as_configuration(self.model, np.asarray(q, float), "goal")
            qd = np.zeros(self.model.nv) if qd is None else np.asarray(qd, float)
            qd = as_joint_vector(self.model, qd, "qd of goal")
            self.arguments |= {"goal_q": self.goal, "goal_qd": qd}
            texts[3] = (*texts[3], FINAL_STATE)
        self.texts = Texts(*texts)
        if not (self.texts.running or self.texts.terminal):
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
        costs = [
            k
            for group in (
                self.texts.running,
                self.texts.terminal,
                self.texts.path,
                self.texts.final,
            )
            for k in group
        ]
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
        found = Iterations(self, Shooting(model, self.texts, self.columns, self.held, run))
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
            found.f.times,
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
        return _Plan.of(plan, ...).forces(passed, q, qd)


def _is_wrong(plan):
    """Whether a plan is so far from solved that it is better to follow another."""
    return not plan.converged and max(plan.gap, plan.violation) > WRONG


def _between(model, q, qd, dt, passed):
    """Step and state of a plan of which some steps have ``passed``: positions are cubic in time."""
    k = min(max(int(passed), 0), len(q) - 2)
    s, ahead = max(passed - k, 0.0), model.difference(q[k], q[k + 1])
    v, w, r = dt * qd[k], dt * qd[k + 1], 1 - s
    change = s * s * (3 - 2 * s) * ahead + s * r * r * v - s * s * r * w
    rate = 6 * s * r * ahead + r * (1 - 3 * s) * v + s * (3 * s - 2) * w
    return k, model.integrate(q[k], change), rate / dt


class _Plan(NamedTuple):
    """One motion with its optimal feedback; entries as of ``OptimizedMotion``."""

    model: Model
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    gains: np.ndarray
    columns: tuple[int, ...]
    bounds: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, motion, at) -> "_Plan":
        """The motion of an ``OptimizedMotion`` at an index of its arrays."""
        q, qd, tau, gains = (x[at] for x in (motion.q, motion.qd, motion.tau, motion.gains))
        return cls(motion.model, q, qd, tau, gains, motion.columns, motion.bounds)

    def forces(self, passed, q, qd):
        """Joint forces near the motion, of which some steps have ``passed``; its end is held."""
        model, k = self.model, min(max(int(passed), 0), len(self.tau) - 1)
        part = min(max(passed - k, 0.0), 1.0)
        ahead = model.difference(self.q[k], self.q[k + 1])
        dq = model.difference(model.integrate(self.q[k], part * ahead), q)
        dqd = qd - self.qd[k] - part * (self.qd[k + 1] - self.qd[k])
        return self.corrected(k, self.gains[k] @ np.concatenate([dq, dqd]))

    def corrected(self, k, change):
        """Joint forces of a step with a change of the driven ones, within bounds."""
        tau, driven = self.tau[k].copy(), list(self.columns)
        tau[driven] = np.clip(tau[driven] + change, *self.bounds)
        return tau


def _later(plan, k):
    """A guess from a plan of which ``k`` steps have passed: its last knots are repeated."""
    found = _as_guess(plan)

    def moved(x):
        return np.concatenate([x[k:], np.repeat(x[-1:], k, axis=0)])

    z, y = found.pop("multipliers")
    shifted = {name: moved(x) for name, x in found.items()}
    inner = np.concatenate([moved(z[:-1]), z[-1:]])
    return shifted | {"multipliers": (inner, y)}

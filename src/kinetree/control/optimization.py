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
from typing import Any, Literal

from kinetree.arrays.host import on_host_unless
from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.device.callers import gpu_of
from kinetree.control.inequalities import Limits, VariableLimits
from kinetree.control.optimized_motion import OptimizedMotion
from kinetree.control.phases import Phase, Schedule
from kinetree.control.problem import Drives, Horizon, Objective, Search, TrajectoryProblem
from kinetree.model import Model


@on_host_unless(lambda given: gpu_of(given["q0"]) is not None)
def optimize(
    model: Model,
    q0: ArrayLike,
    qd0: ArrayLike | None = None,
    *,
    dt: float,
    steps: int | None = None,
    phases: Schedule | Sequence[Phase] | None = None,
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
    second_order: bool | None = None,
    integrator: Any = "semi_implicit_euler",
    **options: Any,
) -> OptimizedMotion:
    """Trajectory optimisation: motions of least cost from given states, within limits.

        found = kt.control.optimize(
            m, q0, steps=100, dt=0.02, goal=m.posture("upright").q, actuated=["rail"],
            running=kt.control.QuadraticCost(effort=0.01),
        )

    Starts, guesses, goals and arguments may have batch axes; starts on a GPU are solved there.

    Args:
        model: the mechanism.
        q0: joint positions at the start [m, rad], (..., nq).
        qd0: joint velocities at the start, (..., nv); at rest by default.
        dt: length of a step [s].
        steps: of the motion; by default as many as the phases last.
        phases: contacts that are closed, one ``Phase`` after the other, or a ``Schedule``.
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
        position_limits: likewise, (nv,) each, where velocities are the rates of positions.
        velocity_limits: likewise, (nv,).
        limit_penalty: makes limits of positions and velocities and ``path_constraint`` soft: the
            cost of violating one by one unit in one step. Where it exceeds their multipliers, the
            limits hold if they can. None: they must hold, and no motion may be feasible.
        guess: where to start from: a dict of ``q`` and ``qd`` (steps + 1, ...), ``tau`` or
            ``controls`` (steps, ...), time first, of which any can be left out; or an earlier
            result. By default a straight line to ``goal``, or the start; without forces, with
            ``phases`` those that hold the start.
        arguments: arrays for kernels, by name, (..., shape of one sample).
        tolerance: of optimality, gaps, limits and constraints.
        iterations: at most.
        second_order: whether second derivatives of steps and constraints are used where they
            leave the problem convex: slower to compile, with far fewer iterations
            where motors do not drive every joint, and for floating bodies. By default up to four
            velocity variables, eight with a floating body, without rigid contact and phases.
        integrator: of steps.
        **options: ``forces``, ``friction``, ``contact``, ``inputs``, ``parameters``, ``t0`` and
            ``limits`` (springs at joint limits, none by default), as for ``kinetree.rollout``.
            Contact is soft, or rigid and relaxed. ``barrier``: of limits at the start.
    """
    barrier = options.pop("barrier", None)
    problem = TrajectoryProblem(
        model,
        Horizon(steps, dt, integrator, phases),
        Objective(running, terminal, goal, path_constraint, final_constraint, arguments),
        Drives(use, actuated),
        VariableLimits(effort_limits, position_limits, velocity_limits, limit_penalty),
        Search(tolerance, iterations, second_order),
        options,
    )
    return problem.solve(q0, qd0, guess=guess, barrier=barrier)

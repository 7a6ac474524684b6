"""Whole-body control: accelerations and contact forces that do the tasks best, and joint forces.

    H qdd + C = Sᵀ tau + Jᵀ f          forces of the driven joints, and in friction cones
    J qdd + dJ/dt qd = 0               contacts stay where they are
    |tau| <= limits, limits of joints  and the tasks, in the order of their priorities

L. Sentis, O. Khatib, "Synthesis of whole-body behaviors through hierarchical control of behavioral
primitives" (2005); A. Del Prete et al., "Implementing torque control with high-ratio gear boxes and
without joint-torque sensors" (2016), from which TSID comes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.control.active_set import FOUND, LOST
from kinetree.control.infeasible import as_matrices, why_not
from kinetree.control.lexicographic import InfeasibleError, minimize
from kinetree.control.motors import driven_variables, force_limits
from kinetree.control.stance import RELAXED, Stance, WholeBodyRobot
from kinetree.control.whole_body_loop import CompiledWholeBody, WholeBodyLoop, tables, warn_once
from kinetree.control.whole_body_quantities import Quantities, forget_failures
from kinetree.control.whole_body_step import (
    NOT_COMPUTED,
    control,
    control_with,
    find_torques,
    prepare,
)
from kinetree.control.whole_body_tasks import Contact, TaskRows, WholeBodyTask
from kinetree.errors import (
    MissingPackageError,
    ShapeError,
    SingularError,
    require_known,
)
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.define import require_tree
from kinetree.spelling import explains_itself

_RATE = 20.0


@dataclass(frozen=True, eq=False)
class WholeBodySolution:
    """Result of a whole-body controller.

    Attributes:
        tau: forces of the motors, (nv,).
        qdd: accelerations, (nv,).
        forces: of each contact, along the axes of the base [N], (points, 3) each.
        iterations: of the solver.
        errors: residual of each task, ``A x - b``: accelerations, or forces.
        relaxed: what gave way since not everything can be met: nothing, ``"joint limits"``, or
            these and ``"contacts"``, which then stay as well as they can.
        solver: ``"active set"``; ``"DAQP"`` where rounding errors spoiled its answer; ``"none"``
            where both failed, and torques are zero.
        accuracy: what the active-set method left of the gradient of the Lagrangian, relative to it.
    """

    tau: np.ndarray
    qdd: np.ndarray
    forces: dict[str, np.ndarray]
    iterations: int
    errors: dict[str, np.ndarray]
    relaxed: tuple[str, ...] = ()
    solver: str = "active set"
    accuracy: float = 0.0


@explains_itself
class WholeBody:
    """Whole-body control: several tasks at once, with contact forces, by a quadratic program.

        stand = kt.control.WholeBody(m, tasks, contacts=["left_foot", "right_foot"])
        tau = stand(t, q, qd)
        stand.solve(t, q, qd).forces["left_foot"]

    Of the accelerations ``qdd`` and contact forces ``f`` that the equations of motion, the friction
    cones, and the limits of torques and joints allow, it takes those with the smallest
    ``Σ weight |A x - b|²`` of the tasks; those of priority 2 do not affect the errors of priority
    1, and so on. A step is one call of compiled code.

    Where not everything can be met, such as after a hard push, limits of joints give way first, and
    then contacts, which stay as well as friction cones and motors allow: there always are torques.

    Args:
        model: a tree, with any joints; springs, dampers and friction of the joints are included.
        tasks: ``FrameTask``, ``PostureTask``, ``CenterOfMassTask``, ``MomentumTask`` and
            ``ForceTask``.
        contacts: names of frames that touch the ground with their origin, or ``Contact`` objects.
        stance: function of time that returns the names of the closed contacts; all by default.
        actuated: names of the driven joints. By default those with actuators; of a model without
            any, all but free joints.
        torque_limits: True for those of the model and its motors, False for none, or (nv,).
        joint_limits: whether joints stay within the limits of position and speed of the model. The
            gap to a limit decays no faster than at a rate, 20/s, or another if it is a number.
        acceleration_weight: weight of ``|qdd|²`` beside the tasks of lowest priority.
        force_weight: weight of ``|f|²`` likewise. It determines how contacts share a load that is
            otherwise undetermined.
        strict: raise an error where not everything can be met.

    Raises:
        LoopError: the model has loops.
    """

    def __init__(
        self,
        model: Model,
        tasks: Sequence[WholeBodyTask],
        contacts: Sequence[str | Contact] = (),
        *,
        stance: Callable[[float], Sequence[str]] | None = None,
        actuated: Sequence[str] | None = None,
        torque_limits: bool | ArrayLike = True,
        joint_limits: bool | float = True,
        acceleration_weight: float = 1e-6,
        force_weight: float = 1e-6,
        strict: bool = False,
    ):
        require_tree(as_model(model), "kinetree.control.WholeBody")
        self.model, self.stance, self.strict = model, stance, strict
        self._options: dict[str, Any] = {
            "contacts": contacts,
            "actuated": actuated,
            "torque_limits": torque_limits,
            "joint_limits": joint_limits,
            "acceleration_weight": acceleration_weight,
            "force_weight": force_weight,
            "strict": strict,
        }
        self.contacts = _by_name(model, contacts)
        self.driven = driven_variables(model, actuated)
        self.torque_limits = force_limits(model, torque_limits)
        rate = _RATE * joint_limits if isinstance(joint_limits, bool) else float(joint_limits)
        if not rate >= 0 or not acceleration_weight > 0 or not force_weight > 0:
            raise ShapeError(
                f"joint_limits, acceleration_weight and force_weight must be positive, got "
                f"{joint_limits!r}, {acceleration_weight!r}, {force_weight!r}"
            )
        points, start = {}, 0
        for name, c in self.contacts.items():
            points[name] = slice(start, start + 3 * len(c.points))
            start += 3 * len(c.points)
        self.tasks = tuple(tasks)
        self._rows = _in_order([_task_rows(t, model, self.driven, points) for t in self.tasks])
        ends = np.cumsum([0, *(r.size for r in self._rows)])
        self._at = [slice(a, b) for a, b in pairwise(ends)]
        fixed = np.zeros((int(ends[-1]), model.nv + start))
        for r, s in zip(self._rows, self._at, strict=True):
            if r.fixed is not None:
                fixed[s] = r.fixed
        moving = [r for r in self._rows if r.text is not None]
        self._quantities = found = Quantities(model, self.contacts.values(), moving, start)
        self._v_r, self._a_r = np.zeros(sum(r.size for r in moving)), np.zeros(len(fixed))
        references = {"v_r": self._v_r, "a_r": self._a_r, "q": found.q, "qd": found.qd}
        sizes = [model.nv, start]
        weights = np.repeat([acceleration_weight, force_weight], sizes)
        given = [r.kp for r in moving], [r.kd for r in moving]
        coupled = any(gain.value.ndim == 2 for gains in given for gain in gains)
        gains = _join_gains(given[0], coupled), _join_gains(given[1], coupled)
        arrays = {**found.arrays, **references, "tau": np.zeros(model.nv)}
        self._robot = WholeBodyRobot(
            model,
            self.driven,
            self.contacts,
            points,
            self._rows,
            fixed,
            self.torque_limits,
            rate,
            weights,
            gains,
            arrays,
        )
        self.loops: list[Any] = []
        self._stances: dict[tuple[str, ...], Stance] = {}
        self._live: tuple[bool, ...] = ()
        self._always: Stance | None = None
        self._has_followed, self._warned, self._turn = False, False, Lock()

    def __repr__(self):
        return (
            f"<WholeBody control of {self.model.name!r}; tasks: {len(self.tasks)}, "
            f"contacts: {len(self.contacts)}>"
        )

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        q, qd = np.asarray(q), np.asarray(qd)
        if q.ndim == 1 and qd.ndim == 1:
            return self._torques(t, q, qd)
        batch = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1])
        q, qd = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, qd))
        tau = np.empty((*batch, self.model.nv))
        for sample in np.ndindex(batch):
            tau[sample] = self._torques(t, q[sample], qd[sample])
        return tau

    def _torques(self, t, q, qd):
        """Joint forces at a time and state; warns where tasks contradict."""
        with self._turn:
            _, _, number, _ = self._solve_now(t, q, qd)
            if number:
                self.warn_of(number, t)
            return self._robot.arrays["tau"].copy()

    def warn_of(self, stage: int, t: float) -> None:
        """Warn once about the constraints that are relaxed at a stage of ``RELAXED``."""
        if not self._warned:
            self._warned = True
            warn_once(self.model, stage, t)

    # --- loops of compiled code --------------------------------------------------------------

    def compiled_control(self, model: Model) -> CompiledWholeBody | None:
        """Compiled form of this controller; None where goals depend on time.

        Args:
            model: the mechanism that moves, which has the same variables.
        """
        if self.stance is not None or not all(r.constant for r in self._rows):
            return None
        if (model.nq, model.nv) != (self.model.nq, self.model.nv) or model.couplings:
            return None
        if self._quantities.codes is None:
            return None
        return CompiledWholeBody(self, lambda: WholeBody(self.model, self.tasks, **self._options))

    def loop(self, t: Array, q: Array, qd: Array, out: Array) -> WholeBodyLoop:
        """Tables of this controller, tied to arrays of the state and of its forces."""
        at = self._stance_at(0.0)
        self._follow(0.0, at)
        state = {"t": t, "q": q, "qd": qd, "out": out, "nq": self.model.nq, "nv": self.model.nv}
        return WholeBodyLoop(
            codes=self._quantities.codes, strict=self.strict, **tables(at, self._live), **state
        )

    def solve(self, t: float, q: ArrayLike, qd: ArrayLike) -> WholeBodySolution:
        """Torques, accelerations and contact forces for one state.

        Raises:
            InfeasibleControlError: with ``strict``, if no solution satisfies all constraints; the
                message names them.
        """
        with self._turn:
            at, problem, number, solver = self._solve_now(t, q, qd)
            nv = self.model.nv
            qdd, f = problem.x[:nv].copy(), problem.x[nv:].copy()
            forces = {name: f[s].reshape(-1, 3) for name, s in at.points.items()}
            left = problem.Ax[: len(self._a_r)] / problem.root[: len(self._a_r)]
            rows = zip(self._rows, self._at, self._live, strict=True)
            errors = {r.name: left[s] for r, s, on in rows if on}
            tau = self._robot.arrays["tau"].copy()
            more = (problem.iterations, errors, RELAXED[number], solver, problem.accuracy)
            return WholeBodySolution(tau, qdd, forces, *more)

    # --- one instant ---------------------------------------------------------------------------

    def _solve_now(self, t, q, qd):
        """Stance, solved problem, stage of ``RELAXED`` and solver name for one state."""
        here = self._quantities
        if q.__class__ is np.ndarray and q.shape == here.q.shape and qd.shape == here.qd.shape:
            here.q[:], here.qd[:] = q, qd
        else:
            here.q[:], here.qd[:] = self._check_state(q, qd)
        at = self._always or self._stance_at(t)
        if self._always is None:
            self._follow(t, at)
            if self.stance is None and all(r.constant for r in self._rows):
                self._always = at  # nothing depends on time
        codes, (instant, problem) = here.codes, at.stage(0, self._live)
        result = NOT_COMPUTED if codes is None else control(codes, instant, problem)
        if result == FOUND:
            return at, problem, 0, "active set"
        if result == NOT_COMPUTED:
            if codes is not None:
                forget_failures(codes)
            here.compute()
            result = control_with(instant, problem)
        for number in range(len(RELAXED)):
            if number:
                instant, problem = at.stage(number, self._live)
                result = control_with(instant, problem)
            if result == FOUND:
                return at, problem, number, "active set"
            if result == LOST and _by_reference(instant, problem):
                return at, problem, number, "DAQP"
            if self.strict:
                raise why_not(self.model, t, at, instant, problem)
        self._robot.arrays["tau"][:] = 0.0  # nothing is known that would not do harm
        return at, problem, len(RELAXED) - 1, "none"

    def _check_state(self, q, qd):
        """State as contiguous arrays; an error unless it is a single state."""
        m = self.model
        q, qd = (np.ascontiguousarray(x, dtype=float) for x in (q, qd))
        if q.shape != (m.nq,) or qd.shape != (m.nv,):
            as_configuration(m, q)
            as_joint_vector(m, qd, "qd")
            raise ShapeError(f"solve takes one state, got q {q.shape} and qd {qd.shape}")
        return q, qd

    def _stance_at(self, t) -> Stance:
        """Tables of the contacts closed at time ``t``, cached for each set of contacts."""
        names = tuple(self.contacts) if self.stance is None else tuple(self.stance(t))
        found = self._stances.get(names)
        if found is None:
            for name in names:
                require_known(
                    name, self.contacts, f"the stance at t = {t:g} has no contact {name!r}"
                )
            closed = [n for n in self.contacts if n in names]
            found = self._stances[names] = Stance(self._robot, closed)
        return found

    def _follow(self, t, at):
        """Write targets, velocities and accelerations of all tasks at time ``t``; active tasks."""
        targets, start, live = self._quantities.targets, 0, []
        for r, s in zip(self._rows, self._at, strict=True):
            applies = not r.contact or r.contact in at.points
            if applies and (not r.constant or not self._has_followed):
                found = r.reference(t)
                applies = found is not None
                if applies:
                    numbers, v, self._a_r[s] = found
                    if r.text is not None:
                        targets[start : start + len(r.targets)], self._v_r[s] = numbers, v
            live.append(applies)
            start += len(r.targets)
        self._live, self._has_followed = tuple(live), True


def _by_reference(instant, problem) -> bool:
    """Solve a problem by DAQP where the active-set method failed; whether it succeeded."""
    prepare(instant, problem)
    try:
        x, problem.iterations = minimize(*as_matrices(problem))
    except (InfeasibleError, SingularError, MissingPackageError):
        return False
    problem.x[:] = x
    tasks = problem.tasks
    problem.Ax[:] = problem.root * (problem.A.reshape(tasks, -1) @ x - problem.b)
    find_torques(instant, problem)
    return True


def _by_name(model, contacts):
    """Contacts by name, from frame names or ``Contact`` objects."""
    if isinstance(contacts, (str, Contact)):
        raise ShapeError(f"contacts must be a list, got {contacts!r}")
    found = {}
    for c in contacts:
        c = Contact(c) if isinstance(c, str) else c
        if not isinstance(c, Contact):
            raise ShapeError(
                f"contacts must be names of frames or kinetree.control.Contact objects, got {c!r}"
            )
        model.frame(c.frame)
        if c.frame in found:
            raise ShapeError(f"there are two contacts {c.frame!r}; put all points into one")
        found[c.frame] = c
    return found


def _task_rows(task, model, driven, points) -> TaskRows:
    """Rows of a task; an error for objects that are no tasks."""
    if not isinstance(task, WholeBodyTask):
        raise ShapeError(
            f"tasks must be objects of kinetree.control such as FrameTask(...) or "
            f"PostureTask(...), got {task!r}"
        )
    return task.rows(model, driven, points)


def _in_order(rows):
    """Task rows sorted: Jacobians, other motions, forces; an error for equal names."""
    rows = sorted(rows, key=lambda r: (r.text is None, r.fixed is not None))
    names = [r.name for r in rows]
    for name in names:
        if names.count(name) > 1:
            raise ShapeError(f"there are two tasks {name!r}; give one of them another name=...")
    return rows


def _join_gains(gains, whole):
    """Gains of all rows in one: a factor for each row, or a matrix."""
    parts = [np.broadcast_to(g.value, (g.size,)) if g.value.ndim < 2 else g.value for g in gains]
    if not whole:
        return np.concatenate([np.zeros(0), *parts])
    size = sum(g.size for g in gains)
    matrix, start = np.zeros((size, size)), 0
    for part in parts:
        at = slice(start, start + len(part))
        matrix[at, at] = part if part.ndim == 2 else np.diag(part)
        start = at.stop
    return matrix

"""Whole-body control: accelerations and contact forces that do the tasks best, and joint forces.

    H qdd + C = Sᵀ tau + Jᵀ f          forces of the driven joints, and in friction cones
    J qdd + dJ/dt qd = 0               contacts stay where they are
    |tau| <= limits, limits of joints  and the tasks, in the order of their priorities

L. Sentis, O. Khatib, "Synthesis of whole-body behaviors through hierarchical control of behavioral
primitives" (2005); A. Del Prete et al., "Implementing torque control with high-ratio gear boxes and
without joint-torque sensors" (2016), from which TSID comes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.control.lexicographic import Constraints, InfeasibleError, minimize, solver
from kinetree.control.motors import driven_variables, force_limits
from kinetree.control.whole_body_tasks import Contact, Rows, Task
from kinetree.errors import (
    InfeasibleControlError,
    ShapeError,
    SingularError,
    require_known,
)
from kinetree.functional.kernel import kernel
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.define import require_tree
from kinetree.model.limits import position_bounds, position_index
from kinetree.model.memo import kept
from kinetree.quantities.dynamics import bias_force, mass_matrix, passive_force
from kinetree.spelling import explains_itself


@dataclass(frozen=True, eq=False)
class WholeBodySolution:
    """Result of a whole-body controller.

    Attributes:
        tau: forces of the motors, (nv,).
        qdd: accelerations, (nv,).
        forces: of each contact, along the axes of the base [N], (points, 3) each.
        iterations: of the solver.
    """

    tau: np.ndarray
    qdd: np.ndarray
    forces: dict[str, np.ndarray]
    iterations: int
    _tasks: tuple = field(default=(), repr=False)

    @cached_property
    def errors(self) -> dict[str, np.ndarray]:
        """Residual of each task, ``A x - b``: accelerations, or forces."""
        x, A, b, rows = self._tasks
        return {r.name: A[s] @ x - b[s] for r, s, on in rows if on}


@explains_itself
class WholeBody:
    """Whole-body control: several tasks at once, with contact forces, by a quadratic program.

        stand = kt.control.WholeBody(m, tasks, contacts=["left_foot", "right_foot"])
        tau = stand(t, q, qd)
        stand.solve(t, q, qd).forces["left_foot"]

    Of the accelerations ``qdd`` and contact forces ``f`` that the equations of motion, the friction
    cones, and the limits of torques and joints allow, it takes those with the smallest
    ``Σ weight |A x - b|²`` of the tasks; those of priority 2 do not affect the errors of priority
    1, and so on. It needs the extra ``qp``.

    Args:
        model: a tree, with any joints; springs, dampers and friction of the joints are included.
        tasks: ``FrameTask``, ``PostureTask``, ``CenterOfMassTask``, ``MomentumTask`` and
            ``ForceTask``.
        contacts: names of frames that touch the ground with their origin, or ``Contact`` objects.
        stance: function of time that returns the names of the closed contacts; all by default.
        actuated: names of the driven joints. By default those with actuators; of a model without
            any, all but free joints.
        torque_limits: True for those of the model and its motors, False for none, or (nv,).
        joint_limits: whether joints stay within the limits of position and speed of the model.
        limit_rate: rate at which joints may approach a limit [1/s]: the gap decays no faster.
        acceleration_weight: weight of ``|qdd|²`` beside the tasks of lowest priority.
        force_weight: weight of ``|f|²`` likewise. It determines how contacts share a load that is
            otherwise undetermined.

    Raises:
        MissingPackageError: the solver is not installed.
        LoopError: the model has loops.
    """

    def __init__(
        self,
        model: Model,
        tasks: Sequence[Task],
        contacts: Sequence[str | Contact] = (),
        *,
        stance: Callable[[float], Sequence[str]] | None = None,
        actuated: Sequence[str] | None = None,
        torque_limits: bool | ArrayLike = True,
        joint_limits: bool = True,
        limit_rate: float = 20.0,
        acceleration_weight: float = 1e-6,
        force_weight: float = 1e-6,
    ):
        solver()
        require_tree(as_model(model), "kinetree.control.WholeBody")
        self.model, self.stance = model, stance
        self.contacts = _by_name(model, contacts)
        self.driven = driven_variables(model, actuated)
        free = np.setdiff1d(np.arange(model.nv), self.driven)
        self._free, self._free_count = _as_slice(free), len(free)
        self.torque_limits = force_limits(model, torque_limits)
        if not limit_rate > 0 or not acceleration_weight > 0 or not force_weight > 0:
            raise ShapeError(
                f"limit_rate, acceleration_weight and force_weight must be positive, got "
                f"{limit_rate!r}, {acceleration_weight!r}, {force_weight!r}"
            )
        self._limits = _JointLimits(model, limit_rate) if joint_limits else None
        points, start = {}, 0
        for name, c in self.contacts.items():
            points[name] = slice(start, start + 3 * len(c.points))
            start += 3 * len(c.points)
        self._points, self._count = points, start
        self._damping = np.concatenate(
            [np.full(model.nv, acceleration_weight), np.full(start, force_weight)]
        )
        self.tasks = tuple(tasks)
        self._rows = _ordered([_task_rows(t, model, self.driven, points) for t in self.tasks])
        self._at, self._fixed = self._layout()
        self._priorities = sorted({r.priority for r in self._rows})
        self._kernel = self._compiled()
        self._stances: dict[tuple[str, ...], _Stance] = {}

    def __repr__(self):
        return (
            f"<WholeBody control of {self.model.name!r}; tasks: {len(self.tasks)}, "
            f"contacts: {len(self.contacts)}>"
        )

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Array:
        """Forces of the motors, (..., nv)."""
        q, qd = np.asarray(q), np.asarray(qd)
        if q.ndim == 1 and qd.ndim == 1:
            return self.solve(t, q, qd).tau
        batch = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1])
        q, qd = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, qd))
        tau = np.empty((*batch, self.model.nv))
        for sample in np.ndindex(batch):
            tau[sample] = self.solve(t, q[sample], qd[sample]).tau
        return tau

    def solve(self, t: float, q: ArrayLike, qd: ArrayLike) -> WholeBodySolution:
        """Torques, accelerations and contact forces for one state.

        Raises:
            InfeasibleControlError: no solution satisfies all constraints; the message names them.
        """
        m, nv = self.model, self.model.nv
        q = np.ascontiguousarray(q, dtype=float)
        qd = np.ascontiguousarray(qd, dtype=float)
        if q.shape != (m.nq,) or qd.shape != (nv,):
            as_configuration(m, q)
            as_joint_vector(m, qd, "qd")
            raise ShapeError(f"solve takes one state, got q {q.shape} and qd {qd.shape}")
        at = self._stance_at(t)
        live, targets, v_r, a_r = self._references(t, at)
        H, h, Jc, drift, arms, Jt, e, v, c = self._kernel(m, q, qd, targets)
        A, b = self._fixed.copy(), a_r
        A[: len(Jt), :nv] = Jt
        moving = len(e)
        b[:moving] += self._kd(v_r - v) + self._kp(e) - c
        if not at.all:
            A, Jc, drift, arms = A[:, at.columns], Jc[at.rows], drift[at.rows], arms[at.forces]

        E, count = np.zeros((self._free_count + len(Jc), len(at.damping))), self._free_count
        E[:count, :nv] = H[self._free]
        np.negative(arms[:, self._free].T, out=E[:count, nv:])
        E[count:, :nv] = Jc
        rhs = np.concatenate([-h[self._free], -drift])
        G, lower, upper = at.bounds(H, h, arms)
        if self._limits is not None:
            lower[: self._limits.count], upper[: self._limits.count] = self._limits(q, qd)

        levels = self._levels(A, b, live)
        try:
            x, count = minimize(levels, Constraints(E, rhs, G, lower, upper), at.damping)
        except InfeasibleError as error:
            raise self._infeasible(t, at, error.excess) from None
        except SingularError:
            raise InfeasibleControlError(
                f"whole-body control of model {m.name!r} at t = {t:g} s: contacts "
                f"{', '.join(at.names)} cannot all stay where they are, as the joints between them "
                f"move them against each other; remove one, or one of its points",
                at.names,
            ) from None
        qdd, f = x[:nv], x[nv:]
        tau = H @ qdd + h - f @ arms
        tau[self._free] = 0.0
        forces = {name: f[s].reshape(-1, 3) for name, s in at.points.items()}
        rows = tuple(zip(self._rows, self._at, live, strict=True))
        return WholeBodySolution(tau, qdd, forces, count, (x, A, b, rows))

    # --- what is the same at every instant -----------------------------------------------------

    def _layout(self):
        """Places of the rows of each task, and the rows that do not depend on the state."""
        ends = np.cumsum([0, *(r.size for r in self._rows)])
        at = [slice(a, b) for a, b in pairwise(ends)]
        fixed = np.zeros((int(ends[-1]), self.model.nv + self._count))
        for r, s in zip(self._rows, at, strict=True):
            if r.fixed is not None:
                fixed[s] = r.fixed
        moving = [r for r in self._rows if r.text is not None]
        self._kp, self._kd = _joined([r.kp for r in moving]), _joined([r.kd for r in moving])
        self._root_weight = np.sqrt(np.concatenate([np.zeros(0), *(r.weight for r in self._rows)]))
        self._moving = sum(r.size for r in moving)
        self._rest = np.concatenate([*(r.targets for r in moving), np.zeros(1)])
        return at, fixed

    def _compiled(self):
        """One kernel for the dynamics, all contacts and all tasks."""
        contacts = tuple(self.contacts.values())
        rows = tuple(r for r in self._rows if r.text is not None)
        key = ("WholeBody", tuple(c.key for c in contacts), tuple(r.key for r in rows))
        damping = np.array([c.damping for c in contacts])
        return kept(self.model, (*key, *damping.tolist()), lambda: _quantities(contacts, rows))

    def _stance_at(self, t) -> "_Stance":
        names = tuple(self.contacts) if self.stance is None else tuple(self.stance(t))
        found = self._stances.get(names)
        if found is None:
            for name in names:
                require_known(
                    name, self.contacts, f"the stance at t = {t:g} has no contact {name!r}"
                )
            found = self._stances[names] = _Stance(self, [n for n in self.contacts if n in names])
        return found

    # --- one instant ---------------------------------------------------------------------------

    def _references(self, t, at):
        """Tasks that apply, the numbers of their targets, velocities and accelerations."""
        targets, start, live = self._rest.copy(), 0, []
        v_r, a_r = np.zeros(self._moving), np.zeros(len(self._fixed))
        for r, s in zip(self._rows, self._at, strict=True):
            found = None if r.contact and r.contact not in at.points else r.reference(t)
            live.append(found is not None)
            if found is not None:
                numbers, v, a_r[s] = found
                if r.text is not None:
                    targets[start : start + len(r.targets)], v_r[s] = numbers, v
            start += len(r.targets)
        return tuple(live), targets, v_r, a_r

    def _levels(self, A, b, live):
        """Pairs of weighted rows, by priority."""
        w = self._root_weight
        if all(live) and len(self._priorities) == 1:
            return [(w[:, None] * A, w * b)]
        levels = []
        for p in self._priorities:
            slices = zip(self._rows, self._at, live, strict=True)
            chosen = [np.arange(s.start, s.stop) for r, s, on in slices if on and r.priority == p]
            if chosen:
                k = np.concatenate(chosen)
                levels.append((w[k, None] * A[k], w[k] * b[k]))
        return levels or [(A[:0], b[:0])]

    def _infeasible(self, t, at, excess):
        if excess is None:
            return InfeasibleControlError(
                f"the solver found no answer for the lower priorities of model {self.model.name!r} "
                f"at t = {t:g} s, since the higher ones leave a set that is too thin; use weights "
                f"instead, or fewer priorities"
            )
        order = [k for k in np.argsort(-excess) if excess[k] > 1e-6]
        worst = {}
        for k in order:
            label, unit = at.labels[k]
            worst.setdefault(label, f"{label} by {excess[k]:.3g} {unit}")
        said = ", ".join(list(worst.values())[:4]) or "bounds that could not be told apart"
        return InfeasibleControlError(
            f"no accelerations and contact forces of model {self.model.name!r} meet all "
            f"constraints at t = {t:g} s; the closest violate {said}. Relax these limits, close "
            f"more contacts, or start from a state in which the robot can stay",
            tuple(worst),
        )


class _Stance:
    """Arrays that depend on which contacts are closed."""

    def __init__(self, control, names):
        m, nv, every = control.model, control.model.nv, control.contacts
        self.names, self.all = names, len(names) == len(every)
        offsets, start, forces, rows, row = {}, 0, [], [], 0
        for name, c in every.items():
            count, size = 3 * len(c.points), 3 + len(c.turns)
            if name in names:
                offsets[name] = slice(start, start + count)
                forces.append(np.arange(control._points[name].start, control._points[name].stop))
                rows.append(np.arange(row, row + size))
                start += count
            row += size
        self.points = offsets
        none = [np.zeros(0, int)]
        self.forces, self.rows = np.concatenate(none + forces), np.concatenate(none + rows)
        self.columns = np.concatenate([np.arange(nv), nv + self.forces])
        self.damping = control._damping[self.columns]

        limits, bounded = control._limits, control.torque_limits
        joints = np.zeros(0, int) if limits is None else limits.columns(control.driven)
        driven = np.isin(np.arange(nv), control.driven)
        torques = np.flatnonzero(driven & np.any(np.isfinite(bounded), axis=0))
        self.torques = _as_slice(torques)
        self.least, self.most = bounded[:, torques]
        cones = [(every[n], every[n].cone(), offsets[n]) for n in names]
        count = sum(len(c.points) * len(cone[0]) for c, cone, _ in cones)
        self.at = slice(len(joints), len(joints) + len(torques))
        self.G = np.zeros((self.at.stop + count, nv + start))
        self.G[np.arange(len(joints)), joints] = 1.0
        self.lower, self.upper = np.zeros(len(self.G)), np.zeros(len(self.G))
        owner = _variable_names(m)
        self.labels = [(f"the limits of joint {owner[v]}", "rad/s² or m/s²") for v in joints]
        self.labels += [(f"the torque limit of joint {owner[v]}", "N·m or N") for v in torques]
        at = self.at.stop
        for c, (rows, low, high), s in cones:
            for k in range(nv + s.start, nv + s.stop, 3):
                here = slice(at, at + len(rows))
                self.G[here, k : k + 3], self.lower[here], self.upper[here] = rows, low, high
                at += len(rows)
                self.labels += [(f"the friction cone of contact {c.frame!r}", "N")] * c.sides
                self.labels.append((f"the normal force of contact {c.frame!r}", "N"))

    def bounds(self, H, h, arms):
        """Rows of all bounds; those of joint limits are still to be filled in."""
        G, lower, upper, nv = self.G.copy(), self.lower.copy(), self.upper.copy(), len(H)
        G[self.at, :nv], bias = H[self.torques], h[self.torques]
        np.negative(arms[:, self.torques].T, out=G[self.at, nv:])
        lower[self.at], upper[self.at] = self.least - bias, self.most - bias
        return G, lower, upper


class _JointLimits:
    """Bounds of accelerations that keep joints within limits.

    The distance ``d`` to a limit obeys ``d̈ + 2 r ḋ + r² d >= 0``: joints that approach it no faster
    than ``r d`` never pass it. Speeds likewise: ``qdd <= r (limit - qd)``.
    """

    def __init__(self, model, rate):
        self.rate = rate
        self.low, self.high = position_bounds(model)
        self.speed, self.index = np.asarray(model.velocity_limits), position_index(model)
        self.count = 0

    def columns(self, driven):
        """The driven velocity variables that have limits."""
        bounded = np.isfinite(self.low) | np.isfinite(self.high) | np.isfinite(self.speed)
        self.at = np.intersect1d(np.flatnonzero(bounded), driven)
        self.count, self.q = len(self.at), self.index[self.at]
        self.bounds = self.low[self.at], self.high[self.at], self.speed[self.at]
        return self.at

    def __call__(self, q, qd):
        r, (low, high, speed) = self.rate, self.bounds
        q, qd = np.where(self.q < 0, 0.0, q[self.q]), qd[self.at]
        upper = np.minimum(r * r * (high - q) - 2 * r * qd, r * (speed - qd))
        lower = np.maximum(r * r * (low - q) - 2 * r * qd, -r * (speed + qd))
        return np.minimum(lower, upper), upper


def _quantities(contacts, rows):
    """The compiled function of everything that depends on the state."""

    def whole_body(m, q, qd, targets):
        nv = m.nv
        H, h = mass_matrix(m, q), bias_force(m, q, qd) - passive_force(m, q, qd)
        none = np.zeros((0, nv)), np.zeros(0)
        J, drift, arms = [none[0]], [none[1]], [none[0]]
        for c in contacts:
            Jc, v, a = c.motion(m, q, qd)
            J.append(Jc)
            drift.append(a + c.damping * v)
            arms.append(c.arms(m, q))
        parts, start = [], 0
        for r in rows:
            target = targets[start : start + len(r.targets)]
            parts.append(r.text(m, q, qd, target))
            start += len(r.targets)
        Jt = np.concatenate([none[0], *(p[0] for p in parts if p[0] is not None)])
        e, v, c = (np.concatenate([none[1], *(p[k] for p in parts)]) for k in (1, 2, 3))
        J, drift, arms = np.concatenate(J), np.concatenate(drift), np.concatenate(arms)
        return H, h, J, drift, arms, Jt, e, v, c

    return kernel(whole_body)


def _as_slice(numbers):
    """Numbers as a slice, where they follow one another: views instead of copies."""
    if len(numbers) and np.array_equal(numbers, np.arange(numbers[0], numbers[-1] + 1)):
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


def _by_name(model, contacts):
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


def _variable_names(model):
    """Names of all velocity variables in messages."""
    names = []
    for name, s in zip(model.joint_names, model.v_slice[1:], strict=True):
        count = s.stop - s.start
        names += [repr(name)] if count == 1 else [f"{name!r}[{k}]" for k in range(count)]
    return names


def _task_rows(task, model, driven, points) -> Rows:
    if not isinstance(task, Task):
        raise ShapeError(
            f"tasks must be objects of kinetree.control such as FrameTask(...) or "
            f"PostureTask(...), got {task!r}"
        )
    return task.rows(model, driven, points)


def _ordered(rows):
    """Rows of Jacobians first, then other motions, then forces; each needs its own name."""
    rows = sorted(rows, key=lambda r: (r.text is None, r.fixed is not None))
    names = [r.name for r in rows]
    for name in names:
        if names.count(name) > 1:
            raise ShapeError(f"there are two tasks {name!r}; give one of them another name=...")
    return rows


def _joined(gains):
    """One gain for all rows."""
    sizes = [g.size for g in gains]
    if all(g.value.ndim < 2 for g in gains):
        parts = [np.broadcast_to(g.value, (n,)) for g, n in zip(gains, sizes, strict=True)]
        value = np.concatenate([np.zeros(0), *parts])
        return lambda x: value * x
    whole, start = np.zeros((sum(sizes), sum(sizes))), 0
    for g, n in zip(gains, sizes, strict=True):
        at = slice(start, start + n)
        whole[at, at] = g.value if g.value.ndim == 2 else np.diag(np.broadcast_to(g.value, (n,)))
        start += n
    return lambda x: whole @ x

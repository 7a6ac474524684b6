"""The equations of a set of tasks on one model, as compiled kernels.

Errors are measured in their own units: angles in radians, lengths in multiples of a length that
the mechanism itself has, so that one damping suits both. Step by step the iteration solves

    minimise |J dq - e|² + mu |dq|²   over the joints that no limit holds back,

clips the joints to their limits, and keeps what reduces the error: Levenberg and Marquardt's
method with an active set of bounds. Where a step fails it is repeated with more damping.

Loops that the tasks move are further rows of ``J`` and ``e``, in units of each loop: the search
passes through open loops, which leads from one assembly to another, and ends where all rows vanish.
Where no such configuration exists, ``search`` goes on along closed ones.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kinetree.algorithms.closed.constraints import closure_errors, loop_constraints, loop_signs
from kinetree.algorithms.closed.rank import rank_policy, scaling
from kinetree.algorithms.closed.scaling import rows_of
from kinetree.codegen.inline import evaluate
from kinetree.codegen.program import Argument, trace
from kinetree.errors import ModelError
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select
from kinetree.model import Model
from kinetree.model.gearing import with_leaders
from kinetree.model.kernels import kernel_for
from kinetree.model.limits import position_index
from kinetree.model.memo import remember
from kinetree.model.names import joints_of

# --- The damped step -----------------------------------------------------------------------------


def damped_step(J, e, mu, free):
    """Damped least-squares step: ``dq`` minimising ``|J dq - e|² + mu |dq|²``, where ``free``.

    In the smaller of its two forms: ``Jᵀ (J Jᵀ + mu)⁻¹ e`` or ``(Jᵀ J + mu)⁻¹ Jᵀ e``.
    """
    m, n = J.shape
    J = J * free
    if m <= n:
        return J.T @ solve(J @ J.T + mu * np.eye(m, dtype=int), e)
    return solve(J.T @ J + mu * np.eye(n, dtype=int), J.T @ e)


def solve(A, b):
    """Solution ``A⁻¹ b`` for a symmetric positive definite matrix of any number type.

    Nothing is checked: where rounding spoils the matrix the result is useless, and may not be
    finite. The iteration keeps only steps that reduce its error.
    """
    n = len(b)
    L, D, inverse = (np.zeros(shape, dtype=object) for shape in ((n, n), n, n))
    x = np.array(b, dtype=object)
    for j in range(n):
        scaled = L[j, :j] * D[:j]
        D[j] = A[j, j] - _dot(L[j, :j], scaled)
        inverse[j] = 1 / D[j]
        for i in range(j + 1, n):
            L[i, j] = (A[i, j] - _dot(L[i, :j], scaled)) * inverse[j]
        x[j] = x[j] - _dot(L[j, :j], x[:j])
    x = x * inverse
    for j in reversed(range(n)):
        x[j] = x[j] - _dot(L[j + 1 :, j], x[j + 1 :])
    return x


def _dot(a, b):
    """Scalar product of two sequences."""
    return sum(x * y for x, y in zip(a, b, strict=True))


STEPS = 8
"""Iterations of one call of compiled code; between calls, those that have arrived drop out."""

FIRST_DAMPING = 10.0
LESS, MORE = 0.2, 4.0  # factors of the damping after a step that succeeds, or fails
LEAST, MOST = 1e-10, 1e8


@dataclass(frozen=True, eq=False)
class TaskProblem:
    """Tasks on a model, without the numbers of their targets."""

    model: Model
    tasks: tuple
    joints: tuple[str, ...] | None = None

    @classmethod
    def of(cls, model, tasks, joints=None):
        """Problem of some tasks, cached with the model; ``joints`` are those that may move."""
        joints = None if joints is None else joints_of(model, joints)
        key = ("inverse_kinematics", *(task.signature for task in tasks), *_key_of_joints(joints))
        return remember(
            model,
            key,
            lambda: cls(model, tuple(replace(task, target=None) for task in tasks), joints),
        )

    # --- what moves ---------------------------------------------------------------------------

    @cached_property
    def bodies(self):
        """Numbers of the bodies whose joints affect the tasks or their loops."""
        moved = with_leaders(
            self.model, {i for task in self.tasks for i in task.supports(self.model)}
        )
        bodies = sorted(moved.union(*(self._inside(loop) for loop in self.loops)))
        if self._own:
            bodies = list(range(1, self.model.body_count + 1))
        if self.joints is not None:
            free = with_leaders(self.model, {self.model.joint_index(j) for j in self.joints})
            bodies = [i for i in bodies if i in free]
        if not any(self.model.joint[i].nv for i in bodies):
            raise ModelError(
                f"nothing in model {self.model.name!r} moves the frames of the tasks: "
                f"{', '.join(str(task.signature[:-1]) for task in self.tasks)}"
                f"{'' if self.joints is None else f'; only {self.joints} may move'}"
            )
        return bodies

    @cached_property
    def loops(self):
        """Loops that move with the tasks, directly or by way of other loops.

        User-defined constraints may depend on any joint, and take all loops with them.
        """
        if self._own:
            return self.model.loops
        moved = with_leaders(
            self.model, {i for task in self.tasks for i in task.supports(self.model)}
        )
        found, left = [], list(self.model.loops)
        while True:
            new = [loop for loop in left if moved & self._inside(loop)]
            if not new:
                return tuple(found)
            found, left = [*found, *new], [loop for loop in left if loop not in new]
            moved = moved.union(*(self._inside(loop) for loop in new))

    def _inside(self, loop):
        """Numbers of the bodies whose joints change the closure of a loop."""
        inside = loop_signs(self.model, loop.predecessor, loop.successor)
        return with_leaders(self.model, set(inside))

    @property
    def _own(self):
        """User-defined constraints that positions must satisfy."""
        return [c for c in self.model.constraints if c.holonomic]

    @cached_property
    def closing_rows(self):
        """Indices of the constraint rows of the moving loops, without redundant ones.

        Rows that repeat others exactly stay: damping copes with them. Then those of constraints of
        one's own.
        """
        owners = {f"loop {loop.name!r}" for loop in self.loops}
        owners |= {f"constraint {c.name!r}" for c in self._own}
        rows = [k for k, row in enumerate(rows_of(self.model)) if row.owner in owners]
        counting = rank_policy(self.model).rows if rows else None
        return rows if counting is None else [k for k in rows if k in set(counting.tolist())]

    @cached_property
    def q_moving(self):
        """Indices of the position variables that take part."""
        return _numbers(self.model.q_slice, self.bodies)

    @cached_property
    def v_moving(self):
        """Indices of the velocity variables that take part."""
        return _numbers(self.model.v_slice, self.bodies)

    @cached_property
    def q_idle(self):
        """Indices of the position variables that affect neither tasks nor loops."""
        bodies = range(1, self.model.body_count + 1)
        if self.joints is not None:
            bodies = [self.model.joint_index(j) for j in self.joints]
        busy = with_leaders(self.model, set(self.bodies))
        busy = busy.union(*(self._inside(loop) for loop in self.model.loops))
        return _numbers(self.model.q_slice, [i for i in bodies if i not in busy])

    @cached_property
    def q_of_v(self):
        """Index of the position variable of each velocity variable, or -1, (nv,)."""
        return position_index(self.model)

    @cached_property
    def bends(self):
        """Fixed random directions of the moving variables, (64, count), to leave local minima."""
        bends = np.random.default_rng(0).normal(size=(64, len(self.v_moving)))
        return bends * np.sqrt(bends.shape[1]) / np.linalg.norm(bends, axis=1, keepdims=True)

    # --- units --------------------------------------------------------------------------------

    @cached_property
    def length(self) -> float:
        """Typical length of the mechanism: a quarter of its longest branch [m]."""
        model, reach = self.model, [0.0] * (self.model.body_count + 1)
        for i in range(1, model.body_count + 1):
            r = model.bodies[i - 1].placement.r.astype(float)
            reach[i] = reach[model.parent[i]] + float(np.sqrt(r @ r))
        return max(reach[i] for i in self.bodies) / 4 or 1.0

    @cached_property
    def v_scale(self):
        """Scales of the velocity variables: 1 for angles, the typical length for others, (nv,)."""
        units = [unit for joint in self.model.joint[1:] for unit in joint.velocity_units()]
        return np.array([1.0 if unit == "rad/s" else self.length for unit in units])

    @cached_property
    def e_scale(self):
        """Scales of the errors: 1 for angles and loops, the inverse typical length for positions.

        Weights are those of squares: their roots are factors. Errors of loops are in units of the
        loops already.
        """
        return np.array(
            [
                np.sqrt(task.signature[-1]) / (1.0 if unit == "rad" else self.length)
                for task in self.tasks
                for unit in task.units
            ]
            + [1.0] * len(self.closing_rows)
        )

    @cached_property
    def task_rows(self) -> int:
        """Number of task rows, which precede those of the loops."""
        return sum(len(task.units) for task in self.tasks)

    # --- texts --------------------------------------------------------------------------------

    def equations(self, q, target):
        """Scaled errors and Jacobian of tasks and loops, and squared unscaled errors.

        The squares are that of the tasks [m, rad] and, if there are loops, that of the loops [rad,
        fraction of their size].
        """
        errors, rows, at = [], [], 0
        for task in self.tasks:
            e, J = task.rows(self.model, q, target[at : at + task.size])
            errors.append(e)
            rows.append(J)
            at += task.size
        true = np.concatenate(errors)
        gap = self._gap(q)
        if len(gap):
            units = scaling(self.model).rows[self.closing_rows]
            K = loop_constraints(self.model, q, self.model.zero_velocity).K[self.closing_rows]
            errors.append(-gap)
            rows.append(K * units[:, None])
        e, J = np.concatenate(errors), np.concatenate(rows)[:, self.v_moving]
        J = J * self.e_scale[:, None] * self.v_scale[self.v_moving]
        squares = [true @ true, gap @ gap] if len(gap) else [true @ true]
        return e * self.e_scale, J, np.array(squares, dtype=object)

    def _gap(self, q):
        """Closure errors of the loops, scaled by their size."""
        if not self.closing_rows:
            return np.zeros(0, dtype=int)
        units = scaling(self.model).rows[self.closing_rows]
        return closure_errors(self.model, q)[self.closing_rows] * units

    def shift(self, q, dv):
        """Configuration after a scaled step ``dv`` of the moving variables."""
        full = np.zeros(self.model.nv, dtype=object)
        full[self.v_moving] = dv * self.v_scale[self.v_moving]
        q = np.array(q, dtype=object)
        for i in self.bodies:
            at = self.model.q_slice[i]
            q[at] = self.model.joint[i].integrate(q[at], full[self.model.v_slice[i]])
        return q

    def clip(self, q, lower, upper):
        """Configuration with every variable clipped to its limits."""
        q, bounded = np.array(q, dtype=object), set(self.q_of_v.tolist())
        for k in self.q_moving:
            if k in bounded:
                q[k] = select(q[k] < lower[k], lower[k], select(upper[k] < q[k], upper[k], q[k]))
        return q

    def free(self, q, direction, lower, upper):
        """Mask of the velocities that no limit blocks in this direction."""
        free = []
        for k, d in zip(self.q_of_v[self.v_moving], direction, strict=True):
            if k < 0:
                free.append(1)
            else:
                held = ((q[k] <= lower[k]) & (d < 0)) | ((q[k] >= upper[k]) & (d > 0))
                free.append(select(held, 0.0, 1.0))
        return np.array(free, dtype=object)

    def descend(self, q, target, lower, upper, damping):
        """Iterations of damped least squares: new ``q``, damping and errors, gradient."""

        def step(state):
            x, e, J, before, true, mu = state
            q = whole(x)
            dv = damped_step(J, e, mu, self.free(q, J.T @ e, lower, upper))
            trial = self.clip(self.shift(q, dv), lower, upper)
            e_t, J_t, true_t = self.equations(trial, target)
            after = e_t @ e_t
            better = after < before
            mu = mu * select(better, LESS, MORE)
            mu = select(mu < LEAST, LEAST, select(mu > MOST, MOST, mu))
            kept = [
                select(better, new, old)
                for new, old in (
                    (trial[self.q_moving], x),
                    (e_t, e),
                    (J_t, J),
                    (after, before),
                    (true_t, true),
                )
            ]
            return (*kept, mu)

        def whole(x):
            full = np.array(q, dtype=object)
            full[self.q_moving] = x
            return full

        e, J, true = self.equations(q, target)
        state = (q[self.q_moving], e, np.array(J, dtype=object), e @ e, true, damping[()])
        x, e, J, square, true, mu = repeat(step, state, STEPS)
        g = np.zeros(self.model.nv, dtype=object)
        g[self.v_moving] = J.T @ e
        return whole(x), np.array([mu, square, *true], dtype=object), g

    def glide(self, q, target, lower, upper, posture, gain):
        """Steps toward a posture within the tasks' null space."""

        def step(x):
            q = np.array(start, dtype=object)
            q[self.q_moving] = x
            e, J, _ = self.equations(q, target)
            z = gain[()] * self._way(q, posture)
            dv = z + damped_step(J, e - J @ z, _GLIDING, np.ones(len(z), dtype=int))
            free = self.free(q, dv, lower, upper)
            z = z * free
            dv = z + damped_step(J, e - J @ z, _GLIDING, free)
            return self.clip(self.shift(q, dv), lower, upper)[self.q_moving]

        start = q
        result = np.array(q, dtype=object)
        result[self.q_moving] = repeat(step, q[self.q_moving], STEPS)
        return result

    def distance(self, q, posture):
        """Squared scaled distance to a posture."""
        z = self._way(q, posture)
        return z @ z

    def _way(self, q, posture):
        """Scaled displacement of the moving variables to a posture."""
        way = np.zeros(self.model.nv, dtype=object)
        for i in self.bodies:
            at = self.model.q_slice[i]
            way[self.model.v_slice[i]] = self.model.joint[i].difference(q[at], posture[at])
        return (way / self.v_scale)[self.v_moving]

    # --- kernels ------------------------------------------------------------------------------

    def run(self, text, *arrays, wide):
        """Run a compiled procedure on rows of arrays; results in rows.

        One row alone takes code for single samples, unless ``wide``: the last row of a batch should
        not make the compiler work again.
        """
        kernel = self.kernel(text)
        if len(arrays[0]) > 1:
            return kernel.call(*arrays)
        per_row = [a.name not in ("lower", "upper") for a in kernel.inputs]
        pairs = list(zip(arrays, per_row, strict=True))
        if wide:
            results = kernel.call(*(np.repeat(a, 2, axis=0) if row else a for a, row in pairs))
            return tuple(r[:1] for r in results) if isinstance(results, tuple) else results[:1]
        results = kernel.call(*(a[0] if row else a for a, row in pairs))
        return tuple(map(_row, results)) if isinstance(results, tuple) else _row(results)

    def kernel(self, text):
        """Compiled kernel of a procedure: ``"descend"``, ``"glide"``, ...."""
        if text not in self.kernels:
            self.kernels[text] = self._compile(text)
        return self.kernels[text]

    @cached_property
    def kernels(self) -> dict:
        """Cache of compiled kernels by procedure name."""
        return {}

    @cached_property
    def known_limits(self) -> dict:
        """Cache of limits: the model's (True) and none (False)."""
        return {}

    def _compile(self, text):
        """Compile a procedure as a function of configuration and targets."""
        key = ("inverse_kinematics", text, *(task.signature for task in self.tasks))
        key += _key_of_joints(self.joints)
        nq, nv, m = self.model.nq, self.model.nv, len(self.e_scale)
        squares = 2 if self.closing_rows else 1
        shapes = {"q": (nq,), "target": (sum(t.size for t in self.tasks),)}
        shapes |= {"lower": (nq,), "upper": (nq,), "posture": (nq,), "damping": (), "gain": ()}
        shapes["step"] = (len(self.v_moving),)
        names, outputs = {
            "descend": (
                ("q", "target", "lower", "upper", "damping"),
                ((nq,), (2 + squares,), (nv,)),
            ),
            "glide": (("q", "target", "lower", "upper", "posture", "gain"), ((nq,),)),
            "distance": (("q", "posture"), ((),)),
            "shift": (("q", "step"), ((nq,),)),
            "equations": (("q", "target"), ((m,), (m, len(self.v_moving)), (squares,))),
        }[text]
        inputs = [Argument(n, shapes[n]) for n in names]
        function = getattr(self, text)
        kernel = kernel_for(
            self.model,
            f"inverse_kinematics ({text})",
            inputs,
            [Argument(f"out{k}", shape) for k, shape in enumerate(outputs)],
            lambda: trace(function, inputs, text),
            reference=lambda arrays: evaluate(kernel.program, arrays),
            validate=lambda arrays: None,
            key=key,
        )
        return kernel


def _key_of_joints(joints):
    """Key of the set of joints that may move."""
    return () if joints is None else (("joints", *joints),)


def _row(result):
    """Result with a batch axis of length one."""
    return np.asarray(result)[None]


_GLIDING = 1e-8  # damping on the way to a posture: next to none


def _numbers(slices, bodies):
    """Indices of the variables of some bodies."""
    return np.array([k for i in bodies for k in range(slices[i].start, slices[i].stop)], dtype=int)

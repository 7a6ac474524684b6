"""Following one assembly of a linkage while its inputs move — RBDA §8.10.

Every step goes along the tangent and then back onto the manifold, and is repeated with half the
length if the second part is not small beside the first. So a branch is never left for another that
is a finite distance away. Where branches meet, at singular points, the motion goes straight on, and
the point is reported; where a branch turns back, at a dead point of the inputs, it ends.
"""

from dataclasses import dataclass, field

import numpy as np

from kinetree.algorithms.closed.rank import scaling
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import AssemblyError, LoopError, ShapeError, SingularError
from kinetree.loops.kinematics.all_assemblies import assemblies_nearby, ranks
from kinetree.loops.kinematics.assembly import hold_joints
from kinetree.loops.kinematics.constraint import (
    closing,
    independent_rows,
    loop_gaps,
    require_holonomic,
)
from kinetree.loops.kinematics.descent import descend, smallest_error
from kinetree.loops.kinematics.projection import POSITION_TOLERANCE
from kinetree.loops.kinematics.space import space_of
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model

_LONGEST = 0.2  # of one step, in rad or lengths of the mechanism
_AT_A_PASS = 0.02  # of a step across a singular point
_SMALL = 0.25  # correction onto the manifold, relative to the way along the tangent
_SHORTEST = 1e-9  # step, in parts of the way between two inputs
_SINGULAR = 1e-7


@dataclass(frozen=True)
class SingularPoint:
    """A point at which the inputs do not determine the motion."""

    place: float
    """Where on the path: 2.5 is half-way between inputs 2 and 3, counted from 0."""
    inputs: np.ndarray
    """Positions of the input joints there."""
    q: np.ndarray
    """Configuration near it, (nq,)."""
    kind: str
    """``"pass"``, branches that cross; ``"end"``, a dead point beyond which nothing closes."""

    def __str__(self):
        values = ", ".join(f"{x:.6g}" for x in self.inputs)
        what = "may have changed branch at" if self.kind == "pass" else "ends at"
        return f"the motion {what} inputs ({values}), place {self.place:.4g} of the path"


@dataclass(frozen=True)
class Branch:
    """One assembly along a path of inputs.

    Attributes:
        q: configurations for the inputs that were reached, (count, nq).
        singular: singular points that were met, in order; the last one ends the branch if fewer
            configurations than inputs were reached.
    """

    q: np.ndarray
    singular: tuple[SingularPoint, ...] = ()

    @property
    def end(self) -> SingularPoint | None:
        """Singular point at which the branch ends, or None if all inputs were reached."""
        last = self.singular[-1] if self.singular else None
        return last if last is not None and last.kind == "end" else None


@on_host
def follow(
    model: Model,
    q: ArrayLike,
    inputs: dict[str, ArrayLike],
    *,
    tolerance: float = POSITION_TOLERANCE,
) -> Branch:
    """``Branch`` of configurations from ``q`` along a path of joint inputs.

    Args:
        model: the mechanism.
        q: a closed configuration to start from, (nq,); it moves straight to the first inputs.
        inputs: paths of positions by joint name, each (count,) or (count, nq of the joint): of as
            many velocity variables as the mechanism has degrees of freedom. Between two positions
            a joint moves as in ``joint.integrate``: a free or ball joint turns about one axis.
        tolerance: closure error [m or rad] of the configurations.

    Raises:
        AssemblyError: ``q`` does not close the loops.
        LoopError: the inputs do not determine the configuration.
        SingularError: they do not at ``q``, which is a singular point.
    """
    q = as_configuration(as_model(model), q).astype(float)
    require_holonomic(model)
    path = _path(model, q, inputs)
    joints = [model.joint_index(name) for name in inputs]
    walker = _Walker(model, q, joints, hold_joints(model, q, list(inputs))[1], tolerance)
    walker.check_start()
    reached = []
    for n in range(1, len(path)):
        if not walker.walk(path[n - 1], path[n], n - 2):
            break
        reached.append(walker.q)
    return Branch(np.array(reached).reshape(len(reached), model.nq), tuple(walker.singular))


def _path(model, q, inputs):
    """Input positions as rows, starting at those of ``q``."""
    if not inputs:
        raise LoopError(
            f"follow needs a path of positions for as many joint variables as model "
            f"{model.name!r} has degrees of freedom, got inputs of no joint"
        )
    rows, start = [], []
    for name, values in inputs.items():
        i = model.joint_index(name)
        joint, at = model.joint[i], model.q_slice[i]
        values = np.asarray(values, dtype=float)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or values.shape[1] != joint.nq:
            raise ShapeError(
                f"the path of joint {name!r} must have the shape (count, {joint.nq}), got "
                f"{values.shape}"
            )
        for k, position in enumerate(values):
            if joint.defect(position):
                raise ShapeError(
                    f"position {k} of joint {name!r} in its path: {joint.defect(position)}"
                )
        rows.append(values)
        start.append(q[at])
    if len({len(r) for r in rows}) > 1:
        lengths = ", ".join(f"{name!r} {len(r)}" for name, r in zip(inputs, rows, strict=True))
        raise ShapeError(f"the paths of the inputs must be equally long, got {lengths}")
    return np.vstack([np.concatenate(start), np.hstack(rows)])


@dataclass
class _Walker:
    """One configuration that walks along a branch."""

    model: Model
    q: np.ndarray
    inputs: list
    free: np.ndarray
    tolerance: float
    singular: list = field(default_factory=list)

    def __post_init__(self):
        self.space, self.scale = space_of(self.model), scaling(self.model)
        self.enough = max(self.tolerance, smallest_error(self.model))
        self.direction = (
            None  # last motion of all variables, per unit of the way between two inputs
        )

    def check_start(self):
        """Require a closed start whose inputs determine the motion; choose its equations."""
        model, gaps = self.model, loop_gaps(self.model, self.q)
        part = max(gaps, key=lambda name: gaps[name], default="")
        error = np.max(np.abs(closing(model, self.q)[0] * self.scale.rows), initial=0.0)
        if part and error > 1e3 * self.enough + self._slack(error):
            raise AssemblyError(
                f"following a branch of model {model.name!r} starts from a closed configuration: "
                f"{part} is open by {gaps[part]:.3g} m or rad; assemble it first",
                part=part,
                gap=float(gaps[part]),
                q=self.q,
            )
        K = self.scale.apply(closing(model, self.q)[1])
        around = np.concatenate([self.q[None], assemblies_nearby(model, self.q)])
        count, needed = int(np.sum(~self.free)), model.nv - int(np.max(ranks(model, around)))
        s = np.linalg.svd(K[:, self.free], compute_uv=False)
        if count != needed:
            raise LoopError(
                f"model {model.name!r} has {needed} degrees of freedom here, the inputs are "
                f"{count} variables; both numbers must be the same"
            )
        if len(s) and s[int(np.sum(self.free)) - 1] < _SINGULAR * s[0]:
            raise SingularError(
                f"the inputs do not determine how model {model.name!r} moves from here: it is in "
                f"a singular configuration; choose other inputs or start beside it"
            )
        self.rows = independent_rows(K[:, self.free])
        self.side = self._side(K)

    def _slack(self, error):
        """Tolerated error of nearly redundant constraints, computed only where needed."""
        return self.scale.policy.slack if error > 1e3 * self.enough else 0.0

    def walk(self, start, end, place):
        """Move along the branch to the next inputs; False if the branch ends before."""
        t, h = 0.0, 1.0
        while t < 1:
            h = min(h, 1 - t)
            step = self._step(start, end, t, h)
            if step is not None:
                q, side, direction = step
                if side * self.side < 0:
                    at = t + h * abs(self.side) / (abs(self.side) + abs(side))
                    self._report("pass", self._between(start, end, at), place + at)
                self.q, self.side, self.direction, t, h = q, side, direction, t + h, 2 * h
                continue
            h /= 2
            if h < _SHORTEST:
                self._report("end", self._between(start, end, t), place + t)
                return False
        return True

    def _step(self, start, end, t, h):
        """Configuration, side and direction after a step of part ``h``; None if too long."""
        tangent = self._tangent(self._way(start, end))
        along, columns = h * tangent, self.scale.columns
        length = np.linalg.norm(along / columns)
        if length > _LONGEST:
            return None
        guess = self._set(self.space.move(self.q, along), self._between(start, end, t + h))
        found = descend(
            self.model, guess[None], free=self.free, tolerance=self.tolerance, iterations=25
        )
        if found.error[0] > self.enough:
            return None
        q = found.q[0]
        back = np.linalg.norm(self.space.difference(guess, q) / columns)
        if back > _SMALL * length + 1e-12:
            return None
        side = self._side(self.scale.apply(closing(self.model, q)[1]))
        if side * self.side < 0 and length > _AT_A_PASS:
            return None
        return q, side, self.space.difference(self.q, q) / h

    def _way(self, start, end):
        """Velocities (nv,) of the inputs that lead from one input position to another."""
        way = np.zeros(self.model.nv)
        for i, a, b in self._parts(start, end):
            way[self.model.v_slice[i]] = self.model.joint[i].difference(a, b)
        return way

    def _between(self, start, end, t):
        """Positions of the input joints at part ``t`` of the way between two given positions."""
        joint = self.model.joint
        positions = [
            joint[i].integrate(a, t * joint[i].difference(a, b))
            for i, a, b in self._parts(start, end)
        ]
        return np.concatenate(positions)

    def _parts(self, *positions):
        """Each input joint with its parts of the given position rows."""
        at = 0
        for i in self.inputs:
            size = self.model.joint[i].nq
            yield i, *(y[at : at + size] for y in positions)
            at += size

    def _tangent(self, way):
        """Unit tangent (nv,) of the curve of closed configurations at the present one."""
        K = self.scale.apply(closing(self.model, self.q)[1])
        dq = way / self.scale.columns
        U, s, Vt = np.linalg.svd(K[:, self.free], full_matrices=False)
        if self.direction is not None and s.size and s[-1] < _SINGULAR * s[0]:
            return self.direction  # straight on
        dq[self.free] = -Vt.T @ ((U.T @ (K[:, ~self.free] @ dq[~self.free])) / s)
        return dq * self.scale.columns

    def _side(self, K):
        """Determinant of the free columns, which changes its sign at singular points."""
        return float(np.linalg.det(K[self.rows][:, self.free]))

    def _set(self, q, y):
        """Configuration with the input joints set to the positions ``y``."""
        q = np.array(q)
        for i, position in self._parts(y):
            q[self.model.q_slice[i]] = position
        return q

    def _report(self, kind, y, place):
        """Record a singular point of the branch."""
        self.singular.append(SingularPoint(float(place), y, self.q.copy(), kind))

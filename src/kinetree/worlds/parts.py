"""A part of a world: its variables, pose and velocity, to read and to set."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.joints import Free
from kinetree.model.arrays import as_reals
from kinetree.model.parts import as_placement, is_identity
from kinetree.quantities import kinematics

if TYPE_CHECKING:
    from kinetree.worlds.world import World


class Indices(NamedTuple):
    """Where a part is in the model of its world: found once for an assembled world.

    Attributes:
        numbers: of its bodies.
        q: of its positions.
        v: of its velocities.
        actuators: of the actuators that drive it.
        root: number of its first body on the world; 0 where its base is fixed.
        name: of that body.
        free_q: where the pose of that body begins in the positions, if these are its pose; else -1.
        free_v: where its velocities begin.
        pose: of a fixed base, (4, 4).
    """

    numbers: tuple[int, ...]
    q: np.ndarray
    v: np.ndarray
    actuators: np.ndarray
    root: int
    name: str
    free_q: int
    free_v: int
    pose: np.ndarray | None


class Part:
    """A robot or object of a world, or a body with all that it carries.

    Attributes:
        world: the world.
        name: of the part in it.
    """

    def __init__(self, world: "World", name: str):
        self.world, self.name = world, name

    def __repr__(self):
        if not self.numbers:
            return f"<{self.name!r}, fixed in {self.world.name!r}>"
        kind = f"{len(self.numbers)} bodies, " if len(self.numbers) > 1 else ""
        return f"<{self.name!r} of {self.world.name!r}: {kind}nq={self.q.size}, nv={self.qd.size}>"

    @property
    def _indices(self) -> Indices:
        """Indices of the part's bodies and variables in the world's model."""
        whole = self.world._whole
        found = whole.indices.get(self.name)
        if found is None:
            found = whole.indices[self.name] = indices_of(self.world, self.name)
        return found

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the part's bodies in the world's model."""
        return self._indices.numbers

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the part's bodies in the world's model."""
        return tuple(self.world.model.body_names[i] for i in self.numbers)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the part's joints in the world's model."""
        return tuple(self.world.model.joint_names[i - 1] for i in self.numbers)

    @property
    def postures(self) -> tuple[str, ...]:
        """Names of the postures of the part's model, () for objects."""
        piece, _ = self.world._parts.get(self.name, (None, None))
        model = None if piece is None else piece.model
        return () if model is None else tuple(p.name for p in model.postures)

    @property
    def actuators(self) -> np.ndarray:
        """Numbers of the part's actuators in the world's model, (m,)."""
        return self._indices.actuators.copy()

    @property
    def q_indices(self) -> np.ndarray:
        """Indices of the part's positions in ``world.q``."""
        return self._indices.q.copy()

    @property
    def v_indices(self) -> np.ndarray:
        """Indices of the part's velocities in ``world.qd``."""
        return self._indices.v.copy()

    @property
    def q(self) -> np.ndarray:
        """Positions of the part, (nq,): a copy."""
        return self.world._whole.q[self._indices.q]

    @q.setter
    def q(self, q: ArrayLike):
        """Set the positions of the part, (nq,), or a scalar for all of them."""
        self._set("q", q, self._indices.q)

    @property
    def qd(self) -> np.ndarray:
        """Velocities of the part, (nv,): a copy."""
        return self.world._whole.qd[self._indices.v]

    @qd.setter
    def qd(self, qd: ArrayLike):
        """Set the velocities of the part, (nv,), or a scalar for all of them."""
        self._set("qd", qd, self._indices.v)

    def _set(self, what, values, at):
        """Set the part's positions or velocities at these indices; ShapeError if they misfit."""
        values = as_reals(values, f"{what} of {self.name!r}")
        if values.shape not in ((at.size,), ()):
            raise ShapeError(
                f"{what} of {self.name!r} must be {at.size} numbers, got shape {values.shape}"
            )
        whole = self.world._whole
        state = {"q": whole.q.copy(), "qd": whole.qd.copy()}
        state[what][at] = values
        whole.set(**state)

    # --- place and velocity of the body that carries the part ---------------------------------

    @property
    def pose(self) -> np.ndarray:
        """World pose (4, 4) of the part's first body, or of its fixed base."""
        whole, at = self.world._whole, self._indices
        if at.free_q >= 0:
            q = whole.current()[0][at.free_q : at.free_q + 7].tolist()
            a, b, c, d, e, f, g, h, i = _rotation(*q[3:])
            rows = (a, b, c, q[0], d, e, f, q[1], g, h, i, q[2], 0.0, 0.0, 0.0, 1.0)
            return np.array(rows).reshape(4, 4)
        if at.pose is not None:
            return at.pose.copy()
        return np.array(kinematics.pose(whole.model, whole.q, at.name))

    @pose.setter
    def pose(self, pose: Any):
        """Set the world pose of a part on a free joint: (4, 4) or a ``Plucker``."""
        joint, i = self._free("its pose cannot be set: add it elsewhere, with at=")
        X = as_placement(pose) @ self.world.model.tree_transform[i].inverse()
        q = self.world.q
        q[self.world.model.q_slice[i]] = joint.coordinates(X)
        self.world.q = q

    @property
    def position(self) -> np.ndarray:
        """World position of the part's first body [m], (3,)."""
        start = self._indices.free_q
        if start < 0:
            return self.pose[:3, 3]
        return self.world._whole.current()[0][start : start + 3].copy()

    @property
    def velocity(self) -> np.ndarray:
        """Velocity of the first body's origin along world axes [m/s], (3,)."""
        return self._motion(3)

    @property
    def spin(self) -> np.ndarray:
        """Angular velocity of the part's first body along world axes [rad/s], (3,)."""
        return self._motion(0)

    def set_velocity(
        self, velocity: ArrayLike | None = None, spin: ArrayLike | None = None
    ) -> None:
        """Set velocity [m/s] and angular velocity [rad/s] of a free part, along the world's axes.

        Args:
            velocity: of the origin of its body, (3,); None: as it is.
            spin: angular velocity, (3,); None: as it is.
        """
        _, i = self._free("its velocity cannot be set by that of a body: set its qd")
        now = zip((spin, velocity), (self.spin, self.velocity), strict=True)
        given = [old if x is None else as_reals(x, "a velocity") for x, old in now]
        for x in given:
            if x.shape != (3,):
                raise ShapeError(f"a velocity of {self.name!r} must be (3,), got {x.shape}")
        R, qd = self.pose[:3, :3], self.world.qd
        qd[self.world.model.v_slice[i]] = np.concatenate([x @ R for x in given])
        self.world.qd = qd

    def _free(self, why):
        """Free joint of the part with its number; ModelError if it has none."""
        i, model = self._indices.root, self.world.model
        if i and isinstance(model.joint[i], Free) and model.parent[i] == 0:
            return model.joint[i], i
        raise ModelError(f"{self.name!r} is not on a free joint, so {why}")

    def _motion(self, at):
        """Three components of the first body's spatial velocity from index ``at``, world axes."""
        whole, of = self.world._whole, self._indices
        if not of.root:
            return np.zeros(3)
        if of.free_q < 0:
            state = whole.q, whole.qd
            both = kinematics.velocity(whole.model, *state, of.name, frame="aligned")
            return np.array(both[at : at + 3])
        q, qd = whole.current()
        x, y, z = qd[of.free_v + at : of.free_v + at + 3].tolist()
        a, b, c, d, e, f, g, h, i = _rotation(*q[of.free_q + 3 : of.free_q + 7].tolist())
        return np.array((a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z))


def _rotation(w, x, y, z):
    """Rotation matrix of a unit quaternion, body to world, row by row — RBDA (4.12)."""
    return (
        2 * (w * w + x * x) - 1,
        2 * (x * y - w * z),
        2 * (x * z + w * y),
        2 * (x * y + w * z),
        2 * (w * w + y * y) - 1,
        2 * (y * z - w * x),
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        2 * (w * w + z * z) - 1,
    )


def indices_of(world: "World", name: str) -> Indices:
    """``Indices`` of a part, or of a body with its subtree, in the world's model."""
    whole, model, fixed = world._whole, world.model, None
    if name in world._parts:
        piece, inside = world._parts[name]
        own = whole.ranges[id(piece)]
        numbers = tuple(own) if inside is None else tuple(own[i - 1] for i in inside)
        fixed = piece.at.to_pose().astype(float)
    elif name in whole.bodies:
        numbers = model.subtree[whole.bodies[name]]
    else:
        raise UnknownNameError(
            f"world {world.name!r} has no part or body {name!r} any more: it was removed"
        )
    first = numbers[0] if numbers else 0
    alone = name not in world._parts or len(numbers) == 1
    root = first if first and (alone or isinstance(model.joint[first], Free)) else 0
    is_pose = root and model.parent[root] == 0 and not model.couplings
    is_pose = is_pose and model.joint[root] == Free() and is_identity(model.tree_transform[root])
    return Indices(
        numbers=numbers,
        q=_gather(model.q_slice, numbers),
        v=_gather(model.v_slice, numbers),
        actuators=_actuators_of(model, set(numbers)),
        root=root,
        name=model.body_names[root],
        free_q=model.q_slice[root].start if is_pose else -1,
        free_v=model.v_slice[root].start if is_pose else -1,
        pose=None if root else fixed,
    )


def _gather(slices, numbers):
    """Concatenated variable indices of numbered bodies, from their slices."""
    found = [np.arange(slices[i].start, slices[i].stop) for i in numbers]
    return np.concatenate([np.zeros(0, dtype=int), *found])


def _actuators_of(model, bodies):
    """Numbers of the actuators that drive joints or frames of the given bodies."""

    def ends(a):
        if a.tendon:
            return model.tendon(a.tendon).moves_with(model)
        if a.loop:
            return (model.loops[a.loop - 1].successor,)
        return (a.joint or model.frame(a.frame).body,)

    found = [k for k, a in enumerate(model.actuators) if bodies.intersection(ends(a))]
    return np.array(found, dtype=int)


def tree_parts(model) -> dict[str, tuple[int, ...]]:
    """Body numbers of each kinematic tree, by the name of its root body."""
    return {model.body_names[i]: model.subtree[i] for i in model.children[0]}

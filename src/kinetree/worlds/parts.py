"""A part of a world: its variables, pose and velocity, to read and to set."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError, ShapeError
from kinetree.joints import Free
from kinetree.model.parts import as_placement
from kinetree.model.transfer import body_motion
from kinetree.spatial import Plucker

if TYPE_CHECKING:
    from kinetree.worlds.world import World


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
    def numbers(self) -> tuple[int, ...]:
        """Numbers of its bodies in the model of the world."""
        whole, parts = self.world._whole, self.world._parts
        if self.name not in parts:
            return whole.model.subtree[whole.bodies[self.name]]
        piece, inside = parts[self.name]
        numbers = whole.ranges[id(piece)]
        return tuple(numbers) if inside is None else tuple(numbers[i - 1] for i in inside)

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of its bodies in the model of the world."""
        return tuple(self.world.model.body_names[i] for i in self.numbers)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of its joints in the model of the world."""
        return tuple(self.world.model.joint_names[i - 1] for i in self.numbers)

    @property
    def postures(self) -> tuple[str, ...]:
        """Names of the postures of its model."""
        piece, _ = self.world._parts.get(self.name, (None, None))
        model = None if piece is None else piece.model
        return () if model is None else tuple(p.name for p in model.postures)

    @property
    def actuators(self) -> np.ndarray:
        """Numbers of the actuators that drive it, in the model of the world."""
        model, own = self.world.model, set(self.numbers)

        def ends(a):
            if a.tendon:
                return model.tendon(a.tendon).joints
            if a.loop:
                return (model.loops[a.loop - 1].successor,)
            return (a.joint or model.frame(a.frame).body,)

        found = [k for k, a in enumerate(model.actuators) if own.intersection(ends(a))]
        return np.array(found, dtype=int)

    @property
    def q_indices(self) -> np.ndarray:
        """Where its positions are in ``world.q``."""
        return self._indices(self.world.model.q_slice)

    @property
    def v_indices(self) -> np.ndarray:
        """Where its velocities are in ``world.qd``."""
        return self._indices(self.world.model.v_slice)

    def _indices(self, slices):
        found = [np.arange(slices[i].start, slices[i].stop) for i in self.numbers]
        return np.concatenate([np.zeros(0, dtype=int), *found])

    @property
    def q(self) -> np.ndarray:
        """Its positions, (nq,): a copy."""
        return self.world._whole.q[self.q_indices]

    @q.setter
    def q(self, q: ArrayLike):
        self._set("q", q, self.q_indices)

    @property
    def qd(self) -> np.ndarray:
        """Its velocities, (nv,): a copy."""
        return self.world._whole.qd[self.v_indices]

    @qd.setter
    def qd(self, qd: ArrayLike):
        self._set("qd", qd, self.v_indices)

    def _set(self, what, values, at):
        values = np.asarray(values, dtype=float)
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
    def _root(self) -> int:
        """Number of its first body on the world; 0 where its base is fixed."""
        numbers, model = self.numbers, self.world.model
        if not numbers:
            return 0
        own = self.name not in self.world._parts or len(numbers) == 1
        return numbers[0] if own or isinstance(model.joint[numbers[0]], Free) else 0

    @property
    def pose(self) -> np.ndarray:
        """Of its body in the world, (4, 4); of a robot that of its first body, or fixed base."""
        root = self._root
        if root:
            return self._motion(root)[0].to_pose().astype(float)
        piece, _ = self.world._parts[self.name]
        return piece.at.to_pose().astype(float)

    @pose.setter
    def pose(self, pose: Any):
        joint, i = self._free("its pose cannot be set: add it elsewhere, with at=")
        X = as_placement(pose) @ self.world.model.tree_transform[i].inverse()
        q = self.world.q
        q[self.world.model.q_slice[i]] = joint.coordinates(X)
        self.world.q = q

    @property
    def position(self) -> np.ndarray:
        """Where its body is in the world [m], (3,)."""
        return self.pose[:3, 3]

    @property
    def velocity(self) -> np.ndarray:
        """Of the origin of its body, along the axes of the world [m/s], (3,)."""
        return self._velocities()[1]

    @property
    def spin(self) -> np.ndarray:
        """Angular velocity of its body, along the axes of the world [rad/s], (3,)."""
        return self._velocities()[0]

    def set_velocity(
        self, velocity: ArrayLike | None = None, spin: ArrayLike | None = None
    ) -> None:
        """Set velocity [m/s] and angular velocity [rad/s] of a free part, along the world's axes.

        Args:
            velocity: of the origin of its body, (3,); None: as it is.
            spin: angular velocity, (3,); None: as it is.
        """
        _, i = self._free("its velocity cannot be set by that of a body: set its qd")
        given = [now if x is None else np.asarray(x, dtype=float)
                 for x, now in zip((spin, velocity), self._velocities(), strict=True)]  # fmt: skip
        for x in given:
            if x.shape != (3,):
                raise ShapeError(f"a velocity of {self.name!r} must be (3,), got {x.shape}")
        E, qd = self._motion(i)[0].E, self.world.qd
        qd[self.world.model.v_slice[i]] = np.concatenate([E @ x for x in given])
        self.world.qd = qd

    def _free(self, why):
        i, model = self._root, self.world.model
        if i and isinstance(model.joint[i], Free) and model.parent[i] == 0:
            return model.joint[i], i
        raise ModelError(f"{self.name!r} is not on a free joint, so {why}")

    def _velocities(self):
        root = self._root
        if not root:
            return np.zeros(3), np.zeros(3)
        X, v = self._motion(root)
        return X.E.T @ v.angular, X.E.T @ v.linear

    def _motion(self, i) -> tuple[Plucker, Any]:
        whole = self.world._whole
        return body_motion(whole.model, i, whole.q, whole.qd)


def tree_parts(model) -> dict[str, tuple[int, ...]]:
    """Bodies of every tree of a model, by the name of the body that stands on the base."""
    return {model.body_names[i]: model.subtree[i] for i in model.children[0]}

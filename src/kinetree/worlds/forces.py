"""External forces on a world, as ``step(forces=...)`` takes them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kinetree.contact.engine.engine import Engine
from kinetree.errors import ShapeError
from kinetree.model import Model
from kinetree.model.arrays import as_reals
from kinetree.simulation.forces.applied import ExternalForce
from kinetree.simulation.setup import as_forces


class WorldForces:
    """Wrenches on bodies, which steps have in compiled code, and functions to joint forces.

    Args:
        model: the world.
        given: an ``ExternalForce`` or a function ``(model, t, q, qd)`` that returns joint forces,
            or several; or wrenches by name of the body or frame, (3,) or (6,).
        n: number of worlds of a batch, whose wrenches may have a row for each; None for one world.

    Attributes:
        held: whether all are the same during a call.
    """

    def __init__(self, model: Model, given: Any, n: int | None = None):
        self.model, self.n = model, n
        if isinstance(given, Mapping):
            each: Any = [_force_on(model, name, f, n) for name, f in given.items()]
        else:
            each = () if given is None else as_forces(given)
        self._wrenches = [f for f in each if isinstance(f, ExternalForce)]
        self._functions = [f for f in each if not isinstance(f, ExternalForce)]
        self.held = not (self._functions or any(callable(f.force) for f in self._wrenches))
        frames = [model.frame(f.frame) for f in self._wrenches]
        self._turns = np.array([f.coordinates == "frame" for f in self._wrenches], dtype=np.int64)
        self._body = np.array([f.body for f in frames], dtype=np.int64)
        self._point = np.array([f.placement.r for f in frames], dtype=float).reshape(-1, 3)
        self._axes = [f.placement.E.T for f in frames]

    def __bool__(self):
        return bool(self._wrenches or self._functions)

    def give(self, engine: Engine) -> None:
        """Set the bodies and points on which the external wrenches act in an engine."""
        x = engine.pushes
        x.count, x.body, x.point = len(self._body), self._body, self._point
        x.turns, x.wrench = self._turns, np.zeros((x.count, 6))

    def wrenches(self, t: float) -> np.ndarray:
        """External wrenches (moment, force) at time ``t``, (count, 6), or (n, count, 6)."""
        found = np.zeros((self.n or 1, len(self._body), 6))
        for k, f in enumerate(self._wrenches):
            w = np.asarray(f.at(t), dtype=float)
            if w.shape not in ((6,), (self.n, 6)):
                raise ShapeError(
                    f"the force on {f.frame!r} must have 3 numbers, or 6 with the moment first"
                    f"{f', of each of {self.n} worlds' if self.n else ''}; got shape {w.shape}"
                )
            if self._turns[k]:  # along the axes of the body
                w = np.concatenate([w[..., :3] @ self._axes[k].T, w[..., 3:] @ self._axes[k].T], -1)
            found[:, k] = w
        return found if self.n else found[0]

    def joint_forces(self, t: Any, q: np.ndarray, qd: np.ndarray) -> Any:
        """Sum of the joint forces (..., nv) of force functions; zero without any."""
        return sum((np.asarray(f(self.model, t, q, qd)) for f in self._functions), 0.0)


def _force_on(model, name, force, n):
    """``ExternalForce`` on a body or frame along world axes, its shape checked."""
    f = as_reals(force, f"the force on {name!r}")
    if f.shape not in ((3,), (6,), (n, 3), (n, 6)):
        rows = f", or ({n}, 3) and ({n}, 6)" if n else ""
        raise ShapeError(
            f"the force on {name!r} must have shape (3,), or (6,) with the moment first{rows}; got "
            f"{f.shape}"
        )
    model.frame(name)  # which must be known
    return ExternalForce(name, f)

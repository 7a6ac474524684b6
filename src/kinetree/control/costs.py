"""Costs and goals of trajectory optimization that come with the package."""

from dataclasses import dataclass
from functools import lru_cache
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError
from kinetree.model import Model
from kinetree.quantities.kinematics import pose
from kinetree.spelling import explains_itself


@explains_itself
@dataclass(frozen=True)
class QuadraticCost:
    """Half the weighted squares of deviations from a goal: a running or a terminal cost.

        kt.control.QuadraticCost(q=goal, position=10.0, velocity=0.1, effort=1e-3)
        kt.control.QuadraticCost(points={"tool": [0.4, 0.2, 0.5]}, point=100.0)

    The cost is ``½ Σ weight · deviation²``. Weights are numbers, or arrays with one for every
    variable; goals may have batch axes. Numbers can change without compiling again.

    Args:
        q: goal of the positions, (..., nq).
        position: weights of deviations from ``q``, in the tangent space, (nv,).
        qd: goal of the velocities, (..., nv); zero by default.
        velocity: weights of deviations from ``qd``, (nv,).
        effort: weights of joint forces, or of controls, (n,); only of running costs.
        points: goals of the origins of frames, by name, (..., 3).
        point: weights of deviations from them, (3,).
    """

    q: ArrayLike | None = None
    position: ArrayLike | None = None
    qd: ArrayLike | None = None
    velocity: ArrayLike | None = None
    effort: ArrayLike | None = None
    points: dict[str, ArrayLike] | None = None
    point: ArrayLike = 1.0

    def parts(self, model: Model, held: str, size: int, role: str, label: str) -> tuple[Any, dict]:
        """Kernel of the quadratic cost for a model, and the arrays that it takes, by name."""
        if (self.q is None) != (self.position is None):
            raise ShapeError("QuadraticCost takes q and position together, a goal and its weights")
        if self.effort is not None and role == "terminal":
            raise ShapeError(
                "effort belongs to steps, and after the last there is none: leave it "
                "out of the terminal cost"
            )
        found: dict[str, tuple[Any, tuple]] = {}

        def add(name, goal, weight, n, weights):
            found[f"{label} {name}"] = goal, (n,)
            given = np.broadcast_to(np.asarray(weight, float), (weights,))
            if not np.all(given >= 0):
                raise ShapeError(f"weights of QuadraticCost must be at least 0, got {weight!r}")
            found[f"{label} {name} weight"] = np.sqrt(given), (weights,)

        if self.q is not None:
            add("q", self.q, self.position, model.nq, model.nv)
        if self.velocity is not None:
            zero = np.zeros(model.nv)
            add("qd", zero if self.qd is None else self.qd, self.velocity, model.nv, model.nv)
        if self.effort is not None:
            add("effort", np.zeros(size), self.effort, size, size)
        for name, place in (self.points or {}).items():
            add(f"point {name}", place, self.point, 3, 3)
        if not found:
            raise ShapeError(
                "QuadraticCost without weights: give position, velocity, effort or points"
            )
        arrays = {name: value for name, (value, _) in found.items()}
        shapes = tuple((name, shape) for name, (_, shape) in found.items())
        return _Quadratic(role, label, held, tuple(self.points or {}), shapes), arrays


@dataclass(frozen=True)
class _Quadratic:
    """The residual of a ``QuadraticCost``: what is compiled of it."""

    role: str
    label: str
    held: str
    frames: tuple[str, ...]
    shapes: tuple

    @property
    def __name__(self):
        return f"{self.role} cost"

    @property
    def signature(self):
        """Signature of the cost function, as of a kernel."""
        return _signature(self)

    def __call__(self, model, **values):
        """The weighted deviations."""
        now = {"q": lambda goal: model.difference(goal, values["q"]),
               "qd": lambda goal: values["qd"] - goal,
               "effort": lambda goal: values[self.held]}  # fmt: skip
        for frame in self.frames:
            now[f"point {frame}"] = lambda goal, f=frame: pose(model, values["q"], f)[:3, 3] - goal
        found = []
        for name, deviation in now.items():
            key = f"{self.label} {name}"
            if key in values:
                found.append(values[f"{key} weight"] * deviation(values[key]))
        return np.concatenate(found)


@lru_cache
def _signature(cost: _Quadratic) -> "SimpleSignature":
    """Signature of a cost function, cached."""
    kind = Parameter.POSITIONAL_OR_KEYWORD
    held = (cost.held,) if cost.role == "running" else ()
    taken = [Parameter(n, kind) for n in ("model", "q", "qd", *held)]
    return SimpleSignature([*taken, *cost.shapes])


class SimpleSignature:
    """Parameters by name, some of which are not names that Python would take."""

    def __init__(self, parameters):
        self.parameters = {}
        for p in parameters:
            if isinstance(p, tuple):
                one = Parameter("array", Parameter.POSITIONAL_OR_KEYWORD, annotation=p[1])
                self.parameters[p[0]] = one
            else:
                self.parameters[p.name] = p


@dataclass(frozen=True)
class _FinalState:
    """The deviation from a goal state, for a constraint."""

    __name__ = "goal"

    @property
    def signature(self):
        """Signature of the constraint, as of a kernel."""
        names = ("model", "q", "qd", "goal_q", "goal_qd")
        return Signature([Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in names])

    def __call__(self, model, q, qd, goal_q, goal_qd):
        """(2 nv,)."""
        return np.concatenate([model.difference(goal_q, q), qd - goal_qd])


FINAL_STATE = _FinalState()

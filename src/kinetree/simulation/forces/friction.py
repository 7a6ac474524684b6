"""Dry friction in joints: Coulomb's law, with stiction, smooth or exact.

At a sliding velocity v the force is, after Hess and Soom,

    c(v) = c + (s - c) / (1 + (v/v_s)²)

against the motion: ``s`` at the onset of sliding, ``c`` at speed (the Stribeck effect). At rest it
is whatever keeps the joint at rest, up to ``s``. A force that jumps at v = 0 is not something a
Runge–Kutta method can integrate, so there are two ways to have it:

- smooth: times ``v / √(v² + w²)``. A joint under a load that it could hold creeps, slower than
  about ``w``. Compiled, batched, differentiable: the default.
- exact: a joint either slides in a known direction, or is held; where it changes from one to the
  other is an event that is located in time. See ``kinetree.simulation.forces.modes``.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import ModelError, UnknownNameError
from kinetree.model import Model
from kinetree.model.limits import ratio_to_leader
from kinetree.simulation.forces.applied import (
    at_least,
    is_none,
    leading_levels,
    nominal_mobility,
    on_variables,
)

REFERENCE_STEP = 2e-3
"""Steps [s] up to which smooth friction of its own choice of width is stable: twice the usual."""


@dataclass(frozen=True)
class Friction:
    """Law of dry friction in a simulation; the coefficients belong to the model.

    The level of each joint is that of ``JointDynamics.friction``.

    Args:
        exact: whether joints come to rest exactly, with events; otherwise the law is smoothed.
        static: friction at rest, as a multiple of that at speed; at least 1.
        stribeck_velocity: ``v_s`` [m/s or rad/s], how fast the first gives way to the second. Zero,
            for exact friction only: at once.
        width: ``w`` [m/s or rad/s] of the smooth law, a number or one per velocity variable. A
            step of h seconds needs ``h c < w H_ii``. By default the smallest that steps of 2 ms
            allow at the neutral position, and at least 1e-4.
    """

    exact: bool = False
    static: float = 1.0
    stribeck_velocity: float = 0.01
    width: Any = None
    levels: Any = ()

    traceable = True

    def __post_init__(self):
        if not self.static >= 1:
            raise ModelError(
                f"static friction is a multiple of that at speed, at least 1; got {self.static}"
            )
        if not self.stribeck_velocity >= 0 or (self.stribeck_velocity == 0 and not self.exact):
            raise ModelError(
                f"the Stribeck velocity must be positive, or zero with exact friction; got "
                f"{self.stribeck_velocity}"
            )
        if self.width is not None:
            width = np.atleast_1d(np.asarray(self.width))
            if width.ndim != 1 or (width.dtype != object and not np.all(width > 0)):
                raise ModelError(f"the width of smooth friction must be positive, got {self.width}")
            object.__setattr__(self, "width", tuple(width.tolist()))

    def of(self, model: Model) -> "Friction | None":
        """Friction law with the parameters of a model; None for a model without dry friction."""
        levels = np.array(_levels(model))
        if all(map(is_none, levels)):
            return None
        if self.exact:
            return replace(self, levels=tuple(leading_levels(model, levels).tolist()))
        full = model.uncoupled
        if self.width is None:
            width = at_least(1e-4, levels * nominal_mobility(full) * REFERENCE_STEP)
        elif len(self.width) in (1, full.nv):
            width = np.broadcast_to(self.width, full.nv)
        else:
            raise ModelError(
                f"the width of smooth friction needs one number or nv = {full.nv}, got "
                f"{len(self.width)}"
            )
        return replace(self, levels=tuple(levels.tolist()), width=tuple(width.tolist()))

    @property
    def joints(self) -> tuple:
        """Indices of the velocity variables that have friction."""
        return tuple(i for i, c in enumerate(self.levels) if c > 0)

    @property
    def static_levels(self) -> np.ndarray:
        """Largest static friction of each velocity variable, (nv,) [N or N·m]."""
        return self.static * np.array(self.levels)

    def level(self, c: Any, v: Any) -> Any:
        """Sliding friction of a variable of level ``c`` at velocity ``v`` (Stribeck curve)."""
        if self.static == 1 or self.stribeck_velocity == 0:
            return c
        return c + (self.static - 1) * c / (1 + (v / self.stribeck_velocity) ** 2)

    def __call__(self, model, t, q, qd):
        """Joint forces of the smooth law, (..., nv); levels are those of ``model``, traced too."""
        width: Any = self.width

        def of_all(model, q, qd):
            return _stack(qd, _levels(model), lambda i, c: self.smooth(c, qd[..., i], width[i]))

        return on_variables(model, q, qd, of_all)

    def smooth(self, c: Any, v: Any, width: float) -> Any:
        """Force of the smoothed law on a variable of friction ``c`` at velocity ``v``."""
        return -self.level(c, v) * v / np.sqrt(v * v + width**2)

    def sliding(self, qd: Array, direction: Array) -> Array:
        """Joint friction forces (..., nv) of the exact law for given sliding directions.

        Args:
            qd: joint velocities, (..., nv).
            direction: of sliding: 1, -1, or 0 for variables without friction or held, (..., nv).
        """
        return _stack(qd, self.levels, lambda i, c: -self.level(c, qd[..., i]) * direction[..., i])


def _stack(qd, levels, force):
    """Joint forces (..., nv) from ``force(i, c)`` of the variables with friction, else zero."""
    columns = [0 * qd[..., i] if is_none(c) else force(i, c) for i, c in enumerate(levels)]
    return np.stack([np.asarray(x) for x in columns], axis=-1)


def _levels(model) -> list:
    """Dry friction levels of all velocity variables, as a list; symbols are kept."""
    levels = []
    for body in model.bodies:
        given = () if body.dynamics is None else body.dynamics.friction
        levels += given or [0.0] * body.joint.nv
    return levels


def friction_can_be_exact(model) -> bool:
    """Whether every joint with friction supports the exact law (constant gear ratios)."""
    rough = np.array([not is_none(c) for c in _levels(model)])
    at = model.uncoupled.v_slice
    return all(
        ratio_to_leader(model, c.joint) is not None
        for c in model.couplings
        if c.leaders and rough[at[c.joint]].any()
    )


def friction_of(model, given, argument="friction") -> Friction | None:
    """``Friction`` of a model from "smooth", "exact", None or a law; None without friction.

    ``argument``: what messages call it.
    """
    if given is None:
        return None
    if isinstance(given, str):
        if given not in ("smooth", "exact"):
            raise UnknownNameError(
                f"{argument} must be 'smooth', 'exact', None or a Friction, got {given!r}"
            )
        given = Friction(exact=given == "exact")
    if not isinstance(given, Friction):
        raise TypeError(
            f"{argument} must be 'smooth', 'exact', None or a Friction, got {type(given).__name__}"
        )
    return given.of(model)

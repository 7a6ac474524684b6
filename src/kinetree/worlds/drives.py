"""Controls of actuators, as joint forces with the stiffness and damping of servos."""

from functools import cached_property
from typing import Any

import numpy as np

from kinetree.errors import ModelError, ShapeError
from kinetree.model.limits import position_index
from kinetree.quantities.actuators import activation_after, driving_force
from kinetree.simulation.controllers import call_with_model, of_posture
from kinetree.simulation.forces.actuators import servos_of


class Drives:
    """Joint forces of the actuators of a model, from controls and the state.

    Actuators of joints of one variable and of tendons have constant moment arms; their forces are
    sums over arrays, and their stiffness and damping is known. Others are left to
    ``kinetree.driving_force``.

    Args:
        model: the mechanism.
    """

    def __init__(self, model):
        self.model, self.count = model, len(model.actuators)
        table = [(*a.gain, *a.bias, *a.control, *a.effort) for a in model.actuators]
        self.laws = np.array(table, dtype=float).reshape(-1, 10).T
        self.states = np.flatnonzero([bool(a.activation) for a in model.actuators])
        self.most = np.where(model.effort_limits > 0, model.effort_limits, np.inf)
        self.holds = bool(self.count) and servos_of(model) is None

    @cached_property
    def arms(self) -> np.ndarray | None:
        """Joint forces for a unit of force of each actuator, (nv, n), where they are constant."""
        model = self.model
        simple = not model.couplings and all(
            a.tendon or (a.joint and model.joint[a.joint].nv == model.joint[a.joint].nq == 1)
            for a in model.actuators
        )
        return model.actuation if simple else None

    @cached_property
    def _lengths(self):
        """Which positions lengths depend on, how, and what is added."""
        offset = [
            a.gear[0] * self.model.tendon(a.tendon).offset if a.tendon else 0.0
            for a in self.model.actuators
        ]
        used = np.flatnonzero(np.any(self.arms, axis=1))  # type: ignore[arg-type]
        at = position_index(self.model)[used].astype(int)
        return used, at, self.arms[used].T, np.array(offset)  # type: ignore[index]

    def __call__(self, q, qd, u, activation) -> tuple[np.ndarray, Any, Any]:
        """Joint forces, and the diagonals of stiffness and damping against which they work."""
        if self.arms is None:
            states = (activation,) if self.states.size else ()
            return np.asarray(driving_force(self.model, q, qd, u, *states)), 0.0, 0.0
        g0, g1, g2, b0, b1, b2, low, high, least, most = self.laws
        u = np.clip(u, low, high)
        u[self.states] = activation
        used, at, arms, offset = self._lengths
        l, ld = arms @ q[at] + offset, arms @ qd[used]
        f = (g0 + g1 * l + g2 * ld) * u + b0 + b1 * l + b2 * ld
        inside = (least < f) & (f < most)
        tau = np.zeros(self.model.nv)
        tau[used] = arms.T @ np.clip(f, least, most)
        K, D = np.zeros((2, self.model.nv))
        square = arms.T**2
        K[used] = square @ (inside * np.maximum(-(g1 * u + b1), 0))
        D[used] = square @ (inside * np.maximum(-(g2 * u + b2), 0))
        return np.clip(tau, -self.most, self.most), K, D

    def after(self, u, activation, h) -> np.ndarray:
        """Activations after a step with these controls."""
        if not self.states.size:
            return activation
        return np.asarray(activation_after(self.model, u, activation, np.asarray(h)))

    def reader(self, control, parts):
        """A function ``(t, q, qd)`` to the controls of all actuators, and whether they are held.

        Args:
            control: as in ``World.step``.
            parts: function from the name of a part to the numbers of its actuators.
        """
        if not self.count:
            raise ModelError(
                f"world {self.model.name!r} has no actuators to control; give joint forces, "
                f"step(tau=...)"
            )
        if callable(control):
            function = call_with_model(control, self.model)
            return (lambda t, q, qd: self._vector(function(t, q, qd), parts)), False
        value = self._vector(of_posture(self.model, control)[0], parts)
        return (lambda t, q, qd: value), True

    def _vector(self, control, parts):
        if isinstance(control, dict):
            u = np.zeros(self.count)
            for name, values in control.items():
                at, values = parts(name), np.asarray(values, dtype=float)
                if values.shape not in ((), (len(at),)):
                    raise ShapeError(
                        f"control of {name!r} must be {len(at)} numbers, one for each of its "
                        f"actuators, got shape {values.shape}"
                    )
                u[at] = values
        else:
            u = np.array(control, dtype=float)
        if u.shape != (self.count,) or not np.all(np.isfinite(u)):
            names = ", ".join(a.name for a in self.model.actuators[:4])
            raise ShapeError(
                f"control must be {self.count} finite numbers, one for each actuator of world "
                f"{self.model.name!r} ({names}{', ...' if self.count > 4 else ''}), or by part, "
                f"{{'left': u}}; got shape {u.shape}"
            )
        return u

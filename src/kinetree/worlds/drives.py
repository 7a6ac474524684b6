"""Controls of actuators, as joint forces with the stiffness and damping of servos."""

from functools import cached_property
from typing import Any

import numpy as np

from kinetree.contact.engine.drives import Laws, drive, has_constant_arms, laws_of
from kinetree.errors import ModelError, ShapeError
from kinetree.quantities.actuators import activation_after, driving_force
from kinetree.simulation.controllers import call_with_model, of_posture
from kinetree.simulation.forces.actuators import servos_of


class Drives:
    """Joint forces of the actuators of a model, from controls and the state.

    Actuators of joints of one variable and of tendons have constant moment arms; their forces,
    stiffness and damping are found in compiled code. Others are left to
    ``kinetree.driving_force``.

    Args:
        model: the mechanism.
    """

    def __init__(self, model):
        self.model, self.count = model, len(model.actuators)
        self.states = np.flatnonzero([bool(a.activation) for a in model.actuators])
        self.holds = bool(self.count) and servos_of(model) is None
        self.is_simple = has_constant_arms(model)

    @cached_property
    def laws(self) -> Laws:
        """The actuators as a table."""
        return laws_of(self.model)

    def __call__(self, q, qd, u, activation) -> tuple[np.ndarray, Any, Any]:
        """Joint forces, and the diagonals of stiffness and damping against which they work."""
        if not self.is_simple:
            states = (activation,) if self.states.size else ()
            return np.asarray(driving_force(self.model, q, qd, u, *states)), 0.0, 0.0
        tau, K, D = np.empty((3, self.model.nv))
        drive(self.laws, q, qd, u, activation, tau, K, D)
        return tau, K, D

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
        if callable(control):
            function = call_with_model(control, self.model)
            return (lambda t, q, qd: self.rows(function(t, q, qd), parts)[0]), False
        value = self.rows(control, parts)[0]
        return (lambda t, q, qd: value), True

    def rows(self, control, parts, n=1) -> np.ndarray:
        """Controls of all actuators of ``n`` worlds, (n, count), or (1, count) of all the same.

        Args:
            control: not a function, otherwise as in ``World.step``; with a row for each world.
            parts: function from the name of a part to the numbers of its actuators.
            n: number of worlds.
        """
        if not self.count:
            raise ModelError(
                f"world {self.model.name!r} has no actuators to control; give joint forces, "
                f"step(tau=...)"
            )
        if isinstance(control, dict):
            u = np.zeros((n, self.count))
            for name, values in control.items():
                at, values = parts(name), np.asarray(values, dtype=float)
                if not len(at):
                    raise ModelError(
                        f"{name!r} of world {self.model.name!r} has no actuators to control; give "
                        f"joint forces, step(tau=...)"
                    )
                if values.shape not in ((), (len(at),), (n, len(at))):
                    raise ShapeError(
                        f"control of {name!r} must be {len(at)} numbers, one for each of its "
                        f"actuators, got shape {values.shape}"
                    )
                u[:, at] = values
        else:
            u = np.array(of_posture(self.model, control)[0], dtype=float)
        worlds = f" of {n} worlds" if n > 1 else ""
        if u.shape not in ((self.count,), (n, self.count)) or not np.all(np.isfinite(u)):
            names = ", ".join(a.name for a in self.model.actuators[:4])
            raise ShapeError(
                f"control{worlds} must be {self.count} finite numbers, one for each actuator of "
                f"world {self.model.name!r} ({names}{', ...' if self.count > 4 else ''}), or by "
                f"part, {{'left': u}}; got shape {u.shape}"
            )
        return u.reshape(-1, self.count)

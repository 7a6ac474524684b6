"""The controller of a simulation, as one kind of thing."""

import numpy as np

from kinetree.errors import ModelError, ShapeError, SimulationError
from kinetree.integration.breakdown import all_finite
from kinetree.simulation.forces.actuators import Controls
from kinetree.simulation.inputs import call_with_model

__all__ = ["as_controller"]


class _NoController:
    """Nothing but zeros, the same array every time."""

    is_zero = True

    def __init__(self, shape):
        self.zero = np.zeros(shape)
        self.zero.flags.writeable = False

    def __call__(self, t, q, qd):
        return self.zero


class _Checked:
    """A function ``(t, q, qd)`` whose joint forces have the shape of the velocities."""

    def __init__(self, function, model):
        self.function, self.model = call_with_model(function, model), model
        if hasattr(function, "reset"):
            function.reset()
        if hasattr(function, "next_instant"):
            self.next_instant = function.next_instant

    def __call__(self, t, q, qd):
        given = self.function(t, q, qd)
        if given is None:
            raise SimulationError(
                f"the controller returned None at t = {t:.6g} s: it must return joint forces"
            )
        tau = np.asarray(given, dtype=float)
        if tau.shape != qd.shape:
            try:
                fits = tau.ndim == 0 or tau.shape[-1] == self.model.nv
                tau = np.broadcast_to(tau, qd.shape if fits else ())
            except ValueError:
                raise ShapeError(
                    f"the controller must return joint forces of shape {qd.shape} for model "
                    f"{self.model.name!r} with nv = {self.model.nv}, got {tau.shape}"
                ) from None
        if not all_finite(tau):
            raise SimulationError(
                f"the controller returned {tau[~np.isfinite(tau)][0]} at t = {t:.6g} s"
            )
        return tau


def as_controller(controller, model, shape, controls=None):
    """A function ``(t, q, qd)`` to joint forces of the given shape; None stands for none."""
    if controls is not None:
        if controller is not None:
            raise ModelError(
                "give joint forces (controller=) or the controls of actuators (controls=), not both"
            )
        controller = Controls(model, controls)
    if controller is None:
        return _NoController(shape)
    if not callable(controller):
        raise TypeError(
            f"controller must be a function (t, q, qd) that returns joint forces, got "
            f"{type(controller).__name__}"
        )
    return _Checked(controller, model)

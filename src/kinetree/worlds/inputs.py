"""Joint forces and controls of actuators, as ``step`` of a world or of many takes them."""

from collections.abc import Mapping

import numpy as np

from kinetree.errors import ModelError, ShapeError
from kinetree.functional.kernel import UserKernel
from kinetree.model.actuator import states_of
from kinetree.model.arrays import as_reals
from kinetree.simulation.controllers import call_with_model, of_posture
from kinetree.worlds.controllers import PartControllers


def reader_of(tau, model):
    """Function ``(t, q, qd)`` of checked joint forces (nv,), from an array or a function."""
    if callable(tau):
        function = call_with_model(tau, model)
        return lambda t, q, qd: _check(function(t, q, qd), model)
    value = np.zeros(model.nv) if tau is None else _check(tau, model)
    return lambda t, q, qd: value


def by_part(tau, world, n=None):
    """Joint forces (nv,) or (n, nv), assembled if given by part as ``{"left": (nv,)}``."""
    if callable(tau):
        if hasattr(tau, "compiled_control") or isinstance(tau, UserKernel):
            return tau
        function = call_with_model(tau, world.model)
        return lambda t, q, qd: by_part(function(t, q, qd), world, n)
    if not isinstance(tau, Mapping):
        return tau
    if n is None and any(map(callable, tau.values())):
        return PartControllers(world, tau)
    found = np.zeros((n or 1, world.model.nv))
    for name, values in tau.items():
        at = world[name].v_indices
        if np.shape(values) not in ((len(at),), (n, len(at))):
            raise ShapeError(
                f"tau of {name!r} must be {len(at)} numbers, one for each of its velocities, got "
                f"shape {np.shape(values)}"
            )
        found[:, at] = values
    return found if n else found[0]


def _check(tau, model):
    """Joint forces (nv,) of a world as a float array; ShapeError unless finite and of that size."""
    tau = as_reals(tau, "tau")
    if tau.shape != (model.nv,) or not np.all(np.isfinite(tau)):
        raise ShapeError(
            f"tau must be {model.nv} finite numbers for world {model.name!r}, got shape {tau.shape}"
        )
    return tau


def hold(machine, u, tau, activation, more=()):
    """Set controls and joint forces for the next steps of all worlds of a machine.

    Args:
        machine: takes the steps.
        u: controls of the actuators, (n or 1, count), or None where they exert nothing.
        tau: joint forces, (n, nv), or None.
        activation: of the actuators that have one, (n, m), which follow.
        more: further inputs of compiled forces, (n, ...) each.
    """
    held, engine = tau, machine.engine
    if engine.s.inputs_count:
        own = np.zeros((len(machine), engine.model.nv)) if tau is None else tau
        held = np.concatenate([own, *more], axis=1)
    states = activation if activation.size else None
    timed = None if u is None else u[None]
    machine.hold(timed, held, driven=u is not None, activation=states)


class ActuatorInputs:
    """Controls of the actuators of a model, as callers give them.

    Args:
        model: the mechanism.
    """

    def __init__(self, model):
        self.model, self.count = model, len(model.actuators)
        self.states = np.arange(len(states_of(model.actuators)))
        self.shape = (self.count,) if self.count else None  # of what the engine takes

    def reader(self, control, parts):
        """Function ``(t, q, qd)`` of all actuator controls, and whether it is constant.

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
        """Controls of all actuators in ``n`` worlds, (n, count), or (1, count) if all equal.

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
                at, values = parts(name), as_reals(values, f"control of {name!r}")
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
            u = as_reals(of_posture(self.model, control)[0], "control")
        worlds = f" of {n} worlds" if n > 1 else ""
        if u.shape not in ((self.count,), (n, self.count)) or not np.all(np.isfinite(u)):
            names = ", ".join(a.name for a in self.model.actuators[:4])
            raise ShapeError(
                f"control{worlds} must be {self.count} finite numbers, one for each actuator of "
                f"world {self.model.name!r} ({names}{', ...' if self.count > 4 else ''}), or by "
                f"part, {{'left': u}}; got shape {u.shape}"
            )
        return u.reshape(-1, self.count)

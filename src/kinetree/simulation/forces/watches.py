"""What changes the mode of a joint, as functions that cross zero; see ``modes``.

All functions are positive as long as nothing happens, and one where nothing can.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kinetree.simulation.forces.holding import HeldStepper

__all__ = ["Arrivals", "Releases", "Rests", "Watch"]


class Watch:
    """One variable of a group, as a ``Watcher`` sees it; crossings downward count."""

    direction = -1
    terminal = False
    tolerance = 1e-12
    remedy = (
        "forces that switch with the motion do that; let them change smoothly, or take "
        "friction='smooth' and limits='stiff'"
    )

    def __init__(self, group, k, name):
        self.group, self.k, self.name = group, k, name

    def values(self, t, q, qd, tau, stepper):
        """Of the function, for times (n,) and states (n, ..., nq), (n, ..., nv): (n, ...)."""
        return self.group.values(t, q, qd, tau, stepper)[..., self.k]

    def act(self, t, q, qd):
        """State after the event."""
        return self.group.act(self.group.variables[self.k], q, qd)


class _Group(ABC):
    """Some velocity variables of ``modes``, and what they have in common."""

    def __init__(self, modes, variables, what):
        self.modes, self.variables = modes, np.array(variables, dtype=int)
        self.watches = [Watch(self, k, f"{modes.name(i)} {what}") for k, i in enumerate(variables)]

    def values(self, t, q, qd, tau, stepper: HeldStepper):
        """Of all functions, (n, ..., number of variables)."""
        on = self._on(stepper.mode)
        if not np.any(on):
            return np.ones((*qd.shape[:-1], len(self.variables)))
        return np.where(on, self._functions(t, q, qd, tau, stepper), 1.0)

    @abstractmethod
    def _on(self, mode) -> Any: ...

    @abstractmethod
    def _functions(self, t, q, qd, tau, stepper) -> Any: ...

    @abstractmethod
    def act(self, i, q, qd):
        """State after the event of variable ``i``."""


class Arrivals(_Group):
    """Joints reach their lower (``sign`` 1) or upper (-1) stops."""

    def __init__(self, modes, sign):
        self.sign, self.bound = sign, modes.lower if sign > 0 else modes.upper
        variables = [i for i in modes.variables if np.isfinite(self.bound[i])]
        super().__init__(modes, variables, f"reaches its {'lower' if sign > 0 else 'upper'} limit")

    def _on(self, mode):
        return mode.held[..., self.variables] == 0

    def _functions(self, t, q, qd, tau, stepper):
        x = q[..., self.modes.position[self.variables]]
        return self.sign * (x - self.bound[self.variables])

    def act(self, i, q, qd):
        """State after the impact of variable ``i``."""
        return self.modes.impact(i, self.sign, q, qd)


class Rests(_Group):
    """Sliding joints come to rest."""

    def __init__(self, modes):
        super().__init__(
            modes, [i for i in modes.variables if modes.friction[i] > 0], "comes to rest"
        )

    def _on(self, mode):
        return mode.direction[..., self.variables] != 0

    def _functions(self, t, q, qd, tau, stepper):
        return stepper.mode.direction[..., self.variables] * qd[..., self.variables]

    def act(self, i, q, qd):
        """State with variable ``i`` at rest, exactly."""
        qd = np.array(qd)
        qd[i] = 0.0
        return q, qd


class Releases(_Group):
    """What holds joints is not enough any more."""

    def __init__(self, modes):
        super().__init__(modes, list(modes.variables), "breaks away")

    def _on(self, mode):
        return mode.held[..., self.variables] != 0

    def _functions(self, t, q, qd, tau, stepper):
        low, high = self.modes.bounds(q)
        f = stepper.holding_force(t, q, qd, np.broadcast_to(tau, qd.shape))
        return np.minimum(f - low, high - f)[..., self.variables]

    def act(self, i, q, qd):
        """The state: what changes is the mode."""
        return q, qd

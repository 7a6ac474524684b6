"""What can be chosen about time stepping."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.contact.scene import Scene, as_scene
from kinetree.errors import ModelError

__all__ = ["TimeStepping"]


@dataclass(frozen=True)
class TimeStepping:
    """Contact in equal steps, for ``kinetree.simulate(model, ..., contact=TimeStepping(scene))``.

    In every step velocities, impulses of contacts, stops, dry joint friction and loops are found
    together, so that at its end nothing penetrates, nothing pulls, and friction is within its
    cone. The order in time is one while something touches, and always with loops or exact
    friction; it is that of the integrator in flight.

    Args:
        scene: what can touch, a ``Scene``.
        tolerance: largest error of a velocity that counts as solved, relative to 1 m/s and to the
            velocities at hand.
        rounds: of Newton's method at most, a few are enough most of the time; steps that compiled
            code does not solve are solved on the host.
        rest_velocity: contacts that arrive slower than this do not bounce [m/s].
        stiffness: of a controller's forces, their derivative by position, one number or (nv,)
            [N/m or N·m]: with it stiff gains are taken implicitly. Springs of the joints are.
        damping: the same by velocity. Dampers of the joints are.
        conserving: whether a step may not gain energy but by the work of forces; what rounding
            off the motion to first order would add is taken from the velocities.
        correction_speed: how fast penetration is taken out of positions at most: radians per second
            of a joint, or lengths of the mechanism (its largest shape) per second. What curvature
            leaves in a step is far below it; bodies that start deep inside each other part over
            several steps, instead of being thrown apart in one.
        reach: distance up to which contacts without closed form are looked for [m].
        compiled_rows: up to so many rows that have to do with each other, three for a contact, or
            as much code in several groups, steps are compiled, which takes 14 s for 40 and grows
            with the cube. Longer ones are taken on the host, some hundred times slower.
    """

    scene: Scene
    tolerance: float = 1e-12
    rounds: int = 128
    rest_velocity: float = 1e-2
    stiffness: Any = 0.0
    damping: Any = 0.0
    conserving: bool = True
    correction_speed: float = 10.0
    reach: float = 0.05
    compiled_rows: int = 40

    def __post_init__(self):
        as_scene(self.scene, "TimeStepping")
        for name in ("tolerance", "rounds", "correction_speed", "reach"):
            if not getattr(self, name) > 0:
                raise ModelError(f"{name} must be positive, got {getattr(self, name)!r}")
        for name in ("rest_velocity", "compiled_rows"):
            if not getattr(self, name) >= 0:
                raise ModelError(f"{name} must not be negative, got {getattr(self, name)!r}")
        for name in ("stiffness", "damping"):
            values = np.asarray(getattr(self, name), dtype=float)
            if values.shape not in ((), (self.scene.model.nv,)) or not np.all(values >= 0):
                raise ModelError(
                    f"{name} of a controller must be one number or nv = {self.scene.model.nv}, "
                    f"none negative; got {getattr(self, name)!r}"
                )
            object.__setattr__(
                self, name, (*np.broadcast_to(values, self.scene.model.nv).tolist(),)
            )

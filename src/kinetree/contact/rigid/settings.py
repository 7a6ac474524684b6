"""What can be chosen about event-driven contact."""

from dataclasses import dataclass

from kinetree.contact.impacts.laws import require_law
from kinetree.contact.scene import Scene, as_scene
from kinetree.errors import ModelError

__all__ = ["EventDriven"]


@dataclass(frozen=True)
class EventDriven:
    """Contact in phases, for ``kinetree.simulate(model, ..., contact=EventDriven(scene))``.

    Between events every contact is open, sticks, slides in a known direction, or touches without
    friction, and closed ones are equations of the motion: the order in time is that of the
    integrator. Events are located to 1e-12 s: contacts arrive, and an impact follows; normal forces
    would have to pull, and contacts open; friction is not enough, and they slip; sliding stops.
    At each, and only there, a contact problem decides what comes next — RBDA Table 11.1.

    For single motions with few contacts, and closed-form shapes. ``TimeStepping`` is for many.

    Args:
        scene: what can touch, a ``Scene``, whose pairs have closed forms.
        law: of restitution: ``"energetic"``, ``"poisson"`` or ``"newton"``.
        order: of impacts at several contacts: ``"simultaneous"`` or ``"sequential"``.
        rest_velocity: contacts that would leave an impact slower than this stay closed [m/s]: where
            bounces become ever faster, they end.
        stick_velocity: sliding that is slower than this where it stops is none [m/s].
        gap_tolerance: what counts as closed [m].
        velocity_tolerance: what counts as neither closing nor opening [m/s].
        acceleration_tolerance: with which a contact must want to open or slip before it does
            [m/s²].
    """

    scene: Scene
    law: str = "energetic"
    order: str = "simultaneous"
    rest_velocity: float = 1e-4
    stick_velocity: float = 1e-6
    gap_tolerance: float = 1e-9
    velocity_tolerance: float = 1e-8
    acceleration_tolerance: float = 1e-8

    def __post_init__(self):
        as_scene(self.scene, "EventDriven")
        require_law(self.law)
        if self.order not in ("simultaneous", "sequential"):
            raise ModelError(f"order must be 'simultaneous' or 'sequential', got {self.order!r}")
        for name, value in vars(self).items():
            if isinstance(value, (int, float)) and not value > 0:
                raise ModelError(f"{name} must be positive, got {value!r}")

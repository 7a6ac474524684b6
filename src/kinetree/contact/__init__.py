"""Contact and impact — RBDA chapter 11.

    scene = kt.contact.Scene(model)
    kt.simulate(model, q0, contact=kt.contact.TimeStepping(scene), duration=2.0)

A scene says which shapes can touch. What happens when they do is a matter of choice: rigid contact
by steps at the level of velocities (``TimeStepping``) or from event to event (``EventDriven``),
soft contact by forces (``SoftContact``), and single questions: ``forward_dynamics`` of bodies in
contact, ``impact`` of bodies that collide.
"""

from kinetree.arguments import guard_module
from kinetree.contact import complementarity
from kinetree.contact.collision.convex import Nearest, convex_distance
from kinetree.contact.collision.distance import Distance, distance
from kinetree.contact.collision.rays import RayHit, ray_cast
from kinetree.contact.contacts import (
    Changes,
    Contacts,
    bias,
    contact_changes,
    jacobian,
    spatial_normals,
    velocity,
)
from kinetree.contact.finding.pairs import Pair
from kinetree.contact.impacts.collision import Impact, ImpactResiduals
from kinetree.contact.impacts.impact import capture, impact
from kinetree.contact.rigid.forward_dynamics import (
    BodyContact,
    ContactMotion,
    ContactResiduals,
    body_contact,
    forward_dynamics,
)
from kinetree.contact.rigid.problem import (
    contact_states,
    disc_corners,
    positive_dependence,
    reduced,
)
from kinetree.contact.scene import Candidates, Scene, with_ground
from kinetree.contact.settings import EventDriven, TimeStepping
from kinetree.contact.soft.force import SoftContact
from kinetree.contact.soft.laws import (
    Dahl,
    HuntCrossley,
    Linear,
    NormalLaw,
    Regularized,
    Stiction,
    TangentialLaw,
)
from kinetree.contact.soft.patch import NonlinearPatch, Patch, SeriesSpring, TwoSurfaces, lumped

__all__ = [
    "BodyContact", "Candidates", "Changes", "ContactMotion", "ContactResiduals", "Contacts", "Dahl",
    "Distance", "EventDriven", "HuntCrossley", "Impact", "ImpactResiduals", "Linear", "Nearest",
    "NonlinearPatch", "NormalLaw", "Pair", "Patch", "RayHit", "Regularized", "Scene",
    "SeriesSpring", "SoftContact", "Stiction", "TangentialLaw", "TimeStepping", "TwoSurfaces",
    "bias", "body_contact", "capture", "complementarity", "contact_changes", "contact_states",
    "convex_distance", "disc_corners", "distance", "forward_dynamics", "impact", "jacobian",
    "lumped", "positive_dependence", "ray_cast", "reduced", "spatial_normals", "velocity",
    "with_ground",
]  # fmt: skip

guard_module(__name__)
